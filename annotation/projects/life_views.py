"""Archiving, duplicating and deleting a project."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.errors import HypacError
from annotation.projects import life as service
from annotation.projects.deletion import delete_project
from annotation.projects.manage import may_make_projects
from annotation.projects.queries import contents


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
        service.archive_project(project=project, actor=request.user)
        messages.success(request, _("The project is archived. It can be looked at, and nothing changes."))
    return redirect("project_manage", project.slug)


@needs("project.archive", "POST")
def unarchive(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    service.unarchive_project(project=project, actor=request.user)
    messages.success(request, _("The project is out of the archive. Everything goes on where it stopped."))
    return redirect("overview", project.slug)


@needs("project.duplicate", "POST")
def duplicate(request: ProjectRequest) -> HttpResponseBase:
    """Members come along only where the person decides who takes part."""
    form = DuplicateForm(request.POST)
    if form.is_valid():
        try:
            copy = service.duplicate_project(
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
