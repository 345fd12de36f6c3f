"""Merging and splitting labels: what it would mean, doing it, and choosing anew item by item."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, ngettext

from annotation.common.access import ProjectRequest, needs, refusals_as_messages
from annotation.common.forms import add_error
from annotation.common.replaced_labels import choice_names
from annotation.errors import HypacError, NotAllowedError
from annotation.models import Project
from annotation.task_types import TASK_TYPES
from routing.label_set.forms import MergeForm, SplitForm
from routing.label_set.replace import (
    Replacement,
    preview_replacement,
    replace_label,
    store_new_choices,
    to_choose,
    with_options,
)

PER_PAGE = 25


@needs("project.edit", "GET", "POST")
def label_set(request: ProjectRequest) -> HttpResponseBase:
    """Two forms, told apart by the button. A POST shows what it would mean, and with "now" does it."""
    project = _with_choices(request)
    splits = request.POST.get("form") == "split"
    data = request.POST if request.method == "POST" else None
    merge = MergeForm(None if splits else data, project=project)
    split = SplitForm(data if splits else None, project=project)
    form: MergeForm | SplitForm = split if splits else merge
    found: Replacement | None = None
    if form.is_bound and form.is_valid():
        key, into = form.cleaned_data["key"], form.parts()
        try:
            if "now" in request.POST:
                replaced = replace_label(access=request.access, key=key, into=into)
                words = (_("%(name)s is split.") if len(replaced.into) > 1 else _("%(name)s is merged.")) % {
                    "name": replaced.name
                }
                messages.success(request, words)
                return redirect("label_set", project.slug)
            found = preview_replacement(project=project, key=key, into=into)
        except NotAllowedError:
            raise
        except HypacError as error:
            add_error(form, error)
    context = {
        "merge": merge,
        "split": split,
        "found": found,
        "replaced": _replaced(project),
        "waiting": to_choose(request.access).count(),
    }
    return render(request, "routing/label_set/label_set.html", context)


@needs("project.edit", "GET", "POST")
def label_set_choose(request: ProjectRequest) -> HttpResponseBase:
    """The items of which people have to choose anew, each with the labels in its place."""
    project = _with_choices(request)
    if request.method == "POST":
        chosen = {
            int(name.removeprefix("item-")): str(value)
            for name, value in request.POST.items()
            if name.startswith("item-") and name.removeprefix("item-").isdecimal() and value
        }
        with refusals_as_messages(request):
            count = store_new_choices(access=request.access, chosen=chosen)
            words = ngettext(
                "The label of %(count)s item is stored.", "The labels of %(count)s items are stored.", count
            )
            messages.success(request, words % {"count": count})
        return redirect("label_set_choose", project.slug)
    found = to_choose(request.access).select_related("image")
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    names = choice_names(project)
    rows = [
        (
            one.item,
            ", ".join(names.get(key, key) for key in _listed(one.label)),
            [(key, names[key]) for key in one.options],
        )
        for one in with_options(request.access, list(page.object_list))
    ]
    return render(request, "routing/label_set/choose.html", {"page": page, "rows": rows})


def _listed(label: str | list[str]) -> list[str]:
    return label if isinstance(label, list) else [label]


def _replaced(project: Project) -> list[tuple[object, list[str]]]:
    """What was replaced, the newest first, with the names of the labels in its place."""
    names = choice_names(project)
    rows = project.replaced_choices.select_related("created_by").order_by("-pk")
    return [(row, [names.get(key, key) for key in row.into]) for row in rows]


def _with_choices(request: ProjectRequest) -> Project:
    project = request.access.project
    if not TASK_TYPES[project.task_type].has_choices:
        raise Http404("no labels to choose from")
    return project
