"""Practice: items with known answers that annotators answer before they are given any other.

Each is answered once, and the known answer with its explanation is shown at once. What is answered here is no
label: it counts in no figure of anybody's work, and costs nothing.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from annotation.errors import ConflictError, InputError
from annotation.labelling.alike import Alike
from annotation.labelling.known_answers import is_right, with_known_answers
from annotation.labelling.validation import validate_value
from annotation.models import HeldOutItem, Membership, PracticeAnswer, Project, User


@dataclass(frozen=True)
class PracticeState:
    """How far somebody is; `next` is what they answer now, None once all is answered."""

    done: int
    total: int
    next: HeldOutItem | None


def practice_items(project: Project) -> QuerySet[HeldOutItem]:
    """Those that can be answered, in their order."""
    return with_known_answers(project, HeldOutItem.Purpose.PRACTICE).order_by("pk")


def practice_left(project: Project, membership: Membership) -> bool:
    """Whether this member has to practise before they are given items."""
    if not project.practice_first or membership.role != Membership.Role.ANNOTATOR:
        return False
    return _unanswered(project, membership.user).exists()


def must_practise(*, project: Project, user: User) -> bool:
    """The same for whoever comes to label."""
    if not project.practice_first:
        return False
    membership = project.memberships.filter(user=user).first()
    return membership is not None and practice_left(project, membership)


def practice_state(project: Project, user: User) -> PracticeState:
    left = _unanswered(project, user)
    total, waiting = practice_items(project).count(), left.count()
    return PracticeState(total - waiting, total, left.select_related("item__image").first())


def answer_practice(*, project: Project, user: User, held_out_id: int, value: Any) -> PracticeAnswer:
    """Store what somebody answers to the practice item before them. Sent twice, the first answer stays.

    Raises InputError where the answer cannot be read, ConflictError where the item is no practice item any
    more.
    """
    held = practice_items(project).filter(pk=held_out_id).select_related("item__image").first()
    if held is None:
        raise ConflictError(
            _("This is no practice item any more. Load the page again."), code="no_practice_item"
        )
    if not project.practice_first:
        raise ConflictError(_("Nobody practises in this project now."), code="no_practice")
    given = validate_value(project, value, item=held.item_id)
    if given is None:
        raise InputError(_("There is no answer yet."), where="value")
    answer, _new = PracticeAnswer.objects.get_or_create(
        held_out=held,
        user=user,
        defaults={"value": given, "is_right": is_right(Alike(project), given, held.answer)},
    )
    return answer


def own_practice_answer(project: Project, user: User, answer_id: int) -> PracticeAnswer | None:
    rows = PracticeAnswer.objects.select_related("held_out__item__image")
    return rows.filter(pk=answer_id, user=user, held_out__project=project).first()


def _unanswered(project: Project, user: User) -> QuerySet[HeldOutItem]:
    mine = PracticeAnswer.objects.filter(held_out=OuterRef("pk"), user=user)
    return practice_items(project).filter(~Exists(mine))
