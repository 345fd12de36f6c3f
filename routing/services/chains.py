"""Chains of policies as JSON and back, exactly."""

from collections.abc import Sequence
from typing import Any

from routing.core.chain import Chain, Policy
from routing.core.keys import Key, Thresholds


def thresholds_to_json(thresholds: Thresholds) -> list[dict[str, Any] | None]:
    """Per model source {"u": ..., "v": ...}, or None: nothing goes there."""
    return [None if key is None else {"u": key.u, "v": key.v} for key in thresholds]


def thresholds_from_json(data: Sequence[dict[str, Any] | None]) -> Thresholds:
    return tuple(None if key is None else Key(float(key["u"]), int(key["v"])) for key in data)


def chains_to_json(chains: Sequence[Chain]) -> list[dict[str, Any]]:
    return [
        {
            "name": chain.name,
            "policies": [
                {
                    "thresholds": thresholds_to_json(policy.thresholds),
                    "counts": list(policy.counts),
                    "model_cost": policy.model_cost,
                    "people_cost": policy.people_cost,
                }
                for policy in chain.policies
            ],
        }
        for chain in chains
    ]


def chains_from_json(data: Sequence[dict[str, Any]]) -> tuple[Chain, ...]:
    return tuple(
        Chain(
            name=chain["name"],
            policies=tuple(
                Policy(
                    thresholds=thresholds_from_json(policy["thresholds"]),
                    counts=tuple(policy["counts"]),
                    model_cost=float(policy["model_cost"]),
                    people_cost=float(policy["people_cost"]),
                )
                for policy in chain["policies"]
            ),
        )
        for chain in data
    )
