"""What the two models are taught to write: the fast one the answer, the slow one its working before it.

The working goes through the digits from the last to the first and writes each digit of the result with what
is carried (or borrowed) behind it, so that each step follows from two digits and the one written last:

    47 + 86     <think>3131</think>133      7 + 6 = 13: 3, carry 1; 4 + 8 + 1 = 13: 3, carry 1
    103 - 7     <think>619100</think>96     13 - 7 = 6, borrow 1; 10 - 0 - 1 = 9, borrow 1; 1 - 0 - 1 = 0
    7 x 468     <think>657423</think>3276
"""

from collections.abc import Iterable

from routing.demo.llm.questions import Sum

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
