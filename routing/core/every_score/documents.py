"""The certificate of `every_score`, version 4: chains of several shapes, each with its model's thresholds.

Beside what all certificates hold: ``scored``, which models have scores of their own; ``lazy``; ``pilot``,
how many of its items were not asked about; of each chain its ``shape``, its ``models`` (counted from 1), its
``share`` of alpha (null: what the others leave), ``level``, ``attained`` and ``reached``; of each policy
``pilot_paid``, what it costs on those items of the pilot; and of each row of the draw ``own``, the later
models' [u, v] or null, and ``called``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from routing.core.calibration import Calibration
from routing.core.certificate import (
    EVERY_SCORE,
    Document,
    framed,
    number,
    outcome_document,
    thresholds_document,
)
from routing.core.documents import DocumentError, parse_threshold
from routing.core.every_score.build import ScoreChains
from routing.core.every_score.certify import ScoreCertification
from routing.core.every_score.chain import ScoreChain
from routing.core.every_score.select import PilotCosts, ScoreTest
from routing.core.plan import Plan

SHARE = re.compile(r"[0-9]{1,9}/[0-9]{1,9}")


def score_certificate(
    plan: Plan,
    chains: ScoreChains,
    calibration: Calibration,
    certification: ScoreCertification,
    *,
    pilot: PilotCosts,
    provenance: Mapping[str, Any],
) -> Document:
    """The certificate of one analysis; ``provenance`` and errors as of `certificate_document`."""
    return {
        **framed(plan, calibration, provenance=provenance, version=EVERY_SCORE),
        **tests_document(chains, certification.selection.tests, pilot),
        "result": _result_document(certification),
    }


def tests_document(chains: ScoreChains, tests: Sequence[ScoreTest], pilot: PilotCosts) -> Document:
    """Frozen chains with the outcome of their tests, one for each."""
    every = zip(tests, pilot.paid, strict=True)
    return {
        "scored": list(chains.scored),
        "lazy": chains.lazy,
        "pilot": {"items": pilot.items},
        "chains": [_chain_document(test, costs.tolist()) for test, costs in every],
    }


def chains_document(chains: ScoreChains) -> Document:
    """Frozen chains as plain JSON, from which `read_score_chains` reads the same."""
    return {
        "scored": list(chains.scored),
        "lazy": chains.lazy,
        "chains": [
            {
                **_shape_document(chain),
                "policies": [{"thresholds": _thresholds(chain, j)} for j in range(chain.size)],
            }
            for chain in chains.chains
        ],
    }


def _shape_document(chain: ScoreChain) -> Document:
    return {
        "name": chain.name,
        "shape": chain.shape,
        "models": [model + 1 for model in chain.models],
        "share": None if chain.share is None else _fraction(chain.share),
    }


def _thresholds(chain: ScoreChain, index: int) -> list[list[float | int] | None]:
    return thresholds_document(chain.policy(index))


def _chain_document(test: ScoreTest, paid: list[float]) -> Document:
    return {
        **_shape_document(test.chain),
        "level": _fraction(test.level),
        "attained": _fraction(test.attained),
        "reached": test.reached,
        "limits": dict(test.verdict.limits),
        "prefixes": dict(test.verdict.prefixes),
        "policies": [
            {
                "thresholds": _thresholds(test.chain, j),
                "observed": number(test.upper[j]) if j < test.reached else None,
                "observed_low": number(test.lower[j]) if j < test.reached else None,
                "certified": bool(test.verdict.eligible[j]),
                "pilot_paid": float(paid[j]),
            }
            for j in range(test.chain.size)
        ],
    }


def _result_document(certification: ScoreCertification) -> Document:
    chain = certification.selection.chain
    return {
        "certified": certification.certified,
        "chain": chain.name if certification.certified else "",
        "shape": chain.shape,
        "models": [model + 1 for model in chain.models],
        "policy": certification.selection.index,
        "thresholds": thresholds_document(certification.thresholds),
        **outcome_document(certification),
    }


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def read_score_chains(document: Mapping[str, Any]) -> ScoreChains:
    """The chains of a certificate, or of `chains_document`.

    Raises
    ------
    DocumentError
        Something is missing or of the wrong kind.
    """
    try:
        scored, lazy = document["scored"], document["lazy"]
        if not isinstance(lazy, bool) or not all(isinstance(entry, bool) for entry in scored):
            raise ValueError("'scored' and 'lazy' are true or false")
        return ScoreChains(tuple(scored), tuple(_read_chain(chain) for chain in document["chains"]), lazy)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise DocumentError(f"certificate: chains: {type(error).__name__}: {error}") from None


def _read_chain(chain: Mapping[str, Any]) -> ScoreChain:
    policies = [
        tuple(parse_threshold(entry) for entry in policy["thresholds"]) for policy in chain["policies"]
    ]
    models, share = chain["models"], chain["share"]
    if not policies or len({len(policy) for policy in policies}) > 1:
        raise ValueError("its policies have different numbers of thresholds, or there is none")
    if not all(type(model) is int for model in models):
        raise ValueError(f"{models!r} are no numbers of models")
    # Not every text: of "1e999999999" a fraction takes for ever.
    given = Fraction(share) if share is not None and SHARE.fullmatch(share) else None
    if share is not None and (given is None or _fraction(given) != share):
        raise ValueError(f"{share!r} is no fraction in lowest terms")
    places = tuple(model - 1 for model in models)
    return ScoreChain.of(str(chain["name"]), str(chain["shape"]), places, policies, given)


def read_pilot_costs(document: Mapping[str, Any]) -> PilotCosts:
    """What the policies of a certificate cost on the pilot items that were not asked about."""
    try:
        items = document["pilot"]["items"]
        paid = [[policy["pilot_paid"] for policy in chain["policies"]] for chain in document["chains"]]
        numbers = [items, *(cost for costs in paid for cost in costs)]
        if type(items) is not int or any(isinstance(value, bool) for value in numbers):
            raise ValueError("'items' and 'pilot_paid' are numbers")
        if not all(isfinite(value) and value >= 0 for value in numbers):
            raise ValueError("a number of items or a cost is negative or not finite")
        return PilotCosts(items, tuple(np.array(costs, dtype=np.float64) for costs in paid))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DocumentError(f"certificate: pilot: {type(error).__name__}: {error}") from None
