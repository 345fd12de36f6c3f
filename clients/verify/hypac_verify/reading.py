"""Reading what strangers hand over: strict, bounded, and never guessed."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, isclose, isfinite
from pathlib import Path
from typing import IO, Any, NoReturn

Document = dict[str, Any]
Key = tuple[float, int]
"""A place in the order of a model's items: uncertainty in [0, 1], then tie-break in [0, 2**53)."""

LARGEST_DOCUMENT = 2**28
LONGEST_LINE = 2**24
MOST_ROWS = 5 * 10**6
LARGEST_TIE_BREAK = 2**53 - 1
EVERYTHING: Key = (1.0, LARGEST_TIE_BREAK)
DECIMAL = re.compile(r"(0|[1-9][0-9]{0,39})(\.[0-9]{0,59}[1-9])?")
"""As certificates spell a number: one text for one value, without sign or exponent."""
FRACTION = re.compile(r"(0|[1-9][0-9]{0,99})/([1-9][0-9]{0,99})")
SHOWN = 50


class UnusableError(Exception):
    """A file that cannot be read, or is none of these; the message says which and where."""


@dataclass
class Report:
    """What was found.

    Attributes
    ----------
    checked, faults, unchecked, notes
        Sentences: what holds, what does not, what could not be checked, and what to know beside.
    say
        Called with what there is to say beforehand.
    """

    say: Callable[[str], object] = field(default=lambda _: None, repr=False)

    checked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    pilot_costs: bool = False
    """Whether what policies cost on the pilot was found again."""
    ledger_known: bool = False
    """Whether the reader had noted an entry of the ledger that holds all until the run's own."""

    def fault(self, words: str) -> None:
        """Something that does not hold; of many alike the first ones are kept and the others counted."""
        if len(self.faults) < SHOWN:
            self.faults.append(words)
        else:
            self.left_out += 1

    def note(self, words: str) -> None:
        """What to know beside, once."""
        if words not in self.notes:
            self.notes.append(words)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _whole(text: str) -> int:
    if len(text) > 50:
        raise ValueError("a whole number of more than 50 digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = set[str]()
        twice = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{twice[:60]!r} stands there twice")
    return found


_decode = json.JSONDecoder(
    parse_constant=_no_constant, parse_int=_whole, parse_float=_number, object_pairs_hook=_no_repeats
).decode


def parse(data: bytes, where: str) -> Any:
    """A JSON value. Raises UnusableError for anything that two readers might read differently."""
    try:
        text = data.decode("utf-8")
        value = _decode(text)
        if "\\u" in text:  # half of a surrogate pair, which JSON can name, is no text
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UnusableError(f"{where}: no JSON in UTF-8 ({str(error)[:200]})") from None
    return value


def list_in(text: str, most: int) -> list[Any] | None:
    """What a label or an answer is; None where it is no JSON list of at most so many entries."""
    try:
        entries = parse(text.encode(), "a label")
    except UnusableError:
        return None
    return entries if isinstance(entries, list) and len(entries) <= most else None


def canonical(value: object) -> bytes:
    """The one spelling of a document: sorted keys, no spaces, UTF-8 ("The certificate")."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def opened(path: Path) -> IO[bytes]:
    """A file on the disk. Raises UnusableError for a pipe or a device, which need not end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnusableError(f"{path.name}: this is no ordinary file")
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise UnusableError(f"{path.name}: cannot be read ({error})") from None


def whole_file(path: Path) -> bytes:
    """All of a file of at most 256 MiB."""
    with opened(path) as file:
        data = file.read(LARGEST_DOCUMENT + 1)
    if len(data) > LARGEST_DOCUMENT:
        raise UnusableError(f"{path.name}: more than {LARGEST_DOCUMENT:,} bytes")
    return data


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; each at most 16 MiB, at most 5 million."""
    with opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE or number > MOST_ROWS:
                raise UnusableError(f"{path.name}, line {number}: too long, or more than {MOST_ROWS:,} lines")
            yield number, line


def part(document: object, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """An entry of the wanted kind of an object; true and false are no numbers. Raises UnusableError."""
    value = document.get(name) if isinstance(document, dict) else None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise UnusableError(f"{where}: {name!r} is missing or of the wrong kind")
    return value


def item_of(line: bytes, where: str) -> Document:
    """A line that is an object. Raises UnusableError."""
    return object_of(parse(line, where), where)


def object_of(value: object, where: str) -> Document:
    """A value that is an object. Raises UnusableError."""
    if not isinstance(value, dict):
        raise UnusableError(f"{where}: no object")
    return value


def decimal(document: Mapping[str, Any], name: str, where: str) -> Fraction:
    """A number that stands as text, exactly."""
    text = part(document, name, str, where)
    if not DECIMAL.fullmatch(text):
        raise UnusableError(f"{where}: {name!r} is no decimal number in its one spelling")
    return Fraction(text)


def fraction(text: object, where: str) -> Fraction:
    """A fraction that stands as text, "1/60", in lowest terms."""
    if not isinstance(text, str) or not FRACTION.fullmatch(text):
        raise UnusableError(f"{where}: no fraction such as 1/60")
    value = Fraction(text)
    if fraction_text(value) != text:
        raise UnusableError(f"{where}: the fraction {text[:60]} is not in lowest terms")
    return value


def fraction_text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def threshold(entry: object, where: str) -> Key | None:
    """[u, v], or None where nothing goes."""
    if entry is None:
        return None
    if (
        not isinstance(entry, list)
        or len(entry) != 2
        or type(entry[0]) is not float
        or type(entry[1]) is not int
    ):
        raise UnusableError(f"{where}: no threshold")
    u, v = entry
    if not (0 <= u <= 1 and 0 <= v <= LARGEST_TIE_BREAK):
        raise UnusableError(f"{where}: a threshold outside its range")
    return u + 0.0, v


@dataclass(frozen=True)
class Row:
    """A line of ``draw.jsonl`` (docs/statistics.md, "The certificate"); ``blank`` is what of it was there
    before the first label, in its one spelling.
    """

    order: int
    item_id: str
    position: int
    asked: bool
    p: Fraction
    u: float
    v: int
    label: str | None
    answers: tuple[str | None, ...]
    own: tuple[Key | None, ...]
    called: tuple[bool, ...]
    annotator: str
    person: str | None
    later: tuple[int, ...]
    losses: tuple[float | None, ...]
    blank: bytes


@dataclass(frozen=True)
class Plan:
    """The plan of a certificate; ``words`` are its numbers as they are spelt there."""

    epsilon: Fraction
    alpha: Fraction
    target: str
    m: int
    p: Fraction
    pool_size: int
    costs: tuple[Fraction, ...]
    bound: str
    rule: str
    loss: str
    loss_params: Document
    pilot_size: int
    varying: bool
    data_set_size: int | None
    alpha_spent: Fraction | None
    words: Mapping[str, str]

    @property
    def whole_size(self) -> int:
        """N_all: items of the delivered data set."""
        return self.pool_size if self.data_set_size is None else self.data_set_size

    @property
    def budget(self) -> int:
        """E = floor(epsilon N_all)."""
        return floor(self.epsilon * self.whole_size)

    @property
    def measured(self) -> bool:
        """Whether losses were measured by a program of the team's, and come with the draw."""
        return self.loss == MEASURED

    @property
    def zero_one(self) -> bool:
        """Whether a loss is 0 or 1."""
        return self.loss_params.get("binary") is True if self.measured else self.loss not in GRADED

    @property
    def models(self) -> int:
        """K."""
        return len(self.costs) - 1


MEASURED = "measured_elsewhere"
GRADED = {"jaccard", "cosine_distance", "token_f1", "box_f1"}
"""Losses between 0 and 1, or more."""
PLAN = {
    "epsilon", "alpha", "target", "m", "p", "pool_size", "costs", "bound", "rule", "loss", "pilot_size",
}  # fmt: skip
PLAN_OPTIONAL = {"loss_params", "p_min", "split_share", "data_set_size", "alpha_spent"}


def read_plan(document: Document) -> Plan:
    """Raises UnusableError for a plan that nobody can have made."""
    where = "certificate.json, plan"
    plan = part(document, "plan", dict, "certificate.json")
    if not plan.keys() >= PLAN or plan.keys() - PLAN - PLAN_OPTIONAL:
        raise UnusableError(f"{where}: entries are missing, or there are others")
    costs = part(plan, "costs", list, where)
    size = part(plan, "data_set_size", int, where) if "data_set_size" in plan else None
    read = Plan(
        epsilon=decimal(plan, "epsilon", where),
        alpha=decimal(plan, "alpha", where),
        target=part(plan, "target", str, where),
        m=part(plan, "m", int, where),
        p=decimal(plan, "p", where),
        pool_size=part(plan, "pool_size", int, where),
        costs=tuple(decimal({"costs": cost}, "costs", where) for cost in costs),
        bound=part(plan, "bound", str, where),
        rule=part(plan, "rule", str, where),
        loss=part(plan, "loss", str, where),
        loss_params=part(plan, "loss_params", dict, where) if "loss_params" in plan else {},
        pilot_size=part(plan, "pilot_size", int, where),
        varying="p_min" in plan,
        data_set_size=size,
        alpha_spent=decimal(plan, "alpha_spent", where) if "alpha_spent" in plan else None,
        words={name: plan[name] for name in ("epsilon", "alpha", "p", "alpha_spent") if name in plan},
    )
    levels = 0 < read.epsilon < 1 and 0 < read.alpha < 1 and 0 < read.p <= 1
    sizes = 1 <= read.m <= read.pool_size <= read.whole_size <= LARGEST_TIE_BREAK
    if not levels or not sizes or not 0 <= read.pilot_size <= read.pool_size:
        raise UnusableError(f"{where}: a level or a size is outside its range")
    if (
        not 2 <= len(costs) <= 1000
        or read.costs[-1] == 0
        or read.target not in ("dataset", "pool", "population")
    ):
        raise UnusableError(f"{where}: no such costs or target")
    if size is not None and read.target != "dataset":
        raise UnusableError(f"{where}: 'data_set_size' belongs to the target 'dataset'")
    return read


def compare(stated: object, found: object, where: str, report: Report, *, figure: bool = False) -> None:
    """Report where two JSON values differ, one sentence per leaf; a ``figure`` of money or chance is compared
    to nine digits, all else to the last.
    """
    if isinstance(stated, dict) and isinstance(found, dict):
        for name in sorted(stated.keys() | found.keys()):
            if name not in stated or name not in found:
                report.fault(f"{where}.{name}: {'missing' if name not in stated else 'not part of it'}")
            else:
                compare(stated[name], found[name], f"{where}.{name}", report, figure=figure)
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for place, (one, other) in enumerate(zip(stated, found, strict=True)):
            compare(one, other, f"{where}[{place}]", report, figure=figure)
    elif figure and type(stated) in (int, float) and type(found) in (int, float):
        if not isclose(stated, found, rel_tol=1e-9, abs_tol=1e-9):  # type: ignore[arg-type]
            report.fault(f"{where} is {stated}, and {found} follows")
    elif type(stated) is not type(found) or stated != found:
        report.fault(f"{where} is {_short(stated)}, and {_short(found)} follows")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
