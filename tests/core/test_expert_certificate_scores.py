"""Which policy on every score a certificate with an expert certifies, whatever its chains are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from routing.core.certificate import canonical_bytes
from routing.core.verify import verify
from tests.core.expert_runs import ExpertRun

pytestmark = pytest.mark.costly

Change = Callable[[dict[str, Any]], object]
CHOSEN, OTHER = "model 1", "model 2"


@pytest.fixture(scope="module")
def scored() -> ExpertRun:
    return ExpertRun("1", scored=True)


def test_a_policy_on_every_score_is_told_by_more_than_its_chains_name(scored: ExpertRun) -> None:
    document = json.loads(scored.files[0])
    result = document["result"]
    (chain,) = [chain for chain in document["scores"]["chains"] if chain["name"] == result["chain"]]
    policy = chain["policies"][result["policy"]]
    assert policy["certified"]
    assert (result["shape"], result["models"]) == (chain["shape"], chain["models"])
    assert result["thresholds"] == policy["thresholds"]
    assert result["thresholds"] != [None]


def test_where_the_expert_sees_a_part_policies_on_every_score_are_recomputed_too() -> None:
    certificate, draw = ExpertRun("0.5", scored=True, costs=("0.001", "0.05", "4")).files
    document = json.loads(certificate)
    assert document["result"]["shape"]
    assert not verify(certificate, draw)
    chain = document["scores"]["chains"][0]
    chain["policies"][1]["observed"] += 1
    assert any("scores" in line for line in verify(canonical_bytes(document), draw))


def test_a_policy_over_slices_has_no_thresholds() -> None:
    result = json.loads(ExpertRun("0.5", seed=2).files[0])["result"]
    assert result["certified"]
    assert not {"shape", "models", "thresholds"} & result.keys()


@pytest.mark.parametrize("twin", [OTHER, "all sources", "without people alone"])
def test_a_result_that_names_two_chains_is_found(scored: ExpertRun, twin: str) -> None:
    """Or a stranger would route by the policy of the same number of the other chain."""
    certificate, draw = scored.files
    document = json.loads(certificate)
    assert document["result"]["chain"] == CHOSEN
    other = next(chain for chain in document["scores"]["chains"] if chain["name"] == OTHER)
    assert not other["policies"][document["result"]["policy"]]["certified"]
    next(chain for chain in document["scores"]["chains"] if chain["name"] == CHOSEN).update(name=twin)
    document["result"]["chain"] = twin
    assert any("two chains have the same name" in line for line in verify(canonical_bytes(document), draw))


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.update(chain=OTHER),
        lambda result: result.update(shape="cascade"),
        lambda result: result.update(models=[2]),
        lambda result: result.update(thresholds=[[0.5, 1]]),
        lambda result: result["thresholds"][0].__setitem__(1, result["thresholds"][0][1] + 1),
        lambda result: result.pop("shape"),
        lambda result: result.pop("models"),
        lambda result: result.pop("thresholds"),
    ],
)
def test_what_a_result_says_of_a_policy_on_every_score_is_recomputed(
    scored: ExpertRun, change: Change
) -> None:
    certificate, draw = scored.files
    document = json.loads(certificate)
    change(document["result"])
    assert any("certificate: result." in line for line in verify(canonical_bytes(document), draw))
