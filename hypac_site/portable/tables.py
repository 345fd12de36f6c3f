"""Which tables of a project travel, in which order, and what of their rows stays behind."""

from functools import cache
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import override

from annotation import failures
from annotation.jobs.jobs import UNFINISHED, on_demand_kinds
from annotation.models import (
    ApiToken,
    BucketFile,
    BucketSync,
    Connection,
    Invitation,
    Job,
    Project,
    StoredFile,
    User,
    Webhook,
    WebhookDelivery,
    WorkItem,
)
from annotation.projects.removal import tables_of
from routing.models import ComputedLoss, Source

Model = type[models.Model]
Row = dict[str, Any]

# What opens something, or tells addresses outside: bound to the installation, or a secret. And what is kept
# only so that it need not be computed again, which nobody is told.
STAYS_BEHIND: dict[Model, str | None] = {
    ApiToken: "tokens",
    BucketFile: "files found in them",
    BucketSync: "what is done with them by itself",
    ComputedLoss: None,
    Connection: "connections to buckets, with their keys",
    Invitation: "invitations",
    Webhook: "webhooks, with their secrets",
    WebhookDelivery: "messages of webhooks",
}


@cache
def travelling() -> tuple[Model, ...]:
    """The tables, what others refer to before them."""
    found = dict.fromkeys(model for model, _way in reversed(tables_of(Project)))
    return tuple(model for model in found if model not in STAYS_BEHIND)


def rows_of(model: Model, project: int) -> "models.QuerySet[Any]":
    """All rows of a table that belong to the project, by whichever way."""
    belongs = Q()
    for other, way in tables_of(Project):
        if other is model:
            belongs |= Q(**{way: project})
    return model._base_manager.filter(belongs)


def ways_of(model: Model) -> set[str]:
    """The columns by which a row belongs to its project, at least one of which it has; none of Project."""
    return {way.split("__")[0] for other, way in tables_of(Project) if other is model} - {"pk"}


def name_of(model: Model) -> str:
    """As the file calls a table."""
    return model._meta.label_lower


def fields_of(model: Model) -> "list[models.Field[Any, Any]]":
    return list(model._meta.concrete_fields)


def refers_to(field: "models.Field[Any, Any]") -> Model | None:
    """The table that a column refers to; None of other columns."""
    related = field.related_model
    return related if isinstance(field, models.ForeignKey) and isinstance(related, type) else None


def is_person(field: "models.Field[Any, Any]") -> bool:
    return refers_to(field) is User


# Codes of failures whose words are the server's own: paths, hosts and statements.
_INSIDE = {failures.DATABASE.code, failures.UNEXPECTED.code}


def _outside_error(row: Row) -> Row:
    """The columns of a job's failure without what it says of the inside of its server."""
    if row["error_code"] not in _INSIDE:
        return {}
    with override("en"):
        return failures.columns_of(failures.STAYED_BEHIND.error())


def _ended(row: Row) -> Row:
    """An export waits for none that a look at a page begins (`refuse_unfinished_jobs`): here it ends."""
    if row.get("state") not in UNFINISHED or row["kind"] not in on_demand_kinds():
        return row
    return row | {"state": Job.State.CANCELLED, "finished_at": row["started_at"] or row["created_at"]}


def cleaned(model: Model, row: Row) -> Row:
    """A row without what stays behind: keys, leases of people who are at work, the worker of a job, what that
    said of the inside of its server, names in the storage, and HTML that was made of other columns. Once more
    changes nothing.
    """
    if model is Source:
        return row | {"api_key": ""}
    if model is WorkItem and row["state"] == WorkItem.State.LEASED:
        free = {"leased_to": None, "lease_token": "", "lease_expires_at": None}
        return row | free | {"state": WorkItem.State.OPEN}
    if model is Job:
        return (
            _ended(row)
            | {"claim_token": "", "heartbeat_at": None, "pause_asked": False}
            | _outside_error(row)
        )
    if model is StoredFile:
        return row | {"storage_name": ""}
    if model is Project:
        return row | {"guidelines_html": "", "guidelines_version": 0, "deleting_at": None}
    return row
