"""Reading a delivered file: one row for each item, its imported columns and ours (docs/deliveries.md)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import starmap, zip_longest
from pathlib import Path

from hypac_verify.reading import (
    LONGEST_LINE,
    Document,
    UnusableError,
    item_of,
    lines_of,
    part,
)
from hypac_verify.workbook import cells_of

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
READABLE = (
    "labels.jsonl", "labels.csv", "labels.tsv", "labels.json", "labels.xlsx", "doccano.jsonl",
    "labels.manifest", "label_studio",
)  # fmt: skip
OTHERS = ("labels.parquet", "dataset")
"""Whose labels the standard library cannot read."""
PARTLY_READ = {
    "labels.manifest": "the numbers of classes in labels.manifest",
    "label_studio": "results and configuration in label_studio",
}
"""What nothing here compares with the labels that HyPAC says the items of a file have."""
TASKS, CSV = "tasks.json", (".csv", ".tsv")
_BEGINS = (
    r"(?:[\t\r\n]|[\s\x00-\x1f\x7f\x85\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
    r"[=+@＝＋＠﹦﹢﹫\-－﹣])"
)
"""What a spreadsheet takes for the start of a formula."""
FORMULA, _LIVE = re.compile(f"'+{_BEGINS}"), re.compile(f"'*{_BEGINS}")
_NEGATIVE = re.compile(r" *-[0-9]+(?:\.[0-9]+)?")


def as_text(cell: str) -> str:
    """As a CSV of a delivery has it: with an apostrophe in front of what a spreadsheet would compute."""
    return f"'{cell}" if _LIVE.match(cell) and not _NEGATIVE.fullmatch(cell) else cell


def from_text(cell: str) -> str:
    """The cell of which `as_text` made this one."""
    return cell[1:] if FORMULA.match(cell) else cell


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
    shown: str = ""
    """What does not fit between the label and the same as another program has it; "" where nothing."""


def rows_of(path: Path, name: str) -> Iterator[Delivered]:
    """The rows of a delivered file. Raises UnusableError."""
    if name in ("labels.csv", "labels.tsv"):
        return _from_table(_cells_of(path, "\t" if name == "labels.tsv" else ","), path.name)
    if name == "labels.xlsx":
        return _from_table(cells_of(path), path.name)
    if name == "label_studio":
        return starmap(_of_task, _listed(path / TASKS))
    lines = _listed(path) if name == "labels.json" else _lines(path)
    made = {"doccano.jsonl": _of_example, "labels.manifest": _of_entry}.get(name, _of_object)
    return starmap(made, lines)


def _lines(path: Path) -> Iterator[tuple[Document, str]]:
    for number, line in lines_of(path):
        where = f"{path.name}, line {number}"
        yield item_of(line, where), where


def _listed(path: Path) -> Iterator[tuple[Document, str]]:
    """Of a JSON list with one object on each line, as deliveries write it."""
    more, ended = True, False
    for number, line in lines_of(path):
        where, text = f"{path.name}, line {number}", line.rstrip(b"\n")
        if number == 1:
            ended = text == b"[]"
            if not ended and text != b"[":
                raise UnusableError(f"{where}: no list with one object on each line")
        elif text == b"]" and not more and not ended:
            ended = True
        elif ended or not more:
            raise UnusableError(f"{where}: no list with one object on each line")
        else:
            more = text.endswith(b",")
            yield item_of(text.removesuffix(b","), where), where
    if not ended:
        raise UnusableError(f"{path.name}: its list does not end")


def _of_object(row: Document, where: str) -> Delivered:
    names = _ours(list(row), where)
    return _typed(row, {ours: row.pop(name) for ours, name in names.items()}, where)


def _of_example(row: Document, where: str) -> Delivered:
    """Of doccano, which has the labels once more, as people see them."""
    names = _ours(list(row), where)
    values = {ours: row.pop(name) for ours, name in names.items()}
    shown, found = _several(part(row, "label", list, where)), _typed(row, values, where)
    known = {*_several(values["label"]), *_several(values["label_name"])}
    if not set(shown) <= known or bool(shown) != bool(values["label"] not in (None, [])):
        return replace(found, shown="its label for doccano is not its label")
    return found


def _of_entry(row: Document, where: str) -> Delivered:
    """Of an augmented manifest, which has the name of a class and whether people gave it once more."""
    values = part(row, "hypac", dict, where)
    del row["hypac"]
    found = _typed(row, {**dict.fromkeys(MORE[0]), **values}, where)
    said = row.get("label-metadata", {} if found.source is None else None)
    if not isinstance(said, dict) or (found.source is None) != ("label" not in row):
        return replace(found, shown="its label for Ground Truth is not its label")
    if found.source is not None and said.get("human-annotated") != (
        "yes" if found.source == PERSON else "no"
    ):
        return replace(found, shown="'human-annotated' does not fit its source")
    if "class-name" in said and said["class-name"] not in (values.get("label"), values.get("label_name")):
        return replace(found, shown="its label for Ground Truth is not its label")
    return found


def _of_task(row: Document, where: str) -> Delivered:
    """Of a task of Label Studio; what is delivered of an item stands in its ``meta``."""
    data, meta = part(row, "data", dict, where), part(row, "meta", dict, where)
    values = part(meta, "hypac", dict, where)
    found = _typed(data, {**dict.fromkeys(MORE[0]), **values}, where)
    kind = "annotations" if found.source == PERSON else "predictions"
    if found.source is not None and not row.get(kind):
        return replace(found, shown=f"it has a label, and none among its {kind}")
    return found


def _several(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _typed(originals: Document, values: Document, where: str) -> Delivered:
    """Of values as JSON has them."""
    label = values["label"]
    several = isinstance(label, list) and all(isinstance(one, str) for one in label)
    if not (label is None or isinstance(label, str) or several):
        raise UnusableError(f"{where}: no label")
    if several:
        label = json.dumps(label, ensure_ascii=False, separators=(",", ":"))
    return _row(originals, {**values, "label": label}, where)


def _ours(names: Sequence[str], where: str) -> dict[str, str]:
    """By our columns, what they are called in a file with these columns."""
    for wanted in MORE:
        last = names[-len(wanted) :]
        if len(last) == len(wanted) and all(
            re.sub("^(hypac_)+", "", name) == ours for name, ours in zip(last, wanted, strict=True)
        ):
            return dict(zip(wanted, last, strict=True))
    raise UnusableError(f"{where}: its last columns are not those of a delivery")


def _cells_of(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Of a CSV, without the apostrophes that it has in front of formulas."""

    def texts() -> Iterator[str]:
        for number, line in lines_of(path):
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise UnusableError(f"{path.name}, line {number}: no UTF-8 ({error})") from None

    csv.field_size_limit(LONGEST_LINE)
    try:
        for cells in csv.reader(texts(), delimiter=delimiter, strict=True):
            yield list(map(from_text, cells))
    except csv.Error as error:
        raise UnusableError(f"{path.name}: no table ({error})") from None


