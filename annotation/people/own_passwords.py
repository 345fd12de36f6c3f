"""Whose password an account has: its holder's, or still that of whoever made the account.

Whoever made an account for somebody knows its first password, and may have chosen the next one in their
place. In the project where they made it they gain nothing by that. So before the account has part in anything
else, its holder chooses a password anew, which also ends all sessions and tokens.
"""

from datetime import datetime

from django.utils.translation import gettext as _

from annotation.errors import NotAllowedError
from annotation.models import Project, User


class OwnPasswordError(NotAllowedError):
    """The holder has to choose a password first."""


def require_own(*, user: User, project: Project, invited_at: datetime) -> None:
    """Raise OwnPasswordError where somebody else may know the password with which `user` joins `project`."""
    if project.pk == user.made_in:
        return
    chosen = user.password_chosen_at
    first_elsewhere = user.made_in is not None and not user.belonged_elsewhere
    if chosen is None or (first_elsewhere and chosen < invited_at):
        raise OwnPasswordError(
            _(
                "Somebody else made your account and may know its password. Choose a new one on the page of "
                "your account, then join."
            )
        )


def require_chosen(*, user: User, project: Project | None) -> None:
    """The same where nobody invites: where `user` makes the project, or whoever runs the server adds them."""
    if not has_to_choose(user):
        return
    if project is None:
        raise OwnPasswordError(
            _(
                "Somebody else made your account and may know its password. Choose a new one on the page of "
                "your account first."
            )
        )
    if project.pk != user.made_in:
        raise OwnPasswordError(
            _(
                "Whoever made the account %(name)s may know its password. Its holder has to choose a new one "
                "first, on the page of their account."
            )
            % {"name": user.username}
        )


def has_to_choose(user: User) -> bool:
    """Whether `user` chooses a password of their own before they make a project."""
    return user.made_in is not None and user.password_chosen_at is None


def answers_for_themselves(*, user: User, project: Project) -> bool:
    """Whether nobody who made the account in another project could accept an invitation in their place."""
    return project.pk == user.made_in or not has_to_choose(user)


def note_belonging(*, user: User, project: Project) -> None:
    """Remember that the account belonged to more than the project where it was made, whatever comes."""
    made = User.objects.filter(pk=user.pk, made_in__isnull=False, belonged_elsewhere=False)
    made.exclude(made_in=project.pk).update(belonged_elsewhere=True)
