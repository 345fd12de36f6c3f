"""All repeats of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from routing.core.experiment.measure import Deployment, Measured, Terms, measure, measure_deployment
from routing.core.experiment.methods import METHODS, Method
from routing.core.experiment.settings import ExperimentError, Settings
from routing.core.experiment.shift import deploy
from routing.core.experiment.split import Split
from routing.core.experiment.summary import Row, summarise
from routing.core.experiment.table import Table
from routing.core.experiment.with_expert import WITH_EXPERT, ExpertDecision, measure_with_expert
from routing.core.plan import Plan, PlanError
from routing.core.rules import RULES

Progress = Callable[[int], object]
"""Called with 1 after each repeat."""


@dataclass(frozen=True)
class Case:
    """One rule with one target, bound and m; its plan stands for every epsilon."""

    method: Method
    plan: Plan
    bound: str


@dataclass(frozen=True)
class Results:
    """The rows in the order rule, target, bound, m, epsilon, severity; and what was refused, in sentences."""

    rows: tuple[Row, ...]
    refused: tuple[str, ...]


def run(table: Table, settings: Settings, progress: Progress | None = None) -> Results:
    """Run ``settings`` on ``table``.

    Raises
    ------
    ExperimentError
        Nothing that was asked for can be run, or a number makes no sense.
    """
    cases, refused = list_cases(table, settings)
    if not cases:
        raise ExperimentError("nothing can be run: " + "; ".join(refused))
    outcomes: dict[tuple[int, int, float | None], list[Measured]] = {}
    for seed in np.random.SeedSequence(settings.seed).spawn(settings.repeats):
        for key, measured in _repeat(table, settings, cases, seed):
            outcomes.setdefault(key, []).append(measured)
        if progress is not None:
            progress(1)
    rows = []
    for (number, place, severity), measured_all in sorted(outcomes.items(), key=lambda one: _order(one[0])):
        case = cases[number]
        rows.append(
            summarise(
                measured_all,
                table=table.name,
                items=table.size,
                loss_bound=table.loss_bound,
                rule=case.method.name,
                target=case.plan.target,
                bound=case.bound,
                # Severity 0 is no shift, whatever the drift; beyond it nothing is proved.
                holds_level=case.method.holds_level(case.plan.target)
                and not severity
                and (table.people is None or case.method.name == WITH_EXPERT),
                epsilon=float(settings.epsilons[place]),
                alpha=float(settings.alpha),
                m=case.plan.m,
                p=float(case.plan.p),
                severity=severity,
                drift=settings.drift,
                seed=settings.seed,
            )
        )
    return Results(tuple(rows), refused)


def _order(key: tuple[int, int, float | None]) -> tuple[int, int, float]:
    number, place, severity = key
    return number, place, -1.0 if severity is None else severity


def list_cases(table: Table, settings: Settings) -> tuple[list[Case], tuple[str, ...]]:
    """What can be run, and why the rest cannot.

    Raises
    ------
    ExperimentError
        A number makes no sense, whatever the rule.
    """
    cases: list[Case] = []
    refused: dict[str, dict[str, None]] = {}
    settings.check()
    if table.people is not None and settings.severities:
        raise ExperimentError("--shift: people's errors are known of the items of the table alone")
    for name in settings.rules or _rules_for(table):
        method = METHODS.get(name)
        for target in settings.all_targets:
            for bound in method.bounds(settings.bounds):
                for m in settings.sizes_for(table):
                    try:
                        plan = settings.plan(
                            table, rule=name, target=target, bound=bound, m=m, epsilon=settings.epsilons[0]
                        )
                        reason = _refusal(method, table, settings, plan)
                    except PlanError as error:
                        raise ExperimentError(str(error)) from None
                    if reason:
                        refused.setdefault(reason, {})[name] = None
                    else:
                        resolved = plan.bound_rule().name if name in RULES and not bound else bound
                        cases.append(Case(method, plan, resolved))
    return cases, tuple(_sentence(reason, tuple(names)) for reason, names in refused.items())


def _rules_for(table: Table) -> list[str]:
    """All rules, of tables without an annotator's column those that need none."""
    return [name for name in METHODS.names() if name != WITH_EXPERT or table.people is not None]


def _sentence(reason: str, rules: tuple[str, ...]) -> str:
    """The reason with the rules that it stands against, where it does not name its rule itself."""
    return reason if f"'{rules[0]}'" in reason else f"{', '.join(rules)}: {reason}"


def _refusal(method: Method, table: Table, settings: Settings, plan: Plan) -> str:
    for value in settings.epsilons:
        # The numbers of a plan are checked as for a certificate whatever the rule is; its names by the rule.
        numbers = replace(plan, epsilon=value, rule="fixed_sequence", bound="hoeffding")
        reason = METHODS.get("fixed_sequence").refusal(table, numbers)
        if reason:
            raise ExperimentError(reason)
    return method.refusal(table, plan)


def _repeat(
    table: Table, settings: Settings, cases: list[Case], seed: np.random.SeedSequence
) -> Iterator[tuple[tuple[int, int, float | None], Measured]]:
    splits: dict[int, Split] = {}
    deployments: dict[float, Deployment] = {}
    for number, case in enumerate(cases):
        m = case.plan.m
        if m not in splits:
            fresh = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
            splits[m] = Split(table, m=m, p=float(settings.p), seed=fresh)
        split = splits[m]
        for severity in settings.severities:
            if severity not in deployments:
                deployments[severity] = deploy(table, severity, settings.drift, split.later)
        for place, epsilon in enumerate(settings.epsilons):
            decision = case.method.decide(split, replace(case.plan, epsilon=epsilon))
            terms = Terms(case.plan.target, float(epsilon), case.plan.pilot)
            if isinstance(decision, ExpertDecision):
                yield (number, place, None), measure_with_expert(split, decision, terms)
                continue
            if not settings.severities:
                yield (number, place, None), measure(split, decision, terms)
            for severity in settings.severities:
                measured = measure_deployment(split, decision, deployments[severity], terms)
                yield (number, place, severity), measured
