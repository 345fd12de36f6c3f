"""Geometry of the line figures on a run's page: scales, ticks and points, drawn by one template.

Drawn by the server as SVG, so that they need no script, print, and follow light and dark; charts.js adds one
tip, which pointer and arrow keys move from value to value.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from annotation.templatetags.hypac import percent

WIDTH, HEIGHT = 480, 300
LEFT, TOP, RIGHT, BOTTOM = 74, 14, 26, 52
STYLES = 4
"""Styles of lines in the style sheet; more lines would not be told apart."""


@dataclass(frozen=True)
class Value:
    """A place in the plane of the data, what a reader is told there, and how far it may reach up and down."""

    x: float
    y: float
    tip: str
    low: float | None = None
    high: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Series:
    """`joined`: as a line, else as points alone."""

    name: str
    values: Sequence[Value]
    joined: bool = True


@dataclass(frozen=True)
class Guide:
    """A straight line from one place to another that the values are compared with."""

    name: str
    start: tuple[float, float]
    end: tuple[float, float]


def in_percent(value: float) -> str:
    return percent(value, 2)


def as_number(value: float) -> str:
    return f"{value:,.4g}"


@dataclass(frozen=True)
class Axis:
    """`words` says a value; `logarithmic`: equal ratios are equally far apart."""

    label: str
    low: float
    high: float
    ticks: Sequence[float]
    words: Callable[[float], str] = in_percent
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Place between 0 and 1."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return (at - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    tip: str
    chosen: bool
    reach: str
    """Path of the interval around it, "" without one."""


@dataclass(frozen=True)
class Line:
    name: str
    style: int
    path: str
    dots: list[Dot]


@dataclass(frozen=True)
class Chart:
    """One figure with its words and its table, as the template draws it."""

    key: str
    title: str
    lead: str
    x_label: str
    y_label: str
    lines: list[Line]
    guides: list[tuple[str, str]]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    head: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


@dataclass(frozen=True)
class Words:
    key: str
    title: str
    lead: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


def make_chart(words: Words, x: Axis, y: Axis, series: Sequence[Series], guides: Sequence[Guide]) -> Chart:
    """Places everything; values outside the axes are drawn at their edge."""

    def across(value: float) -> float:
        return round(LEFT + _inside(x.share(value)) * (WIDTH - LEFT - RIGHT), 1)

    def down(value: float) -> float:
        return round(HEIGHT - BOTTOM - _inside(y.share(value)) * (HEIGHT - TOP - BOTTOM), 1)

    def reach(value: Value) -> str:
        if value.low is None or value.high is None:
            return ""
        return f"M{across(value.x)} {down(value.low)}V{down(value.high)}"

    lines = []
    for number, one in enumerate(series):
        dots = [Dot(across(v.x), down(v.y), v.tip, v.chosen, reach(v)) for v in one.values]
        path = "M" + "L".join(f"{dot.x} {dot.y}" for dot in dots) if one.joined and dots else ""
        lines.append(Line(one.name, number % STYLES, path, dots))
    return Chart(
        key=words.key,
        title=words.title,
        lead=words.lead,
        x_label=x.label,
        y_label=y.label,
        lines=lines,
        guides=[
            (guide.name, f"M{across(guide.start[0])} {down(guide.start[1])}"
                         f"L{across(guide.end[0])} {down(guide.end[1])}")
            for guide in guides
        ],
        x_ticks=[Tick(across(value), x.words(value)) for value in x.ticks if 0 <= x.share(value) <= 1],
        y_ticks=[Tick(down(value), y.words(value)) for value in y.ticks],
        head=words.head,
        rows=words.rows,
        notes=words.notes,
    )  # fmt: skip


def round_ticks(high: float, *, low: float = 0.0, count: int = 5) -> list[float]:
    """About `count` round numbers from `low` to at least `high`."""
    span = max(high - low, 1e-9)
    step = 10 ** math.floor(math.log10(span / count))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= count)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
