"""The page on which people are asked to label items, without any model."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, ngettext

from annotation.common.access import ProjectRequest, needs
from annotation.common.forms import add_error
from annotation.errors import ConflictError, HypacError, NotAllowedError
from annotation.permissions import members_who_label
from routing.by_people.forms import PeopleRunForm
from routing.by_people.start import PeopleOutlook, Wanted, people_outlook, start_people_run
from routing.common.states import UNDER_WAY, State
from routing.items import table_query
from routing.visibility import view_permission


@needs("runs.edit", "GET", "POST")
def people_run(request: ProjectRequest) -> HttpResponseBase:
    """The form, with what it would mean. A POST starts the run; with "look" it shows the form again."""
    access, project = request.access, request.access.project
    form = PeopleRunForm(request.POST if request.method == "POST" else None, project=project)
    outlook: PeopleOutlook | None = None
    wanted: Wanted | None = None if form.is_bound else form.first()
    if request.method == "POST" and form.is_valid():
        wanted = form.wanted()
    if wanted is not None:
        try:
            outlook = people_outlook(access=access, wanted=wanted)
            if form.is_bound and "look" not in request.POST:
                run = start_people_run(access=access, wanted=wanted)
                return _started(request, run)
        except NotAllowedError:
            raise
        except HypacError as error:
            outlook = None if error.where else outlook
            if form.is_bound:
                add_error(form, error)
            elif not isinstance(error, ConflictError):  # nothing was chosen that could be wrong
                raise
    return render(
        request,
        "routing/by_people/people_run.html",
        {
            "form": form,
            "outlook": outlook,
            "filters": _filters(request, form),
            "open_run": project.runs.filter(state__in=UNDER_WAY).first(),
            "has_items": project.items.exists(),
            "people": members_who_label(project.pk).count(),
        },
    )


def _filters(request: ProjectRequest, form: PeopleRunForm) -> list[dict[str, Any]]:
    """The fields of those that can be used now, with what was chosen."""
    permission = view_permission(request.access.project, request.access)
    asked = replace(table_query.TableRequest({}), filters=form.filters)
    return list(table_query.fields(asked, table_query.options(permission), permission))


def _started(request: ProjectRequest, run: Any) -> HttpResponseBase:
    if run.state == State.LABELLING:
        words = ngettext(
            "People can label now: %(count)s item waits for them.",
            "People can label now: %(count)s items wait for them.",
            run.pool_size,
        )
        messages.success(request, words % {"count": f"{run.pool_size:,}"})
    else:
        messages.success(request, _("The items are being given to people."))
    return redirect("run", request.access.project.slug, run.number)
