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

STEPS = 40


def figures(
    plan: Plan, chains: Sequence[Chain], calibration: Calibration, certification: Certification
) -> dict[str, Any]:
    """Plain JSON, no NaN. `region` is None but for two models and people.

    - `comparisons`: rule, bound, thresholds, routing_saving, observed_errors, upper_bound, holds_level,
      sentence
    - `region`: u1, u2 (g,), feasible, errors, cost (g, g), None below the diagonal
    - `chain`, the chosen one or the first: name, chosen, and of some of its policies index, thresholds,
      counts, expected_cost, observed_errors, estimate, upper_bound, certified
    """
    binary = plan.loss_function().binary
    chain = next((chain for chain in chains if chain.name == certification.chain), chains[0])
    test = next(test for test in certification.tests if test.name == chain.name)
    steps = _shown(len(chain.policies), certification.index)
    policies = tuple(chain.policies[step] for step in steps)
    points = risk_path(plan, Chain(chain.name, policies), calibration)
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
        },
    }


def _shown(count: int, chosen: int) -> list[int]:
    """Steps of a chain for the page: people alone, the chosen one and the last, and some evenly in between.

    An exact upper bound of every step would take a minute where the pool is large.
    """
    spread = range(0, count, max(1, count // STEPS))
    return sorted({*spread, chosen, count - 1})


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
