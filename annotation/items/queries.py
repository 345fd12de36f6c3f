"""Reading a project's items and labels one after the other, for programs: in constant memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.common import limits
from annotation.errors import InputError
from annotation.imports.columns import IMPORT
from annotation.imports.job import Counts
from annotation.labelling.label_queries import labels_of
from annotation.models import Item, Job, Label, Project
from annotation.permissions import Access
from annotation.ports import routing_port

Row = TypeVar("Row", bound=Model)

PAGE = 500
"""Rows are read so many at a time, or fewer whose texts are limits.PAGE_CHARACTERS together."""


def items_of(
    project: Project,
    *,
    external_id: str | None = None,
    job: int | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
) -> QuerySet[Item]:
    """Items by what is known of them without a label or a model; `job` is the import that brought them.

    Raises InputError where the project has no such import.
    """
    # Not `project.items`: each row would look its project up where that column is left out.
    found = Item.objects.filter(project=project).select_related("image")
    if external_id is not None:
        found = found.filter(external_id=external_id)
    if created_after is not None:
        found = found.filter(created_at__gt=created_after)
    if created_before is not None:
        found = found.filter(created_at__lt=created_before)
    return found if job is None else found.filter(_brought_by_import(project, job))


def labels_for(
    access: Access,
    *,
    annotator: str | None = None,
    external_id: str | None = None,
    since: datetime | None = None,
) -> QuerySet[Label]:
    """The newest version of each label that this person may see: without those of batches of which nothing
    may be shown yet, and those about items that are asked about anew. Who may not look at items sees their
    own labels, all of them: what is left out would tell which items those batches have.

    `annotator` is a username; `since` leaves out what was given, or corrected, before. Raises InputError for
    a filter by item from somebody who sees no names of items.
    """
    project = access.project
    # Not by superseded_by__isnull: PostgreSQL takes the join that it makes for one that leaves one row.
    newer = Label.objects.filter(supersedes=OuterRef("pk"))
    found = labels_of(project).filter(~Exists(newer)).select_related("annotator", "item")
    if not access.allows("items.view"):
        if external_id is not None:
            raise InputError(_("With your role you do not see what items are called."), where="external_id")
        found = found.filter(annotator=access.user)
    else:
        found = found.exclude(work_item__batch__in=routing_port().hidden_batches(project=project))
        found = found.exclude(routing_port().hidden_items(project=project, item_path="item"))
    if annotator is not None:
        found = found.filter(annotator__username=annotator)
    if external_id is not None:
        found = found.filter(item__external_id=external_id)
    if since is not None:
        found = found.filter(created_at__gte=since)
    return found.defer("item__data", "item__typed", "item__text", "item__fields")


def in_pages(
    rows: QuerySet[Row], key: str, content: Callable[[Row], dict[str, Any]], *, long: Sequence[str]
) -> Iterator[Sequence[dict[str, Any]]]:
    """The content of all rows in the order of `key`, a field of whole numbers that no two rows share. `long`
    are the columns with texts that may be long.
    """
    rows = rows.order_by(key)
    last = -1
    # How long they are is asked first: the texts of a page may be more than fits into memory.
    while lengths := _lengths(rows.filter(**{f"{key}__gt": last})[:PAGE], key, long):
        for first, end in _groups(lengths):
            found = rows.filter(**{f"{key}__gte": first, f"{key}__lte": end})
            yield [content(row) for row in found]
        last = lengths[-1][0]


def _lengths(rows: QuerySet[Row], key: str, long: Sequence[str]) -> list[tuple[int, int]]:
    """(key, characters) of each row."""
    return list(rows.values_list(key, limits.characters_of(long)))


def _groups(lengths: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """First and last key of rows that are read together; one that is too long by itself comes alone."""
    first, last, together = lengths[0][0], lengths[0][0], 0
    for key, characters in lengths:
        if together and together + characters > limits.PAGE_CHARACTERS:
            yield first, last
            first, together = key, 0
        last, together = key, together + characters
    yield first, last


def brought_by(imports: Iterable[Job]) -> Q:
    """Conditions of the items of their project that these imports brought."""
    condition = Q(pk__in=[])
    for job in imports:
        for first, last in Counts.of(job.result).positions:
            condition |= Q(position__gte=first, position__lte=last)
    return condition


def _brought_by_import(project: Project, job_id: int) -> Q:
    job = project.jobs.filter(pk=job_id, kind=IMPORT).first()
    if job is None:
        raise InputError(_("There is no such import in this project."), where="job")
    return brought_by([job])
