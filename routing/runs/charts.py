"""The figures of a run's page (routing.common.figures): risk along the chain, saving against epsilon,
reliability of the scores; the two thresholds are drawn in threshold_figure.
"""

from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.templatetags.hypac import percent
from routing.common.figures import (
    Axis,
    Figure,
    Point,
    Series,
    as_number,
    guide,
    in_percent,
    reliability_figure,
)
from routing.runs.diagnostics import THIS_RUN
from routing.runs.queries import PolicyRow, RunReport


def run_charts(report: RunReport) -> list[Figure]:
    """Those for which the analysis stored what they need; older analyses stored less."""
    charts = [_risk(report), _savings(report), reliability_figure(report.reliability, binary=report.binary)]
    return [chart for chart in charts if chart is not None]


def _risk(report: RunReport) -> Figure | None:
    if len(report.chain) < 2:
        return None
    epsilon, last = float(report.run.epsilon), report.chain[-1].index
    say = in_percent if report.binary else as_number

    def tip(row: PolicyRow) -> str:
        return _(
            "Step %(step)s\nobserved %(estimate)s (%(errors)s)\nupper bound %(upper)s\n"
            "expected routing saving %(saving)s\n%(verdict)s"
        ) % {
            "step": row.index,
            "estimate": say(row.estimate),
            "errors": _errors(row.observed_errors),
            "upper": say(row.upper_bound),
            "saving": percent(row.routing_saving, 1),
            "verdict": _verdict(row),
        }

    limit = _("at most allowed (epsilon): %(epsilon)s") % {"epsilon": say(epsilon)}
    return Figure(
        key="risk",
        title=_("Risk along the chain"),
        lead=_(
            "Each step of the chain lets the models label a little more. Its upper bound is that of the step "
            "alone; the test along the chain, and not this curve, decides what the certificate says."
        ),
        x=Axis(_("step of the chain"), "whole", 0, last),
        y=Axis(
            _("share of labels that differ from people's") if report.binary else _("mean loss"),
            "percent" if report.binary else "number",
            0,
        ),
        series=[
            Series(
                _("upper bound"),
                [Point(row.index, row.upper_bound, tip(row), row.chosen) for row in report.chain],
            ),
            Series(
                _("observed"),
                [Point(row.index, row.estimate, tip(row), row.chosen) for row in report.chain],
            ),
            guide(_("epsilon"), limit, (0, epsilon), (last, epsilon)),
        ],
        head=[_("Step"), _("Observed"), _("Upper bound"), _("Expected routing saving"), _("Outcome")],
        rows=[
            [
                str(row.index),
                say(row.estimate),
                say(row.upper_bound),
                percent(row.routing_saving, 1),
                _verdict(row),
            ]
            for row in report.chain
        ],
        notes=[
            _(
                "Observed: among the items that people were asked about. In the delivered data these carry "
                "the labels that people gave and count as right, so the upper bound can lie below."
            )
        ]
        if report.run.target == report.run.Target.DATASET
        else [],
    )


def _savings(report: RunReport) -> Figure | None:
    stored = report.saving_by_epsilon
    if not stored:
        return None
    points: list[dict[str, Any]] = stored["points"]
    names = {rule: report.rule_titles.get(rule, rule) for rule in stored["rules"]}
    names[THIS_RUN] = _("this run's rule")
    own = float(report.run.epsilon)
    # Where another epsilon would have asked a model for more answers, nobody knows.
    values = [value for point in points for value in point["values"].values() if value is not None]
    low, high = min(0.0, *values), max(*values, 0.01)

    def tip(name: str, epsilon: float, saving: float) -> str:
        words = _("epsilon %(epsilon)s: expected routing saving %(saving)s")
        return f"{name}\n" + words % {"epsilon": percent(epsilon, 2), "saving": percent(saving, 1)}

    return Figure(
        key="savings",
        title=_("Saving against epsilon"),
        lead=_(
            "The same labels, had epsilon been another. It was fixed beforehand: only the run's own, "
            "%(own)s, is certified, and whoever picks another one from this figure is promised nothing."
        )
        % {"own": percent(own, 4)},
        x=Axis(
            _("at most allowed (epsilon)"),
            low=points[0]["epsilon"],
            high=points[-1]["epsilon"],
            marks=[point["epsilon"] for point in points if _is_power(point["epsilon"] / own)],
            logarithmic=True,
        ),
        y=Axis(_("expected routing saving")),
        series=[
            *(
                Series(
                    name,
                    [
                        Point(
                            point["epsilon"],
                            point["values"][rule],
                            tip(name, point["epsilon"], point["values"][rule]),
                            chosen=rule == THIS_RUN and point["epsilon"] == own,
                        )
                        for point in points
                        if point["values"].get(rule) is not None
                    ],
                )
                for rule, name in names.items()
            ),
            guide(
                _("the run's epsilon"),
                _("the run's epsilon: %(own)s") % {"own": percent(own, 4)},
                (own, low),
                (own, high),
            ),
        ],
        head=[_("Epsilon"), *names.values()],
        rows=[
            [
                _own(percent(point["epsilon"], 2), point["epsilon"] == own),
                *(percent(point["values"].get(rule), 1) for rule in names),
            ]
            for point in points
        ],
        notes=[
            _(
                "Expected routing saving: by how much whoever labels is expected to be cheaper than people, "
                "without what the calibration costs."
            ),
            *(
                [_("No point: a model would have had to be asked about more items.")]
                if any(value is None for point in points for value in point["values"].values())
                else []
            ),
        ],
    )


def _own(epsilon: str, own: bool) -> str:
    return _("%(epsilon)s (this run)") % {"epsilon": epsilon} if own else epsilon


def _is_power(ratio: float) -> bool:
    """Whether it is about a power of two: a third of the points, for ticks."""
    return any(abs(ratio / 2**power - 1) < 0.01 for power in range(-3, 4))


def _errors(count: float) -> str:
    if float(count).is_integer():
        return ngettext("%(n)s error", "%(n)s errors", int(count)) % {"n": int(count)}
    return _("loss %(n)s in all") % {"n": f"{count:.2f}"}


def _verdict(row: PolicyRow) -> str:
    if row.chosen:
        return _("chosen")
    return _("may be chosen") if row.certified else _("may not be chosen")
