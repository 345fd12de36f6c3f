"""Invitations: links that let people join a project, what whoever opens one sees, and the answers of those
who are invited by name.
"""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from annotation.common.access import ProjectRequest, needs, public, refusals_as_messages, signed_in
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.models import Invitation, Membership, User
from annotation.people import attempt_limits, invitations
from annotation.people.attempt_limits import throttled
from annotation.people.forms import InvitationForm, JoinForm
from annotation.people.invitations import accept, decline, invitations_to, of_projects
from annotation.people.log_in import PASSWORD_BACKEND, has_passwords
from annotation.people.members_views import ROLES_IN_WORDS, members_page
from annotation.people.own_passwords import OwnPasswordError
from annotation.permissions import Role

IN_SESSION = "invitation"


@needs("members.edit", "POST")
def invitation_new(request: ProjectRequest) -> HttpResponseBase:
    """The link is in this answer and nowhere else: no redirect, no message that is stored."""
    form = InvitationForm(request.POST, prefix="invite")
    if form.is_valid():
        try:
            invitation, token = invitations.create_invitation(
                project=request.access.project, actor=request.user, **form.cleaned_data
            )
        except HypacError as error:
            add_error(form, error)
        else:
            link = request.build_absolute_uri(reverse("join_link", args=[token]))
            told = {"invitation": invitation, "link": link, "email": form.cleaned_data.get("email")}
            response = render(request, "annotation/people/invitation_made.html", told)
            response.headers["Cache-Control"] = "no-store, private"
            return response
    return members_page(request, invite=form)


@needs("members.edit", "POST")
def invitation_revoke(request: ProjectRequest, invitation_id: int) -> HttpResponseBase:
    project = request.access.project
    invitation = get_object_or_404(Invitation, pk=invitation_id, project=project)
    with refusals_as_messages(request):
        invitations.revoke_invitation(invitation=invitation, actor=request.user)
        messages.success(request, _("The invitation is taken back. Who has joined with it stays."))
    return redirect("members", project.slug)


@public("GET")
@throttled
def join_link(request: HttpRequest, token: str) -> HttpResponseBase:
    """What the link leads to. Looking at it changes nothing."""
    return _page(request, invitations.find_invitation(token), token=token)


@public("GET", "POST")
@sensitive_post_parameters("password", "token")
@throttled
def join(request: HttpRequest) -> HttpResponseBase:
    """Where the forms of that page lead: the address has no token, and so neither has a log.

    Somebody who logs in first comes back here; the number of the invitation waits in their session.
    """
    if request.method != "POST":
        kept = request.session.get(IN_SESSION)
        return _page(request, invitations.of_projects().filter(pk=kept).first() if kept else None)
    token = request.POST.get("token", "")
    if token:
        invitation = invitations.find_invitation(token)
    else:
        kept = request.session.get(IN_SESSION)
        invitation = invitations.of_projects().filter(pk=kept).first() if kept else None
    if invitation is None:
        return _page(request, None)
    if not request.user.is_authenticated:
        if "log_in" in request.POST:
            request.session[IN_SESSION] = invitation.pk
            return redirect(f"{reverse('login')}?next={reverse('join')}")
        return _with_new_account(request, invitation, token)
    try:
        invitations.accept(invitation=invitation, user=request.user)
    except OwnPasswordError:
        request.session[IN_SESSION] = invitation.pk
        return password_first(request, invitation)
    except HypacError as error:
        return _page(request, invitation, token=token, problem=error.message)
    return _joined(request, invitation)


def _with_new_account(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponseBase:
    form = JoinForm(request.POST)
    if not form.is_valid():
        return _page(request, invitation, token=token, form=form)
    attempt_limits.count(request)
    try:
        membership = invitations.accept_with_new_account(
            invitation=invitation,
            username=form.cleaned_data["username"],
            email=form.cleaned_data["email"],
            password=form.cleaned_data["password"],
        )
    except HypacError as error:
        add_error(form, error)
        return _page(request, invitation, token=token, form=form)
    login(request, membership.user, backend=PASSWORD_BACKEND)
    return _joined(request, invitation)


def _joined(request: HttpRequest, invitation: Invitation) -> HttpResponseBase:
    request.session.pop(IN_SESSION, None)
    messages.success(request, _("You take part in %(name)s now.") % {"name": invitation.project.name})
    return redirect("overview", invitation.project.slug)


def _page(
    request: HttpRequest,
    invitation: Invitation | None,
    *,
    token: str = "",
    form: JoinForm | None = None,
    problem: str = "",
) -> HttpResponseBase:
    """404 where there is no such invitation, 410 where it holds no longer."""
    context: dict[str, Any] = {"token": token, "form": form or JoinForm(), "problem": problem}
    context["passwords"] = has_passwords()
    status = 404
    if invitation is not None:
        context["invitation"] = invitation
        context["refusal"] = invitations.refusal(invitation)
        context["role_in_words"] = dict(ROLES_IN_WORDS)[Membership.Role(invitation.role)]
        status = 410 if context["refusal"] else 200
        if request.user.is_authenticated:
            mine = Membership.objects.filter(project=invitation.project_id, user=request.user)
            context["membership"] = mine.first()
    response = render(request, "annotation/people/join.html", context, status=status)
    response.headers["Cache-Control"] = "no-store, private"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    # The address holds the token. Not "no-referrer": browsers then send forms with the origin "null", which
    # the check of the form's token refuses.
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


# --- Invitations by name: what the reader is shown, and their answers ---------------------------------------

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
