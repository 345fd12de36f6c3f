"""What differs where something stored is computed again, by `verify_run` and its neighbours."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError

from annotation.errors import HypacError
from routing.core.documents import DocumentError
from routing.core.losses import LossCodeError, LossError, LossUnavailableError
from routing.core.messages import CoreError


class NotComputedError(Exception):
    """A loss cannot be computed here now, so that nobody knows what the rows give; `why` not."""

    def __init__(self, why: LossError) -> None:
        super().__init__(str(why))
        self.why = why


class DiffersError(ValueError):
    """Where something is not what its rows give, in a sentence without its end."""


def refuse(differences: Iterator[str]) -> None:
    """Raises DiffersError with the first."""
    if (first := next(differences, None)) is not None:
        raise DiffersError(first)


@contextmanager
def recomputing() -> Iterator[None]:
    """Whatever a plan, a chain or a document leads to that nobody made here is a DiffersError; that a server
    of losses is away, or their code, is none of the file's doing, and a NotComputedError.
    """
    try:
        yield
    except (DatabaseError, DiffersError):
        raise
    except Exception as error:
        if (loss := not_to_be_had(error)) is not None:
            raise NotComputedError(loss) from error
        if isinstance(error, CoreError | DocumentError | HypacError):
            raise DiffersError(str(error).rstrip(".")) from error
        raise DiffersError(f"it cannot be computed again ({type(error).__name__}: {error})") from error


def not_to_be_had(error: BaseException | None) -> LossError | None:
    """Of an error and those that it comes from the one of a loss that cannot be computed here."""
    while error is not None:
        if isinstance(error, LossUnavailableError | LossCodeError):
            return error
        error = error.__cause__
    return None
