"""How much outline of masks is read for one request: they are small to send and slow to turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.utils.translation import gettext_lazy

MOST_AT_ONCE = 10_000_000
"""Sides of pixels, a few seconds of work: a thousand images with ten masks of a thousand each."""
SPENT_CODE = "too_much_at_once"
SPENT = gettext_lazy(
    "more is drawn in this request than is read at once; send this part again, in smaller parts"
)

_left: ContextVar[int | None] = ContextVar("outline_left", default=None)


@contextmanager
def bounded(most: int) -> Iterator[None]:
    """Within it so much can be spent; outside, as in jobs, there is no end."""
    token = _left.set(most)
    try:
        yield
    finally:
        _left.reset(token)


def spend(sides: int) -> bool:
    """Whether so much may be read, too."""
    left = _left.get()
    if left is None:
        return True
    if sides > left:
        return False
    _left.set(left - sides)
    return True
