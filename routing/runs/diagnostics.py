"""What a run page shows beside the certificate, computed once with it: it costs seconds on a large draw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.baselines import BASELINES
from routing.core.baselines.observed import Sample, compare_baselines
from routing.core.bins import Bins
from routing.core.calibration import Calibration, ObservedLosses, observed_losses
from routing.core.certify import Certification, risk_path, select
from routing.core.chain import Chain
from routing.core.compare import compare_losses
from routing.core.experiment.reliability import interval, reliability
from routing.core.grid import score_grid
from routing.core.messages import to_json
from routing.core.plan import Plan
from routing.core.region import Region, feasible_region
from routing.core.savings import expected
from routing.runs.analysis_result import AnyCertification
from routing.runs.chains import thresholds_to_json

STEPS = 40
# Error shares around the run's own at which the saving is recomputed, as powers of 2**(1/3).
EPSILONS = range(-6, 7)
MOST_PAIRS = 3_000
"""Drawn items up to which the paper's rule is recomputed at each of them for a loss that is no count: then it
has to look at all pairs of scores."""
THIS_RUN = "this_run"
DRAWN_BASELINES = ("pac_labeling_1", "pac_labeling_2")


@dataclass(frozen=True)
class Analysis:
    """What an analysis had before it and what it found.

    `chains` are those that were tested, `slices` what one of them was learnt along, if it was;
    `own_scores` (m, S - 1) each model's own score of the drawn items in draw order, NaN where there is none.
    """

    plan: Plan
    calibration: Calibration
    certification: Certification
    fixed_chains: Sequence[Chain]
    slices: Bins | None
    own_scores: Floats


def messages_of(certification: AnyCertification, shown: dict[str, Any]) -> dict[str, Any]:
    """What the certificate and its figures say in messages, as plain JSON; they are taken out of `shown`."""
    reason = certification.why_nothing
    return {
        "sentence": to_json(certification.said),
        "reason": to_json([reason] if reason else []),
        "comparisons": [row.pop("messages") for row in shown.get("comparisons", [])],
    }


def run_diagnostics(analysis: Analysis) -> dict[str, Any]:
    """Plain JSON, no NaN. `region` is None but for two models and people.

    - `binary`: whether the loss counts errors
    - `comparisons`: rule, bound, thresholds, routing_saving, observed_errors, upper_bound, holds_level,
      sentence, refusal, messages; `own_scores` where a later model is limited on its own score, `everything`
      the place of a model that takes whatever is left
    - `region`: u1, u2 (g,), feasible, errors, cost (g, g), None below the diagonal
    - `chain`, the chosen one or the first: name, chosen, and of some of its policies index, thresholds,
      counts, expected_cost, observed_errors, estimate, upper_bound, certified
    - `savings`: epsilon of the run, rules, and points of epsilon and values, a saving per rule or None
    - `reliability`: position of the source, ece, and bins of confidence, accuracy, count, low, high
    """
    plan, calibration = analysis.plan, analysis.calibration
    losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    sample = Sample.of(plan, calibration, analysis.own_scores)
    return {
        "binary": sample.labelled.binary,
        "comparisons": compared(plan, calibration, sample, losses),
        "region": region_document(feasible_region(plan, calibration)) if plan.sources == 3 else None,
        "chain": _chain(analysis),
        "savings": _savings(analysis, losses, sample),
        "reliability": reliability_of(plan, calibration, analysis.own_scores, sample),
    }


def compared(
    plan: Plan, calibration: Calibration, sample: Sample, losses: ObservedLosses | None = None
) -> list[dict[str, Any]]:
    """The paper's rules and the baselines on the same labels."""
    if losses is None:
        losses = observed_losses(calibration, loss=plan.loss_function(), sources=plan.sources)
    return [*_papers_rules(plan, calibration, losses), *_baselines(sample)]


def _papers_rules(plan: Plan, calibration: Calibration, losses: ObservedLosses) -> list[dict[str, Any]]:
    return [
        {
            "rule": row.rule,
            "bound": row.bound,
            "thresholds": thresholds_to_json(row.thresholds),
            "routing_saving": row.routing_saving,
            "observed_errors": row.observed_errors,
            "upper_bound": row.upper_bound,
            "holds_level": row.holds_level,
            "sentence": row.sentence,
            "messages": {"sentence": to_json(row.said)},
        }
        for row in compare_losses(plan, calibration.u, losses)
    ]


def _baselines(sample: Sample) -> list[dict[str, Any]]:
    return [
        {
            "rule": row.rule,
            "bound": row.bound,
            "thresholds": [None if limit is None else {"u": limit, "v": None} for limit in row.limits],
            "own_scores": row.own_scores,
            "everything": None if row.everything is None else row.everything + 1,
            "routing_saving": row.routing_saving,
            "observed_errors": row.observed_errors,
            "upper_bound": row.upper_bound,
            "holds_level": row.holds_level,
            "sentence": row.sentence,
            "refusal": row.refusal,
            "messages": {
                "sentence": to_json(row.said),
                "refusal": to_json([row.refused] if row.refused else []),
            },
        }
        for row in compare_baselines(sample)
    ]


