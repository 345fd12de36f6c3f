"""What a run page shows beside the certificate, computed once with it: it costs seconds on a large draw."""

import math
from collections.abc import Sequence
from typing import Any

from routing.core.calibration import Calibration
from routing.core.certify import Certification, risk_path
from routing.core.chain import Chain
from routing.core.compare import compare
from routing.core.plan import Plan
from routing.core.region import feasible_region
from routing.services.chains import thresholds_to_json


def figures(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, certification: Certification
) -> dict[str, Any]:
    """Plain JSON, no NaN. `region` is None but for two models and people.

    - `comparisons`: rule, bound, thresholds, routing_saving, observed_errors, upper_bound, holds_level,
    sentence
    - `region`: u1, u2 (g,), feasible, errors, cost (g, g), None below the diagonal
    - `chain`: name, chosen, and per policy index, thresholds, counts, expected_cost, observed_errors,
    estimate, upper_bound,
      certified; of the chosen chain, or the first
    """
    binary = plan.loss_function().binary
    chain = next((chain for chain in chains if chain.name == certification.chain), chains[0])
    points = risk_path(plan, chain, calibration)
    test = next(test for test in certification.tests if test.name == chain.name)
    return {
        "comparisons": [
            {
                "rule": row.rule,
                "bound": row.bound,
                "thresholds": thresholds_to_json(row.thresholds),
                "routing_saving": row.routing_saving,
                "observed_errors": row.observed_errors,
                "upper_bound": row.upper_bound,
                "holds_level": row.holds_level,
                "sentence": row.sentence,
            }
            for row in (compare(plan, calibration) if binary else ())
        ],
        "region": _region(plan, calibration) if binary and plan.sources == 3 else None,
        "chain": {
            "name": chain.name,
            "chosen": certification.index,
            "policies": [
                {
                    "index": point.index,
                    "thresholds": thresholds_to_json(policy.thresholds),
                    "counts": list(policy.counts),
                    "expected_cost": point.expected_cost,
                    "observed_errors": point.observed_errors,
                    "estimate": point.estimate,
                    "upper_bound": point.upper_bound,
                    # As tested, at alpha divided by the number of chains.
                    "certified": bool(good),
                }
                for point, policy, good in zip(points, chain.policies, test.verdict.eligible, strict=True)
            ],
        },
    }


def _region(plan: Plan, calibration: Calibration) -> dict[str, Any]:
    region = feasible_region(plan, calibration)
    return {
        "u1": region.u1.tolist(),
        "u2": region.u2.tolist(),
        "feasible": region.feasible.tolist(),
        "errors": [[_number(value) for value in row] for row in region.errors.tolist()],
        "cost": [[_number(value) for value in row] for row in region.cost.tolist()],
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
