"""The list of projects, a new one, its settings, what was done in it, and its end."""

from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import PageRequest, ProjectRequest, needs, refusals_as_messages, signed_in
from annotation.common.converters import whole_number
from annotation.common.forms import add_error
from annotation.errors import HypacError, NotAllowedError
from annotation.models import Membership
from annotation.people.invitations_views import invitations_shown
from annotation.people.own_passwords import has_to_choose
from annotation.ports import WordingChange, routing_port
from annotation.projects.audit_words import SUBJECTS, action_in_words, target_in_words
from annotation.projects.forms import ChoiceFormSet, NewProjectForm, SettingsForm
from annotation.projects.guidelines import with_plain_lines
from annotation.projects.label_config_file import label_config
from annotation.projects.lifecycle import (
    archive_project,
    delete_project,
    duplicate_project,
    unarchive_project,
)
from annotation.projects.manage import create_project, may_make_projects, set_choices, update_project
from annotation.projects.queries import contents, project_cards, projects_of
from annotation.task_types import TASK_TYPES

PER_PAGE = 20
EVENTS_PER_PAGE = 50
MOST_PEOPLE = 200
TOLD = ("question", "guidelines", "text_format")
"""What people are told, or shown, about each item."""


@signed_in("GET")
def project_list(request: HttpRequest) -> HttpResponseBase:
    """One's own projects, with what waits in each. `q` searches in names; `archived=1` shows the others."""
    user = cast(PageRequest, request).user
    archived, search = request.GET.get("archived") == "1", request.GET.get("q", "").strip()[:200]
    found = projects_of(user, archived=archived, search=search)
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "cards": project_cards(list(page), user),
        "archived": archived,
        "search": search,
        "any_archived": archived or projects_of(user, archived=True).exists(),
        "any": bool(page.object_list) or projects_of(user).exists(),
        "role_names": dict(Membership.Role.choices),
        "may_make": may_make_projects(user),
        **invitations_shown(user),
    }
    return render(request, "annotation/projects/project_list.html", context)


@signed_in("GET", "POST")
def project_new(request: HttpRequest) -> HttpResponseBase:
    if not may_make_projects(cast(PageRequest, request).user):
        return render(request, "annotation/projects/project_new_refused.html", status=403)
    if has_to_choose(cast(PageRequest, request).user):
        return render(request, "annotation/projects/project_password_first.html", {"step": "project"})
    form = NewProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        loss, loss_params = form.loss()
        try:
            project = create_project(
                user=cast(PageRequest, request).user,
                name=data["name"],
                task_type=data["task_type"],
                choices=form.specs(),
                question=data["question"],
                guidelines=data["guidelines"],
                currency=data["currency"],
                human_cost=data["human_cost"],
                label_config=data["label_config"],
                loss=loss,
                loss_params=loss_params,
            )
        except HypacError as error:
            if error.where in form.fields:
                add_error(form, error)
            else:
                form.add_error("labels", error.message if error.where == "choices" else str(error))
        else:
            messages.success(request, _("The project is there. Now bring in your data."))
            if lacks := routing_port().loss_lacks(project=project):
                messages.warning(request, lacks)
            return redirect("import_upload", project.slug)
    return render(request, "annotation/projects/project_new.html", {"form": form, "step": "project"})


@needs("project.view", "GET")
def project_label_config(request: ProjectRequest) -> HttpResponseBase:
    """For Label Studio: a project there with the same labels."""
    return label_config(request.access.project)


@needs("project.edit", "GET", "POST")
def project_settings(request: ProjectRequest) -> HttpResponseBase:
    """Two forms, told apart by the button: what the project is, and its labels."""
    project = request.access.project
    which = request.POST.get("form", "")
    basics = SettingsForm(request.POST if which == "basics" else None, project=project)
    choices = ChoiceFormSet(
        request.POST if which == "choices" else None,
        initial=list(project.choices.values("key", "name", "hotkey", "color")),
        prefix="choices",
    )
    problem, words = "", None
    if which == "basics" and basics.is_valid():
        try:
            words = _words_asked_about(request, basics.cleaned_data)
            if words is None:
                onwards = _save(request, basics.cleaned_data)
                messages.success(request, _("Saved."))
                return redirect(onwards)
        except HypacError as error:
            add_error(basics, error)
    if which == "choices" and choices.is_valid():
        try:
            set_choices(project=project, user=request.user, choices=choices.specs())
        except HypacError as error:
            problem = error.message if error.where == "choices" else str(error)
        else:
            messages.success(request, _("The labels are saved."))
            return redirect("project_settings", project.slug)
    return render(
        request,
        "annotation/projects/project_settings.html",
        {
            "form": basics,
            "task_type": TASK_TYPES[project.task_type],
            "choices": choices,
            "choices_problem": problem,
            "words": words,
        },
    )


def _words_asked_about(request: ProjectRequest, data: dict[str, Any]) -> WordingChange | None:
    """What has to be decided before these settings are saved, since work has begun by other words."""
    if request.POST.get("words") in ("go_on", "begin_again"):
        return None
    project = request.access.project
    changed = {
        name: data[name]
        for name in TOLD
        if with_plain_lines(data[name]).strip() != with_plain_lines(getattr(project, name)).strip()
    }
    if not changed:
        return None
    return routing_port().wording_change(project=project, guidelines=changed.get("guidelines"))


