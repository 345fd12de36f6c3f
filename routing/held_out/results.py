"""How often people gave the known answer of gold items, and how far they are with practice."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from annotation.labelling.gold import gold_answers
from annotation.labelling.known_answers import can_be_judged, is_right
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
    given: dict[int, list[tuple[bool, datetime]]] = {one.user_id: [] for one in members}
    rows = gold_answers(project).filter(annotator__in=list(given)).order_by("-pk")
    for user, at, value, known in rows.values_list(
        "annotator", "created_at", "value", "item__held_out__answer"
    ):
        if can_be_judged(project, value):
            given[user].append((is_right(project, value, known), at))
    practised = Counter(
        PracticeAnswer.objects.filter(held_out__in=practice_items(project)).values_list("user", flat=True)
    )
    found = [_person(project, one, given[one.user_id], practised[one.user_id]) for one in members]
    return sorted(found, key=lambda one: one.paused_at is None)


def _person(
    project: Project, one: Membership, answers: list[tuple[bool, datetime]], practised: int
) -> PersonChecked:
    since = one.checked_since
    latest = [good for good, at in answers if since is None or at > since][: project.gold_last]
    right = sum(good for good, _at in answers)
    low, high = clopper_pearson(right, len(answers), 0.95) if answers else (None, None)
    return PersonChecked(
        user=one.user,
        answered=len(answers),
        right=right,
        low=low,
        high=high,
        latest=len(latest),
        latest_right=sum(latest),
        practised=practised,
        paused_at=one.paused_at,
    )
