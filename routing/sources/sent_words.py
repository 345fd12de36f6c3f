"""Words of a file of answers that are no labels: quoted for those who say what they mean."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.jobs import jobs
from annotation.models import Job, StoredFile
from routing.models import Source, SourceRevision
from routing.sources.backends.uploaded import Uploaded
from routing.sources.mends import reader_for
from routing.sources.seen_answers import quoted_bases
from routing.sources.sent_answers import KIND, takes_answers


@dataclass(frozen=True)
class RefusedWords:
    """Of the newest file under the revision that the source names now: each word with the lines that say it.

    `unread` are still no labels; `read_now` are since the source reads them otherwise: the file has to be
    read again for them. `file` is None where it is gone.
    """

    job: Job
    file: StoredFile | None
    unread: Mapping[str, int]
    read_now: Mapping[str, int]

    @property
    def lines(self) -> int:
        return sum(self.unread.values()) + sum(self.read_now.values())


def refused_words(source: Source) -> RefusedWords | None:
    """None where there are none, or where they may not be quoted now."""
    if not takes_answers(source) or "sent" not in quoted_bases(source.project):
        return None
    backend = Uploaded(source.params)
    revision = SourceRevision.objects.filter(
        source=source, model=backend.model, revision=backend.revision
    ).first()
    if revision is None:
        return None
    taken = source.project.jobs.filter(kind=KIND, unique_key=f"{KIND}:{source.pk}")
    newest = taken.filter(params__revision=revision.pk).order_by("-pk").first()
    words: dict[str, int] = newest.params.get("words", {}) if newest else {}
    if newest is None or not words:
        return None
    read = reader_for(source)
    unread = {word: count for word, count in words.items() if read(word)[0] is None}
    return RefusedWords(
        job=newest,
        file=StoredFile.objects.filter(pk=newest.params["file"], project=source.project_id).first(),
        unread=unread,
        read_now={word: count for word, count in words.items() if word not in unread},
    )


def page_of_sent_answers(job: Job) -> tuple[str, str] | None:
    """The title and address of where to go on from a job that took in a file: to the page on which the words
    that it refused are given a meaning, else to that where another file is sent.
    """
    revisions = SourceRevision.objects.filter(source__project=job.project_id).select_related("source")
    revision = revisions.filter(pk=job.params["revision"]).first()
    if revision is None:
        return None
    source = revision.source
    if refused_words(source):
        words = _("Answers of %(name)s: say what its words mean")
        return words % {"name": source.name}, reverse("source_health", args=[job.project.slug, source.pk])
    words = _("Predictions of %(name)s: send another file")
    return words % {"name": source.name}, reverse("source_predictions", args=[job.project.slug, source.pk])


def forget_words(found: QuerySet[Job], *, most: int | None = None) -> int:
    """Of the jobs that took in files and have ended, remove the words that they quote: of `most` at once. Of
    how many there were some to look at.
    """
    ended = found.filter(kind=KIND, params__has_key="words").exclude(state__in=jobs.UNFINISHED).order_by("pk")
    with transaction.atomic():
        rows = list(ended.select_for_update(no_key=True)[:most])
        for job in rows:
            del job.params["words"]
            job.save(update_fields=["params"])
    return len(rows)
