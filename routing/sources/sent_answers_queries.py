"""How much of what a source takes from outside is there."""

from dataclasses import dataclass

from routing.models import SentAnswer, Source
from routing.sources.backend_for import context_of
from routing.sources.backends.uploaded import Uploaded


@dataclass(frozen=True)
class SentSoFar:
    """Under the revision that the source names now."""

    model: str
    revision: str
    answers: int
    items: int

    @property
    def missing(self) -> int:
        return self.items - self.answers


def sent_so_far(source: Source) -> SentSoFar:
    backend = Uploaded(source.params, context_of(source))
    answers = SentAnswer.objects.filter(
        revision__source=source, revision__model=backend.model, revision__revision=backend.revision
    )
    return SentSoFar(backend.model, backend.revision, answers.count(), source.project.items.count())
