"""What `validity.py` counted: every count as CSV, the summary in Markdown, and which cells failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from runner import csv_text, machine, markdown

from routing.core.rules import RULES
from testbed.known_truth import SETTINGS
from testbed.level import Cell, certifying, failed, is_default, limit

if TYPE_CHECKING:
    from validity import Outcome

CELLS = (
    *("target", "world", "rule", "bound", "holds_level", "default", "draws", "false", "share", "limit"),
    *("level", "second_draws", "second_false", "certified_percent", "net_saving_percent"),
    *("hindsight_percent", "bar_percent"),
)
HEADS = ("target", "rule", "bound", "worlds", "smallest share", "largest", "in", "holds its stated level")
EXACT = ("target", "rule", "bound", "pools", "draws", "worst_share_over_alpha", "level")


def cells_csv(outcome: Outcome) -> str:
    """One row for each cell, those of the paper's rules last."""
    cells = [*_ordered(outcome), *_ordered(outcome, holds=False)]
    return csv_text(CELLS, (_row(outcome, cell) for cell in cells))


def exact_csv(outcome: Outcome) -> str:
    """One row for each kind of tiny pools of which every draw was analysed."""
    return csv_text(
        EXACT,
        (
            (e.target, e.rule, e.bound, e.pools, e.draws, f"{e.worst:.3f}", _verdict(e.worst <= 1 + 1e-9))
            for e in outcome.exact
        ),
    )


def summary(outcome: Outcome, *, command: str, missing: Sequence[str]) -> str:
    """How it was made, the verdict, and the range of the shares of false certificates over the worlds."""
    counts = outcome.counts
    cells = certifying(counts)
    first = failed(counts)
    failures = sum(_again_failed(outcome, cell) for cell in first) + sum(
        e.worst > 1 + 1e-9 for e in outcome.exact
    )
    lines = [
        f"`.venv/bin/python benchmarks/validity.py {command}`, {date.today().isoformat()}, "
        f"{machine('numpy', 'scipy')}, {outcome.seconds / 60:.0f} minutes.",
        "",
        f"M = {len(cells)} cells (rule x bound x target x world) and {len(outcome.exact)} exact "
        f"enumerations: {f'{failures} FAIL' if failures else 'all pass'}. "
        f"{len(first)} cells were run a second time.",
    ]
    if missing:
        lines.append(f"Left out, because their tables are not at hand: {', '.join(missing)}.")
    return "\n".join([*lines, "", _ranges(outcome)]) + "\n"


def _ranges(outcome: Outcome) -> str:
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for holds in (True, False):
        for cell in _ordered(outcome, holds=holds):
            groups.setdefault((cell.target, cell.rule, cell.bound), []).append(cell)
    rows = []
    for (target, rule, bound), cells in groups.items():
        shares = {cell.world: outcome.counts[cell].false / outcome.counts[cell].draws for cell in cells}
        worst = max(shares, key=lambda world: shares[world])
        range_ = (f"{min(shares.values()):.4f}", f"{shares[worst]:.4f}", worst)
        rows.append(
            (target, rule, bound, len(shares), *range_, "yes" if RULES.get(rule).holds_level else "no")
        )
    return markdown(HEADS, rows)


def _row(outcome: Outcome, cell: Cell) -> tuple[object, ...]:
    """The values of `CELLS`; of the paper's rules only whether their shares exceed what chance explains."""
    count = outcome.counts[cell]
    most = limit(count.draws, len(certifying(outcome.counts)))
    counted = (count.draws, count.false, f"{count.false / count.draws:.4f}", most)
    named = (cell.target, cell.world, cell.rule, cell.bound)
    if not RULES.get(cell.rule).holds_level:
        level = "exceeds" if count.false > most else ""
        return (*named, False, False, *counted, level, *[""] * 6)
    again = outcome.again.get(cell)
    level = _verdict(count.false <= most or not _again_failed(outcome, cell))
    second = ("", "") if again is None else (again.draws, again.false)
    saving = 100 * count.saving / count.draws
    paid = (f"{100 * count.certified / count.draws:.1f}", f"{saving:.2f}")
    compared = ("", "")
    if is_default(cell):
        bar = SETTINGS[cell.world].bar
        hindsight = saving + 100 * count.below / count.paired
        compared = (f"{hindsight:.2f}", "" if bar is None else f"{bar:g}")
    return (*named, True, is_default(cell), *counted, level, *second, *paid, *compared)


def _again_failed(outcome: Outcome, cell: Cell) -> bool:
    count = outcome.again[cell]
    return count.false > limit(count.draws, len(certifying(outcome.counts)))


def _verdict(passes: bool) -> str:
    return "pass" if passes else "FAIL"


def _ordered(outcome: Outcome, *, holds: bool = True) -> list[Cell]:
    """Cells by target, then world, in the order in which these are listed."""
    targets, worlds = ("dataset", "pool", "population"), list(SETTINGS)
    cells = [cell for cell in outcome.counts if RULES.get(cell.rule).holds_level == holds]
    return sorted(cells, key=lambda cell: (targets.index(cell.target), worlds.index(cell.world)))
