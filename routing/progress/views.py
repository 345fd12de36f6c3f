"""A project's progress: labels by day and class, people, models beside people, money."""

from django.http.response import HttpResponseBase
from django.shortcuts import render

from annotation.common.access import ProjectRequest, needs
from routing.progress.queries import read_progress

COLUMN, BAR, HEIGHT = 20, 14, 100
"""Of the figure of days, in units of its drawing: a day, its bar, and the bar of the best day."""


@needs("runs.view", "GET")
def progress(request: ProjectRequest) -> HttpResponseBase:
    found = read_progress(request.access.project, request.access)
    context = {
        "progress": found,
        "bars": [
            (day, number * COLUMN, round(HEIGHT * (1 - day.share), 1), round(HEIGHT * day.share, 1))
            for number, day in enumerate(found.days)
        ],
        "figure": {"width": COLUMN * len(found.days), "bar": BAR, "height": HEIGHT},
        "most": max((day.labels for day in found.days), default=0),
        "in_days": sum(day.labels for day in found.days),
    }
    return render(request, "routing/progress/progress.html", context)
