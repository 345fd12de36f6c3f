"""The sources of a run as its plan froze them, against the sources as they are."""

from annotation.errors import HypacError
from routing.models import Run, RunSource, Source
from routing.sources.backend_for import backend_for
from routing.sources.backends import BackendError


def fingerprint_now(source: Source) -> str:
    """Fingerprint under which the source would answer at this moment."""
    return backend_for(source).fingerprint()


def change_of(run_source: RunSource) -> str:
    """What is different about the source since the run froze it, in a sentence; "" where nothing is.

    Raises BackendError where nobody can tell: its server cannot be reached now (not permanent), or refuses
    its key, a setting of this server keeps it from being asked, a file is missing. All of that can be put
    right, and says nothing of what the source answered.
    """
    source = run_source.source
    try:
        now = fingerprint_now(source)
    except HypacError as error:
        if not error.permanent:
            # The reason says itself that it cannot be reached.
            raise BackendError(f"{source.name}: {error.message}", permanent=False) from error
        raise BackendError(f"{source.name} cannot be run now: {error.message}") from error
    if now != run_source.fingerprint:
        return f"{source.name} was changed after the run was planned (its fingerprint differs)."
    return ""


def changed_sources(run: Run) -> str:
    """The first change among all sources of the run, in a sentence; "" where there is none. Raises as
    `change_of` does.
    """
    rows = run.run_sources.select_related("source").order_by("position")
    return next((change for row in rows if (change := change_of(row))), "")
