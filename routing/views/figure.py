"""Geometry of the figure on a run's page: which pairs of thresholds pass, and the way the chain took.

Both axes go by rank: the scores of the calibration set are spaced evenly, since half of them often lie in a
corner. The lowest step of each axis stands for "nothing goes to this model".
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import percent
from routing.views.charts import Tick

SIZE = 420
LEFT, TOP, RIGHT, BOTTOM = 78, 12, 14, 56
# More cells than this in a row are thinned out: they would be smaller than the pointer.
MOST_CELLS = 28
TICKS = 6


@dataclass(frozen=True)
class Cell:
    x: float
    y: float
    side: float
    feasible: bool
    title: str


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Row:
    """The figure as a table: for a threshold of the first model the largest one of the second that passes."""

    u1: str
    u2: str
    errors: int | None
    saving: float | None
    """Expected routing saving."""


@dataclass(frozen=True)
class Figure:
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    y_label_x: int
    bands: list[list[Cell]]
    path: str
    steps: list[Mark]
    chosen: Mark | None
    others: list[Mark]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    rows: list[Row]


def region_figure(
    figures: dict[str, Any], thresholds: Sequence[Any] | None, titles: dict[str, str]
) -> Figure | None:
    """From the stored figures of an analysis and its thresholds; None but for two models and people."""
    region = figures.get("region")
    if not region:
        return None
    scores: list[float] = region["u1"]
    keep = list(range(0, len(scores), -(-len(scores) // MOST_CELLS)))
    side = SIZE / len(keep)
    people = float(region["cost"][0][0])  # where nothing goes to a model

    def middle(threshold: Any) -> float:
        """Place of a threshold on an axis, in cells."""
        score = -1.0 if threshold is None else float(threshold["u"])
        whole = max(bisect_right(scores, score) - 1, 0)
        return min((whole / len(scores)) * len(keep) + 0.5, len(keep) - 0.5)

    def mark(pair: Sequence[Any], title: str) -> Mark:
        first, second = pair
        # Where nothing goes to the second model, its band ends where that of the first does.
        across, up = middle(first), middle(first if second is None else second)
        x, y = LEFT + across * side, TOP + SIZE - up * side
        return Mark(round(x, 1), round(y, 1), title)

    bands: list[list[Cell]] = [[] for _line in keep]
    rows = []
    for column, i in enumerate(keep):
        best: int | None = None
        for line, j in enumerate(keep):
            if j < i:
                continue
            good = bool(region["feasible"][i][j])
            best = j if good else best
            bands[line].append(
                Cell(
                    round(LEFT + column * side, 1),
                    round(TOP + SIZE - (line + 1) * side, 1),
                    round(side, 1),
                    good,
                    _cell_title(region, i, j, good),
                )
            )
        rows.append(
            Row(
                _score(scores[i]),
                _score(scores[best]) if best is not None else "–",
                _whole(region["errors"][i][best]) if best is not None else None,
                1 - region["cost"][i][best] / people if best is not None else None,
            )
        )
    policies = figures["chain"]["policies"]
    steps = [mark(policy["thresholds"], _step_title(policy)) for policy in policies]
    others = [
        mark(
            row["thresholds"],
            _("%(rule)s\nexpected routing saving %(saving)s\ndoes not hold its stated level")
            % {"rule": titles.get(row["rule"], row["rule"]), "saving": percent(row["routing_saving"], 1)},
        )
        for row in figures["comparisons"]
        # Marks of the rules that put thresholds on the first score, as the axes do.
        if row["thresholds"]
        and not row.get("own_scores")
        and not row.get("refusal")
        and any(row["thresholds"])
    ]
    return Figure(
        width=LEFT + SIZE + RIGHT,
        height=TOP + SIZE + BOTTOM,
        left=LEFT,
        right=LEFT + SIZE,
        top=TOP,
        bottom=TOP + SIZE,
        y_label_x=-TOP,
        bands=bands,
        path=" ".join(f"{step.x},{step.y}" for step in steps),
        steps=steps[:: max(1, len(steps) // 40)],
        chosen=mark(thresholds, _("The thresholds of this run")) if thresholds else None,
        others=others,
        x_ticks=_ticks(scores, keep, lambda at: LEFT + at * side),
        y_ticks=_ticks(scores, keep, lambda at: TOP + SIZE - at * side),
        rows=rows,
    )


def _ticks(scores: list[float], keep: list[int], place: Any) -> list[Tick]:
    every = max(1, len(keep) // TICKS)
    return [Tick(round(place(at + 0.5), 1), _score(scores[keep[at]])) for at in range(0, len(keep), every)]


def _cell_title(region: dict[str, Any], i: int, j: int, good: bool) -> str:
    words = {
        "u1": _score(region["u1"][i]),
        "u2": _score(region["u2"][j]),
        "errors": _whole(region["errors"][i][j]),
        "verdict": _("passes its own test") if good else _("does not pass"),
    }
    return _("u₁ = %(u1)s, u₂ = %(u2)s\n%(errors)s errors observed\n%(verdict)s") % words


def _step_title(policy: dict[str, Any]) -> str:
    words = {
        "step": policy["index"],
        "errors": _whole(policy["observed_errors"]),
        "verdict": _("certified") if policy["certified"] else _("not certified"),
    }
    return _("Step %(step)s of the chain\n%(errors)s errors observed\n%(verdict)s") % words


def _score(value: float) -> str:
    return _("none") if value < 0 else f"{value:.3g}"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
