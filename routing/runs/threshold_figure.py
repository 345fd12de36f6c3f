"""The figure of the two thresholds: which pairs pass, and the way the chain took.

Both axes go by rank: the scores of the calibration set are spaced evenly, since half of them often lie in a
corner. The lowest place of each axis stands for "nothing goes to this model".
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext as _

from annotation.templatetags.hypac import percent
from routing.common.figures import Axis, Figure, Point, Series
from routing.core.every_score.chain import FIRST_SCORE
from routing.runs.chains import limits_of

# More cells than this in a row are thinned out: they would be smaller than the pointer.
MOST_CELLS = 28
MOST_STEPS = 40
# Of the name of a model beside an axis.
MOST_CHARACTERS = 20


def region_figure(
    figures: dict[str, Any], thresholds: Sequence[Any] | None, titles: dict[str, str], names: Sequence[str]
) -> Figure | None:
    """From the stored figures of an analysis, its thresholds and the names of the models; None but for two
    models and people.
    """
    region = figures.get("region")
    if not region:
        return None
    own = region.get("own", False)
    first, second = (Truncator(name).chars(MOST_CHARACTERS) for name in names)
    across, upwards = _Ranks.of(region["u1"]), _Ranks.of(region["u2"])

    def point(pair: Sequence[Any], tip: str, *, chosen: bool = False) -> Point:
        u1, u2 = pair
        if u2 is None and not own:
            u2 = u1  # where nothing goes to the second model, its band ends where that of the first does
        return Point(across.place(u1), upwards.place(u2), tip, chosen)

    passes, fails = _cells(region, across.kept, upwards.kept)
    chain = figures["chain"]
    shape, positions = chain.get("shape", FIRST_SCORE), chain.get("models", [])
    steps = chain["policies"][:: max(1, len(chain["policies"]) // MOST_STEPS)]
    if own:
        lead = _(
            "Each square is a pair of thresholds, each on its own model's score, judged as if it were the "
            "only one: the answer of %(first)s is kept up to u₁, of the others that of %(second)s up to u₂. "
            "Only the chain, fixed beforehand, gives a certificate."
        ) % {"first": first, "second": second}
        unknown = any(errors is None for row in region["errors"] for errors in row)
        notes = [
            _("No square: %(second)s was not asked about all items that the pair sends to it.")
            % {"second": second}
        ] * unknown
        titles_of_axes = (
            _("%(model)s labels up to u₁, on its own score") % {"model": first},
            _("%(model)s labels up to u₂, on its own score") % {"model": second},
        )
    else:
        lead = _(
            "Each square is a pair of thresholds, judged as if it were the only one. Only the chain, fixed "
            "beforehand, gives a certificate."
        )
        notes = [_("Other rules are shown to compare with; they do not hold their stated level.")]
        titles_of_axes = (
            _("%(model)s labels up to u₁, on its own score") % {"model": first},
            _("%(model)s labels up to u₂, on the score of %(first)s") % {"model": second, "first": first},
        )
    return Figure(
        key="region",
        title=_("Which thresholds would pass"),
        lead=lead,
        summary=_(
            "Feasible region of the two thresholds. Across: the threshold of the first model; upwards: that "
            "of the second. The line is the chain, the ring the chosen pair."
        ),
        x=across.axis(titles_of_axes[0]),
        y=upwards.axis(titles_of_axes[1]),
        series=[
            Series(
                _("chosen"),
                [point(thresholds, _("The thresholds of this run"), chosen=True)] if thresholds else [],
                "chosen",
            ),
            Series(
                _("the chain"),
                [
                    point(limits_of(shape, positions, policy["thresholds"], 2), _step_tip(policy))
                    for policy in steps
                ],
                "chain",
            ),
            Series(
                _("other rules"),
                []
                if own
                else [point(row["thresholds"], _rule_tip(row, titles)) for row in _on_first_score(figures)],
                "others",
            ),
            Series(_("passes its own test"), passes, "passes"),
            Series(_("does not pass"), fails, "fails"),
        ],
        head=["u₁", _("largest u₂ that passes"), _("Differences observed"), _("Expected routing saving")],
        rows=[_row(region, i, upwards.kept) for i in across.kept],
        notes=notes,
        square=True,
    )


@dataclass(frozen=True)
class _Ranks:
    """One axis: the scores of the region along it, and the places of those that have a cell."""

    scores: list[float]
    kept: list[int]

    @classmethod
    def of(cls, scores: list[float]) -> "_Ranks":
        return cls(scores, list(range(0, len(scores), -(-len(scores) // MOST_CELLS))))

    def place(self, threshold: Any) -> float:
        """Of a threshold, in cells."""
        score = -1.0 if threshold is None else float(threshold["u"])
        whole = max(bisect_right(self.scores, score) - 1, 0)
        return min(whole / len(self.scores) * len(self.kept), len(self.kept) - 1)

    def axis(self, title: str) -> Axis:
        labels = [_score(self.scores[at]) for at in self.kept]
        return Axis(title, "rank", -0.5, len(self.kept) - 0.5, labels)


def _cells(region: dict[str, Any], across: list[int], upwards: list[int]) -> tuple[list[Point], list[Point]]:
    """Those that pass, and those that do not, row by row from below."""
    passes: list[Point] = []
    fails: list[Point] = []
    for line, j in enumerate(upwards):
        for column, i in enumerate(across):
            if region["errors"][i][j] is None:
                continue
            good = bool(region["feasible"][i][j])
            (passes if good else fails).append(Point(column, line, _cell_tip(region, i, j, good)))
    return passes, fails


def _row(region: dict[str, Any], i: int, upwards: list[int]) -> list[str]:
    """The figure as a table: for a threshold of the first model the largest one of the second that passes."""
    known = [j for j in upwards if region["errors"][i][j] is not None]
    best = max((j for j in known if region["feasible"][i][j]), default=None)
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
        and not row["holds_level"]
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
