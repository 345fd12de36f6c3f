"""What people answered in another program, as labels of a run's items, row by row."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.errors import HypacError, InputError
from annotation.imports.formats.label_studio_names import META
from annotation.imports.formats.label_studio_results import given_labels
from annotation.labelling import queue
from annotation.models import Item, User, WorkBatch, WorkItem
from annotation.people.invitations import asked_by_name
from annotation.permissions import members_who_label
from annotation.ports import routing_port
from annotation.storable import storable, storable_text
from annotation.task_types import TASK_TYPES
from annotation.words import for_reader
from routing.elsewhere.work import batches_for_elsewhere
from routing.models import Run

OF_JSON_MIN = "annotation_id"
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
    """Of each that was refused `row`, `item` and its `name` where the project has it, whose answer it is
    (`annotator`, by username here where that is known), the `reason`, its `code` ("" where it has none), and
    whether it can be sent `again`, in a smaller request.
    """

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
    batches = batches_for_elsewhere(run, part)
    answers = list(islice(given, MOST_ANSWERS + 1))
    if len(answers) > MOST_ANSWERS:
        raise InputError(
            _("More than %(most)s answers are in these rows. Send fewer rows at once.")
            % {"most": f"{MOST_ANSWERS:,}"},
            where="rows",
        )
    here = _Here(run, batches, answers, people)
    stored, known, refused = Counter[str](), 0, []
    try:
        for one in answers:
            user = here.user_of(one)
            reason, again = here.objection(one, user), False
            code = getattr(reason, "code", "")
            if not reason and user is not None and one.item is not None:
                try:
                    new = _store(here.batches[one.item], user, one)
                    stored[user.username] += new
                    known += not new
                except HypacError as error:
                    reason, code, again = error.message, error.code, not error.permanent
            if reason:
                refused.append({**here.about(one, user), "reason": reason, "code": code, "again": again})
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


def _store(batch: WorkBatch, user: User, one: Given) -> bool:
    """Whether the label is new."""
    _label, new = queue.store_given(
        batch=batch, user=user, item_id=one.item or 0, value=one.value, lead_time_ms=one.lead_time_ms
    )
    return new


class _Here:
    """Who and what the answers mean here. `batches`: by item, the one of the part that asks about it."""

    def __init__(
        self, run: Run, batches: Sequence[WorkBatch], answers: Sequence[Given], people: Mapping[str, str]
    ) -> None:
        named = {one.item for one in answers if one.item is not None and 0 < one.item < 2**63}
        asked = WorkItem.objects.filter(batch__in=batches, item__in=named).values_list("item", "batch")
        by_key = {batch.pk: batch for batch in batches}
        self.batches = {item: by_key[batch] for item, batch in asked}
        items = Item.objects.filter(project=run.project_id, pk__in=named)
        self._names = dict(items.values_list("pk", "external_id"))
        self._members, self._people, self._run = _members(run), people, run
        self._blind = any(batch.blind for batch in batches)
        self._objections: dict[int, str] = {}
        self._may_be_empty = TASK_TYPES[run.project.task_type].empty_is_answer

    def user_of(self, one: Given) -> User | None:
        return self._members.get(self._people.get(one.annotator, one.annotator).lower())

    def objection(self, one: Given, user: User | None) -> str:
        """Why the answer cannot be stored, whatever it says; "" where nothing is in the way."""
        if one.problem:
            return one.problem
        if one.item is None:
            return _("It does not say by “item” which item it answers: the number that the run gave out.")
        if one.item not in self.batches:
            return _("Item %(item)s is none that run %(run)s asks people about in this part.") % {
                "item": one.item,
                "run": self._run.number,
            }
        if one.value == [] and not self._may_be_empty:
            return _("It is empty.")
        if user is not None:
            return self._seen_too_much(user)
        if not one.annotator:
            return _("It does not say who answered: name the member in “annotator”.")
        name = self._people.get(one.annotator, one.annotator)
        if name.lower() in self._asked:
            words = _("“%(name)s” has not accepted the invitation yet. Send this row again after that.")
        else:
            words = _("“%(name)s” is no member who may label here: name the member in “people”.")
        return words % {"name": storable_text(name[:100])}

    @cached_property
    def _asked(self) -> set[str]:
        return asked_by_name(self._run.project_id)

    def _seen_too_much(self, user: User) -> str:
        """Of the whole part, as soon as one of its batches is blind: a reason that came for blind items alone
        would tell which of the others audit models.
        """
        if not self._blind:
            return ""
        if user.pk not in self._objections:
            words = routing_port().blind_objection(project=self._run.project, user=user)
            self._objections[user.pk] = words
        return self._objections[user.pk]

    def about(self, one: Given, user: User | None) -> dict[str, Any]:
        return {
            "row": one.row,
            "item": one.item,
            "name": self._names.get(one.item or 0, ""),
            "annotator": user.username if user else storable_text(one.annotator[:100]),
        }


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
            item, by = _number(row.get("item")), str(row.get("annotator") or "")
            minimal = item is None and OF_JSON_MIN in row
            yield Given(number, item, row.get("value"), by, problem=_of_json_min() if minimal else "")
            continue
        meta = row.get("meta")
        facts = meta.get(META) if isinstance(meta, dict) else None
        item = _number(facts.get("item")) if isinstance(facts, dict) else None
        for label in given_labels(row["annotations"]):
            problem = _without_item() if item is None else _unreadable(label.problem)
            yield Given(number, item, label.value, label.annotator, label.lead_time_ms, problem)


def _unreadable(problem: str) -> str:
    return _("This answer cannot be used: %(why)s.") % {"why": for_reader(problem)} if problem else ""


def _without_item() -> str:
    return _("Its task has no “meta.hypac.item”, by which an item is known: import what the run gave out.")


def _of_json_min() -> str:
    return _("A row of JSON-MIN does not say which item it answers. Export as JSON.")


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
