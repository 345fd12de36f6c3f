"""Invitations that are addressed to the reader: what they show on a page, and the answers to them."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from annotation.common.access import signed_in
from annotation.errors import HypacError
from annotation.models import Invitation, User
from annotation.people.account_invitations import decline, invitations_to
from annotation.people.invitations import accept, of_projects
from annotation.people.members_views import ROLES_IN_WORDS
from annotation.people.own_passwords import OwnPasswordError
from annotation.permissions import Role

# A page shows so many; once they are answered, the next ones follow.
SHOWN = 10


def invitations_shown(user: User) -> dict[str, Any]:
    """For templates that include annotation/projects/_own_invitations.html."""
    waiting = invitations_to(user)
    shown = list(waiting[: SHOWN + 1])
    words = dict(ROLES_IN_WORDS)
    return {
        "own_invitations": [(invitation, words[Role(invitation.role)]) for invitation in shown[:SHOWN]],
        "more_invitations": waiting.count() - SHOWN if len(shown) > SHOWN else 0,
    }


@signed_in("POST")
def invitation_accept(request: HttpRequest, invitation_id: int) -> HttpResponseBase:
    invitation = _own(request, invitation_id)
    try:
        accept(invitation=invitation, user=cast(User, request.user))
    except OwnPasswordError:
        return password_first(request, invitation)
    except HypacError as error:
        messages.error(request, error.message)
        return redirect("project_list")
    messages.success(request, _("You take part in %(name)s now.") % {"name": invitation.project.name})
    return redirect("overview", invitation.project.slug)


@signed_in("POST")
def invitation_decline(request: HttpRequest, invitation_id: int) -> HttpResponseBase:
    invitation = _own(request, invitation_id)
    try:
        decline(invitation=invitation, user=cast(User, request.user))
    except HypacError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("The invitation is declined. Whoever sent it sees that."))
    return redirect("project_list")


def password_first(request: HttpRequest, invitation: Invitation) -> HttpResponseBase:
    """To the form for a new password, from which one comes back to the invitation."""
    words = _(
        "Somebody else made your account and may know its password. Choose a new one here. The page that "
        "follows has the invitation to %(name)s again, and you can accept it."
    )
    messages.warning(request, words % {"name": invitation.project.name})
    return redirect("password")


def _own(request: HttpRequest, invitation_id: int) -> Invitation:
    return get_object_or_404(of_projects(), pk=invitation_id, user=cast(User, request.user))
