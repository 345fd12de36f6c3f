"""What `validity.py` counted: every count as CSV, the summary in Markdown, and which cells failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from runner import machine, markdown

from routing.core.rules import RULES
from testbed.enumeration import Enumerated
from testbed.known_truth import SETTINGS
from testbed.level import Cell, Count, certifying, failed, is_default, limit

TARGETS = ("dataset", "pool", "population")
Line = dict[str, object]


@dataclass
class Outcome:
    """Everything that a report needs."""

    counts: Mapping[Cell, Count]
    again: Mapping[Cell, Count] = field(default_factory=dict)
    exact: Sequence[Enumerated] = ()

    def cells(self) -> list[Cell]:
        """By target, then world, in the order in which these are listed; those of the paper's rules last."""
        worlds = list(SETTINGS)
        return sorted(
            self.counts,
            key=lambda cell: (
                not RULES.get(cell.rule).holds_level,
                TARGETS.index(cell.target),
                worlds.index(cell.world),
            ),
        )

    def limit(self, count: Count) -> int:
        return limit(count.draws, len(certifying(self.counts)))

    def fails(self, cell: Cell) -> bool:
        """Whether it had too many false certificates, and had them again."""
        return all(counts[cell].false > self.limit(counts[cell]) for counts in (self.counts, self.again))


def cell_lines(outcome: Outcome) -> list[Line]:
    """One row for each cell."""
    return [_line(outcome, cell) for cell in outcome.cells()]


def exact_lines(outcome: Outcome) -> list[Line]:
    """One row for each kind of tiny pools of which every draw was analysed."""
    return [
        {
            **{name: getattr(found, name) for name in ("target", "rule", "bound", "pools", "draws")},
            "worst_share_over_alpha": f"{found.worst:.3f}",
            "level": "FAIL" if _exceeds(found) else "pass",
        }
        for found in outcome.exact
    ]


def _exceeds(found: Enumerated) -> bool:
    return found.worst > 1 + 1e-9


def _line(outcome: Outcome, cell: Cell) -> Line:
    """Of the paper's rules only whether their shares exceed what chance explains."""
    count, again = outcome.counts[cell], outcome.again.get(cell)
    most, holds = outcome.limit(count), RULES.get(cell.rule).holds_level
    level = "exceeds" if count.false > most else ""
    if holds:
        level = "FAIL" if outcome.fails(cell) else "pass"
    line: Line = {name: getattr(cell, name) for name in ("target", "world", "rule", "bound")}
    line |= {"holds_level": holds, "default": holds and is_default(cell)}
    line |= {"draws": count.draws, "false": count.false, "share": f"{count.false / count.draws:.4f}"}
    line |= {"limit": most, "level": level}
    line |= {"second_draws": again.draws if again else "", "second_false": again.false if again else ""}
    saving, bar = 100 * count.saving / count.draws, SETTINGS[cell.world].bar
    line |= dict.fromkeys(("certified_percent", "net_saving_percent", "hindsight_percent", "bar_percent"), "")
    if holds:
        line["certified_percent"] = f"{100 * count.certified / count.draws:.1f}"
        line["net_saving_percent"] = f"{saving:.2f}"
    if line["default"]:
        line["hindsight_percent"] = f"{saving + 100 * count.below / count.paired:.2f}"
        line["bar_percent"] = "" if bar is None else f"{bar:g}"
    return line


def summary(outcome: Outcome, *, command: str, seconds: float, missing: Sequence[str]) -> str:
    """How it was made, the verdict, and the range of the shares of false certificates over the worlds."""
    first = failed(outcome.counts)
    failures = sum(map(outcome.fails, first)) + sum(map(_exceeds, outcome.exact))
    lines = [
        f"`.venv/bin/python benchmarks/validity.py {command}`, {date.today().isoformat()}, "
        f"{machine('numpy', 'scipy')}, {seconds / 60:.0f} minutes.",
        "",
        f"M = {len(certifying(outcome.counts))} cells (rule x bound x target x world) and "
        f"{len(outcome.exact)} exact enumerations: {f'{failures} FAIL' if failures else 'all pass'}. "
        f"{len(first)} cells were run a second time.",
    ]
    if missing:
        lines.append(f"Left out, because their tables are not at hand: {', '.join(missing)}.")
    return "\n".join([*lines, "", markdown(_ranges(outcome))]) + "\n"


def _ranges(outcome: Outcome) -> list[Line]:
    groups: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for cell in outcome.cells():
        count = outcome.counts[cell]
        groups[cell.target, cell.rule, cell.bound][cell.world] = count.false / count.draws
    lines: list[Line] = []
    for (target, rule, bound), shares in groups.items():
        worst = max(shares, key=lambda world: shares[world])
        line: Line = {"target": target, "rule": rule, "bound": bound, "worlds": len(shares)}
        line |= {
            "smallest share": f"{min(shares.values()):.4f}",
            "largest": f"{shares[worst]:.4f}",
            "in": worst,
        }
        lines.append(line | {"holds its stated level": "yes" if RULES.get(rule).holds_level else "no"})
    return lines
