"""Who takes part in a project."""

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.errors import HypacError
from annotation.models import Membership, User
from annotation.permissions import access_to
from annotation.services import members as service
from annotation.views.access import ProjectRequest, needs, told
from annotation.views.forms import AccountForm, MemberForm, RoleForm, add_error

ROLES_IN_WORDS = (
    (Membership.Role.OWNER, gettext_lazy("May do everything, also decide who takes part.")),
    (Membership.Role.MANAGER, gettext_lazy("Brings data, chooses sources, starts runs, delivers; labels.")),
    (Membership.Role.REVIEWER, gettext_lazy("Labels and sees the items and how far the runs are.")),
    (Membership.Role.ANNOTATOR, gettext_lazy("Labels. Sees nothing of models and results.")),
    (Membership.Role.VIEWER, gettext_lazy("Sees everything, changes nothing, labels nothing.")),
)  # fmt: skip


@needs("members.view", "GET")
def members(request: ProjectRequest) -> HttpResponseBase:
    return _page(request)


@needs("members.edit", "POST")
def member_add(request: ProjectRequest) -> HttpResponseBase:
    form = MemberForm(request.POST, prefix="add")
    if form.is_valid():
        try:
            membership = service.add_member(
                project=request.access.project, actor=request.user, **form.cleaned_data
            )
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(request, _("%(name)s takes part now.") % {"name": membership.user.username})
            return redirect("members", request.access.project.slug)
    return _page(request, add=form)


@needs("members.edit", "POST")
def member_create(request: ProjectRequest) -> HttpResponseBase:
    """The password is in this answer and nowhere else: no redirect, no message that is stored."""
    form = AccountForm(request.POST, prefix="new")
    if form.is_valid():
        try:
            membership, password = service.create_account(
                project=request.access.project, actor=request.user, **form.cleaned_data
            )
        except HypacError as error:
            add_error(form, error)
        else:
            response = render(
                request, "annotation/member_created.html", {"membership": membership, "password": password}
            )
            response.headers["Cache-Control"] = "no-store, private"
            return response
    return _page(request, new=form)


@needs("members.edit", "POST")
def member_role(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    form = RoleForm(request.POST)
    user = _member(request, user_id)
    if not form.is_valid():
        messages.error(request, _("Choose one of the roles."))
    else:
        with told(request):
            service.change_role(
                project=request.access.project, actor=request.user, user=user, role=form.cleaned_data["role"]
            )
            messages.success(request, _("The role of %(name)s is changed.") % {"name": user.username})
    return _back(request, user)


@needs("members.edit", "POST")
def member_remove(request: ProjectRequest, user_id: int) -> HttpResponseBase:
    user = _member(request, user_id)
    with told(request):
        service.remove_member(project=request.access.project, actor=request.user, user=user)
        messages.success(
            request, _("%(name)s no longer takes part. Their labels stay.") % {"name": user.username}
        )
    return _back(request, user)


def _page(
    request: ProjectRequest, *, add: MemberForm | None = None, new: AccountForm | None = None
) -> HttpResponseBase:
    memberships = request.access.project.memberships.select_related("user").order_by("user__username")
    return render(
        request,
        "annotation/members.html",
        {
            "memberships": memberships,
            "add_form": add or MemberForm(prefix="add"),
            "new_form": new or AccountForm(prefix="new"),
            "roles": [(role.label, words) for role, words in ROLES_IN_WORDS],
            "role_choices": Membership.Role.choices,
        },
    )


def _member(request: ProjectRequest, user_id: int) -> User:
    membership = request.access.project.memberships.select_related("user").filter(user_id=user_id).first()
    if membership is None:
        raise Http404("no such member")
    return membership.user


def _back(request: ProjectRequest, user: User) -> HttpResponseBase:
    """To the list of people, or to the projects for somebody who just lost the right to see it."""
    access = access_to(user, request.access.project.slug) if user == request.user else request.access
    if access is None or not access.allows("members.view"):
        return redirect("project_list")
    return redirect("members", request.access.project.slug)