def _save(request: ProjectRequest, data: dict[str, Any]) -> str:
    """Save the settings, and give up first what was begun by other words where that is wanted. Returns the
    address to go on at.
    """
    project = request.access.project
    onwards = reverse("project_settings", args=[project.slug])
    with transaction.atomic():
        if request.POST.get("words") == "begin_again":
            if not request.access.allows("runs.edit"):
                raise NotAllowedError(_("You may not cancel runs."))
            onwards = routing_port().cancel_to_replan(project=project, user=request.user)
        update_project(project=project, user=request.user, **data)
    return onwards


# --- The audit trail ----------------------------------------------------------------------------------------


@needs("audit.view", "GET")
def audit(request: ProjectRequest) -> HttpResponseBase:
    """Pages by id, so that new events push nothing to another page. `by` is a person, `about` a subject."""
    project = request.access.project
    events = project.audit_events.select_related("actor").order_by("-id")
    by, about = request.GET.get("by", "").replace("\0", ""), request.GET.get("about", "")
    if by:
        events = events.filter(actor__username=by)
    if about in SUBJECTS:
        # Each subject's actions begin with its name: "item" with "items.changed", too.
        events = events.filter(action__startswith=about)
    if before := request.GET.get("before"):
        events = events.filter(pk__lt=whole_number(before))
    rows = list(events[: EVENTS_PER_PAGE + 1])
    older = rows[EVENTS_PER_PAGE - 1].pk if len(rows) > EVENTS_PER_PAGE else None
    members = project.memberships.order_by("user__username")
    kept = urlencode({name: value for name, value in (("by", by), ("about", about)) if value})
    context = {
        "events": [
            (event, action_in_words(event.action), target_in_words(event.target))
            for event in rows[:EVENTS_PER_PAGE]
        ],
        "older": f"?{kept}&before={older}" if kept else f"?before={older}",
        "has_older": older is not None,
        "people": members.values_list("user__username", flat=True)[:MOST_PEOPLE],
        "subjects": SUBJECTS.items(),
        "by": by,
        "about": about,
    }
    return render(request, "annotation/projects/audit.html", context)


# --- Archiving, duplicating, deleting -----------------------------------------------------------------------


class DuplicateForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name of the copy"), max_length=200)
    with_members = forms.BooleanField(
        label=gettext_lazy("Invite the members to it, with their roles and limits"), required=False
    )


class DeleteForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Type the name of the project"),
        max_length=250,
        strip=True,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@needs("project.duplicate", "GET")
def manage(request: ProjectRequest) -> HttpResponseBase:
    return _page(request)


@needs("project.archive", "POST")
def archive(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    with refusals_as_messages(request):
        archive_project(project=project, actor=request.user)
        messages.success(request, _("The project is archived. It can be looked at, and nothing changes."))
    return redirect("project_manage", project.slug)


@needs("project.archive", "POST")
def unarchive(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    unarchive_project(project=project, actor=request.user)
    messages.success(request, _("The project is out of the archive. Everything goes on where it stopped."))
    return redirect("overview", project.slug)


@needs("project.duplicate", "POST")
def duplicate(request: ProjectRequest) -> HttpResponseBase:
    """Members come along only where the person decides who takes part."""
    form = DuplicateForm(request.POST)
    if form.is_valid():
        try:
            copy = duplicate_project(
                project=request.access.project,
                actor=request.user,
                name=form.cleaned_data["name"],
                with_members=form.cleaned_data["with_members"] and request.access.allows("members.edit"),
            )
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(
                request, _("The copy is there, without items. Keys of model servers have to be entered anew.")
            )
            return redirect("import_upload", copy.slug)
    return _page(request, duplicate=form)


@needs("project.delete", "POST")
def delete(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    form = DeleteForm(request.POST, auto_id="delete_%s")
    if form.is_valid():
        try:
            delete_project(project=project, actor=request.user, name=form.cleaned_data["name"])
        except HypacError as error:
            add_error(form, error)
        else:
            messages.success(
                request,
                _(
                    "%(name)s is deleted: nobody can open it any more. What it holds is being removed in "
                    "the background."
                )
                % {"name": project.name},
            )
            return redirect("project_list")
    return _page(request, delete=form)


def _page(
    request: ProjectRequest, *, duplicate: DuplicateForm | None = None, delete: DeleteForm | None = None
) -> HttpResponseBase:
    project = request.access.project
    copy = _("Copy of %(name)s") % {"name": project.name}
    context: dict[str, Any] = {
        "duplicate_form": duplicate or DuplicateForm(initial={"name": copy[:200]}),
        "may_make": may_make_projects(request.user),
    }
    if request.access.allows("project.delete"):
        context |= {"delete_form": delete or DeleteForm(auto_id="delete_%s"), "contents": contents(project)}
    return render(request, "annotation/projects/project_manage.html", context)
