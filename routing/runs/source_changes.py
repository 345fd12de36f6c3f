"""The sources of a run as its plan froze them, against the sources as they are."""

from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import HypacError
from routing.models import FrozenSource, Run, Source
from routing.sources.backend_for import fingerprint_of, frozen_fingerprint
from routing.sources.backends import BackendError

CHANGED = failures.register(
    "source_changed",
    gettext_noop("%(source)s was changed after the run was planned (its fingerprint differs)."),
)
STOPPED = failures.register(
    "stopped_at_changed_source",
    lambda params: (
        _("%(change)s Put it back as it was and start this job again, or cancel the run.")
        % {"change": CHANGED.sentence(params)}
    ),
)
UNREACHABLE = failures.register("source_unreachable", gettext_noop("%(source)s: %(error)s"))
NOT_RUN = failures.register("source_not_run", gettext_noop("%(source)s cannot be run now: %(error)s"))


def fingerprint_now(source: Source) -> str:
    """Fingerprint under which the source would answer at this moment."""
    return fingerprint_of(source)


def has_changed(frozen_source: FrozenSource) -> bool:
    """Whether the source would answer otherwise than when it was frozen.

    Raises BackendError where nobody can tell: its server cannot be reached now (not permanent), or refuses
    its key, a setting of this server keeps it from being asked, a file is missing. All of that can be put
    right, and says nothing of what the source answered.
    """
    source = frozen_source.source
    try:
        now = frozen_fingerprint(frozen_source)
    except HypacError as error:
        # Of one that cannot be reached the reason says so itself.
        why = NOT_RUN if error.permanent else UNREACHABLE
        raise why.error(
            raised_as=BackendError,
            permanent=error.permanent,
            source=source.name,
            error=failures.part_of_error(error),
        ) from error
    return now != frozen_source.fingerprint


def changed_source(run: Run) -> Source | None:
    """The first of the sources of the run that has changed. Raises as `has_changed` does."""
    rows = run.run_sources.select_related("source").order_by("position")
    return next((row.source for row in rows if has_changed(row)), None)
