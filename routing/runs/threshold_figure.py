"""The figure of the two thresholds: which pairs pass, and the way the chain took.

Both axes go by rank: the scores of the calibration set are spaced evenly, since half of them often lie in a
corner. The lowest place of each axis stands for "nothing goes to this model".
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.templatetags.hypac import percent
from routing.runs.charts import Axis, Figure, Point, Series

# More cells than this in a row are thinned out: they would be smaller than the pointer.
MOST_CELLS = 28
MOST_STEPS = 40


def region_figure(
    figures: dict[str, Any], thresholds: Sequence[Any] | None, titles: dict[str, str]
) -> Figure | None:
    """From the stored figures of an analysis and its thresholds; None but for two models and people."""
    region = figures.get("region")
    if not region:
        return None
    scores: list[float] = region["u1"]
    keep = list(range(0, len(scores), -(-len(scores) // MOST_CELLS)))

    def place(threshold: Any) -> float:
        """Of a threshold on an axis, in cells."""
        score = -1.0 if threshold is None else float(threshold["u"])
        whole = max(bisect_right(scores, score) - 1, 0)
        return min(whole / len(scores) * len(keep), len(keep) - 1)

    def point(pair: Sequence[Any], tip: str, *, chosen: bool = False) -> Point:
        first, second = pair
        # Where nothing goes to the second model, its band ends where that of the first does.
        return Point(place(first), place(first if second is None else second), tip, chosen)

    passes, fails = _cells(region, keep)
    policies = figures["chain"]["policies"]
    steps = policies[:: max(1, len(policies) // MOST_STEPS)]
    labels = [_score(scores[at]) for at in keep]

    def axis(title: str) -> Axis:
        return Axis(title, "rank", -0.5, len(keep) - 0.5, labels)

    return Figure(
        key="region",
        title=_("Which thresholds would pass"),
        lead=_(
            "Each square is a pair of thresholds, judged as if it were the only one. Only the chain, fixed "
            "beforehand, gives a certificate."
        ),
        summary=_(
            "Feasible region of the two thresholds. Across: the threshold of the first model; upwards: that "
            "of the second. The line is the chain, the ring the chosen pair."
        ),
        x=axis(_("first model labels up to u₁")),
        y=axis(_("second model labels up to u₂")),
        series=[
            Series(
                _("chosen"),
                [point(thresholds, _("The thresholds of this run"), chosen=True)] if thresholds else [],
                "chosen",
            ),
            Series(
                _("the chain"), [point(policy["thresholds"], _step_tip(policy)) for policy in steps], "chain"
            ),
            Series(
                _("other rules"),
                [point(row["thresholds"], _rule_tip(row, titles)) for row in _on_first_score(figures)],
                "others",
            ),
            Series(_("passes its own test"), passes, "passes"),
            Series(_("does not pass"), fails, "fails"),
        ],
        head=["u₁", _("largest u₂ that passes"), _("Differences observed"), _("Expected routing saving")],
        rows=[_row(region, i, keep) for i in keep],
        notes=[_("Other rules are shown to compare with; they do not hold their stated level.")],
        square=True,
    )


def _cells(region: dict[str, Any], keep: list[int]) -> tuple[list[Point], list[Point]]:
    """Those that pass, and those that do not, row by row from below."""
    passes: list[Point] = []
    fails: list[Point] = []
    for line, j in enumerate(keep):
        for column, i in enumerate(keep[: line + 1]):
            good = bool(region["feasible"][i][j])
            (passes if good else fails).append(Point(column, line, _cell_tip(region, i, j, good)))
    return passes, fails


def _row(region: dict[str, Any], i: int, keep: list[int]) -> list[str]:
    """The figure as a table: for a threshold of the first model the largest one of the second that passes."""
    best = max((j for j in keep if j >= i and region["feasible"][i][j]), default=None)
    if best is None:
        return [_score(region["u1"][i]), "–", "–", "–"]
    people = float(region["cost"][0][0])  # where nothing goes to a model
    return [
        _score(region["u1"][i]),
        _score(region["u2"][best]),
        _whole(region["errors"][i][best]),
        percent(1 - region["cost"][i][best] / people),
    ]


def _on_first_score(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules that put thresholds on the first score, as the axes do."""
    return [
        row
        for row in figures["comparisons"]
        if row["thresholds"]
        and not row.get("own_scores")
        and not row.get("refusal")
        and any(row["thresholds"])
    ]


def _cell_tip(region: dict[str, Any], i: int, j: int, good: bool) -> str:
    words = {
        "u1": _score(region["u1"][i]),
        "u2": _score(region["u2"][j]),
        "errors": _whole(region["errors"][i][j]),
        "verdict": _("passes its own test") if good else _("does not pass"),
    }
    return _("u₁ = %(u1)s, u₂ = %(u2)s\n%(errors)s errors observed\n%(verdict)s") % words


def _step_tip(policy: dict[str, Any]) -> str:
    words = {
        "step": policy["index"],
        "errors": _whole(policy["observed_errors"]),
        "verdict": _("certified") if policy["certified"] else _("not certified"),
    }
    return _("Step %(step)s of the chain\n%(errors)s errors observed\n%(verdict)s") % words


def _rule_tip(row: dict[str, Any], titles: dict[str, str]) -> str:
    return _("%(rule)s\nexpected routing saving %(saving)s\ndoes not hold its stated level") % {
        "rule": titles.get(row["rule"], row["rule"]),
        "saving": percent(row["routing_saving"], 1),
    }


def _score(value: float) -> str:
    return _("none") if value < 0 else f"{value:.3g}"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{round(value):,}"