def _from_table(rows: Iterator[list[str]], name: str) -> Iterator[Delivered]:
    header = next(rows, [])
    names = _ours(header, name)
    for number, cells in enumerate(rows, start=2):
        where = f"{name}, row {number}"
        if len(cells) > len(header) or (len(cells) < len(header) and name.endswith(CSV)):
            raise UnusableError(f"{where}: {len(cells)} cells of {len(header)}")
        row: Document = dict(zip_longest(header, cells, fillvalue=""))
        yield _of_cells(row, {ours: row.pop(name, "") or None for ours, name in names.items()}, where)


def _of_cells(row: Document, values: Document, where: str) -> Delivered:
    values["external_id"] = values["external_id"] or ""
    if values["source"] and values["label"] is None:
        values["label"] = ""
    values["label_name"] = None
    try:
        values["uncertainty"] = None if values["uncertainty"] is None else float(values["uncertainty"])
        values["run"] = None if values["run"] is None else _whole(values["run"])
        taken_in = values.get("taken_in")
        values["taken_in"] = None if taken_in is None else _whole(taken_in)
        values["asked"] = {"true": True, "false": False}[values["asked"] or ""]
        if "audited" in values:
            values["audited"] = {"true": True, "false": False, None: None}[values["audited"]]
    except (ValueError, KeyError) as error:
        raise UnusableError(f"{where}: a cell is none of its column ({error})") from None
    return _row(row, values, where)


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
