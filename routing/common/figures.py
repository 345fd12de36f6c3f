"""Figures as plain data: series, titles of the axes, units, and the same as a table.

Chart.js draws them in the browser (charts.js), axes and ticks included; the table serves where no script
runs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext as _, ngettext

from annotation.templatetags.hypac import percent


@dataclass(frozen=True)
class Point:
    """A place in the plane of the data and what a reader is told there; `low` to `high` is its interval."""

    x: float
    y: float
    tip: str
    chosen: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """`look`: line, guide (to compare with); for pairs of thresholds passes, fails, chain, chosen, others."""

    name: str
    points: Sequence[Point]
    look: str = "line"


@dataclass(frozen=True)
class Axis:
    """`unit`: percent, number, whole, or rank, where values are places in `labels`.

    `low` and `high` are its ends, None where the values decide; `logarithmic`: equal ratios are equally far
    apart, with ticks at `marks`.
    """

    title: str
    unit: str = "percent"
    low: float | None = None
    high: float | None = None
    labels: Sequence[str] = ()
    marks: Sequence[float] = ()
    logarithmic: bool = False


@dataclass(frozen=True)
class Figure:
    """`summary` says what is drawn to whoever does not see it; `square`: both axes are equally long."""

    key: str
    title: str
    lead: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    summary: str = ""
    notes: Sequence[str] = field(default_factory=list)
    square: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws."""
        return {
            "x": asdict(self.x),
            "y": asdict(self.y),
            "series": [asdict(one) for one in self.series if one.points],
        }

    @property
    def data_id(self) -> str:
        return f"{self.key}-data"


def in_percent(value: float) -> str:
    return percent(value, 2)


def as_number(value: float) -> str:
    return f"{value:,.4g}"


def guide(name: str, tip: str, *ends: tuple[float, float]) -> Series:
    """A straight line that the values are compared with."""
    return Series(name, [Point(x, y, tip) for x, y in ends], "guide")


@dataclass(frozen=True)
class Reliability:
    """How often a source was right by how sure it was; `bins` as in routing.runs.diagnostics."""

    name: str
    ece: float
    bins: list[dict[str, Any]]


def reliability_figure(rows: Sequence[Reliability], *, binary: bool) -> Figure | None:
    """How often models were right by how sure they were; None where nothing is known of any."""
    if not rows:
        return None

    def point(one: Reliability, row: dict[str, Any]) -> Point:
        items = ngettext("%(n)s item", "%(n)s items", row["count"]) % {"n": row["count"]}
        text = _("%(name)s, %(items)s\nsure to %(confidence)s\nright %(accuracy)s") % {
            "name": one.name,
            "items": items,
            "confidence": percent(row["confidence"], 1),
            "accuracy": percent(row["accuracy"], 1),
        }
        return Point(row["confidence"], row["accuracy"], text, low=row.get("low"), high=row.get("high"))

    return Figure(
        key="reliability",
        title=_("How well the scores know"),
        lead=_(
            "Asked items by how sure a model was of them: on the diagonal it is right as often as it says. "
            "The guarantee needs no such thing; a better score saves more."
        ),
        x=Axis(_("how sure it was (1 − U)"), low=0, high=1),
        y=Axis(_("how often it was right"), low=0, high=1),
        series=[
            *(Series(one.name, [point(one, row) for row in one.bins]) for one in rows),
            guide(_("as sure as right"), _("as sure as right"), (0, 0), (1, 1)),
        ],
        head=[_("Source"), _("Sure to"), _("Right"), _("Items")],
        rows=[
            [one.name, percent(row["confidence"], 1), percent(row["accuracy"], 1), f"{row['count']:,}"]
            for one in rows
            for row in one.bins
        ],
        notes=[
            _("%(name)s: expected calibration error (ECE) %(ece)s")
            % {"name": one.name, "ece": percent(one.ece, 1)}
            for one in rows
        ]
        + ([_("Bars: 95 % interval of each share.")] if binary else []),
        square=True,
    )
