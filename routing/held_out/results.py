"""How often people gave the known answer of gold items, and how far they are with practice."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from annotation.labelling.gold import GoldDone, gold_done
from annotation.labelling.practice import practice_items
from annotation.models import Membership, PracticeAnswer, Project, User
from annotation.permissions import members_who_label
from routing.core.experiment.summary import clopper_pearson


@dataclass(frozen=True)
class PersonChecked:
    """One annotator: their first answers to all gold items, the exact interval (Clopper and Pearson, 95 %) of
    the share that is right, and the same of what the bar looks at.
    """

    user: User
    answered: int
    right: int
    low: float | None
    high: float | None
    latest: int
    latest_right: int
    practised: int
    paused_at: datetime | None

    @property
    def share(self) -> float | None:
        return self.right / self.answered if self.answered else None


def people_checked(project: Project) -> list[PersonChecked]:
    """All annotators who may label, those who are paused first."""
    members = list(
        members_who_label(project.pk)
        .filter(role=Membership.Role.ANNOTATOR)
        .select_related("user")
        .order_by("user__username")
    )
    done = gold_done(project, members)
    practised = Counter(
        PracticeAnswer.objects.filter(held_out__in=practice_items(project)).values_list("user", flat=True)
    )
    found = [_person(one, done[one.user_id], practised[one.user_id]) for one in members]
    return sorted(found, key=lambda one: one.paused_at is None)


def _person(one: Membership, done: GoldDone, practised: int) -> PersonChecked:
    answered, right = len(done.answers), sum(done.answers)
    low, high = clopper_pearson(right, answered, 0.95) if answered else (None, None)
    return PersonChecked(
        user=one.user,
        answered=answered,
        right=right,
        low=low,
        high=high,
        latest=len(done.latest),
        latest_right=sum(done.latest),
        practised=practised,
        paused_at=one.paused_at,
    )
