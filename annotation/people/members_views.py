"""Who takes part in a project, what they have done, and what they may do."""

from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.attempts import TooManyAttemptsError
from annotation.common.forms import add_error
from annotation.common.replaced_labels import names_as_given
from annotation.errors import HypacError
from annotation.labelling.label_queries import label_in_words
from annotation.models import Membership, User
from annotation.people import attempt_limits
from annotation.people.attempt_limits import with_retry_after
from annotation.people.forms import AccountForm, InvitationForm, LimitsForm, MemberForm, RoleForm
from annotation.people.invitations import OPEN, STATES_IN_WORDS, state_of
from annotation.people.invite_by_name import invite_person
from annotation.people.log_in import has_passwords
from annotation.people.members import change_role, create_account, remove_member, set_active, set_limits
from annotation.people.password_links import HOURS, reset_link, why_no_link
from annotation.people.queries import SORTS, labels_per_day, latest_labels, of_a_sample, people, person
from annotation.permissions import access_to

ROLES_IN_WORDS = (
    (Membership.Role.OWNER, gettext_lazy("May do everything, also decide who takes part.")),
    (Membership.Role.MANAGER, gettext_lazy("Brings data, chooses sources, starts runs, delivers; labels.")),
    (Membership.Role.REVIEWER, gettext_lazy("Labels, settles disagreements, sees items and runs.")),
    (Membership.Role.ANNOTATOR, gettext_lazy("Labels. Sees nothing of models and results.")),
    (Membership.Role.VIEWER, gettext_lazy("Sees everything, changes nothing, labels nothing.")),
)  # fmt: skip
# Key of SORTS ("name" is none of them), heading.
COLUMNS = (
    ("name", gettext_lazy("Name")),
    ("role", gettext_lazy("Role")),
    ("labels", gettext_lazy("Labels")),
    ("today", gettext_lazy("Today")),
    ("skips", gettext_lazy("Skipped")),
    ("flags", gettext_lazy("Flags")),
    ("median", gettext_lazy("Usual time")),
    ("active", gettext_lazy("Time in all")),
    ("pace", gettext_lazy("Per hour")),
    ("agreement", gettext_lazy("Agreement")),
    ("cost", gettext_lazy("Cost")),
    ("last", gettext_lazy("Last active")),
)


@needs("members.view", "GET")
def members(request: ProjectRequest) -> HttpResponseBase:
    return members_page(request)


@needs("members.edit", "POST")
def member_add(request: ProjectRequest) -> HttpResponseBase:
    """They take part once they accept."""
    form = MemberForm(request.POST, prefix="add")
    if form.is_valid():
        try:
            invite_person(project=request.access.project, actor=request.user, **form.cleaned_data)
        except TooManyAttemptsError as error:
            add_error(form, error)
            return with_retry_after(members_page(request, add=form), error.wait)
        except HypacError as error:
            add_error(form, error)
        else:
            words = _("%(name)s is invited, and finds the invitation on their list of projects.")
            messages.success(request, words % {"name": form.cleaned_data["username"]})
            return redirect("members", request.access.project.slug)
    return members_page(request, add=form)


@needs("members.edit", "POST")
def member_create(request: ProjectRequest) -> HttpResponseBase:
    """The password is in this answer and nowhere else: no redirect, no message that is stored."""
    form = AccountForm(request.POST, prefix="new")
    if form.is_valid():
        attempt_limits.count(request)
        try:
            membership, password = create_account(
                project=request.access.project, actor=request.user, **form.cleaned_data
            )
        except HypacError as error:
            add_error(form, error)
        else:
            response = render(
                request,
                "annotation/people/member_created.html",
                {"membership": membership, "password": password},
            )
            response.headers["Cache-Control"] = "no-store, private"
            return response
    return members_page(request, new=form)


