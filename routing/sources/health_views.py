"""The page on which a source's answers are looked at before they are trusted."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs
from annotation.errors import HypacError
from routing.common.figures import Reliability, reliability_figure
from routing.models import Source
from routing.sources.health import Health, health_of
from routing.sources.mends import mends_of
from routing.sources.save_mends import mendable, save_mends
from routing.sources.sent_words import RefusedWords, refused_words
from routing.sources.usability import NEARLY_A_LABEL

HEIGHT, WIDTH, GAP = 100, 20, 2
"""Of a histogram, and of one of its bars."""


@needs("sources.edit", "GET")
def source_health(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    return _page(request, _source(request, source_id))


@needs("sources.edit", "POST")
def source_mends(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    """Read its answers with other spellings: those that were ticked and chosen, or with `also` all of before
    and capitals and blanks beside.
    """
    source = _source(request, source_id)
    sent, now = request.POST, mends_of(source)
    asked = now.document | {"blanks": True, "capitals": True}
    if "also" not in sent:
        pairs = zip(sent.getlist("spelling"), sent.getlist("label"), strict=False)
        labels = {spelling: label for spelling, label in pairs if spelling.strip() and label}
        asked = {"blanks": "blanks" in sent, "capitals": "capitals" in sent, "labels": labels}
    try:
        saved = save_mends(source=source, user=request.user, **asked)
    except HypacError as error:
        return _page(request, source, refused=error.message, asked=asked)
    if saved.number != now.number:
        messages.success(
            request, _("From now on the answers of %(name)s are read so.") % {"name": source.name}
        )
    return redirect("source_health", request.access.project.slug, source.pk)


def _source(request: ProjectRequest, source_id: int) -> Source:
    sources = Source.objects.select_related("project")
    return get_object_or_404(sources, project=request.access.project, pk=source_id)


def _page(
    request: ProjectRequest, source: Source, *, refused: str = "", asked: Mapping[str, Any] | None = None
) -> HttpResponseBase:
    context: dict[str, object] = {"source": source, "step": "sources"}
    try:
        health = health_of(source, request.access)
    except HypacError as error:
        context["problem"] = error.message
    else:
        told = refused_words(source)
        context |= {
            "health": health,
            "bars": _bars(health),
            "mend": _mend(source, health, asked, told) if mendable(source) else None,
            "refused_words": told,
            "refused": refused,
            **_measured(source, health),
            "most_of_a_class": max((count for _name, count in health.classes), default=0),
        }
    return render(request, "routing/sources/health.html", context)


def _mend(
    source: Source, health: Health, asked: Mapping[str, Any] | None, told: RefusedWords | None
) -> dict[str, Any]:
    """What the form for spellings has: those in force, or `asked` for, and further ones that came."""
    now = asked or mends_of(source).document
    counts = dict(health.spellings) | (dict(told.unread) if told else {})
    rows = [(spelling, label, counts.get(spelling, 0)) for spelling, label in now["labels"].items()]
    rows += [(spelling, "", count) for spelling, count in counts.items() if spelling not in now["labels"]]
    nearly = sum(one.kind.count for one in health.reasons if one.kind.code == NEARLY_A_LABEL)
    return {
        **{"blanks": now["blanks"], "capitals": now["capitals"], "rows": rows, "nearly": nearly},
        "choices": list(source.project.choices.order_by("position").values_list("key", "name")),
    }


def _measured(source: Source, health: Health) -> dict[str, Any]:
    """How often it was right, with the figure, and whose label met which answer by names."""
    found = health.measured
    if found is None:
        return {}
    rows = [Reliability(source.name, found.ece, list(found.bins))] if found.ece is not None else []
    context: dict[str, Any] = {"chart": reliability_figure(rows, binary=found.binary)}
    if found.confusion is not None:
        names = dict(source.project.choices.values_list("key", "name"))
        labels = [names.get(key, key) for key in found.confusion.labels]
        context["confusion"] = {
            "names": labels,
            "rows": list(zip(labels, found.confusion.counts, strict=True)),
            "others": found.confusion.others,
        }
    return context


def _bars(health: Health) -> list[dict[str, object]]:
    """The histogram as bars of a drawing, in whole numbers of its units."""
    highest = max((one.count for one in health.bins), default=0)
    bars = []
    for place, one in enumerate(health.bins):
        # A bar that is not empty can be seen.
        height = max(1, round(HEIGHT * one.count / highest)) if one.count else 0
        bars.append(
            {
                "bin": one,
                "x": place * WIDTH + GAP // 2,
                "y": HEIGHT - height,
                "width": WIDTH - GAP,
                "height": height,
            }
        )
    return bars
