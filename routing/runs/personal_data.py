"""What is kept of people here: what they gave, what stands against erasing them, and where a name stays."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import F, Min, Q
from django.utils.translation import gettext as _

from annotation.models import Label, User
from routing.common.states import CANCELLABLE
from routing.models import Delivery, RosterEntry, RoundNote, Run, SavedView

EXPERT = RosterEntry.Role.EXPERT


def own_data(user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
    """Kinds of data and their rows."""
    rosters = RosterEntry.objects.filter(user=user).order_by("pk")
    of_run = {"of_project": F("run__project__slug"), "of_run": F("run__number")}
    yield "rosters", rosters.values("role", "name", "share", "left_at", **of_run).iterator()
    views = SavedView.objects.filter(owner=user).order_by("pk")
    yield "saved_views", views.values("name", "query", "created_at", of_project=F("project__slug"))
    notes = RoundNote.objects.filter(author=user).order_by("pk")
    of_round = {"of_project": F("round__project__slug"), "of_round": F("round__number")}
    named = {**of_round, "external_id": F("item__external_id")}
    yield "round_notes", notes.values("text", "value", "created_at", **named).iterator()


def forget_person(user: User) -> None:
    SavedView.objects.filter(owner=user).delete()


def erasure_objection(user: User) -> str:
    """A run that is under way needs its expert: nobody gives her labels in her place."""
    entries = RosterEntry.objects.filter(user=user, role=EXPERT, run__state__in=CANCELLABLE)
    entry = entries.filter(run__project__deleting_at__isnull=True).select_related("run__project").first()
    if entry is None:
        return ""
    return _(
        "%(name)s is the expert of run %(run)s of %(project)s, which is under way. Complete or cancel it "
        "first."
    ) % {"name": user.username, "run": entry.run.number, "project": entry.run.project.name}


def files_naming(user: User) -> int:
    """How many deliveries may have the person's name: those of projects in which they had labelled by then,
    and of runs whose expert they are.
    """
    told = Q(run__roster__user=user, run__roster__role=EXPERT)
    firsts = Label.objects.filter(annotator=user).order_by().values("item__project")
    for project, first in firsts.annotate(first=Min("created_at")).values_list("item__project", "first"):
        told |= Q(run__project=project, created_at__gte=first)
    return Delivery.objects.filter(told).distinct().count()


def erased_experts(run: Run) -> dict[str, str]:
    """Of experts who were erased since: the name that plan and certificate keep -> the one of today."""
    entries = run.roster.filter(role=EXPERT, user__erased_at__isnull=False)
    return dict(entries.values_list("name", "user__username"))


def with_names_of_today(run: Run, stored: Any) -> Any:
    """Messages as they are stored with a certificate, in which erased experts have their names of today."""
    if not run.by_expert or not (erased := erased_experts(run)):
        return stored
    now = ", ".join(erased.get(name, name) for name in run.expert_name.split(", "))

    def walk(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {name: walk(inner, name) for name, inner in part.items()}
        if isinstance(part, list):
            return [walk(inner, key) for inner in part]
        return now if key in ("expert", "experts") and part == run.expert_name else part

    return walk(stored)
