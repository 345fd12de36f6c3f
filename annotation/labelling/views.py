"""The page on which people label, one item at a time.

The page holds the next items ahead and sends answers from a queue of its own (static/annotate.js): a request
that says what it is `holding` gets the outcome and further items as JSON, or, where something else is to be
looked at, the part of the page that shows it. Without JavaScript an answer is a form, and the page that it
is redirected to has the next item. Nothing here says what an item is asked for, and no model's answer comes
near it, but for routed items of a run whose plan shows it as a suggestion (annotation.labelling.suggestions).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common.access import ProjectRequest, needs
from annotation.common.converters import whole_number
from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import queue
from annotation.labelling.comments import flag_own_work
from annotation.labelling.page import (
    Flash,
    answer_of,
    cards,
    counts,
    held_ahead,
    holding,
    name_of,
    newest_label,
    own_label,
    redirected,
    show,
    value_of,
    work_item_id,
)
from annotation.labelling.practice import must_practise
from annotation.models import Label, WorkItem

View = Callable[..., HttpResponseBase]


def from_the_page(view: View) -> View:
    """For what the page sends by itself, maybe much later: somebody else may be logged in by then, for whom
    none of it is meant, and a refusal has to reach the person in words.
    """

    @wraps(view)
    def checked(request: ProjectRequest) -> HttpResponseBase:
        asks = request.method != "POST"
        sent = request.GET if asks else request.POST
        # Whoever comes by the address, as after logging in, wants to see the page.
        if sent.get("person", str(request.user.pk)) != str(request.user.pk) and (request.htmx or not asks):
            # A page without work asks through htmx, which knows this header alone.
            headers = {"HX-Refresh": "true"} if asks else None
            return JsonResponse({"outcome": "other_person"}, headers=headers)
        try:
            return view(request)
        except NotAllowedError as error:
            if not request.htmx or asks:
                raise
            said = str(error)
        except Http404:
            # Of the project itself a 404 comes from `needs`: such an answer would be refused for ever.
            if not request.htmx or asks:
                raise
            said = _("This item is not there any more.")
        return JsonResponse({"outcome": "refused", "said": Flash(said, trouble=True).content})

    return checked


@needs("label", "GET")
@from_the_page
def annotate(request: ProjectRequest) -> HttpResponseBase:
    if wanted := request.GET.get("correct"):
        return show(request, queue.to_correct(own_label(request, wanted)))
    if must_practise(project=request.access.project, user=request.user):
        address = reverse("practice", args=[request.access.project.slug])
        return HttpResponse(headers={"HX-Redirect": address}) if request.htmx else redirect(address)
    return show(request, queue.claim(project=request.access.project, user=request.user))


@needs("label", "POST")
@from_the_page
def ahead(request: ProjectRequest) -> HttpResponseBase:
    """Items that the page does not hold yet, and how far the person is. Where it names the item that it
    shows, it is told whether that is no longer theirs, because another window was quicker.
    """
    body: dict[str, Any] = {"ahead": cards(request), "counts": counts(request)}
    if "work_item" in request.POST:
        token = request.POST.get("token", "")
        task = queue.held_item(user=request.user, work_item_id=work_item_id(request), token=token)
        body["lost"] = task is None
    return JsonResponse(body)


@needs("label", "POST")
@from_the_page
def submit(request: ProjectRequest) -> HttpResponseBase:
    work_item = work_item_id(request)
    if request.POST.get("amend") == "yes" and (given := newest_label(request, work_item)):
        # The answer that was to be changed before it was sent had arrived after all.
        return _correct(request, given)
    token = request.POST.get("token", "")
    try:
        label = queue.submit(user=request.user, work_item_id=work_item, token=token, **answer_of(request))
    except InputError as error:
        return _refused(request, error, work_item, token)
    except ConflictError as error:
        return _next(request, Flash(str(error), trouble=True), "gone")
    return _next(request, Flash(_("Saved: %(label)s") % {"label": name_of(request.access.project, label)}))


@needs("label", "POST")
@from_the_page
def correct(request: ProjectRequest) -> HttpResponseBase:
    # Also a version that has been replaced: by this very answer, where it comes a second time.
    return _correct(request, own_label(request, request.POST.get("label", ""), any_version=True))


@needs("label", "POST")
@from_the_page
def skip(request: ProjectRequest) -> HttpResponseBase:
    work_item = work_item_id(request)
    try:
        queue.skip(
            user=request.user,
            work_item_id=work_item,
            token=request.POST.get("token", ""),
            reason=request.POST.get("reason", ""),
            comment=request.POST.get("comment", ""),
        )
    except (ConflictError, InputError) as error:
        return _next(request, Flash(str(error), trouble=True), "gone")
    said = _("Skipped. Somebody else will look at it.")
    if queue.is_stuck(work_item):
        said = _("Skipped. Nobody else is left to label it: a manager decides about it.")
    return _next(request, Flash(said))


@needs("label", "POST")
@from_the_page
def flag(request: ProjectRequest) -> HttpResponseBase:
    """Ask a reviewer to look at an item that the person has before them, or had."""
    work_item = WorkItem.objects.select_related("item__project").get(pk=work_item_id(request))
    try:
        flag_own_work(work_item=work_item, author=request.user, text=request.POST.get("text", ""))
    except (ConflictError, InputError) as error:
        return _next(request, Flash(str(error), trouble=True), "gone")
    return _next(request, Flash(_("Flagged. A reviewer will look at it.")))


@needs("label", "POST")
@from_the_page
def undo(request: ProjectRequest) -> HttpResponseBase:
    try:
        before = whole_number(data) if (data := request.POST.get("before")) else None
        task = queue.undo(project=request.access.project, user=request.user, before=before)
    except (ConflictError, InputError) as error:
        return _next(request, Flash(str(error), trouble=True), "gone")
    if task is None:
        return _next(request, Flash(_("There is nothing to take back."), trouble=True), "nothing")
    said = _("Your last answer is back.") if task.correcting else _("The item that you skipped is back.")
    return show(request, task, Flash(said)) if request.htmx else redirected(request, task, Flash(said))


@needs("label", "POST")
def heartbeat(request: ProjectRequest) -> HttpResponseBase:
    """Keep what the person looks at, and what the page holds behind it, for as long as they look."""
    gone, message, until, own = [], "", None, False
    # In the order in which they are shown: so they stay when the page is loaded again.
    if "work_item" in request.POST:
        try:
            until = queue.heartbeat(
                user=request.user, work_item_id=work_item_id(request), token=request.POST.get("token", "")
            )
        except (ConflictError, InputError) as error:
            message = str(error)
            own = newest_label(request, work_item_id(request)) is not None
    for number, token in held_ahead(request):
        try:
            queue.heartbeat(user=request.user, work_item_id=number, token=token)
        except (ConflictError, InputError):
            gone.append(number)
    body = {"expires_at": until.isoformat() if until else None, "message": message, "own": own, "gone": gone}
    return JsonResponse(body, status=409 if message else 200)


@needs("label", "POST")
def release(request: ProjectRequest) -> HttpResponseBase:
    """Give back what the person holds, so that others need not wait for it. A page that is left gives back
    what it held ahead, and nothing else.
    """
    if "ahead" in request.POST:
        for number, token in held_ahead(request):
            queue.release(user=request.user, work_item_id=number, token=token)
        return HttpResponse(status=204)
    queue.release_all(project=request.access.project, user=request.user)
    messages.success(
        request, _("You hold no item any more: others can label what is left. Thank you for your labels.")
    )
    return redirect("overview", request.access.project.slug)


@needs("label", "POST")
def shortcuts(request: ProjectRequest) -> HttpResponseBase:
    """Switch the shortcuts of a single key on or off: they are in the way of speech input, for example."""
    request.user.single_key_shortcuts = request.POST.get("on") == "yes"
    request.user.save(update_fields=["single_key_shortcuts"])
    said = (
        _("Single keys are shortcuts again.")
        if request.user.single_key_shortcuts
        else _("Single keys do nothing any more on this page.")
    )
    return redirected(request, None, Flash(said))


# --- Answers ------------------------------------------------------------------------------------------------


def _correct(request: ProjectRequest, label: Label) -> HttpResponseBase:
    if label.work_item.batch.locked_at and request.POST.get("confirm") != "yes":
        said = Flash(_("Not changed. Tick the box first to say that you want to change it."), trouble=True)
        task = queue.to_correct(label)
        return show(request, task, said) if request.htmx else redirected(request, task, said)
    try:
        newest = queue.correct(user=request.user, label_id=label.pk, **answer_of(request))
    except InputError as error:
        said = Flash(error.message, trouble=True)
        return show(request, queue.to_correct(label), said, typed=_typed(request))
    except ConflictError as error:
        return _next(request, Flash(str(error), trouble=True), "gone")
    return _next(
        request, Flash(_("Corrected: %(label)s") % {"label": name_of(request.access.project, newest)})
    )


def _next(request: ProjectRequest, said: Flash, outcome: str = "stored") -> HttpResponseBase:
    if not request.htmx:
        return redirected(request, None, said)  # the page it is redirected to claims
    if holding(request) is None:
        return show(request, queue.claim(project=request.access.project, user=request.user), said)
    # A window that has stopped for another one sends what it still has, and wants nothing more.
    wanted = request.POST.get("more") != "no"
    body: dict[str, Any] = {
        "outcome": outcome,
        "said": said.content,
        "ahead": cards(request) if wanted else [],
    }
    if request.POST.get("counts") == "yes":
        body["counts"] = counts(request)
    return JsonResponse(body)


def _refused(request: ProjectRequest, error: InputError, work_item: int, token: str) -> HttpResponseBase:
    """The same item again with what was typed; it is not redirected, because that would lose it. Where the
    item has passed on meanwhile, the answer does not go to another one.
    """
    said = Flash(error.message, trouble=True)
    task = queue.held_item(user=request.user, work_item_id=work_item, token=token)
    if task is not None:
        return show(request, task, said, typed=_typed(request))
    if request.htmx and holding(request) is not None:
        return _next(request, said, "refused")
    return show(request, queue.claim(project=request.access.project, user=request.user), said)


def _typed(request: ProjectRequest) -> dict[str, Any]:
    return {"value": value_of(request), "comment": request.POST.get("comment", "")}


# --- Items that everybody skipped ---------------------------------------------------------------------------

DECIDED = {
    "give_up": gettext_lazy("Decided: this item cannot be labelled."),
    "ask_again": gettext_lazy("Everybody is asked again."),
    "ask_no_more": gettext_lazy("Decided: the answers given are enough."),
}


@needs("work.decide", "POST")
def work_decide(request: ProjectRequest, work_item_id: int) -> HttpResponseBase:
    project = request.access.project
    work_item = get_object_or_404(
        WorkItem.objects.select_related("batch__project"), pk=work_item_id, batch__project=project
    )
    decision = request.POST.get("decision", "")
    try:
        queue.decide_on_stuck_item(work_item=work_item, actor=request.user, decision=decision)
    except InputError as error:
        messages.error(request, error.message)
    except ConflictError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, DECIDED[decision])
    return redirect("overview", project.slug)
