"""The page on which a source's answers are looked at before they are trusted."""

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from annotation.common.access import ProjectRequest, needs
from annotation.errors import HypacError
from routing.models import Source
from routing.sources.health import Health, health_of

HEIGHT, WIDTH, GAP = 100, 20, 2
"""Of a histogram, and of one of its bars."""


@needs("sources.edit", "GET")
def source_health(request: ProjectRequest, source_id: int) -> HttpResponseBase:
    source = get_object_or_404(
        Source.objects.select_related("project"), project=request.access.project, pk=source_id
    )
    context: dict[str, object] = {"source": source, "step": "sources"}
    try:
        health = health_of(source, request.access)
    except HypacError as error:
        context["problem"] = error.message
    else:
        context |= {
            "health": health,
            "bars": _bars(health),
            "most_of_a_class": max((count for _name, count in health.classes), default=0),
        }
    return render(request, "routing/sources/health.html", context)


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
