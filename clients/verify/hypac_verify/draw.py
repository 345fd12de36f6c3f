"""Who was drawn, who was asked, and how ties are split: recomputed from the run's entropy.

NumPy's `SeedSequence` and the raw output of its `PCG64`, which it keeps unchanged, in whole numbers
(docs/statistics.md, "The draw, and how to recompute it"); and the hashes of tie-breaks and rosters.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from heapq import nsmallest
from itertools import accumulate, islice
from math import ceil

from hypac_verify.boxes import same_boxes
from hypac_verify.masks import same_masks
from hypac_verify.reading import Document, Plan, Report, Row, UnusableError, parse

PILOT, DRAW, SALT = 0, 1, 2
LARGEST_POOL = 10**7
"""Of a larger pool the draw is not recomputed: it would take minutes."""
WORD, STATE = 2**32 - 1, 2**128 - 1
MULTIPLIER = (2549297995355413924 << 64) + 4865540595714422341


def _seed_words(entropy: int, stream: int) -> list[int]:
    """Four 64-bit words, as of ``SeedSequence(entropy).spawn(3)[stream].generate_state(4, uint64)``."""
    assembled = list[int]()
    while entropy or not assembled:
        assembled.append(entropy & WORD)
        entropy >>= 32
    assembled += [0] * (4 - len(assembled)) + [stream]
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * 0x931E8875 & WORD
        value = value * constant & WORD
        return value ^ value >> 16

    def mixed(x: int, y: int) -> int:
        value = (0xCA01F9DD * x - 0x4973F715 * y) & WORD
        return value ^ value >> 16

    pool = [hashed(word) for word in assembled[:4]]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for word in assembled[4:]:
        for target in range(4):
            pool[target] = mixed(pool[target], hashed(word))
    words, constant = [], 0x8B51F9DD
    for place in range(8):
        value = pool[place % 4] ^ constant
        constant = constant * 0x58F38DED & WORD
        value = value * constant & WORD
        words.append(value ^ value >> 16)
    return [words[i] | words[i + 1] << 32 for i in range(0, 8, 2)]


def raw_numbers(entropy: int, stream: int) -> Iterator[int]:
    """The raw 64-bit output of PCG64 (XSL-RR) of one of the run's streams."""
    a, b, c, d = _seed_words(entropy, stream)
    step = ((c << 64 | d) << 1 | 1) & STATE
    state = ((step + (a << 64 | b)) * MULTIPLIER + step) & STATE
    while True:
        state = (state * MULTIPLIER + step) & STATE
        folded, turn = (state >> 64) ^ (state & (2**64 - 1)), state >> 122
        yield (folded >> turn | folded << (64 - turn)) & (2**64 - 1)


def drawn(entropy: int, size: int, m: int, p: Fraction) -> tuple[list[int], list[bool]]:
    """Positions of the m drawn items in draw order, and whether each is asked about."""
    numbers = raw_numbers(entropy, DRAW)
    smallest = nsmallest(m, zip(islice(numbers, size), range(size), strict=True))
    limit = ceil(p * 2**53)
    return [place for _, place in smallest], [number >> 11 < limit for number in islice(numbers, m)]


def salt_of(entropy: int) -> str:
    high, low = islice(raw_numbers(entropy, SALT), 2)
    return f"{high:016x}{low:016x}"


def hashed(salt: str, *parts: str) -> int:
    """The first 53 bits of SHA-256 over the salt and the parts, with zero bytes between them."""
    return int.from_bytes(hashlib.sha256("\0".join((salt, *parts)).encode()).digest()[:8], "big") >> 11


def tie_break(salt: str, item_id: str, model: int = 1) -> int:
    """V of an item, on the score of a model counted from 1."""
    return hashed(salt, item_id) if model == 1 else hashed(salt, str(model), item_id)


def whose(salt: str, duty: str, shares: list[tuple[str, Fraction]], item_id: str) -> str:
    """Whose an item is by a roster ("The roster")."""
    limits = [ceil(end * 2**53) for end in accumulate(share for _, share in shares)]
    return shares[bisect_right(limits, hashed(salt, duty, item_id))][0]


def pool_hash(item_ids: Iterable[str]) -> str:
    """SHA-256 over the item ids in pool order, each with its length in bytes."""
    digest = hashlib.sha256()
    for item_id in item_ids:
        data = item_id.encode()
        digest.update(b"%d:%b," % (len(data), data))
    return digest.hexdigest()


