"""The list of one's own answers."""

from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import render

from annotation.common.access import ProjectRequest, needs
from annotation.common.replaced_labels import names_as_given
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.own_labels import MAX_SEARCH, own_labels
from annotation.models import Choice, Label

PER_PAGE = 25


@dataclass(frozen=True)
class Answer:
    """One label as the list shows it: its choices, or else what was written."""

    label: Label
    choices: list[Choice]
    text: str


@needs("label", "GET")
def own_labels_page(request: ProjectRequest) -> HttpResponseBase:
    project = request.access.project
    search = request.GET.get("q", "").strip()[:MAX_SEARCH]
    found = own_labels(project, request.user, search=search)
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    choices = {choice.key: choice for choice in project.choices.all()}
    names = names_as_given(project)
    answers = []
    for label in page.object_list:
        keys = label.value if isinstance(label.value, list) else [label.value]
        given = [choices[key] for key in keys if key in choices]
        answers.append(
            Answer(label, given, "" if len(given) == len(keys) > 0 else label_in_words(label.value, names))
        )
    context = {"page": page, "answers": answers, "search": search}
    return render(request, "annotation/labelling/own_labels.html", context)
