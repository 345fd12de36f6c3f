"""The tables of `validity.py`, in Markdown, and which cells failed."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import scipy
from scipy import stats

from benchmarks.worlds import SETTINGS
from routing.core.rules import RULES

if TYPE_CHECKING:
    from benchmarks.validity import Cell, Count, Outcome

ALPHA = 0.05
FAMILY = 0.01
"""Probability that any of M cells whose rule is at exactly alpha fails."""


def limit(draws: int, cells: int) -> int:
    """Smallest c with P[Bin(R, alpha) > c] <= .01 / M."""
    return int(stats.binom.isf(FAMILY / cells, draws, ALPHA))


def certifying(counts: Mapping[Cell, Count]) -> list[Cell]:
    """The cells of rules that claim to hold their level."""
    return [cell for cell in counts if RULES.get(cell.rule).holds_level]


def failed(counts: Mapping[Cell, Count]) -> list[Cell]:
    """Certifying cells with more false certificates than chance explains."""
    cells = certifying(counts)
    return [cell for cell in cells if counts[cell].false > limit(counts[cell].draws, len(cells))]


def report(outcome: Outcome, *, command: str, missing: Sequence[str]) -> str:
    """Everything, ready to be committed."""
    parts = [_head(outcome, command, missing), _summary(outcome), _defaults(outcome), _others(outcome)]
    parts += [_exact(outcome), _paper(outcome)]
    return "\n".join(parts)


def _head(outcome: Outcome, command: str, missing: Sequence[str]) -> str:
    counts = outcome.counts
    cells = certifying(counts)
    first = failed(counts)
    final = [cell for cell in first if _again_failed(outcome, cell)]
    exact_failed = [e for e in outcome.exact if e.worst > 1 + 1e-9]
    verdict = "all pass" if not final and not exact_failed else f"{len(final) + len(exact_failed)} FAIL"
    lines = [
        "# False certificates and net savings, measured",
        "",
        f"`.venv/bin/python benchmarks/validity.py {command}`, {date.today().isoformat()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"{outcome.seconds / 60:.0f} minutes.",
        "",
        f"M = {len(cells)} cells (rule x bound x target x world) and {len(outcome.exact)} exact "
        f"enumerations: {verdict}. {len(first)} cells were run a second time.",
        "alpha = .05 throughout. c is the largest count of false certificates among R that passes.",
    ]
    if missing:
        lines.append(f"Left out, because their tables are not at hand: {', '.join(missing)}.")
    return "\n".join(lines) + "\n"


def _summary(outcome: Outcome) -> str:
    """The range of the shares of false certificates over the worlds, by target, rule and bound."""
    lines = [
        "## In short",
        "",
        "Share of false certificates over the worlds, smallest to largest; alpha is .05.",
        "",
        "| target | rule | bound | worlds | smallest | largest | in | holds its stated level |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for holds in (True, False):
        for target, _, cell in _ordered(outcome, holds=holds):
            groups.setdefault((target, cell.rule, cell.bound), []).append(cell)
    for (target, rule, bound), cells in groups.items():
        shares = {cell.world: outcome.counts[cell].false / outcome.counts[cell].draws for cell in cells}
        worst = max(shares, key=lambda world: shares[world])
        claim = "yes" if RULES.get(rule).holds_level else "no"
        lines.append(
            f"| {target} | {rule} | {bound} | {len(shares)} | {min(shares.values()):.4f} | "
            f"{shares[worst]:.4f} | {worst} | {claim} |"
        )
    return "\n".join(lines) + "\n"


def _again_failed(outcome: Outcome, cell: Cell) -> bool:
    count = outcome.again[cell]
    return count.false > limit(count.draws, len(certifying(outcome.counts)))


def _verdict(outcome: Outcome, cell: Cell) -> str:
    if cell not in outcome.again:
        return "pass"
    count = outcome.again[cell]
    word = "FAIL" if _again_failed(outcome, cell) else "pass"
    return f"{word} (second run: {count.false} of {count.draws:,})"


def _row(outcome: Outcome, cell: Cell) -> str:
    count = outcome.counts[cell]
    most = limit(count.draws, len(certifying(outcome.counts)))
    return (
        f"{count.draws:,} | {count.false} | {count.false / count.draws:.4f} | {most} | "
        f"{_verdict(outcome, cell)} | {100 * count.certified / count.draws:.1f} | "
        f"{100 * count.saving / count.draws:.2f}"
    )


def _defaults(outcome: Outcome) -> str:
    lines = [
        "## The default rule and bound",
        "",
        "Net saving in % of what people alone would cost, everything paid counted; in hindsight: the greedy "
        "chain on the true error of each slice, tested with the same labels, without a pilot. For synthetic "
        "worlds the true error of a slice is the error probability integrated over it, for tables the mean "
        "loss of its items. `below` is the mean difference over the draws of the slow bounds. No bar: it is "
        "reported only.",
        "",
        "| target | world | R | false | share | c | level | certified % | net saving | hindsight | below "
        "| bar |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for target, world, cell in _ordered(outcome):
        count = outcome.counts[cell]
        if not is_default(cell):
            continue
        saving, below = 100 * count.saving / count.draws, 100 * count.below / count.paired
        bar = SETTINGS[world].bar
        met = "" if bar is None else f"{bar:g}: {'met' if below <= bar else 'MISSED'}"
        lines.append(
            f"| {target} | {world} | {_row(outcome, cell)} | {saving + below:.2f} | {below:.2f} | {met} |"
        )
    return "\n".join(lines) + "\n"


def _others(outcome: Outcome) -> str:
    lines = [
        "## Every other rule and bound that certifies",
        "",
        "| target | world | rule | bound | R | false | share | c | level | certified % | net saving |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for target, world, cell in _ordered(outcome):
        if is_default(cell):
            continue
        lines.append(f"| {target} | {world} | {cell.rule} | {cell.bound} | {_row(outcome, cell)} |")
    return "\n".join(lines) + "\n"


def _exact(outcome: Outcome) -> str:
    lines = [
        "## Every draw of tiny pools, enumerated",
        "",
        "N <= 12, hostile chains that go back and forth; the worst share of false certificates among the "
        "pools, divided by alpha, is exact and must not exceed 1.",
        "",
        "| target | rule | bound | pools | draws analysed | worst share / alpha | level |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {e.target} | {e.rule} | {e.bound} | {e.pools} | {e.draws:,} | {e.worst:.3f} | "
        f"{'pass' if e.worst <= 1 + 1e-9 else 'FAIL'} |"
        for e in outcome.exact
    ]
    return "\n".join(lines) + "\n"


def _paper(outcome: Outcome) -> str:
    lines = [
        "## The rules of the paper, on the same labels",
        "",
        "Every row: does not hold its stated level, and never certifies here. `exceeds` marks a share of "
        "false choices that chance does not explain at alpha = .05, by the same limit c.",
        "",
        "| target | world | rule | bound | R | false | share | c | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells = len(certifying(outcome.counts))
    for target, world, cell in _ordered(outcome, holds=False):
        count = outcome.counts[cell]
        most = limit(count.draws, cells)
        mark = "exceeds" if count.false > most else ""
        lines.append(
            f"| {target} | {world} | {cell.rule} | {cell.bound} | {count.draws:,} | {count.false} | "
            f"{count.false / count.draws:.4f} | {most} | {mark} |"
        )
    return "\n".join(lines) + "\n"


def is_default(cell: Cell) -> bool:
    """Whether a plan that names neither rule nor bound gets these."""
    plan = SETTINGS[cell.world].plan(cell.target)
    return (cell.rule, cell.bound) == (plan.rule, plan.bound_rule().name)


def _ordered(outcome: Outcome, *, holds: bool = True) -> list[tuple[str, str, Cell]]:
    """Cells by target, then world, in the order in which these are listed."""
    targets, worlds = ("dataset", "pool", "population"), list(SETTINGS)
    cells = [cell for cell in outcome.counts if RULES.get(cell.rule).holds_level == holds]
    cells.sort(key=lambda cell: (targets.index(cell.target), worlds.index(cell.world)))
    return [(cell.target, cell.world, cell) for cell in cells]
