"""Items that a run would cover and for which a source whose answers are sent in has none: none can follow
once the run has begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item, Project
from annotation.templatetags.hypac import number
from routing.models import SentAnswer, Source
from routing.runs.pool import pool_of
from routing.sources.backend_for import backend_for
from routing.sources.backends import backend_class
from routing.sources.backends.uploaded import Uploaded

NAMED = 5


@dataclass(frozen=True)
class MissingAnswers:
    """Of one source: how many of the run's items have no answer, and the names of the first of them."""

    source: str
    revision: str
    items: int
    names: Sequence[str]

    @property
    def in_words(self) -> str:
        return self._said(
            _(
                "%(source)s: no answer was sent under the revision %(revision)s for %(count)s items that the "
                "run would cover (%(names)s), and none can follow once it has begun."
            )
        )

    @property
    def before_measuring(self) -> str:
        """The same for whoever is about to measure."""
        return self._said(
            _(
                "%(source)s: no answer was sent under the revision %(revision)s for %(count)s items "
                "(%(names)s). Those of them that measuring asks about stay without one under this revision, "
                "whatever is sent later. Send the missing answers first."
            )
        )

    def _said(self, words: str) -> str:
        named = ", ".join(f"“{name[:60]}”" for name in self.names)
        more = "" if self.items == len(self.names) else ", …"
        return words % {
            "source": self.source,
            "revision": self.revision,
            "count": number(self.items),
            "names": f"{named}{more}",
        }


def missing_answers(project: Project, sources: Sequence[Source], *, target: str) -> list[MissingAnswers]:
    """Of those of `sources` that lack any for a run with this target, in their order."""
    return missing_for(pool_of(project, target), sources)


def missing_for(items: QuerySet[Item], sources: Sequence[Source]) -> list[MissingAnswers]:
    """The same of these items."""
    found = []
    for source in sources:
        if backend_class(source.backend).known_from != "sent":
            continue
        backend = backend_for(source)
        assert isinstance(backend, Uploaded)  # noqa: S101 - the only one whose answers are sent
        answers = SentAnswer.objects.filter(item=OuterRef("pk"), revision=backend.sent_under)
        missing = items.filter(~Exists(answers))
        if names := list(missing.values_list("external_id", flat=True)[:NAMED]):
            found.append(MissingAnswers(source.name, backend.revision, missing.order_by().count(), names))
    return found


def refuse_missing(missing: Sequence[MissingAnswers]) -> None:
    """Raises InputError, its `where` "accept_missing", where there are any."""
    if not missing:
        return
    then = _(
        "Nothing was done. Send the answers that are missing, or go on without them: with accept_missing = "
        "true, or --accept-missing on the command line."
    )
    raise InputError(f"{missing_in_words(missing)} {then}", where="accept_missing")


def missing_in_words(missing: Sequence[MissingAnswers]) -> str:
    return " ".join(one.in_words for one in missing)
