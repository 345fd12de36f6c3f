"""Batch files by hand: the calls of a source for a program that answers them, and what it answered."""

from collections.abc import Iterable
from typing import BinaryIO

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item
from routing.models import Prediction, RunSource, Source
from routing.sources.backend_for import backend_for
from routing.sources.backends.openai_batch import OpenAIBatch
from routing.sources.backends.openai_batch.lines import request_line
from routing.sources.backends.openai_batch.store import ResultStore

PAGE = 500


def write_calls(*, source: Source, file: BinaryIO) -> int:
    """Write the calls for all items of the project that the source has not answered in any run; returns how
    many. Raises InputError where the source's backend is not openai_batch.
    """
    backend = _backend(source)
    fingerprints = RunSource.objects.filter(source=source).values("fingerprint")
    answered = Prediction.objects.filter(item=OuterRef("pk"), source=source, fingerprint__in=fingerprints)
    items = Item.objects.filter(~Exists(answered), project=source.project).order_by("position")
    count = 0
    for item in items.iterator(PAGE):
        try:
            call = backend.request(item)
        except InputError:
            continue  # the run says why there is no answer
        file.write(request_line(*call))
        count += 1
    return count


def read_answers(*, source: Source, lines: Iterable[bytes]) -> tuple[int, int]:
    """Keep the results in a file of answers until a run asks for them; returns how many were answered, and
    how many were not and are asked again.
    """
    return ResultStore(_backend(source).key).add(lines)


def _backend(source: Source) -> OpenAIBatch:
    backend = backend_for(source)
    if not isinstance(backend, OpenAIBatch):
        raise InputError(
            _("The source %(source)s is run by %(backend)s; batch files are those of openai_batch.")
            % {"source": source.name, "backend": source.backend},
            where="source",
        )
    return backend
