"""A figure on a run's page as plain data: series, titles of the axes, units, and the same as a table.

Chart.js draws it in the browser (charts.js), axes and ticks included; the table serves where no script runs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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
