"""The line figures of a run: risk along the chain, saving against epsilon, reliability of the scores."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.templatetags.hypac import percent
from routing.selectors.runs import PolicyRow, Reliability, RunReport
from routing.services.figures import THIS_RUN
from routing.views.charts import (
    Axis,
    Chart,
    Guide,
    Series,
    Value,
    Words,
    as_number,
    in_percent,
    make_chart,
    round_ticks,
)


def run_charts(report: RunReport) -> list[Chart]:
    """Those for which the analysis stored what they need; older analyses stored less."""
    charts = [_risk(report), _savings(report), _reliability(report)]
    return [chart for chart in charts if chart is not None]


def _risk(report: RunReport) -> Chart | None:
    if len(report.chain) < 2:
        return None
    epsilon = float(report.run.epsilon)
    ticks = round_ticks(max(max(row.upper_bound for row in report.chain), epsilon))
    last = report.chain[-1].index
    say = in_percent if report.binary else as_number
    steps = [step for step in round_ticks(last) if step % 1 == 0]

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

    words = Words(
        key="risk",
        title=_("Risk along the chain"),
        lead=_(
            "Each step of the chain lets the models label a little more. Its upper bound is that of the step "
            "alone; the test along the chain, and not this curve, decides what the certificate says."
        ),
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
    )
    return make_chart(
        words,
        Axis(_("step of the chain"), 0, last, steps, as_number),
        Axis(_("share of wrong labels") if report.binary else _("mean loss"), 0, ticks[-1], ticks, say),
        [
            Series(
                _("upper bound"),
                [Value(row.index, row.upper_bound, tip(row), chosen=row.chosen) for row in report.chain],
            ),
            Series(
                _("observed"),
                [Value(row.index, row.estimate, tip(row), chosen=row.chosen) for row in report.chain],
            ),
        ],
        [Guide(_("epsilon"), (0, epsilon), (last, epsilon))],
    )


def _savings(report: RunReport) -> Chart | None:
    stored = report.saving_by_epsilon
    if not stored:
        return None
    points: list[dict[str, Any]] = stored["points"]
    names = {rule: report.rule_titles.get(rule, rule) for rule in stored["rules"]}
    names[THIS_RUN] = _("this run's rule")
    own = float(report.run.epsilon)
    values = [value for point in points for value in point["values"].values()]
    ticks = round_ticks(max(*values, 0.01), low=min(0.0, *values))
    series = [
        Series(
            name,
            [
                Value(
                    point["epsilon"],
                    point["values"][rule],
                    f"{name}\n"
                    + _("epsilon %(epsilon)s: expected routing saving %(saving)s")
                    % {"epsilon": percent(point["epsilon"], 2), "saving": percent(point["values"][rule], 1)},
                    chosen=rule == THIS_RUN and point["epsilon"] == own,
                )
                for point in points
                if rule in point["values"]
            ],
        )
        for rule, name in names.items()
    ]
    words = Words(
        key="savings",
        title=_("Saving against epsilon"),
        lead=_(
            "The same labels, had epsilon been another. It was fixed beforehand: only the run's own, "
            "%(own)s, is certified, and whoever picks another one from this figure is promised nothing."
        )
        % {"own": percent(own, 4)},
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
            )
        ],
    )
    low, high = points[0]["epsilon"], points[-1]["epsilon"]
    marks = [point["epsilon"] for point in points if _is_power(point["epsilon"] / own)]
    return make_chart(
        words,
        Axis(_("epsilon"), low, high, marks, logarithmic=True),
        Axis(_("expected routing saving"), ticks[0], ticks[-1], ticks),
        series,
        [Guide(_("the run's epsilon"), (own, ticks[0]), (own, ticks[-1]))],
    )


def _own(epsilon: str, own: bool) -> str:
    return _("%(epsilon)s (this run)") % {"epsilon": epsilon} if own else epsilon


def _is_power(ratio: float) -> bool:
    """Whether it is about a power of two: a third of the points, for ticks."""
    return any(abs(ratio / 2**power - 1) < 0.01 for power in range(-3, 4))


def _reliability(report: RunReport) -> Chart | None:
    if not report.reliability:
        return None

    def value(one: Reliability, row: dict[str, Any]) -> Value:
        items = ngettext("%(n)s item", "%(n)s items", row["count"]) % {"n": row["count"]}
        text = _("%(name)s, %(items)s\nsure to %(confidence)s\nright %(accuracy)s") % {
            "name": one.name,
            "items": items,
            "confidence": percent(row["confidence"], 1),
            "accuracy": percent(row["accuracy"], 1),
        }
        return Value(row["confidence"], row["accuracy"], text, row.get("low"), row.get("high"))

    words = Words(
        key="reliability",
        title=_("How well the scores know"),
        lead=_(
            "Asked items by how sure a model was of them: on the diagonal it is right as often as it says. "
            "The guarantee needs no such thing; a better score saves more."
        ),
        head=[_("Source"), _("Sure to"), _("Right"), _("Items")],
        rows=[
            [one.name, percent(row["confidence"], 1), percent(row["accuracy"], 1), str(row["count"])]
            for one in report.reliability
            for row in one.bins
        ],
        notes=[
            _("%(name)s: expected calibration error (ECE) %(ece)s")
            % {"name": one.name, "ece": percent(one.ece, 1)}
            for one in report.reliability
        ]
        + ([_("Bars: 95 % interval of each share.")] if report.binary else []),
    )
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    return make_chart(
        words,
        Axis(_("how sure it was (1 − U)"), 0, 1, ticks),
        Axis(_("how often it was right"), 0, 1, ticks),
        [Series(one.name, [value(one, row) for row in one.bins]) for one in report.reliability],
        [Guide(_("as sure as right"), (0, 0), (1, 1))],
    )


def _errors(count: float) -> str:
    if float(count).is_integer():
        return ngettext("%(n)s error", "%(n)s errors", int(count)) % {"n": int(count)}
    return _("loss %(n)s in all") % {"n": f"{count:.2f}"}


def _verdict(row: PolicyRow) -> str:
    if row.chosen:
        return _("chosen")
    return _("may be chosen") if row.certified else _("may not be chosen")
