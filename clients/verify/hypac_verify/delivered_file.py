"""Reading a delivered file: one row for each item, its imported columns and ours (docs/deliveries.md)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypac_verify.reading import (
    LONGEST_LINE,
    Document,
    UnusableError,
    lines_of,
    parse,
    part,
)

ADDED = (
    "external_id", "label", "label_name", "source", "annotator", "settled_by", "uncertainty", "p_i", "asked",
    "run", "certificate_id", "reason", "expert_saw",
)  # fmt: skip
"""Our columns, the last of the file; one that was taken has ``hypac_`` in front."""
LATER, SUGGESTION = ("taken_in", "audited"), ("suggestion",)
MORE = tuple(
    (*ours, *LATER[:later], *SUGGESTION[:suggestion])
    for later in (2, 1, 0) for ours in (ADDED, ADDED[:-1]) for suggestion in (1, 0)
)  # fmt: skip
"""The same where a run took items in after the draw or showed suggestions, and in older deliveries without
`expert_saw`.
"""
PERSON, EXPERT = "person", "expert"
WAITS = ("it waits for a person", "it waits for the expert")
SAW = {"asked", "recheck", "routed", "second_look", "no_answer", "audit", "alarm", "final"}
SHOWN = {"none", "taken", "other"}
SETTLED_BY = {"majority", "adjudicated", "dawid_skene", "imported"}
READABLE = ("labels.jsonl", "labels.csv", "labels.tsv")
OTHERS = (
    "labels.json", "labels.xlsx", "labels.parquet", "dataset", "doccano.jsonl", "labels.manifest",
    "label_studio",
)  # fmt: skip
FORMULA = re.compile(
    r"'+(?:[\t\r\n]|[\s\x00-\x1f\x7f\x85\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
    r"[=+@＝＋＠﹦﹢﹫\-－﹣])"
)


@dataclass(frozen=True)
class Delivered:
    """One row: what was imported, and our columns."""

    originals: Document
    external_id: str
    label: str | None
    source: str | None
    annotator: str | None
    settled_by: str | None
    uncertainty: float | None
    p_i: str | None
    asked: bool
    run: int | None
    certificate_id: str | None
    reason: str | None
    expert_saw: str | None
    taken_in: int | None = None
    audited: bool | None = None
    suggestion: str | None = None


def rows_of(path: Path, name: str) -> Iterator[Delivered]:
    """The rows of a delivered file. Raises UnusableError."""
    return (
        _from_json(path)
        if name == "labels.jsonl"
        else _from_table(path, "\t" if name == "labels.tsv" else ",")
    )


def _from_json(path: Path) -> Iterator[Delivered]:
    for number, line in lines_of(path):
        where = f"{path.name}, line {number}"
        row = parse(line, where)
        if not isinstance(row, dict):
            raise UnusableError(f"{where}: no object")
        names = _ours(list(row), where)
        values = {ours: row.pop(name) for ours, name in names.items()}
        label = values["label"]
        several = isinstance(label, list) and all(isinstance(one, str) for one in label)
        if not (label is None or isinstance(label, str) or several):
            raise UnusableError(f"{where}: no label")
        if several:
            label = json.dumps(label, ensure_ascii=False, separators=(",", ":"))
        yield _row(row, {**values, "label": label}, where)


def _ours(names: Sequence[str], where: str) -> dict[str, str]:
    """By our columns, what they are called in a file with these columns."""
    for wanted in MORE:
        last = names[-len(wanted) :]
        if len(last) == len(wanted) and all(
            re.sub("^(hypac_)+", "", name) == ours for name, ours in zip(last, wanted, strict=True)
        ):
            return dict(zip(wanted, last, strict=True))
    raise UnusableError(f"{where}: its last columns are not those of a delivery")


def _from_table(path: Path, delimiter: str) -> Iterator[Delivered]:
    def texts() -> Iterator[str]:
        for number, line in lines_of(path):
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise UnusableError(f"{path.name}, line {number}: no UTF-8 ({error})") from None

    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    try:
        header = [cell[1:] if FORMULA.match(cell) else cell for cell in next(reader, [])]
        names = _ours(header, path.name)
        for number, cells in enumerate(reader, start=2):
            where = f"{path.name}, row {number}"
            if len(cells) != len(header):
                raise UnusableError(f"{where}: {len(cells)} cells of {len(header)}")
            texts_ = [cell[1:] if FORMULA.match(cell) else cell for cell in cells]
            row: Document = dict(zip(header, texts_, strict=True))
            values = {ours: row.pop(name, "") or None for ours, name in names.items()}
            values["external_id"] = values["external_id"] or ""
            if values["source"] and values["label"] is None:
                values["label"] = ""
            values["label_name"] = None
            try:
                values["uncertainty"] = (
                    None if values["uncertainty"] is None else float(values["uncertainty"])
                )
                values["run"] = None if values["run"] is None else _whole(values["run"])
                taken_in = values.get("taken_in")
                values["taken_in"] = None if taken_in is None else _whole(taken_in)
                values["asked"] = {"true": True, "false": False}[values["asked"] or ""]
                if "audited" in values:
                    values["audited"] = {"true": True, "false": False, None: None}[values["audited"]]
            except (ValueError, KeyError) as error:
                raise UnusableError(f"{where}: a cell is none of its column ({error})") from None
            yield _row(row, values, where)
    except csv.Error as error:
        raise UnusableError(f"{path.name}: no table ({error})") from None


def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ValueError(f"{text[:20]!r} is no number of a run")
    return int(text)


def _row(originals: Document, values: Document, where: str) -> Delivered:
    text = (str, type(None))
    u = values["uncertainty"]
    if u is not None and (type(u) is not float or not 0 <= u <= 1):
        raise UnusableError(f"{where}: an uncertainty outside [0, 1]")
    return Delivered(
        originals,
        part(values, "external_id", str, where),
        values["label"],
        part(values, "source", text, where),
        part(values, "annotator", text, where),
        part(values, "settled_by", text, where),
        u,
        part(values, "p_i", text, where),
        part(values, "asked", bool, where),
        part(values, "run", (int, type(None)), where),
        part(values, "certificate_id", text, where),
        part(values, "reason", text, where),
        part(values, "expert_saw", text, where) if "expert_saw" in values else None,
        part(values, "taken_in", (int, type(None)), where) if "taken_in" in values else None,
        part(values, "audited", (bool, type(None)), where) if "audited" in values else None,
        part(values, "suggestion", text, where) if "suggestion" in values else None,
    )
