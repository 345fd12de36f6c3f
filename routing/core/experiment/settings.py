"""What an experiment is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from routing.core.experiment.table import Table
from routing.core.plan import Plan

MOST_LABELS = 1000
"""The default size of a calibration set is a quarter of the table, at most this."""

MOST_SEVERE = 20.0
"""With more, a deployment would hold a handful of items again and again."""


class ExperimentError(ValueError):
    """An experiment that cannot be run; the message says what to change."""


@dataclass(frozen=True)
class Settings:
    """Everything that fixes an experiment besides its table.

    Attributes
    ----------
    epsilons, targets, sizes
        One row per combination; ``sizes`` are the m; empty ``sizes`` and ``targets`` for the default.
    bounds
        Names; empty for the default of each rule and target.
    rules
        Names; empty for all that the table allows.
    repeats, seed : int
    severities
        Shifts of the deployment, see `shift`; empty: the pool itself is what is labelled.
    drift : float
        How much worse the models are at the same score, per unit of severity.
    """

    epsilons: tuple[Decimal, ...] = (Decimal("0.05"),)
    alpha: Decimal = Decimal("0.05")
    sizes: tuple[int, ...] = ()
    p: Decimal = Decimal("0.9")
    repeats: int = 100
    seed: int = 0
    targets: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    severities: tuple[float, ...] = ()
    drift: float = 0.0

    def check(self) -> None:
        """Raise `ExperimentError` at the first value that makes no sense whatever the table."""
        for name, values in (
            ("--epsilon", self.epsilons),
            ("--m", self.sizes),
            ("--target", self.targets),
            ("--bound", self.bounds),
            ("--rules", self.rules),
            ("--shift", self.severities),
        ):
            if len(set(values)) < len(values):
                raise ExperimentError(f"{name}: a value stands there twice")
        if self.repeats < 1:
            raise ExperimentError(f"--repeats {self.repeats}: at least one draw is needed")
        if self.seed < 0:
            raise ExperimentError(f"--seed {self.seed}: a seed must not be negative")
        if not 0 <= self.drift <= MOST_SEVERE:
            raise ExperimentError(f"--drift {self.drift:g}: it lies between 0 and {MOST_SEVERE:g}")
        if self.drift and not self.severities:
            raise ExperimentError("--drift: give the severities with --shift")
        for severity in self.severities:
            if not 0 <= severity <= MOST_SEVERE:
                raise ExperimentError(f"--shift {severity:g}: a severity lies between 0 and {MOST_SEVERE:g}")
        if self.severities and "dataset" in self.targets:
            raise ExperimentError(
                "--target dataset: with --shift other items are deployed than those that people labelled, "
                "and this target counts their labels as part of what is delivered; use population or pool"
            )

    @property
    def all_targets(self) -> tuple[str, ...]:
        """What is asked for; else the data set, or the population, where a shift delivers other items."""
        return self.targets or (("population",) if self.severities else ("dataset",))

    def sizes_for(self, table: Table) -> tuple[int, ...]:
        """The m of this experiment on ``table``."""
        return self.sizes or (max(1, min(MOST_LABELS, table.size // 4)),)

    def plan(self, table: Table, *, rule: str, target: str, bound: str, m: int, epsilon: Decimal) -> Plan:
        """The plan of one row; costs are the means over the table.

        Raises
        ------
        PlanError
            A number is too large or too small for a plan.
        """
        p, p_min = self.p, None
        if table.p is not None:
            p, p_min = _decimal(float(table.p.mean())), _decimal(float(table.p.min()))
        needs_pilot = table.answers is not None and rule != "split_fixed_sequence"
        return Plan(
            epsilon=epsilon,
            alpha=self.alpha,
            target=target,
            m=m,
            p=p,
            p_min=p_min,
            pool_size=table.size,
            costs=tuple(_decimal(float(cost)) for cost in table.costs.mean(axis=0)),
            bound=bound,
            rule=rule,
            loss=table.loss_name,
            loss_params=table.loss_params,
            pilot_size=None if needs_pilot else 0,
        )


def _decimal(value: float) -> Decimal:
    return Decimal(f"{value:.12g}")
