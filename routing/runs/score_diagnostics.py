"""What a run page shows beside a certificate of the rule `every_score`; as `routing.runs.diagnostics`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.baselines.observed import Sample
from routing.core.calibration import Calibration
from routing.core.every_score.build import ScoreChains
from routing.core.every_score.certify import ScoreCertification, asked_of
from routing.core.every_score.chain import ScoreChain
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.plane import score_plane
from routing.core.every_score.select import AnswersMissingError, PilotCosts, select_every_score
from routing.core.plan import Plan
from routing.runs import diagnostics
from routing.runs.chains import thresholds_to_json


@dataclass(frozen=True)
class ScoreAnalysis:
    """What an analysis had before it and what it found; `own_scores` as of `Analysis`."""

    plan: Plan
    calibration: Calibration
    certification: ScoreCertification
    chains: ScoreChains
    pilot: PilotCosts
    own_scores: Floats


def score_diagnostics(analysis: ScoreAnalysis) -> dict[str, Any]:
    """As `run_diagnostics`, but:

    - `region` has thresholds on two scores: u1 (g,), u2 (h,), and `own` true; feasible, errors, cost (g, h),
      None where the second model was not called on all items that a pair sends to it
    - `chain` has its `shape` and `models` (from 1), and its `counts` are what the asked items let expect
    - of another epsilon a saving is None where other calls would have been needed
    - the paper's rules and the baselines look at all models' answers on all asked items: where a dear model
      was called only where it had to be, there are none of them
    """
    plan, calibration = analysis.plan, analysis.calibration
    asked = asked_of(plan, analysis.chains, calibration)
    sample = Sample.of(plan, calibration, analysis.own_scores)
    both = plan.sources == 3 and all(analysis.chains.scored)
    return {
        "binary": sample.labelled.binary,
        "comparisons": diagnostics.compared(plan, calibration, sample) if asked.known.all() else [],
        "region": _plane(plan, asked) if both and not plan.bound_rule().sequential else None,
        "chain": _chain(plan, analysis.certification, asked),
        "savings": _savings(analysis, asked),
        "reliability": diagnostics.reliability_of(plan, calibration, analysis.own_scores, sample),
    }


def _plane(plan: Plan, asked: AskedItems) -> dict[str, Any]:
    return {**diagnostics.region_document(score_plane(plan, asked)), "own": True}


def _chain(plan: Plan, certification: ScoreCertification, asked: AskedItems) -> dict[str, Any]:
    selection = certification.selection
    test = selection.tests[selection.number]
    steps = diagnostics.steps_shown(test.reached, selection.index)
    policies = ScoreChain(test.chain.name, test.chain.shape, test.chain.models, test.chain.thresholds[steps])
    evidence, _lower = asked.evidence(plan, policies)
    bounds = plan.bound_rule().upper(evidence, float(plan.alpha), target=plan.target)
    return {
        "name": test.chain.name,
        "shape": test.chain.shape,
        "models": [place + 1 for place in test.chain.models],
        "chosen": selection.index,
        "policies": [
            {
                "index": step,
                "thresholds": thresholds_to_json(test.chain.policy(step)),
                "counts": _counts(plan, policies.only(row), asked),
                "expected_cost": float(selection.costs[selection.number][step]),
                "observed_errors": float(evidence.total[row]),
                "estimate": float(evidence.weighted_mean[row]),
                "upper_bound": float(bounds[row]),
                "certified": bool(test.verdict.eligible[step]),
            }
            for row, step in enumerate(steps)
        ],
    }


def _counts(plan: Plan, policy: ScoreChain, asked: AskedItems) -> list[int]:
    """Items of the pool by source, people last, as the asked ones let expect."""
    found = np.bincount(policy.delivers(asked.items)[0], minlength=plan.sources)
    return [round(int(count) * plan.pool_size / max(asked.asked, 1)) for count in found]


def _savings(analysis: ScoreAnalysis, asked: AskedItems) -> dict[str, Any]:
    points = []
    for epsilon in diagnostics.epsilons_around(analysis.plan):
        saving = _saving(replace(analysis.plan, epsilon=epsilon), analysis, asked)
        points.append({"epsilon": float(epsilon), "values": {diagnostics.THIS_RUN: saving}})
    return {
        "epsilon": float(analysis.plan.epsilon),
        "rules": [diagnostics.THIS_RUN],
        "points": points,
    }


def _saving(plan: Plan, analysis: ScoreAnalysis, asked: AskedItems) -> float | None:
    """The expected routing saving on the same labels; None where other answers would be needed."""
    try:
        chosen = select_every_score(plan, analysis.chains, asked, analysis.pilot)
    except AnswersMissingError:
        return None
    prices: Sequence[float] = [float(cost) for cost in plan.costs]
    delivered = np.bincount(chosen.chain.only(chosen.index).delivers(asked.items)[0], minlength=len(prices))
    return 1 - float(delivered @ np.array(prices)) / (max(asked.asked, 1) * prices[-1])
