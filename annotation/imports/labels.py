"""Labels that people gave elsewhere, and that come with the items of an import.

They are kept as labels of one batch for each import, whose work is done from the start: nobody is asked,
nothing is paid, and no run rests on them. An item that has one is in no pool, so that it is never drawn; it
is delivered with that label unless somebody here gives another one. Whoever is no member stands as an account
of their name and the program that they worked with, which can never log in.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from django.contrib.auth.hashers import make_password
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_noop

from annotation.common.bulk import copy_rows
from annotation.common.value_reader import Value, ValueReason, reader_of
from annotation.imports.formats.base import GivenLabel
from annotation.jobs.places import within
from annotation.labelling.alike import Alike
from annotation.labelling.validation import usable_lead_time
from annotation.models import Item, Job, Label, Project, Settlement, User, WorkBatch, WorkItem
from annotation.task_types.base import OF_FORM
from annotation.words import Words

MAX_NAME = User._meta.get_field("username").max_length or 150
UNKNOWN = "unknown"
DONE_PRIORITY = 10
# So many accounts for people outside an import makes: a file may name another one in every row.
MOST_OUTSIDE = 500


class Labelled(NamedTuple):
    """An item that was just added, by its place in the project, with what its row says people gave it."""

    position: int
    where: str
    labels: Sequence[GivenLabel]


@dataclass(frozen=True)
class Kept:
    """How many labels were stored, and what is to be said, (where, message), about those that were not;
    `notes` are about those that were.
    """

    labels: int
    problems: list[tuple[str, str]]
    notes: list[tuple[str, str]] = field(default_factory=list)


class _Answer(NamedTuple):
    annotator: int
    value: Value
    given_at: datetime
    lead_time_ms: int | None


class LabelKeeper:
    """Keeps the labels of the items that one import adds: one object for one attempt of its job."""

    def __init__(self, project: Project, job: Job) -> None:
        self._project, self._job = project, job
        self._read = reader_of(project)
        self._now = timezone.now()
        self._members: dict[str, int] | None = None
        self._accounts: dict[str, int] = {}
        self._outside: set[str] | None = None
        self._left_out = False

    def keep(self, rows: Iterable[Labelled]) -> Kept:
        """Store the labels of items that were added in this transaction. Of several that one person gave an
        item the last one counts; those by nobody who is named are of as many people, in their order.
        """
        problems: list[tuple[str, str]] = []
        usable: list[tuple[int, GivenLabel, Value]] = []
        for row in rows:
            nameless = 0
            for number, given in enumerate(row.labels, 1):
                if not given.annotator.strip():
                    # Two are two people's, as far as anybody can know, also where they say the same: taken
                    # for one person's, they would never agree.
                    nameless += 1
                    given = given._replace(annotator=f"{UNKNOWN} {nameless}" if nameless > 1 else "")
                value, reason = self._value(given)
                if value is None:
                    where = within(
                        row.where, gettext_noop("%(where)s, label %(number)s"), where=row.where, number=number
                    )
                    words = Words(gettext_noop("This label is not kept: %(reason)s."), reason=reason)
                    problems.append((where, words))
                    continue
                usable.append((row.position, given, value))
        by_person: dict[int, dict[int, _Answer]] = {}
        annotators = self._annotators([given for _position, given, _value in usable])
        for (position, given, value), annotator in zip(usable, annotators, strict=True):
            lead_time = usable_lead_time(given.lead_time_ms)
            answer = _Answer(annotator, value, self._given_at(given), lead_time)
            by_person.setdefault(position, {})[annotator] = answer
        answers = {position: list(given.values()) for position, given in by_person.items()}
        if answers:
            self._store(answers)
        return Kept(sum(map(len, answers.values())), problems, self._notes())

    def _value(self, given: GivenLabel) -> tuple[Value | None, str]:
        """Why there is none is said without what the person answered, which not everybody who reads of the
        import may see.
        """
        if given.problem:
            return None, given.problem
        if given.value == [] and not self._read.kind.empty_is_answer:
            return None, Words(gettext_noop("it is empty"))
        value, reason = self._read(given.value)
        if value is not None:
            return value, ""
        if isinstance(reason, ValueReason) and reason.code == OF_FORM:
            return None, reason
        has_choices = self._read.kind.has_choices
        words = (
            gettext_noop("it is no label of the project")
            if has_choices
            else gettext_noop("it cannot be read")
        )
        return None, Words(words)

    def _store(self, answers: dict[int, list[_Answer]]) -> None:
        """By position of the item."""
        batch = self._batch(max(map(len, answers.values())))
        items = Item.objects.filter(project=self._project, position__in=list(answers)).order_by("position")
        ids = list(items.values_list("position", "pk"))
        work = WorkItem.objects.bulk_create(
            WorkItem(
                batch=batch,
                item_id=pk,
                slot=slot,
                priority=batch.priority,
                order=position,
                state=WorkItem.State.DONE,
                finished_at=answer.given_at,
            )
            for position, pk in ids
            for slot, answer in enumerate(answers[position])
        )
        given = (answer for position, _pk in ids for answer in answers[position])
        copy_rows(
            Label,
            ("item", "work_item", "annotator", "value", "idempotency_key", "lead_time_ms", "created_at"),
            [
                (
                    row.item_id,
                    row.pk,
                    answer.annotator,
                    answer.value,
                    f"import-{self._job.pk}-{row.item_id}",
                    answer.lead_time_ms,
                    answer.given_at,
                )
                for row, answer in zip(work, given, strict=True)
            ],
        )
        _settle(batch, {pk: [answer.value for answer in answers[position]] for position, pk in ids})

    def _batch(self, overlap: int) -> WorkBatch:
        """That of the import; `overlap` grows with the most answers that one of its items has."""
        batch, _made = WorkBatch.objects.get_or_create(
            project=self._project,
            imported_by=self._job,
            defaults={"blind": False, "priority": DONE_PRIORITY, "overlap": overlap},
        )
        if batch.overlap < overlap:
            batch.overlap = overlap
            batch.save(update_fields=["overlap"])
        return batch

    def _annotators(self, labels: Sequence[GivenLabel]) -> list[int]:
        """Of each the member with this username or e-mail address, else the account that stands for somebody
        outside.
        """
        if self._members is None:
            self._members = _members_by_name(self._project)
        found: list[int | str] = []
        for given in labels:
            name = " ".join(given.annotator.replace("\0", " ").split())
            member = self._members.get(name.casefold())
            found.append(self._outside_name(name, given.tool) if member is None else member)
        self._make_accounts({name for name in found if isinstance(name, str)})
        return [self._accounts[who] if isinstance(who, str) else who for who in found]

    def _outside_name(self, name: str, tool: str) -> str:
        """Of an account for this person, or of the one for whoever is not named."""
        if self._outside is None:  # with those of an earlier attempt
            names = labels_of_import(self._job).values_list("annotator__username", flat=True)
            unknown = outside_name("", tool)
            self._outside = {who for who in names.order_by().distinct() if " " in who and who != unknown}
        outside = outside_name(name, tool)
        if not name or outside in self._outside:
            return outside
        if len(self._outside) >= MOST_OUTSIDE:
            self._left_out = True
            return outside_name("", tool)
        self._outside.add(outside)
        return outside

    def _make_accounts(self, names: set[str]) -> None:
        if not (missing := names - self._accounts.keys()):
            return
        known = User.objects.filter(username__in=missing).values_list("username", "pk")
        self._accounts |= dict(known)
        User.objects.bulk_create(
            [
                User(username=name, is_active=False, password=make_password(None))
                for name in sorted(missing - self._accounts.keys())
            ],
            ignore_conflicts=True,  # another import may meet the same person
        )
        self._accounts |= dict(known.all())

    def _notes(self) -> list[tuple[str, str]]:
        if not self._left_out:
            return []
        words = gettext_noop(
            "The labels are by more than %(most)s people who are no members. Those of all others are kept as "
            "by somebody who is not named, of whom an item has one label, the newest."
        )
        return [(Words(gettext_noop("People")), Words(words, most=MOST_OUTSIDE))]

    def _given_at(self, given: GivenLabel) -> datetime:
        """When it was given; the time of the import where the file tells none, or one still to come."""
        try:
            moment = parse_datetime(given.created_at)
        except ValueError:
            moment = None
        if moment is None:
            return self._now
        if timezone.is_naive(moment):
            moment = moment.replace(tzinfo=UTC)
        return min(moment, self._now)


def outside_name(name: str, tool: str) -> str:
    """Username of the account that stands for a person of another program. No person can have it: usernames
    that are typed have neither spaces nor brackets.
    """
    end = f" ({tool})" if tool else " (import)"
    return f"{(name or UNKNOWN)[: MAX_NAME - len(end)]}{end}"


def labels_of_import(job: Job) -> QuerySet[Label]:
    """All versions of the labels that an import brought."""
    return Label.objects.filter(work_item__batch__imported_by=job.pk or 0)


def was_corrected(job: Job) -> bool:
    """Whether somebody here has corrected one of them, or decided where they differ."""
    decided = Settlement.objects.filter(batch__imported_by=job.pk or 0).exclude(
        method=Settlement.Method.MAJORITY
    )
    return labels_of_import(job).filter(version__gt=1).exists() or decided.exists()


def remove_with_items(job: Job, items: QuerySet[Item]) -> None:
    """Remove what an import says of these items, which go in the same transaction."""
    for rows in (
        Label.objects.filter(work_item__batch__imported_by=job, item__in=items),
        Settlement.objects.filter(batch__imported_by=job, item__in=items),
        WorkItem.objects.filter(batch__imported_by=job, item__in=items),
    ):
        rows.order_by()._raw_delete(rows.db)


def remove_empty_batch(job: Job) -> None:
    """Once nothing of the import is left."""
    batches = WorkBatch.objects.filter(imported_by=job, work_items__isnull=True)
    WorkBatch.objects.filter(pk__in=list(batches.values_list("pk", flat=True))).delete()


def _settle(batch: WorkBatch, values: dict[int, list[Value]]) -> None:
    """What more than half say; the rest waits for a reviewer, as any answers that differ."""
    alike = Alike(batch.project)
    Settlement.objects.bulk_create(
        Settlement(batch=batch, item_id=item, value=value, method=Settlement.Method.MAJORITY)
        for item, given in values.items()
        if len(given) > 1 and (value := alike.given_by_most(given)) is not None
    )


def _members_by_name(project: Project) -> dict[str, int]:
    """Usernames and e-mail addresses of the members, without those that two of them have."""
    found: dict[str, int] = {}
    people = list(project.memberships.values_list("user", "user__username", "user__email"))
    addresses = Counter(email.casefold() for _pk, _name, email in people if email)
    for pk, _name, email in people:
        if email and addresses[email.casefold()] == 1:
            found[email.casefold()] = pk
    names = Counter(name.casefold() for _pk, name, _email in people)
    return found | {name.casefold(): pk for pk, name, _email in people if names[name.casefold()] == 1}
