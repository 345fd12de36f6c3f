"""The figures of an experiment.  matplotlib is imported only here and only when a figure is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routing.core.arrays import Floats, Keys
from routing.core.cascade import ALL_TIES, Decision
from routing.core.experiment.methods import METHODS, PAPER_BOUND, chains_of
from routing.core.experiment.reliability import reliability
from routing.core.experiment.settings import Settings
from routing.core.experiment.split import Split
from routing.core.experiment.summary import Row
from routing.core.experiment.table import Table
from routing.core.keys import count_at_or_below, pack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from routing.core.region import Region

# Okabe and Ito's colours, told apart by most eyes, and more: one for each rule.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"),
    *("#7B3F00", "#5E3C99", "#B8B000", "#8B0A50", "#00B7B0", "#FF69B4", "#355E3B", "#4B5563"),
    *("#A3D900", "#1B1B8F"),
)
MARKERS = "osD^vP*Xph<d>8H12+x34"
DASHES = ("--", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (2, 1)))
"""Of rules that promise no level, in turn; the others are drawn through, and epsilon is dotted."""
DPI = 110


def draw_all(table: Table, settings: Settings, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Every figure that the rows allow, as PNG files in ``folder``, which is made; their paths.

    Per target: error and saving against epsilon; the same against severity after a shift; saving against m
    and several bounds side by side where there are several.  Of the table: reliability diagrams; with two
    models, the feasible region of the first draw with its chains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in _figures(table, settings, rows):
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=DPI, facecolor="white")
    return paths


def _figures(table: Table, settings: Settings, rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    for target in settings.all_targets:
        of_target = [row for row in rows if row.target == target]
        first = [row for row in of_target if row.m == of_target[0].m]
        if settings.severities:
            yield f"shift-{target}", against_severity(first)
        else:
            yield f"error-saving-{target}", against_epsilon(first)
        if len({row.m for row in of_target}) > 1:
            yield f"saving-m-{target}", against_size(of_target)
        if len({row.bound for row in of_target if row.rule in _rules_with_bounds(of_target)}) > 1:
            yield f"bounds-{target}", bounds_side_by_side(first)
    if any(table.scored):
        yield "reliability", reliability_diagrams(table)
    if table.models == 2:
        yield "region", feasible_region_figure(table, settings)


def _rules_with_bounds(rows: Sequence[Row]) -> list[str]:
    """Rules that were run with more than one bound."""
    names = dict.fromkeys(row.rule for row in rows)
    return [name for name in names if len({row.bound for row in rows if row.rule == name}) > 1]


def _subplots(number: int, *, width: float = 5.0, height: float = 3.9) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * number, height), layout="constrained")
    return figure, [figure.add_subplot(1, number, place + 1) for place in range(number)]


def _style(number: int, row: Row) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": "-" if row.holds_level else DASHES[number % len(DASHES)],
        "markersize": 5,
    }


def _lines(
    axes: Axes,
    groups: dict[str, list[Row]],
    x: Callable[[Row], float],
    mean: Callable[[Row], float],
    sd: Callable[[Row], float] | None,
) -> None:
    """One line per group, with a band of one standard deviation."""
    for number, (label, rows) in enumerate(groups.items()):
        ordered = sorted(rows, key=x)
        at = [x(row) for row in ordered]
        middle = np.array([100 * mean(row) for row in ordered])
        style = _style(number, ordered[0])
        axes.plot(at, middle, label=label, **style)
        if sd is not None:
            spread = np.array([100 * sd(row) for row in ordered])
            axes.fill_between(at, middle - spread, middle + spread, color=style["color"], alpha=0.12, lw=0)
    axes.grid(alpha=0.3)


def _by_rule(rows: Sequence[Row], *, epsilon: bool) -> dict[str, list[Row]]:
    """Rows by rule, bound where a rule has several, and epsilon where asked."""
    several = _rules_with_bounds(rows)
    many = epsilon and len({row.epsilon for row in rows}) > 1
    groups: dict[str, list[Row]] = {}
    for row in rows:
        label = row.rule + (f", {row.bound}" if row.rule in several else "")
        label += f", ε = {row.epsilon:g}" if many else ""
        groups.setdefault(label, []).append(row)
    return groups


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)


def against_epsilon(rows: Sequence[Row]) -> Figure:
    """Error and net saving against epsilon, as in the paper; broken: a rule that promises no level."""
    figure, (left, right) = _subplots(2, width=4.8)
    groups = _by_rule(rows, epsilon=False)
    _lines(left, groups, lambda row: 100 * row.epsilon, lambda row: row.error_mean, lambda row: row.error_sd)
    limits = sorted({100 * row.epsilon for row in rows})
    left.plot(limits, limits, color="black", lw=1, ls=":", marker="_", label="ε")
    left.set(xlabel="ε in %", ylabel="error in %", title=_error_title(rows[0]))
    _lines(
        right,
        groups,
        lambda row: 100 * row.epsilon,
        lambda row: row.net_saving_mean,
        lambda row: row.net_saving_sd,
    )
    right.set(xlabel="ε in %", ylabel="net saving in %", title="What is saved, everything paid for")
    _legend(figure, left)
    return figure


def _error_title(row: Row) -> str:
    if row.severity is not None:
        return "Error of the deployed items"
    return "Error of the delivered data set" if row.target == "dataset" else "Error of the pool"


def against_severity(rows: Sequence[Row]) -> Figure:
    """Error and net saving against the severity of a shift."""
    figure, (left, right) = _subplots(2, width=4.8)
    groups = _by_rule(rows, epsilon=True)

    def severity(row: Row) -> float:
        return row.severity or 0.0

    _lines(left, groups, severity, lambda row: row.error_mean, lambda row: row.error_sd)
    for epsilon in sorted({row.epsilon for row in rows}):
        left.axhline(100 * epsilon, color="black", lw=1, ls=":")
    left.set(xlabel="severity", ylabel="error in %", title=_error_title(rows[0]))
    _lines(right, groups, severity, lambda row: row.net_saving_mean, lambda row: row.net_saving_sd)
    right.set(xlabel="severity", ylabel="net saving in %", title="What is saved, everything paid for")
    _legend(figure, left)
    return figure


def against_size(rows: Sequence[Row]) -> Figure:
    """Error, routing and net saving against the size of the calibration set."""
    figure, axes = _subplots(3, width=4.0)
    groups = _by_rule(rows, epsilon=True)
    _lines(axes[0], groups, lambda row: row.m, lambda row: row.error_mean, lambda row: row.error_sd)
    for epsilon in sorted({row.epsilon for row in rows}):
        axes[0].axhline(100 * epsilon, color="black", lw=1, ls=":")
    axes[0].set(xlabel="m", ylabel="error in %", title=_error_title(rows[0]))
    _lines(
        axes[1],
        groups,
        lambda row: row.m,
        lambda row: row.routing_saving_mean,
        lambda row: row.routing_saving_sd,
    )
    axes[1].set(xlabel="m", ylabel="routing saving in %", title="The paper's saving")
    _lines(axes[2], groups, lambda row: row.m, lambda row: row.net_saving_mean, lambda row: row.net_saving_sd)
    axes[2].set(xlabel="m", ylabel="net saving in %", title="Everything paid for")
    _legend(figure, axes[0])
    return figure


def bounds_side_by_side(rows: Sequence[Row]) -> Figure:
    """95 % quantile of the error, its mean, and the saving, a line per bound: of one rule with several."""
    figure, axes = _subplots(3, width=4.0)
    several = _rules_with_bounds(rows)
    groups = _by_rule([row for row in rows if row.rule in several], epsilon=False)

    def epsilon(row: Row) -> float:
        return 100 * row.epsilon

    limits = sorted({epsilon(row) for row in rows})
    _lines(axes[0], groups, epsilon, lambda row: row.error_q95, None)
    axes[0].set(xlabel="ε in %", ylabel="error in %", title="95 % quantile of the error")
    _lines(axes[1], groups, epsilon, lambda row: row.error_mean, None)
    axes[1].set(xlabel="ε in %", ylabel="error in %", title="Mean error")
    for one in axes[:2]:
        one.plot(limits, limits, color="black", lw=1, ls=":", marker="_", label="ε")
    _lines(axes[2], groups, epsilon, lambda row: row.routing_saving_mean, None)
    axes[2].set(xlabel="ε in %", ylabel="routing saving in %", title="Mean saving")
    _legend(figure, axes[0])
    return figure


def reliability_diagrams(table: Table) -> Figure:
    """Accuracy against confidence in ten bins, for each model with a score, with the ECE."""
    models = [k for k in range(table.models) if table.scored[k]]
    figure, axes = _subplots(len(models), width=3.9)
    for one, k in zip(axes, models, strict=True):
        diagram = reliability(table.u[:, k], table.loss[:, k], loss_bound=table.loss_bound)
        one.plot([0, 1], [0, 1], color="black", lw=1, ls=":")
        one.bar(
            diagram.confidence, diagram.accuracy, width=0.07, color=COLOURS[0], alpha=0.85, edgecolor="white"
        )
        for x, y, count in zip(diagram.confidence, diagram.accuracy, diagram.counts, strict=True):
            one.annotate(f"{count:,}", (x, y), ha="center", va="bottom", fontsize=6)
        one.set(xlim=(0, 1.05), ylim=(0, 1.08), xlabel="mean confidence in the bin")
        one.set(ylabel="accuracy in the bin", title=f"Model {table.numbers[k]}: ECE {diagram.ece:.3f}")
        one.grid(alpha=0.3)
    return figure


def _cells(axes: Axes, x: Floats, y: Floats, region: Region) -> None:
    """The pairs as cells that leave no gap: each reaches half way to the next score on either side."""
    from matplotlib.colors import ListedColormap, to_rgba

    colours = {"passes alone": to_rgba(COLOURS[2], 0.45), "fails": to_rgba("0.88")}
    edges = [np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]]) for at in (x, y)]
    values = np.where(np.isnan(region.errors), np.nan, ~region.feasible)
    fill = ListedColormap(list(colours.values()))
    axes.pcolormesh(edges[0], edges[1], values.T, cmap=fill, vmin=0, vmax=1, rasterized=True)
    for label, colour in colours.items():
        # A mesh has no handles of its own for the legend.
        axes.scatter([], [], marker="s", s=60, color=[colour], lw=0, label=label)


def feasible_region_figure(table: Table, settings: Settings) -> Figure:
    """The (u_1, u_2) plane of the first draw: pairs that pass alone, the chains, and what two rules choose.

    Both axes are shares of items up to the threshold, so that scores crowded near 0 stay visible.  Pairs are
    those of whole scores; a chain may also split a tie, and then ends between two of them.
    """
    from routing.core.region import region_of

    m, target, epsilon = settings.sizes_for(table)[0], settings.all_targets[0], settings.epsilons[0]
    seed = np.random.SeedSequence(settings.seed).spawn(1)[0]
    split = Split(table, m=m, p=float(settings.p), seed=seed)
    keys = np.sort(pack(table.u[:, 0], split.v))

    def share(limits: Keys) -> Floats:
        return count_at_or_below(keys, limits) / len(keys)

    figure, (axes,) = _subplots(1, width=5.6, height=4.8)
    plan = settings.plan(table, rule="fixed_sequence", target=target, bound="", m=m, epsilon=epsilon)
    region = region_of(plan, table.u[split.drawn, 0], split.losses, target=target)
    corners = [pack(u, np.full(len(u), ALL_TIES)) for u in (region.u1, region.u2)]
    _cells(axes, share(corners[0]), share(corners[1]), region)
    for number, chain in enumerate(chains_of(split, plan)):
        path = share(chain.thresholds)
        axes.plot(path[:, 0], path[:, 1], color=COLOURS[number], lw=1.3, label=f"chain: {chain.name}")
    for name, marker in (("fixed_sequence", "*"), ("pointwise_argmin", "X")):
        bound = "" if METHODS.get(name).holds_level(target) else PAPER_BOUND
        one = settings.plan(table, rule=name, target=target, bound=bound, m=m, epsilon=epsilon)
        if METHODS.get(name).refusal(table, one):
            continue
        decision = METHODS.get(name).decide(split, one)
        assert isinstance(decision, Decision)  # noqa: S101 - of thresholds, as both rules are
        spot = share(np.array([complex(stage.limit, stage.tie) for stage in decision.stages]))
        axes.plot(*spot, marker, ms=11, color=COLOURS[6], mfc="white", label=f"chosen: {name}", ls="")
    axes.fill([0, 1, 1], [0, 0, 1], color="white", lw=0, zorder=1.5)  # halves of cells on the diagonal
    axes.plot([0, 1], [0, 1], color="black", lw=0.8)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set(xlabel="share of items up to u₁", ylabel="share of items up to u₂")
    axes.set_title(f"ε = {float(epsilon):g}, m = {m:,}, target {target}", fontsize=11)
    _legend(figure, axes)
    return figure
