"""Erasing what items are: text, image and columns go, and what models wrote about them word by word.

Name, labels, answers, scores and the hash of the content stay, as the certificates of runs are made of them
and must go on verifying. An item that something under way rests on stays until that has ended: leaving a draw
may never depend on what its label is, nor on what models say of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, RestrictedError
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from annotation.common import audit
from annotation.common.api.idempotency import forget_answers_of_project
from annotation.common.locks import locked_against_jobs
from annotation.errors import ConflictError, InputError
from annotation.imports.columns import IMPORT
from annotation.imports.sent_files import answers_files, sent_files
from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.models import (
    Comment,
    Draft,
    HeldOutItem,
    Item,
    JobProblem,
    Label,
    Project,
    Settlement,
    Skip,
    StoredFile,
    User,
)
from routing.common.states import CANCELLABLE
from routing.models import (
    ERASED_REASON,
    REMOVED,
    Delivery,
    ItemScore,
    MeasuredItem,
    PoolItem,
    Prediction,
    RoundNote,
    SentAnswer,
    SourceTry,
)
from routing.runs.measurements import waiting_measurements
from routing.sources.sent_words import forget_words

AT_ONCE = 500
"""So many items are erased in one transaction."""
_NAMED = 5


@dataclass(frozen=True)
class Erasure:
    """How many items were erased now, and how many had been before; `deliveries` of the project that were
    written before, and `sent` files from which items are imported, may still have them.
    """

    items: int
    already: int
    deliveries: int
    sent: int


def erasure_in_words(done: Erasure) -> str:
    said = [
        ngettext("%(count)s item was erased.", "%(count)s items were erased.", done.items)
        % {"count": f"{done.items:,}"}
    ]
    if done.already:
        words = ngettext(
            "%(count)s had been erased before.", "%(count)s had been erased before.", done.already
        )
        said.append(words % {"count": f"{done.already:,}"})
    if done.deliveries:
        words = ngettext(
            "%(count)s delivery that was written before may still have the content: its files are known by "
            "their hash and do not change.",
            "%(count)s deliveries that were written before may still have the content: their files are known "
            "by their hash and do not change.",
            done.deliveries,
        )
        said.append(words % {"count": f"{done.deliveries:,}"})
    if done.sent:
        words = ngettext(
            "%(count)s file that was sent to the project may have it, too: remove it by the API, under "
            "files/.",
            "%(count)s files that were sent to the project may have it, too: remove them by the API, under "
            "files/.",
            done.sent,
        )
        said.append(words % {"count": f"{done.sent:,}"})
    return " ".join(said)


def erase_items(*, project: Project, actor: User | None, external_ids: Sequence[str]) -> Erasure:
    """Erase the content of the items of these names. Once more changes nothing.

    All are looked at first, and then it is done in steps of `AT_ONCE`: whoever is broken off begins again.
    Raises InputError, `where` being "external_ids", for a name of no item, and ConflictError for an item that
    something under way rests on, or while data is imported.
    """
    names = list(dict.fromkeys(external_ids))
    if not names:
        raise InputError(_("Name the items."), where="external_ids")
    _refuse_unknown(project, names)
    for part in _parts(names):
        _refuse_in_use(project, part)
    done = sum(_erase(project, actor, part) for part in _parts(names))
    if not done:
        return Erasure(0, len(names), 0, 0)
    deliveries = Delivery.objects.filter(run__project=project).count()
    return Erasure(done, len(names) - done, deliveries, sent_files(project).count())


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))


def _refuse_unknown(project: Project, names: Sequence[str]) -> None:
    known: set[str] = set()
    for part in _parts(names):
        known.update(
            project.items.filter(external_id__in=part).order_by().values_list("external_id", flat=True)
        )
    if unknown := [name for name in names if name not in known]:
        words = ngettext(
            "There is no item %(names)s in this project.",
            "There are no items %(names)s in this project.",
            len(unknown),
        )
        raise InputError(words % {"names": _listed(unknown)}, where="external_ids")


def _refuse_in_use(project: Project, names: Sequence[str]) -> None:
    """Raises ConflictError."""
    unfinished = project.jobs.filter(state__in=jobs.UNFINISHED)
    if unfinished.filter(unique_key=IMPORT).exists():
        raise ConflictError(
            _("Data is being imported. Items can be erased once that has ended."), code="item_in_use"
        )
    # What is erased would come back with what it stores. A job that begins meanwhile waits for the erasure.
    if job := unfinished.filter(kind__in=jobs.copying_items()).order_by("pk").first():
        words = _("%(job)s is under way, which reads items. They can be erased once that has ended.")
        raise ConflictError(words % {"job": _(jobs.kind(job.kind).title)}, code="item_in_use")
    items = project.items.filter(external_id__in=names, erased_at__isnull=True).order_by("position")
    for used, why in _uses(project):
        if held := list(items.filter(used).values_list("external_id", flat=True)[: _NAMED + 1]):
            raise ConflictError(why % {"names": _listed(held)}, code="item_in_use")


def _uses(project: Project) -> Iterable[tuple[Exists | Q, str]]:
    """What may rest on an item and is under way: a condition of items, and what to say."""
    pool = PoolItem.objects.filter(item=OuterRef("pk"))
    yield (
        Exists(pool.filter(run__state__in=CANCELLABLE)),
        _(
            "A run that is under way covers %(names)s. They can be erased once it is complete, or cancelled: "
            "what a run covers is fixed before anything is known of it, and nothing may leave it by choice."
        ),
    )
    waiting = Q(intake__isnull=False, intake__finished_at__isnull=True, intake__abandoned_at__isnull=True)
    yield (
        Exists(pool.filter(waiting)),
        _("A run is taking in %(names)s. They can be erased once that has ended."),
    )
    measured = MeasuredItem.objects.filter(item=OuterRef("pk"), measurement__in=waiting_measurements(project))
    yield (
        Exists(measured),
        _("The models were measured on %(names)s for a plan. Discard that measurement, or start the run."),
    )
    open_rounds = project.rounds.filter(closed_at__isnull=True)
    yield (
        Q(round_item__round__in=open_rounds),
        _("A guideline round that is open has %(names)s. Close it first."),
    )


def _erase(project: Project, actor: User | None, names: Sequence[str]) -> int:
    with transaction.atomic():
        # Nobody starts a run, a round or an import meanwhile: they take the same lock.
        locked_against_jobs(project.pk)
        _refuse_in_use(project, names)
        found = project.items.filter(external_id__in=names, erased_at__isnull=True)
        items = list(found.select_for_update().order_by("pk").values_list("pk", "external_id", "image"))
        ids = [pk for pk, _name, _image in items]
        queue.withdraw_items(ids)
        Item.objects.filter(pk__in=ids).update(
            text="", fields=[], data={}, typed=None, image=None, erased_at=timezone.now()
        )
        _empty_answers(project, ids)
        _empty_remarks(project, ids, [name for _pk, name, _image in items])
        if ids:
            forget_answers_of_project(project)
            forget_words(project.jobs.all())
            _remove_files([image for _pk, _name, image in items if image is not None])
            _remove_files(answers_files(project).values_list("pk", flat=True))
        audit.record_all(
            audit.new_event(project=project, actor=actor, action="item.erased", target=f"item:{pk}")
            for pk in ids
        )
    return len(ids)


def _empty_answers(project: Project, ids: Sequence[int]) -> None:
    """What models wrote, but for the labels that were read out of it and their scores."""
    answers = Prediction.objects.filter(item__in=ids)
    answers.exclude(raw=REMOVED).update(raw=REMOVED)
    scores = ItemScore.objects.filter(prediction__item__in=ids)
    for rows in (answers, scores):
        quoting = rows.exclude(reason="").exclude(reason=ERASED_REASON, reason_quotes="")
        quoting.update(reason=ERASED_REASON, reason_quotes="")
    SentAnswer.objects.filter(item__in=ids).delete()
    gone = set(ids)
    for tried in SourceTry.objects.filter(source__project=project):
        keep = [row["item"] not in gone for row in tried.rows]
        if not all(keep):
            tried.rows = _only(tried.rows, keep)
            tried.reasons = _only(tried.reasons, keep) if tried.reasons else []
            tried.save(update_fields=["rows", "reasons"])


def _only(rows: list[object], keep: list[bool]) -> list[object]:
    return [row for row, wanted in zip(rows, keep, strict=True) if wanted]


def _empty_remarks(project: Project, ids: Sequence[int], names: Sequence[str]) -> None:
    """What people wrote about it beside their labels, and what jobs say of it: both may quote it."""
    Draft.objects.filter(work_item__item__in=ids).delete()
    Comment.objects.filter(item__in=ids).delete()
    for said in (
        Label.objects.filter(item__in=ids),
        Settlement.objects.filter(item__in=ids),
        Skip.objects.filter(work_item__item__in=ids),
    ):
        said.exclude(comment="").update(comment="")
    notes = RoundNote.objects.filter(item__in=ids)
    notes.filter(value__isnull=True).delete()
    notes.exclude(text="").update(text="")
    HeldOutItem.objects.filter(item__in=ids).update(explanation="")
    JobProblem.objects.filter(job__project=project, where__in=names).delete()


def _remove_files(files: Iterable[int]) -> None:
    """Those that no other item shows, and nothing else is made of."""
    for stored in StoredFile.objects.select_for_update().filter(pk__in=list(files)):
        name = stored.storage_name
        try:
            with transaction.atomic():
                stored.delete()
        except RestrictedError:
            continue
        transaction.on_commit(lambda name=name: default_storage.delete(name), robust=True)  # type: ignore[misc]


def erased_items(project: Project) -> QuerySet[Item]:
    return project.items.filter(erased_at__isnull=False)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown + ", …" if len(names) > _NAMED else shown
