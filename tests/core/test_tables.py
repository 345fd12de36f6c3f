"""Real model outputs, where the tables are at hand: what is certified holds, and saves what it should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from testbed.draws import Draw
from testbed.known_truth import DATA, SETTINGS, Table, available

pytestmark = pytest.mark.costly

LEAST = {"ImageNet": 0.39, "MATH-L5": 0.14, "GSM8K": 0.63}
"""Least mean net saving over the draws below, target "dataset"."""
DRAWS = 20


def setting(name: str) -> Table:
    table = SETTINGS[name]
    assert isinstance(table, Table)
    if not available(table):
        pytest.skip(f"no table at {DATA / table.file}; set HYPAC_DATA to the folder that holds it")
    return table


@pytest.mark.parametrize("name", LEAST)
def test_certificates_on_real_outputs(name: str) -> None:
    table, rng = setting(name), np.random.default_rng(9)
    false = dict.fromkeys(table.targets, 0)
    saving = dict.fromkeys(table.targets, 0.0)
    for _ in range(DRAWS):
        draw = Draw(table, rng)
        for target in table.targets:
            chosen = draw.certify(target, "fixed_sequence", "hypergeometric")
            thresholds = chosen.policy.thresholds
            false[target] += chosen.index > 0 and draw.false(target, thresholds)
            saving[target] += draw.saving(target, "fixed_sequence", thresholds) / DRAWS
    limit = stats.binom.isf(0.01 / (2 * len(LEAST)), DRAWS, 0.05)
    assert all(count <= limit for count in false.values())
    assert saving["dataset"] >= LEAST[name]
    assert saving["pool"] >= LEAST[name] - 0.06


def test_a_score_of_its_own_makes_the_better_chain() -> None:
    """ImageNet's second model has a score: disagreements are split between the models."""
    draw = Draw(setting("ImageNet"), np.random.default_rng(4))
    assert [chain.name for chain in draw.chains("dataset", "fixed_sequence")[0]] == ["attributed"]
