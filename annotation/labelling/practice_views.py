"""The page on which annotators practise: an item, then its known answer and why."""

from typing import Any

from django.contrib import messages
from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs
from annotation.common.converters import whole_number
from annotation.common.replaced_labels import choice_names
from annotation.errors import ConflictError, InputError
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.page import controls, value_of
from annotation.labelling.practice import answer_practice, own_practice_answer, practice_state
from annotation.task_types import TASK_TYPES


@needs("label", "GET", "POST")
def practice(request: ProjectRequest) -> HttpResponseBase:
    """The next practice item; with ?answered what somebody answered to the one before it."""
    access, user = request.access, request.user
    if request.method == "POST":
        number = whole_number(request.POST.get("practice", ""))
        try:
            if problem := TASK_TYPES[access.project.task_type].form_problem(request.POST):
                raise InputError(problem, where="value")
            answer = answer_practice(
                project=access.project, user=user, held_out_id=number, value=value_of(request)
            )
        except (ConflictError, InputError) as error:
            messages.error(request, str(error))
            return _shown(request, typed=value_of(request) if isinstance(error, InputError) else None)
        return redirect(f"{request.path}?answered={answer.pk}")
    return _shown(request)


def _shown(request: ProjectRequest, *, typed: Any = None) -> HttpResponseBase:
    project = request.access.project
    state = practice_state(project, request.user)
    context: dict[str, Any] = {
        "state": state,
        "place": state.done + 1,
        **controls(project, state.next.item if state.next else None, given=typed),
    }
    if request.GET.get("answered"):
        answer = own_practice_answer(project, request.user, whole_number(request.GET["answered"]))
        if answer is None:
            raise Http404("no such answer of this person")
        names = choice_names(project)
        context |= {
            "answer": answer,
            "said": label_in_words(answer.value, names) or _("none of them"),
            "known": label_in_words(answer.held_out.answer, names) or _("none of them"),
        }
    return render(request, "annotation/labelling/practice.html", context)
