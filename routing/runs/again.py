"""What differs where something stored is computed again, by `certified_again` and its neighbours."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from annotation.errors import HypacError
from routing.core.documents import DocumentError
from routing.core.messages import CoreError


class DiffersError(ValueError):
    """Where something is not what its rows give, in a sentence without its end."""


def refuse(differences: Iterator[str]) -> None:
    """Raises DiffersError with the first."""
    if (first := next(differences, None)) is not None:
        raise DiffersError(first)


@contextmanager
def computing_again() -> Iterator[None]:
    """Whatever a plan, a chain or a document leads to that nobody made here is a DiffersError."""
    try:
        yield
    except (DatabaseError, DiffersError):
        raise
    except (CoreError, DocumentError, HypacError) as error:
        raise DiffersError(str(error).rstrip(".")) from error
    except Exception as error:
        raise DiffersError(f"it cannot be computed again ({type(error).__name__}: {error})") from error
