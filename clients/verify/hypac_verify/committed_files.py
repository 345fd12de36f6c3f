"""``committed.jsonl`` and ``pilot.jsonl``: what models had said before the draw; ``answered.jsonl``: what
they said since (docs/statistics.md, "The certificate").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any

from hypac_verify.commitments import Commitments
from hypac_verify.draw import LARGEST_POOL, PILOT, pool_hash, raw_numbers
from hypac_verify.reading import Document, Plan, Report, Row, UnusableError, item_of, lines_of, part


class Tree:
    """A Merkle tree hash (RFC 9162, 2.1.1) over lines that come one by one."""

    def __init__(self) -> None:
        self._trees, self.count = list[bytes](), 0

    def add(self, line: bytes) -> None:
        self._trees.append(hashlib.sha256(b"\0" + line).digest())
        self.count += 1
        size = self.count
        while size % 2 == 0:
            self._join()
            size //= 2

    def _join(self) -> None:
        right, left = self._trees.pop(), self._trees.pop()
        self._trees.append(hashlib.sha256(b"\1" + left + right).digest())

    @property
    def root(self) -> str:
        if not self._trees:
            return hashlib.sha256(b"").hexdigest()
        while len(self._trees) > 1:
            self._join()
        return self._trees[0].hex()


@dataclass(frozen=True)
class Said:
    """What models had said of an item when the run committed to it: U of the first one, and of each its
    answer and score, None where it had not answered. ``content`` is the hash of what people see.
    """

    content: str
    u: float | None
    answers: tuple[tuple[str | None, float | None] | None, ...]


def read_said(path: Path, wanted: object, models: int, where: str, report: Report) -> dict[str, Said]:
    """The lines of one of the three files, by item; a fault where they are not those of the ``wanted`` root,
    if there is one. Raises UnusableError.
    """
    tree, found = Tree(), dict[str, Said]()
    for number, line in lines_of(path):
        line = line.removesuffix(b"\n")
        tree.add(line)
        item, said = _said(line, f"{path.name}, line {number}", models)
        if item in found:
            report.fault(f"{path.name}: the item {item!r} stands there twice")
        found[item] = said
    if wanted is not None and wanted != {"count": tree.count, "root": tree.root}:
        report.fault(f"{path.name}: it is not what was committed to ({where})")
    return found


def _said(line: bytes, where: str, models: int) -> tuple[str, Said]:
    item = item_of(line, where)
    if item.keys() != {"item_id", "content", "u", "answers"}:
        raise UnusableError(f"{where}: no item, or with an entry of its own")
    u, answers = part(item, "u", (float, type(None)), where), part(item, "answers", list, where)
    if len(answers) != models or (u is not None and not 0 <= u <= 1):
        raise UnusableError(f"{where}: not one answer for each model, or an uncertainty outside [0, 1]")
    said = []
    for answer in answers:
        if answer is not None and (
            not isinstance(answer, list)
            or len(answer) != 2
            or not isinstance(answer[0], str | None)
            or not (answer[1] is None or (type(answer[1]) is float and 0 <= answer[1] <= 1))
        ):
            raise UnusableError(f"{where}: no answer")
        said.append(None if answer is None else (answer[0], answer[1]))
    return part(item, "item_id", str, where), Said(part(item, "content", str, where), u, tuple(said))


def check_files(
    made: Commitments,
    plan: Plan,
    rows: Sequence[Row],
    pool: Document,
    files: Mapping[str, Path],
    report: Report,
) -> tuple[dict[str, Said], dict[str, Said]]:
    """``committed.jsonl`` and ``pilot.jsonl`` are what the commitments hold the roots of, and the draw has
    what they say; returns them, by item, the former in the order of the pool.
    """
    before, said, pilot = len(report.faults), dict[str, Said](), dict[str, Said]()
    later = plan.target == "population"
    wanted = {
        "committed.jsonl": (made.first["items"], "before_draw.items"),
        "pilot.jsonl": (
            made.second["pilot"] if later else made.first["pilot"],
            f"{'before_labels' if later else 'before_draw'}.pilot",
        ),
    }
    for name, (root, where) in wanted.items():
        size = plan.pool_size if name == "committed.jsonl" else plan.pilot_size
        if root != {"count": size, "root": root.get("root") if isinstance(root, dict) else None}:
            report.fault(f"{where}: it does not hold as many items as the plan, {size}")
        if name not in files:
            if size == 0:
                continue  # no run without a pilot delivers one
            report.unchecked.append(
                f"{name}: it is not there, and with it what models had said before the draw"
            )
            continue
        found = read_said(files[name], root, plan.models, where, report)
        if name == "committed.jsonl":
            said = found
        else:
            pilot = found
            _check_pilot(pilot, said, made, plan, rows, report)
    if not said:
        return said, pilot
    if len(said) != plan.pool_size or pool_hash(said) != pool["hash"]:
        report.fault("committed.jsonl: its items are not those of the pool, in their order (pool.hash)")
    for item, one in [*said.items(), *pilot.items()]:
        if fault := _first_fault(one):
            report.fault(f"committed.jsonl or pilot.jsonl, item {item!r}: {fault}")
    names = list(said)
    for row in rows:
        for fault in _row_faults(row, said.get(row.item_id), names):
            report.fault(f"draw.jsonl, item {row.item_id!r}: {fault}")
    if len(report.faults) == before:
        report.checked.append(
            f"what models had said of {len(said)} items before the draw: the first commitment holds its "
            "hash, and the draw has the same"
        )
    return said, pilot


def with_answered(
    said: dict[str, Said], path: Path | None, plan: Plan, rows: Sequence[Row], report: Report
) -> dict[str, Said]:
    """What was said before the draw, and since, by item; those that were taken in later come last."""
    if path is None:
        if unsaid := sum(_unsaid(row, said) for row in rows):
            report.unchecked.append(f"what models said of {unsaid} drawn items: there is no answered.jsonl")
        return said
    answered = read_said(path, None, plan.models, "", report)
    if not said:
        report.unchecked.append(f"{path.name}: without committed.jsonl nothing says what it may not change")
        return said
    faults = len(report.faults)
    for item, now in answered.items():
        if (before := said.get(item)) is None:
            if plan.target != "population":  # of that later items may have been taken in
                report.fault(f"{path.name}, item {item!r}: it is not in committed.jsonl")
            continue
        kept = all(old in (None, new) for old, new in zip(before.answers, now.answers, strict=True))
        if not kept or (before.content, before.u) != (now.content, now.u) or before.answers == now.answers:
            report.fault(f"{path.name}, item {item!r}: it is not what was committed to, and more")
    for row in rows:
        if row.item_id in answered:
            faults_of_row = list(_answer_faults(row, answered[row.item_id], called_later=True))
        else:
            faults_of_row = ["it lacks an answer that the draw has"] if _unsaid(row, said) else []
        for fault in faults_of_row:
            report.fault(f"{path.name}, item {row.item_id!r}: {fault}")
    if len(report.faults) == faults:
        report.notes.append(
            f"Models answered about {len(answered)} items after the first commitment (answered.jsonl): that "
            "the answers are their own is on trust, what follows from them is checked."
        )
    return said | answered


def _check_pilot(
    pilot: Mapping[str, Said],
    said: Mapping[str, Said],
    made: Commitments,
    plan: Plan,
    rows: Sequence[Row],
    report: Report,
) -> None:
    """As many as planned, with what the pool says of the same items; and whether the entropy drew them."""
    if len(pilot) != plan.pilot_size:
        report.fault(f"pilot.jsonl: {len(pilot)} items, and the plan has a pilot of {plan.pilot_size}")
    later = plan.target == "population"
    for item, one in pilot.items():
        other = said.get(item)
        if other is None:
            continue
        known = [
            None if answer is None and later else mine
            for mine, answer in zip(one.answers, other.answers, strict=True)
        ]
        if (one.content, one.u or 0.0, known) != (other.content, other.u or 0.0, list(other.answers)):
            report.fault(f"pilot.jsonl, item {item!r}: committed.jsonl says something else of it")
    # Of a pool of another size a fault is told already, and drawing takes long.
    if not pilot or len(said) != plan.pool_size or plan.pool_size > LARGEST_POOL:
        return
    inside = sum(item in said for item in pilot)
    if inside == 0 and later:
        report.notes.append(
            "The pilot lies outside the pool: it was measured before the run was planned, and that it was "
            "drawn at random then is on trust. No promise rests on it."
        )
        return
    if inside < len(pilot):
        report.fault("pilot.jsonl: an item is not in the pool")
        return
    out = {row.position for row in rows} if later else set[int]()
    numbers = zip(raw_numbers(int(made.first["entropy"]), PILOT), range(plan.pool_size), strict=False)
    drawn = nsmallest(len(pilot), (pair for pair in numbers if pair[1] not in out))
    names = list(said)
    if [names[place] for _, place in drawn] == list(pilot):
        report.checked.append(f"the pilot: {len(pilot)} items follow from the entropy")
    elif later:
        report.fault("pilot.jsonl: its items are not those that the entropy draws")
    else:
        report.notes.append(
            "The pilot does not follow from the run's entropy: it was measured before the run was planned, "
            "and that it was drawn at random then is on trust. No promise rests on it."
        )


def _row_faults(row: Row, said: Said | None, names: Sequence[str]) -> Iterator[str]:
    if said is None or not 0 <= row.position < len(names) or names[row.position] != row.item_id:
        yield "it is not at its place in committed.jsonl"
        return
    if (said.u or 0.0) != row.u:
        yield "its uncertainty is not what was committed to"
    for model in row.later:
        if row.asked and said.answers[model - 1] is not None:
            yield f"model {model} answered before the draw, and it is said to have done so later"
    yield from _answer_faults(row, said, called_later=False)


def _first_fault(said: Said) -> str:
    """Of the first model's answer, by whose score all are drawn and routed, U has to be the score."""
    first = said.answers[0]
    if said.u is None or said.u == 1.0:
        return ""
    if first is None or first[0] is None:
        return "it has an uncertainty, and no answer of the first model"
    return "its uncertainty is not the first model's score" if first[1] != said.u else ""


def _unsaid(row: Row, said: Mapping[str, Said]) -> bool:
    """Whether the draw has a later model's answer that was not there at the first commitment."""
    one = said.get(row.item_id)
    if one is None or not row.asked:
        return False
    return any(
        answer is not None and known is None and row.called[model : model + 1] != (False,)
        for model, (answer, known) in enumerate(zip(row.answers, one.answers, strict=False))
    )


def _answer_faults(row: Row, said: Said, *, called_later: bool) -> Iterator[str]:
    """Where the draw has other answers and scores of an asked item. It has what was said at the first
    commitment; with ``called_later`` a model may have been asked only once the draw was written.
    """
    for model, answer in enumerate(said.answers if row.asked else ()):
        if answer is None or model >= len(row.answers):
            continue
        if row.called[model : model + 1] == (False,):
            if not called_later:
                yield f"model {model + 1} had answered before the draw, which says that it was not asked"
            continue
        if answer[0] != row.answers[model]:
            yield f"the answer of model {model + 1} in the draw is another one"
        own: Any = row.own[model - 1] if model and row.own else None
        if model and row.own and (None if own is None else own[0]) != answer[1]:
            yield f"the score of model {model + 1} in the draw is another one"
