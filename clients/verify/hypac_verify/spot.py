"""A check that needs none of our labels: k delivered items, drawn and labelled by whoever doubts them.

If more than E of N labels differ from what is right, a simple random sample of k shows so few of them with at
most the probability P[Hyp(N, E + 1, k) <= errors].
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from pathlib import Path
from secrets import SystemRandom

from hypac_verify.certificate import Checked
from hypac_verify.delivered_file import Delivered, as_text, from_text, rows_of
from hypac_verify.delivery import is_part
from hypac_verify.draw import Same, same_by
from hypac_verify.first_score import least_right
from hypac_verify.reading import LONGEST_LINE, Plan, UnusableError, lines_of
from hypac_verify.tails import tail
from hypac_verify.words import one_line

MOST = 100_000
ID, YOURS = "external_id", "your_label"
_OF_MODELS = re.compile(r"^Imported columns with model output: `(\[.*\])`$", re.MULTILINE)


def refuse_part(card: str | None) -> None:
    """Raise UnusableError for a part of the items: how many of the others differ may be anything."""
    if is_part(card):
        raise UnusableError(
            "--spot and --filled: this is a part of the items, and what is promised is about all of them"
        )


def _covered(path: Path, name: str) -> Iterator[Delivered]:
    """The labelled rows of the pool: the others are not among those that the certificate counts."""
    return (
        row
        for row in rows_of(path, name)
        if row.certificate_id is not None and row.source is not None and row.taken_in is None
    )


def draw_spot(path: Path, name: str, count: int, to: Path | None, card: str | None = None) -> list[Delivered]:
    """Draw ``count`` labelled items that the certificate covers, and write them without their labels.

    Parameters
    ----------
    to
        A CSV file with the imported columns and an empty last column, to be filled in. Columns with model
        output, which the data card names, and such that hold nothing but labels are left out.

    Raises
    ------
    UnusableError
        There are fewer, or the file is there already.
    """
    if not 1 <= count <= MOST:
        raise UnusableError(f"--spot: give a number from 1 to {MOST:,}")
    numbers = SystemRandom()
    # Not the rows themselves: they are many. Those with the smallest numbers are a simple random sample.
    chosen = {place for _, place in nsmallest(count, _numbered(_covered(path, name), numbers))}
    if len(chosen) < count:
        raise UnusableError(f"--spot: only {len(chosen)} labelled items are there")
    rows = [row for place, row in enumerate(_covered(path, name)) if place in chosen]
    if to is not None:
        _write(rows, to, of_models(card))
    return rows


def of_models(card: str | None) -> set[str]:
    """The imported columns with model output, by the data card; older ones name none."""
    told = _OF_MODELS.search(card or "")
    try:
        names = json.loads(told[1]) if told else []
    except ValueError:
        return set()
    return {name for name in names if isinstance(name, str)}


def _gives_away(column: str, rows: Sequence[Delivered]) -> bool:
    """Whether it holds nothing but labels: those of a model, or of people before."""
    cells = {_cell(row, column) for row in rows}
    return cells != {""} and cells <= {"", *(row.label for row in rows)}


def _cell(row: Delivered, column: str) -> str:
    cell = row.originals.get(column, "")
    return cell if isinstance(cell, str) else json.dumps(cell)


def _numbered(rows: Iterator[Delivered], numbers: SystemRandom) -> Iterator[tuple[float, int]]:
    for place, _ in enumerate(rows):
        yield numbers.random(), place


def _write(rows: list[Delivered], to: Path, left_out: Set[str] = frozenset()) -> None:
    found = dict.fromkeys(name for row in rows for name in row.originals)
    columns = [name for name in found if name not in left_out and not _gives_away(name, rows)]
    try:
        with to.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([ID, *map(as_text, columns), YOURS])
            for row in rows:
                texts = [_cell(row, name) for name in columns]
                writer.writerow([*map(as_text, [row.external_id, *texts]), ""])
    except OSError as error:
        raise UnusableError(f"{to.name}: cannot be written ({error})") from None


def asked_words(rows: Sequence[Delivered], plan: Plan) -> list[str]:
    """What is asked of whoever had these items drawn, and whether their labels can say anything."""
    lines = [f"Label these {len(rows)} items yourself, before you look at the delivered labels:"]
    lines += [f"  {one_line(row.external_id)}" for row in rows]
    # So many of which none differs speak for the promise at 5 %.
    fewest = least_right(plan.pool_size, min(plan.budget + 1, plan.pool_size), Fraction(1, 20))
    if len(rows) < fewest:
        lines += ["", f"Fewer than {fewest} cannot speak for the promise, even if none of them differs."]
    return lines


@dataclass(frozen=True)
class Spot:
    """What a filled file shows.

    ``passes`` is P[Hyp(N, E + 1, k) <= errors]: how likely so few would be if the promise were broken;
    ``breaks`` is P[Hyp(M, E, k) >= errors], of the M labels that are here: how likely so many are if it
    holds.
    ``beside`` says of what that speaks.
    """

    items: int
    errors: int
    passes: float
    breaks: float
    beside: str = ""

    @property
    def words(self) -> str:
        return f"{self._words} {self.beside}".rstrip()

    @property
    def _words(self) -> str:
        said = f"Spot check: {self.errors} of {self.items} labels differ from yours. "
        if self.passes <= 0.05:
            return said + (
                "If more labels differed than may, so few would have been found with probability at most "
                f"{self.passes:.2g}: this speaks for the promise."
            )
        if self.breaks <= 0.05:
            return said + (
                "If no more labels differed than may, so many would have been found with probability at most "
                f"{self.breaks:.2g}: this speaks against the promise, as far as your labels mean the same."
            )
        return said + (
            "That says little: also if more labels differ than may, so few are found with probability up to "
            f"{self.passes:.2g}. More items say more."
        )


def read_spot(filled: Path, path: Path, name: str, checked: Checked) -> Spot:
    """Test a filled file against the delivery. Raises UnusableError."""
    yours = _labels_in(filled)
    same = same_by(checked.plan)
    if same is None:
        raise UnusableError("--filled: the loss of this certificate is none that is known here")
    labelled, found = 0, dict[str, Delivered]()
    for row in _covered(path, name):
        labelled += 1
        if row.external_id in yours:
            found[row.external_id] = row
    if len(found) < len(yours):
        raise UnusableError(f"{filled.name}: an item is none that was delivered with a label")
    errors = sum(_differ(same, yours[key], row) for key, row in found.items())
    plan = checked.plan
    size, wrong, k = plan.pool_size, plan.budget, len(found)
    beside = []
    if labelled < size:
        beside.append(f"It speaks of the {labelled} labels that are here alone, not of those to come.")
    if plan.target == "population":
        beside.append("It speaks of the pool alone; what is promised is about new items.")
    # All labels that may differ may be among those that are here; of more items fewer would be found.
    passes = float(tail(size, wrong + 1, k, errors)) if wrong < size else 1.0
    breaks = float(1 - tail(labelled, wrong, k, errors - 1)) if errors and wrong < labelled else 1.0
    return Spot(k, errors, passes, breaks, " ".join(beside))


def _labels_in(filled: Path) -> dict[str, str]:
    """By item, what stands in the last column of its own in a filled file."""
    csv.field_size_limit(LONGEST_LINE)  # as the delivered file: what was written is read
    try:
        texts = (line.decode("utf-8-sig" if number == 1 else "utf-8") for number, line in lines_of(filled))
        header, *table = [cells for cells in csv.reader(texts, strict=True) if cells] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnusableError(f"{filled.name}: no CSV file in UTF-8 ({error})") from None
    if ID not in header or YOURS not in header:
        raise UnusableError(f"{filled.name}: its first line does not name {ID!r} and {YOURS!r}")
    # Imported columns, which stand between the two, may be called the same.
    item, label = header.index(ID), len(header) - 1 - header[::-1].index(YOURS)
    if any(len(cells) <= max(item, label) for cells in table):
        raise UnusableError(f"{filled.name}: a line has fewer cells than the first")
    yours = {from_text(cells[item]): cells[label].strip() for cells in table}
    if not table or len(yours) < len(table) or not all(yours.values()):
        raise UnusableError(f"{filled.name}: each item once, with something in {YOURS!r}")
    return yours


def _differ(same: Same, yours: str, row: Delivered) -> bool:
    try:
        return not same(yours, row.label or "")
    except ValueError as error:
        raise UnusableError(f"item {row.external_id!r}: {error}") from None
