"""What people answered in another program, as labels of a run's items, row by row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import HypacError
from annotation.imports.formats.label_studio_names import META
from annotation.imports.formats.label_studio_results import given_labels
from annotation.labelling import queue
from annotation.models import User
from annotation.permissions import members_who_label
from routing.elsewhere.work import batch_for_elsewhere
from routing.models import Run

MOST = 1000
"""Rows in one request."""


@dataclass(frozen=True)
class Given:
    """One answer of a row, counted from 1; `problem` says why it has no value."""

    row: int
    item: Any
    value: Any
    annotator: str
    lead_time_ms: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class Taken:
    stored: int
    known: int
    refused: Sequence[dict[str, Any]]


def take_back(
    *, run: Run, actor: User, rows: Sequence[Mapping[str, Any]], people: Mapping[str, str]
) -> Taken:
    """Store what can be; what cannot is told with its row and why. `people` has the username of whoever the
    rows name otherwise. Each answer is stored for itself, so that the rows can be sent again.

    Raises ConflictError where nothing of the run may be labelled elsewhere now.
    """
    batch = batch_for_elsewhere(run)
    members = _members(run)
    answers = list(_answers(rows))
    named = {one.item for one in answers if isinstance(one.item, int) and 0 < one.item < 2**63}
    allowed = set(batch.work_items.filter(item__in=named).values_list("item_id", flat=True))
    stored, known, refused = 0, 0, []
    for given in answers:
        reason = given.problem
        user = members.get(people.get(given.annotator, given.annotator).lower())
        if not reason and (not isinstance(given.item, int) or given.item not in allowed):
            reason = _("It names no item that this run sends to people.")
        elif not reason and user is None:
            reason = _("“%(name)s” is no member who may label here: name the member in “people”.") % {
                "name": given.annotator[:100]
            }
        if not reason and user is not None:
            try:
                _label, new = queue.store_given(
                    batch=batch,
                    user=user,
                    item_id=given.item,
                    value=given.value,
                    lead_time_ms=given.lead_time_ms,
                )
                stored, known = stored + new, known + (not new)
            except HypacError as error:
                reason = str(error)
        if reason:
            refused.append({"row": given.row, "reason": reason})
    audit.record(
        project=run.project,
        actor=actor,
        action="run.labelled_elsewhere",
        target=f"run:{run.number}",
        data={"stored": stored, "known": known, "refused": len(refused), "people": dict(people)},
    )
    return Taken(stored, known, refused)


def _members(run: Run) -> dict[str, User]:
    """By username and by confirmed e-mail address, in small letters."""
    found: dict[str, User] = {}
    for membership in members_who_label(run.project_id).select_related("user"):
        if membership.user.email and membership.user.email_confirmed_at:
            found.setdefault(membership.user.email.lower(), membership.user)
    for membership in members_who_label(run.project_id).select_related("user"):
        found[membership.user.username.lower()] = membership.user
    return found


def _answers(rows: Sequence[Mapping[str, Any]]) -> Iterator[Given]:
    for number, row in enumerate(rows, 1):
        if "annotations" not in row:
            yield Given(number, row.get("item"), row.get("value"), str(row.get("annotator") or ""))
            continue
        meta = row.get("meta")
        facts = meta.get(META) if isinstance(meta, dict) else None
        item = facts.get("item") if isinstance(facts, dict) else None
        for label in given_labels(row["annotations"]):
            yield Given(number, item, label.value, label.annotator, label.lead_time_ms, str(label.problem))