def check_draw(
    document: Document, plan: Plan, rows: list[Row], lines: str, number: int, report: Report
) -> None:
    """The rows are those that are drawn, each once, and fit the plan.

    Parameters
    ----------
    number
        What the calibration set is drawn from; ties are split by the run's entropy.
    lines
        SHA-256 of the file's bytes.
    """
    stated, before = document["draw"], len(report.faults)
    entropy = entropy_of(document)
    asked = sum(row.asked for row in rows)
    for name, found in (("rows", len(rows)), ("asked", asked), ("sha256", lines), ("salt", salt_of(entropy))):
        if stated[name] != found or type(stated[name]) is not type(found):
            report.fault(f"certificate.json, draw.{name}: {stated[name]!r}, and {found!r} is found")
    if len(rows) != plan.m:
        report.fault(f"draw.jsonl: it has {len(rows)} rows, and the plan draws {plan.m}")
    if len({row.item_id for row in rows}) < len(rows) or len({row.position for row in rows}) < len(rows):
        report.fault("draw.jsonl: an item is drawn twice")
    exact = not plan.varying and plan.pool_size <= LARGEST_POOL
    positions, is_asked = list[int](), list[bool]()
    if exact and len(rows) == plan.m:  # before so many are drawn, which takes long
        positions, is_asked = drawn(number, plan.pool_size, plan.m, plan.p)
    if not exact:
        report.unchecked.append(
            "the draw: a probability of asking varies, or the pool has over 10 million items"
        )
    salt = salt_of(entropy)
    for place, row in enumerate(rows):
        where = f"draw.jsonl, item {row.item_id!r}"
        if row.order != place or not 0 <= row.position < plan.pool_size:
            report.fault(f"{where}: its place in the draw or in the pool is wrong")
        if place < len(positions) and (row.position, row.asked) != (positions[place], is_asked[place]):
            report.fault(f"{where}: the entropy draws another item at this place, or asks otherwise")
        if row.v != tie_break(salt, row.item_id):
            report.fault(f"{where}: its tie-break does not follow from salt and id")
        for model, key in enumerate(row.own, start=2):
            if key is not None and key[1] != tie_break(salt, row.item_id, model):
                report.fault(f"{where}: the tie-break of model {model} does not follow from salt and id")
        if not plan.varying and row.p != plan.p:
            report.fault(f"{where}: it was asked about with another probability than the plan's")
        if row.asked and len(row.answers) != plan.models:
            report.fault(f"{where}: {len(row.answers)} answers of {plan.models} models")
        # A missing answer of the first model has U = 1, whatever the rule: below, it would cost no error.
        if row.asked and row.u < 1 and row.answers[:1] == (None,):
            report.fault(f"{where}: the first model has no answer, and an uncertainty below 1")
        if not row.asked and (row.label is not None or row.annotator):
            report.fault(f"{where}: nobody was asked about it, and it has a label")
        _check_measured(plan, row, where, report)
    if len(report.faults) == before and exact:
        report.checked.append(f"the draw: {len(rows)} items, {asked} asked about, follow from the entropy")


def _check_measured(plan: Plan, row: Row, where: str, report: Report) -> None:
    """Where the plan's losses are measured, each answer to a labelled item has its own, and nothing else."""
    answers = row.answers if plan.measured and row.asked and row.label is not None else ()
    wanted = tuple(answer is not None for answer in answers)
    found = tuple(loss is not None for loss in row.losses)
    if found != wanted and (any(wanted) or found):
        report.fault(f"{where}: its measured losses are not one for each answer that there is")
    if plan.measured and plan.zero_one and any(loss not in (0, 1, None) for loss in row.losses):
        report.fault(f"{where}: by the plan a measured loss is 0 or 1")


def entropy_of(document: Document) -> int:
    text = document["draw"].get("entropy")
    if not isinstance(text, str) or not re.fullmatch("0|[1-9][0-9]{0,99}", text):
        raise UnusableError("certificate.json, draw.entropy: no whole number in text")
    return int(text)


Same = Callable[[str, str], bool]
"""Whether the second, an answer, is right where the first is the label; ValueError where that is none."""
NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)


def same_by(plan: Plan) -> Same | None:
    """The 0-1 loss of the plan (docs/methods.md, "Losses"); None for one that is not known here."""
    given = plan.loss_params
    if plan.loss == "zero_one" and not given:
        return str.__eq__
    if plan.loss == "exact_match" and all(type(value) is bool for value in given.values()):
        return (
            _same_text(given)
            if given.keys() <= {"ignore_case", "ignore_punctuation", "ignore_articles"}
            else None
        )
    if plan.loss == "set_equal" and not given:
        return lambda label, answer: _set(label, strict=True) == _set(answer)
    if plan.loss == "numeric" and given.keys() <= {"absolute", "relative"}:
        return _same_number(given)
    if plan.loss == "boxes_right":
        return same_boxes(given)
    if plan.loss == "masks_right":
        return same_masks(given)
    return None


def nobody_compares(label: str, answer: str) -> bool:
    """The `Same` of losses that are not computed."""
    raise ValueError("losses that are measured elsewhere stand in the draw")


def loss_of(row: Row, model: int, same: Same) -> float:
    """Of a model's own answer to a labelled item: as it was measured, or 0 or 1."""
    if row.losses:
        return row.losses[model] or 0
    return int(not same(row.label or "", row.answers[model] or ""))


def _same_text(given: Document) -> Same:
    def form(text: str) -> str:
        text = unicodedata.normalize("NFKC", text)
        if given.get("ignore_case", True):
            text = unicodedata.normalize("NFKC", text.casefold())
        if given.get("ignore_punctuation", False):
            text = "".join(sign for sign in text if not unicodedata.category(sign).startswith("P"))
        if given.get("ignore_articles", False):
            text = re.sub(r"\b(?:a|an|the)\b", " ", text, flags=re.IGNORECASE)
        return " ".join(text.split())

    return lambda label, answer: form(label) == form(answer)


def _same_number(given: Document) -> Same | None:
    try:
        if any(len(str(part)) > 50 or abs(Decimal(str(part)).adjusted()) > 100 for part in given.values()):
            return None  # a fraction of 1e999999999 takes for ever
        absolute, relative = (Fraction(Decimal(str(given.get(name, 0)))) for name in ("absolute", "relative"))
    except (ArithmeticError, ValueError):
        return None

    def read(text: str) -> Fraction | None:
        text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").strip()
        return (
            Fraction(Decimal(text.replace(",", ""))) if len(text) <= 1000 and NUMBER.fullmatch(text) else None
        )

    def same(label: str, answer: str) -> bool:
        truth, value = read(label), read(answer)
        if truth is None:
            raise ValueError("the label is no number")
        return value is not None and abs(value - truth) <= max(absolute, relative * abs(truth))

    return same


def _set(text: str, *, strict: bool = False) -> frozenset[str] | None:
    try:
        values = parse(text.encode(), "a label")
    except UnusableError:
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        if strict:
            raise ValueError("the label is no list of labels")
        return None
    return frozenset(values)