@needs("members.view", "GET")
def member(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    return _member_page(request, _membership(request, user_id))


@needs("members.edit", "POST")
def member_role(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    form = RoleForm(request.POST)
    user = _membership(request, user_id).user
    if not form.is_valid():
        messages.error(request, _("Choose one of the roles."))
    else:
        with refusals_as_messages(request):
            change_role(
                project=request.access.project, actor=request.user, user=user, role=form.cleaned_data["role"]
            )
            messages.success(request, _("The role of %(name)s is changed.") % {"name": user.username})
    return _back(request, user)


@needs("members.edit", "POST")
def member_limits(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    membership = _membership(request, user_id)
    form = LimitsForm(request.POST)
    if not form.is_valid():
        return _member_page(request, membership, limits=form)
    with refusals_as_messages(request):
        set_limits(
            project=request.access.project, actor=request.user, user=membership.user, **form.cleaned_data
        )
        messages.success(request, _("The limits of %(name)s are saved.") % {"name": membership.user.username})
    return redirect("member", request.access.project.slug, user_id)


@needs("members.edit", "POST")
def member_active(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    user = _membership(request, user_id).user
    active = request.POST.get("active") == "1"
    with refusals_as_messages(request):
        set_active(project=request.access.project, actor=request.user, user=user, active=active)
        words = _("%(name)s is active again.") if active else _(
            "%(name)s can do nothing here until you let them. Their labels stay."
        )  # fmt: skip
        messages.success(request, words % {"name": user.username})
    return _back(request, user)


@needs("members.edit", "POST")
def member_reset(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    """The link is in this answer and nowhere else, as a new password is."""
    user = _membership(request, user_id).user
    uid, token = reset_link(project=request.access.project, actor=request.user, user=user)
    link = request.build_absolute_uri(reverse("password_reset", args=[uid, token]))
    response = render(
        request, "annotation/people/reset_made.html", {"member": user, "link": link, "hours": HOURS}
    )
    response.headers["Cache-Control"] = "no-store, private"
    return response


@needs("members.edit", "POST")
def member_remove(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    user = _membership(request, user_id).user
    with refusals_as_messages(request):
        remove_member(project=request.access.project, actor=request.user, user=user)
        messages.success(
            request, _("%(name)s no longer takes part. Their labels stay.") % {"name": user.username}
        )
    return _back(request, user)


def members_page(
    request: ProjectRequest,
    *,
    add: MemberForm | None = None,
    new: AccountForm | None = None,
    invite: InvitationForm | None = None,
) -> HttpResponseBase:
    sort = request.GET.get("sort", "")
    everybody = people(request.access.project, sort=sort)
    context: dict[str, Any] = {
        "people": everybody,
        "of_a_sample": of_a_sample(everybody),
        "columns": COLUMNS,
        "sort": sort if sort in SORTS else "name",
        "roles": [(role.label, words) for role, words in ROLES_IN_WORDS],
    }
    if request.access.allows("members.edit"):
        invitations = request.access.project.invitations.select_related("project", "created_by", "user")[:50]
        states = [(invitation, state_of(invitation)) for invitation in invitations]
        context |= {
            "add_form": add or MemberForm(prefix="add"),
            "passwords": has_passwords(),
            "new_form": new or AccountForm(prefix="new"),
            "invite_form": invite or InvitationForm(prefix="invite"),
            "invitations": [
                (invitation, STATES_IN_WORDS[state], state == OPEN) for invitation, state in states
            ],
        }
    return render(request, "annotation/people/members.html", context)


def _member_page(
    request: ProjectRequest, membership: Membership, *, limits: LimitsForm | None = None
) -> HttpResponseBase:
    project, user = request.access.project, membership.user
    context: dict[str, Any] = {
        "person": person(project, membership),
        "days": labels_per_day(project, user),
    }
    if request.access.allows("items.view"):
        names = names_as_given(project)
        labels, kept_back = latest_labels(project, user)
        context |= {
            "labels": [
                (label, label_in_words(label.value, names), label.lead_time_ms and label.lead_time_ms / 1000)
                for label in labels
            ],
            "kept_back": kept_back,
        }
    if request.access.allows("members.edit"):
        limits = limits or LimitsForm(
            initial={"max_labels": membership.max_labels, "max_per_day": membership.max_per_day}
        )
        context |= {
            "role_choices": Membership.Role.choices,
            "limits": limits,
            "why_no_link": why_no_link(actor=request.user, user=user),
        }
    return render(request, "annotation/people/member.html", context)


def _membership(request: ProjectRequest, user_id: int) -> Membership:
    membership = request.access.project.memberships.select_related("user").filter(user_id=user_id).first()
    if membership is None:
        raise Http404("no such member")
    return membership


def _back(request: ProjectRequest, user: User) -> HttpResponseBase:
    """To the list of people, or to the projects for somebody who just lost the right to see it."""
    access = access_to(user, request.access.project.slug) if user == request.user else request.access
    if access is None or not access.allows("members.view"):
        return redirect("project_list")
    return redirect("members", request.access.project.slug)
