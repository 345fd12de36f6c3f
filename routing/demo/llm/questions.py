"""Sums of numbers of one to three digits, a tenth of which the models have never seen, and what the two
models are taught to write: the fast one the answer, the slow one its working before it.

The working goes through the digits from the last to the first and writes each digit of the result with what
is carried (or borrowed) behind it, so that each step follows from two digits and the one written last:

    47 + 86     <think>3131</think>133      7 + 6 = 13: 3, carry 1; 4 + 8 + 1 = 13: 3, carry 1
    103 - 7     <think>619100</think>96     13 - 7 = 6, borrow 1; 10 - 0 - 1 = 9, borrow 1; 1 - 0 - 1 = 0
    7 x 468     <think>657423</think>3276
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass

OPERATIONS = ("+", "-", "x")
DIGITS = (1, 2, 3)
SHARE_HELD_OUT = 10  # one in so many


@dataclass(frozen=True)
class Sum:
    """`a operation b`, both numbers from 0 to 999."""

    a: int
    operation: str
    b: int

    @property
    def question(self) -> str:
        return f"{self.a} {self.operation} {self.b}"

    @property
    def answer(self) -> int:
        if self.operation == "+":
            return self.a + self.b
        if self.operation == "-":
            return self.a - self.b
        return self.a * self.b

    @property
    def held_out(self) -> bool:
        """Whether training leaves it out; with the other order of its numbers: 7 x 8 would tell 8 x 7."""
        low, high = sorted((self.a, self.b))
        digest = hashlib.sha256(f"{low} {self.operation} {high}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % SHARE_HELD_OUT == 0


@dataclass(frozen=True)
class Question:
    id: str
    question: str
    answer: str


def draw_sum(rng: random.Random, *, digits: tuple[float, ...] = (1, 2, 3)) -> Sum:
    """One sum, held out or not. `digits` weighs one, two and three digits in a number.

    Differences are not below 0, and one of the numbers of a product has one digit.
    """
    operation = rng.choice(OPERATIONS)
    lengths = rng.choices(DIGITS, digits, k=2)
    if operation == "x":
        lengths[rng.randrange(2)] = 1
    a, b = (rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length) for length in lengths)
    if operation == "-" and a < b:
        a, b = b, a
    return Sum(a, operation, b)


def held_out_questions(count: int, *, seed: int) -> list[Question]:
    """Different sums that no model was trained on, their ids in the order drawn: `sum-0001`, ...

    So that the draw ends, at most 50,000 may be asked for. Products are fewer than the others among many.
    """
    if not 0 < count <= 50_000:
        raise ValueError(f"The number of questions must be from 1 to 50,000, not {count:,}.")
    rng = random.Random(seed)  # noqa: S311 - no secret, and the same seed gives the same questions
    drawn: dict[Sum, None] = {}
    while len(drawn) < count:
        candidate = draw_sum(rng)
        if candidate.held_out:
            drawn[candidate] = None
    return [
        Question(f"sum-{number:04d}", one.question, str(one.answer))
        for number, one in enumerate(drawn, start=1)
    ]


THINK, END_THINK = "<think>", "</think>"


def fast_solution(one: Sum) -> str:
    return str(one.answer)


def slow_solution(one: Sum) -> str:
    return f"{THINK}{working(one)}{END_THINK}{one.answer}"


def working(one: Sum) -> str:
    """A digit of the result and the carry, for each place from the last to the first."""
    if one.operation == "x":
        long, digit = max(one.a, one.b), min(one.a, one.b)
        return _written(digit * int(figure) for figure in _reversed(long))
    sign = 1 if one.operation == "+" else -1
    first, second = _reversed(one.a), _reversed(one.b)
    places = max(len(first), len(second))
    pairs = zip(first.ljust(places, "0"), second.ljust(places, "0"), strict=True)
    return _written(int(x) + sign * int(y) for x, y in pairs)


def _written(places: Iterable[int]) -> str:
    written, carry = "", 0
    for place in places:
        carry, figure = divmod(place + carry, 10)
        written += f"{figure}{abs(carry)}"
    return written


def _reversed(number: int) -> str:
    return str(number)[::-1]
