"""What people answered in another program, as labels of a run's items, row by row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import HypacError, InputError
from annotation.imports.formats.label_studio_names import META
from annotation.imports.formats.label_studio_results import given_labels
from annotation.labelling import queue
from annotation.models import User
from annotation.permissions import members_who_label
from annotation.storable import storable, storable_text
from annotation.task_types import TASK_TYPES
from routing.elsewhere.work import batch_for_elsewhere
from routing.models import Run

MOST, MOST_ANSWERS = 1000, 5000
"""Rows in one request, and answers in all of them."""


@dataclass(frozen=True)
class Given:
    """One answer of a row, counted from 1; `problem` says why it has no value."""

    row: int
    item: int | None
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
    *, run: Run, actor: User, given: Iterable[Given], people: Mapping[str, str], part: str
) -> Taken:
    """Store what can be; what cannot is told with its row and why. `people` has the username of whoever the
    answers name otherwise. Each answer is stored for itself, so that the rows can be sent again.

    Raises ConflictError where nothing of that part of the run may be labelled elsewhere now.
    """
    batch = batch_for_elsewhere(run, part)
    members, kind = _members(run), TASK_TYPES[run.project.task_type]
    answers = list(islice(given, MOST_ANSWERS + 1))
    if len(answers) > MOST_ANSWERS:
        raise InputError(
            _("More than %(most)s answers are in these rows. Send fewer rows at once.")
            % {"most": f"{MOST_ANSWERS:,}"},
            where="rows",
        )
    named = {one.item for one in answers if one.item is not None and 0 < one.item < 2**63}
    allowed = set(batch.work_items.filter(item__in=named).values_list("item_id", flat=True))
    stored, known, refused = Counter[str](), 0, []
    try:
        for one in answers:
            reason = one.problem
            name = people.get(one.annotator, one.annotator)
            user = members.get(name.lower())
            if not reason and (one.item is None or one.item not in allowed):
                reason = _("It names no item that this run sends to people.")
            elif not reason and one.value == [] and not kind.empty_is_answer:
                reason = _("It is empty.")
            elif not reason and user is None:
                reason = _("“%(name)s” is no member who may label here: name the member in “people”.") % {
                    "name": storable_text(one.annotator[:100])
                }
            if not reason and user is not None and one.item is not None:
                try:
                    _label, new = queue.store_given(
                        batch=batch,
                        user=user,
                        item_id=one.item,
                        value=one.value,
                        lead_time_ms=one.lead_time_ms,
                    )
                    stored[user.username] += new
                    known += not new
                except HypacError as error:
                    reason = str(error)
            if reason:
                refused.append({"row": one.row, "reason": reason})
    finally:  # whatever happened: each answer is stored for itself
        counts = {"stored": sum(stored.values()), "known": known, "refused": len(refused)}
        audit.record(
            project=run.project,
            actor=actor,
            action="run.labelled_elsewhere",
            target=f"run:{run.number}",
            data={"part": part, **counts, "by": dict(stored), "people": storable(dict(people))},
        )
    return Taken(sum(stored.values()), known, refused)


def _members(run: Run) -> dict[str, User]:
    """By username and by confirmed e-mail address, in small letters; a name that means two is nobody's."""
    found: dict[str, set[User]] = {}
    for membership in members_who_label(run.project_id).select_related("user"):
        user = membership.user
        found.setdefault(user.username.lower(), set()).add(user)
        if user.email and user.email_confirmed_at:
            found.setdefault(user.email.lower(), set()).add(user)
    return {name: users.pop() for name, users in found.items() if len(users) == 1}


def answers_in(rows: Sequence[Mapping[str, Any]]) -> Iterator[Given]:
    """Those of rows in the shape of HyPAC or of Label Studio's export."""
    for number, row in enumerate(rows, 1):
        if "annotations" not in row:
            yield Given(number, _number(row.get("item")), row.get("value"), str(row.get("annotator") or ""))
            continue
        meta = row.get("meta")
        facts = meta.get(META) if isinstance(meta, dict) else None
        item = _number(facts.get("item")) if isinstance(facts, dict) else None
        for label in given_labels(row["annotations"]):
            yield Given(number, item, label.value, label.annotator, label.lead_time_ms, str(label.problem))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
