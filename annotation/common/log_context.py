"""What a line of the log belongs to: a request, a job. Kept beside the code that is at work, so that no
function has to hand it on; `hypac_site.logs` writes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_about: ContextVar[dict[str, str | int]] = ContextVar("about")


def current() -> dict[str, str | int]:
    """Names and values of what is at work now; empty where that is nothing in particular."""
    return _about.get({})


@contextmanager
def bind(**names: str | int) -> Iterator[None]:
    """Lines that this thread logs meanwhile carry `names`, beside those that it has already."""
    token = _about.set(current() | names)
    try:
        yield
    finally:
        _about.reset(token)