def _chain(analysis: Analysis) -> dict[str, Any]:
    certification = analysis.certification
    chains = certification.chains
    chain = next((chain for chain in chains if chain.name == certification.chain), chains[0])
    test = next(test for test in certification.tests if test.name == chain.name)
    steps = steps_shown(len(chain.policies), certification.index)
    policies = tuple(chain.policies[step] for step in steps)
    points = risk_path(analysis.plan, Chain(chain.name, policies), analysis.calibration)
    return {
        "name": chain.name,
        "chosen": certification.index,
        "policies": [
            {
                "index": step,
                "thresholds": thresholds_to_json(policy.thresholds),
                "counts": list(policy.counts),
                "expected_cost": point.expected_cost,
                "observed_errors": point.observed_errors,
                "estimate": point.estimate,
                "upper_bound": point.upper_bound,
                # As tested, at alpha divided by the number of chains.
                "certified": bool(test.verdict.eligible[step]),
            }
            for step, policy, point in zip(steps, policies, points, strict=True)
        ],
    }


def steps_shown(count: int, chosen: int) -> list[int]:
    """Steps of a chain for the page: people alone, the chosen one and the last, and some evenly in between.

    An upper bound of every step would take long for bounds that bet along the draw.
    """
    spread = range(0, count, max(1, count // STEPS))
    return sorted({*spread, chosen, count - 1})


def region_document(region: Region) -> dict[str, Any]:
    return {
        "u1": region.u1.tolist(),
        "u2": region.u2.tolist(),
        "feasible": region.feasible.tolist(),
        "errors": [[_number(value) for value in row] for row in region.errors.tolist()],
        "cost": [[_number(value) for value in row] for row in region.cost.tolist()],
    }


def _savings(analysis: Analysis, losses: ObservedLosses, sample: Sample) -> dict[str, Any]:
    """Routing savings if epsilon had been another, on the same labels; only the run's own was fixed."""
    plan = analysis.plan
    few = sample.labelled.binary or plan.m <= MOST_PAIRS
    grid = score_grid(plan, analysis.calibration.u, losses) if few else None
    drawn = [entry for entry in BASELINES if entry.name in DRAWN_BASELINES and not sample.refusal(entry)]
    points: list[dict[str, Any]] = []
    for epsilon in epsilons_around(plan):
        other = replace(plan, epsilon=epsilon)
        chosen = select(other, analysis.fixed_chains, losses, slices=analysis.slices)
        values: dict[str, float] = {
            THIS_RUN: expected(other, chosen.policy, asked=losses.asked).routing_saving
        }
        if grid is not None:
            first = compare_losses(other, analysis.calibration.u, losses, grid=grid)[0]
            values[first.rule] = first.routing_saving
        for baseline in drawn:
            values[baseline.name] = sample.outcome(sample.decide(baseline, epsilon))[1]
        points.append({"epsilon": float(epsilon), "values": values})
    return {"epsilon": float(plan.epsilon), "rules": list(points[0]["values"]), "points": points}


def epsilons_around(plan: Plan) -> list[Decimal]:
    """Error shares at which the saving is recomputed, the plan's own among them."""
    steps = [step for step in EPSILONS if not plan.bound_rule().sequential or step % 2 == 0]
    found = [round(plan.epsilon * Decimal(2 ** (step / 3)), 8) if step else plan.epsilon for step in steps]
    return [epsilon for epsilon in found if 0 < epsilon < 1]


def reliability_of(
    plan: Plan, calibration: Calibration, own_scores: Floats, sample: Sample
) -> list[dict[str, Any]]:
    """Of every model with a score of its own, on the asked items that it answered."""
    found = []
    asked, labelled = sample.labelled.asked, sample.labelled
    own = own_scores[calibration.asked] if plan.constant_p else own_scores
    for model in range(labelled.models):
        score = labelled.u[:, model] if model == 0 else own[:, model]
        rows = asked & sample.usable[:, model] & np.isfinite(score)
        if not rows.any():
            continue
        diagram = reliability(score[rows], labelled.alone[rows, model], loss_bound=labelled.loss_bound)
        bins = zip(diagram.confidence, diagram.accuracy, diagram.counts, strict=True)
        found.append(
            {
                "position": model + 1,
                "ece": diagram.ece,
                "bins": [
                    {
                        "confidence": float(confidence),
                        "accuracy": float(accuracy),
                        "count": int(count),
                        **(interval(round(accuracy * count), int(count)) if labelled.binary else {}),
                    }
                    for confidence, accuracy, count in bins
                ],
            }
        )
    return found


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
