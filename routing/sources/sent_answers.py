"""Taking in answers of any model from outside, for sources of the backend `uploaded`.

A file is stored first and read by a job then, in chunks: a chunk's answers, its problems and the place in the
file are committed together. Facts stay: what was sent once under a revision is not changed by what is sent
later.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit, limits
from annotation.common.bulk import copy_rows
from annotation.common.files import MODEL_OUTPUT, store_file
from annotation.common.image_sizes import misfits
from annotation.common.locks import locked_project
from annotation.common.ranges import of_items
from annotation.errors import ConflictError, InputError
from annotation.imports.faults import said_by
from annotation.imports.formats.base import Problem, Record
from annotation.imports.rows import at_column, first_problem, none_usable
from annotation.imports.sent_files import closed_for_answers
from annotation.jobs import jobs
from annotation.jobs.closed_projects import refuse_closed
from annotation.jobs.context import JobContext
from annotation.jobs.places import within
from annotation.models import Item, Job, Project, StoredFile, User
from annotation.words import Words
from routing.models import PoolItem, Prediction, Run, RunSource, SentAnswer, Source, SourceRevision
from routing.sources import storable
from routing.sources.backend_for import context_of, task_spec
from routing.sources.backends import backends_that
from routing.sources.backends.uploaded import Uploaded
from routing.sources.backends.uploaded.answers import NoLabelError, sent_from
from routing.sources.backends.uploaded.lines import Line, fields_in, read_line
from routing.sources.mends import every_fingerprint, reader_for
from routing.sources.sent_reading import Entry, ParsedEntry, how_to_read, sent_file
from routing.sources.sent_tables import entry_of
from routing.visibility import output_is_open

KIND = "predictions"
CHUNK = 2_000
MOST_WORDS = 50
"""Different words of a file that are no labels, of which it is kept how often they come."""


RUN_RESTS = gettext_noop(
    "A run rests on this revision, which had no answer for the item “%(name)s” when the run "
    "began. Name a new revision in the source for the next run, and send all answers under "
    "it."
)
ASKED_BEFORE = gettext_noop(
    "When the models were measured, or for a run that was cancelled, this revision had no answer for the "
    "item “%(name)s”, and what was paid for then stays. Name a new revision in the source, and send all "
    "answers under it."
)


@dataclass
class Counts:
    """What became of the lines so far.

    Attributes
    ----------
    already_there
        Lines about items that had an answer under this revision. It stays as it is.
    compared
        Whether a line that says something else than what was there is among the problems. Not while nobody
        may see model output: who sends a guess would be told whether it is right.
    """

    added: int = 0
    already_there: int = 0
    problems: int = 0
    compared: bool = True


def store_answers_file(*, project: Project, content: IO[bytes], name: str) -> StoredFile:
    """Keep a file of answers, which nobody is shown as data. Raises InputError where it is too large."""
    return store_file(project=project, content=content, original_name=name, media_type=MODEL_OUTPUT)


def takes_answers(source: Source) -> bool:
    """Whether its answers are sent in from outside."""
    return source.backend in backends_that(lambda backend: backend.known_from == "sent")


def refuse_other_backends(source: Source) -> None:
    """Raises InputError where the source takes no answers from outside."""
    if not takes_answers(source):
        raise InputError(
            _("%(source)s is asked by its backend %(backend)s; only a source of uploaded takes predictions.")
            % {"source": source.name, "backend": source.backend},
            where="source",
        )


def send_answers(
    *,
    source: Source,
    user: User,
    stored_file: StoredFile,
    revision: str = "",
    format_name: str = "",
    encoding: str = "",
    id_column: str = "",
    quotes: bool = True,
) -> Job:
    """Have a worker take in the answers of a file (job "predictions"), under the revision that the source
    names, or another one that a later change of it will.

    Raises InputError where the source takes none, the file is not the project's or cannot be read as answers
    (`how_to_read`), EncodingNeededError where its encoding has to be said, and ConflictError while another
    file for the source is being read. Without `quotes` no error has words of the file.
    """
    refuse_other_backends(source)
    if stored_file.project_id != source.project_id:
        raise InputError(_("This file belongs to another project."), where="file")
    how = how_to_read(
        stored_file, format_name=format_name, encoding=encoding, id_column=id_column, quotes=quotes
    )
    named = {**source.params, "revision": revision} if revision else source.params
    backend = Uploaded(named)
    with transaction.atomic():
        refuse_closed(source.project_id)  # locks the project, as whoever erases does before the file
        closed_for_answers(stored_file)
        row, _made = SourceRevision.objects.get_or_create(
            source=source, model=backend.model, revision=backend.revision
        )
        job = jobs.enqueue(
            project=source.project,
            kind_name=KIND,
            params={"file": stored_file.pk, "revision": row.pk, "format": format_name, **how},
            unique_key=f"{KIND}:{source.pk}",
            user=user,
        )
        audit.record(
            project=source.project,
            actor=user,
            action="source.predictions_sent",
            target=f"source:{source.pk}",
            data={
                "name": source.name,
                "model": row.model,
                "revision": row.revision,
                "sha256": stored_file.sha256,
                "job": job.pk,
            },
        )
    return job


NO_LINE = none_usable("no_line_usable", gettext_noop("No line of %(file)s could be used (of %(count)s)."))


def take_answers(context: JobContext) -> dict[str, Any]:
    """The handler of the job. Raises JobFailedError where no line could be used."""
    project = context.job.project_id
    revisions = SourceRevision.objects.filter(source__project=project).select_related("source__project")
    revision = revisions.get(pk=context.params["revision"])
    stored = StoredFile.objects.get(pk=context.params["file"], project=project)
    counts = Counts(**context.job.result) if context.job.result else Counts()
    done, total = context.job.done, context.job.total
    with sent_file(stored, context.params) as file:
        if total is None:
            context.progress(stage=Words(gettext_noop("Checking the file")))
            total = file.count()
        context.progress(total=total, stage=Words(gettext_noop("Storing predictions")))
        reading = _Reading(context, revision)
        entries = file.entries(skip=done)
        while chunk := list(islice(entries, CHUNK)):
            made = [reading.read(entry) for entry in chunk]
            if reading.has_size:
                made = reading.fitting(made)
            done += len(chunk)
            with context.chunk(done=done):
                reading.store(made, counts)
    if not counts.added + counts.already_there:
        problem = first_problem(context.job)
        raise NO_LINE.error(count=f"{total:,}", file=stored.original_name, problem=problem)
    return asdict(counts)


class _Reading:
    """From lines to rows, for one revision of a source."""

    def __init__(self, context: JobContext, revision: SourceRevision) -> None:
        project = revision.source.project
        self._context, self._revision, self._project = context, revision, project
        self._format = context.params["format"]
        self._columns: dict[str, str] = context.params.get("columns", {})
        self._id_field: str = context.params.get("id_column", "")
        self._words = Counter[str](context.params.get("words", {}))
        self._spec, self._reader = task_spec(project), reader_for(revision.source)
        declared = {"model": revision.model, "revision": revision.revision}
        self._fingerprints = every_fingerprint(revision.source, Uploaded(declared).fingerprint())
        self._longest = 4 * settings.HYPAC_MAX_CELL_CHARACTERS
        self._compares = output_is_open(project)
        self.has_size = self._reader.kind.has_size

    def read(self, entry: Entry) -> ParsedEntry:
        where = entry.where
        if isinstance(entry.said, str) and len(entry.said) > self._longest:
            words = Words(gettext_noop("It has more than %(most)s characters."), most=self._longest)
            return ParsedEntry(entry, None, (where, words))
        if isinstance(entry.said, Problem):
            return ParsedEntry(entry, None, (where, entry.said.message))
        try:
            line = self._line(entry.said)
        except InputError as error:
            if isinstance(error, NoLabelError):
                self._count(error.said)
            return ParsedEntry(entry, None, (self._field(where, error.where), said_by(error)))
        # As the database gives it back, so that the same line is known again.
        answer = json.loads(json.dumps(storable.document(line.answer)))
        return ParsedEntry(entry, Line(storable.text(line.external_id, 300), answer))

    def fitting(self, made: Sequence[ParsedEntry]) -> list[ParsedEntry]:
        """The same, what is of an image of another size told as a problem. It reads images, so nothing may be
        locked.
        """
        items = self._items([one.line for one in made if one.line])
        lines = ((one.line.external_id, one.line.answer["label"]) if one.line else ("", None) for one in made)
        why = misfits(self._reader, [(items.get(name, 0), label) for name, label in lines])
        return [
            ParsedEntry(one.entry, None, (self._field(one.entry.where, "label"), words)) if words else one
            for one, words in zip(made, why, strict=True)
        ]

    def _line(self, said: str | Record) -> Line:
        if isinstance(said, str):
            return read_line(said, self._format, self._spec, self._reader, id_field=self._id_field)
        assert not isinstance(said, Problem)  # noqa: S101 - it has been told
        sent = sent_from(entry_of(said, self._columns), self._reader)
        return Line(sent.external_id, sent.answer)

    def _field(self, where: str, field: str) -> str:
        """Where in a line or a row something is wrong."""
        if column := self._columns.get(field, ""):
            return at_column(where, column)
        words = gettext_noop("%(line)s, field “%(field)s”")
        return within(where, words, line=where, field=field) if field else where

    def _count(self, said: str) -> None:
        """What is no label is told with its count to those who may be told, and to nobody with a line."""
        word = storable.text(said, limits.NAME)
        if word and (word in self._words or len(self._words) < MOST_WORDS):
            self._words[word] += 1

    def store(self, made: Sequence[ParsedEntry], counts: Counts) -> None:
        """Inside the chunk's transaction. Nobody starts a run meanwhile: `start_run` takes the same lock."""
        locked_project(self._project.pk)
        problems = [(one.entry.number, one.problem) for one in made if one.problem]
        lines = [(one.entry, one.line) for one in made if one.line]
        items = self._items([line for _entry, line in lines])
        ids = sorted(items.values())
        known: dict[int, Any] = dict(
            SentAnswer.objects.filter(of_items("item", ids), revision=self._revision).values_list(
                "item_id", "answer"
            )
        )
        closed = self._closed(ids, known)
        new: dict[int, dict[str, Any]] = {}
        for entry, line in lines:
            item = items.get(line.external_id)
            tells = self._compares or item in new
            problem = self._refusal(line, item, known, closed, tells=tells)
            if problem or item is None:
                problems.append((entry.number, (entry.where, problem)))
                continue
            if item in known:
                counts.already_there += 1
            else:
                known[item] = new[item] = line.answer
        copy_rows(SentAnswer, ("revision", "item", "answer"), self._rows(new))
        self._note(new)
        counts.added += len(new)
        counts.problems += len(problems)
        counts.compared = counts.compared and self._compares
        self._context.problems([told for _number, told in sorted(problems)])  # as the file has them
        # Not in the result, which whoever labels may read: words are quoted while no run is open alone.
        params = {**self._context.params, "words": dict(self._words)}
        Job.objects.filter(pk=self._context.job.pk).update(result=asdict(counts), params=params)

    def _rows(self, new: dict[int, dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
        return ((self._revision.pk, item, answer) for item, answer in new.items())

    def _items(self, lines: Sequence[Line]) -> dict[str, int]:
        """Keys of the items that are named, by the names that the lines have for them."""
        items = Item.objects.filter(project=self._project, erased_at__isnull=True)
        names = list({line.external_id for line in lines})
        found = dict(items.filter(external_id__in=names).values_list("external_id", "pk"))
        ours = {line.key: line.external_id for line in lines if line.external_id not in found and line.key}
        there = items.filter(pk__in=list(ours)).values_list("pk", flat=True)
        return found | {ours[pk]: pk for pk in there}

    def _closed(self, ids: Sequence[int], known: dict[int, Any]) -> dict[int, str]:
        """Items without an answer under this revision for which it is too late, each with the words that say
        why: those in the pool of a run that rests on it, and those that the source was asked about before,
        by a measurement or a run that was cancelled since.

        All of the pool, and not only what was asked: the calibration set stands for the pool only if the
        source says of each item what it would have said had the item been drawn. That it has nothing to say
        is a part of this.
        """
        runs = Run.objects.filter(
            run_sources__source=self._revision.source_id, run_sources__fingerprint__in=self._fingerprints
        ).exclude(state=Run.State.CANCELLED)
        missing = [item for item in ids if item not in known]
        if runs.filter(pool_hash="").exists():  # its job has not frozen the pool yet
            return dict.fromkeys(missing, RUN_RESTS)
        pool = PoolItem.objects.filter(of_items("item", missing), run__in=runs.values("pk"))
        asked = Prediction.objects.filter(
            of_items("item", missing), source=self._revision.source_id, fingerprint__in=self._fingerprints
        )
        before = dict.fromkeys(asked.values_list("item_id", flat=True), ASKED_BEFORE)
        return before | dict.fromkeys(pool.values_list("item_id", flat=True), RUN_RESTS)

    def _refusal(
        self, line: Line, item: int | None, known: dict[int, Any], closed: dict[int, str], *, tells: bool
    ) -> str:
        """Why a line cannot be used. The same words for every item that a run has closed: whoever reads them
        may label, and is not to learn which are asked about.
        """
        if item is None:
            return Words(gettext_noop("The project has no item “%(name)s”."), name=line.external_id[:60])
        name = line.external_id[:60]
        if item in known:
            if not tells or known[item] == line.answer:
                return ""
            return Words(
                gettext_noop(
                    "Another answer for the item “%(name)s” was sent under this revision. Answers do not "
                    "change: name a new revision in the source, and send all of them."
                ),
                name=name,
            )
        if item in closed:
            return Words(closed[item], name=name)
        served = line.answer.get("served_model", "")
        if served and self._revision.served_model and served != self._revision.served_model:
            return Words(
                gettext_noop(
                    "Another model (%(model)s) gave the answer for the item “%(name)s” than those before. "
                    "Send it under a revision of its own."
                ),
                name=name,
                model=served,
            )
        if served and not self._revision.served_model:
            self._revision.served_model = served
        return ""

    def _note(self, new: dict[int, dict[str, Any]]) -> None:
        """What scores can read of the answers grows until a run rests on it."""
        fields = {name for answer in new.values() for name in fields_in(answer)}
        more = sorted(fields.union(self._revision.fields))
        rests = RunSource.objects.filter(source=self._revision.source_id, fingerprint__in=self._fingerprints)
        if more != self._revision.fields and not rests.exists():
            self._revision.fields = more
        self._revision.save(update_fields=["fields", "served_model"])


def refuse_while_sending(project: Project) -> None:
    """A run covers all that is sent, or waits. Raises ConflictError."""
    if project.jobs.filter(kind=KIND, state__in=jobs.UNFINISHED).exists():
        raise ConflictError(
            _("Predictions are being taken in. Wait until that is done, so that the run has all of them."),
            code="answers_being_sent",
        )


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
