"""Real model outputs, where the tables are at hand: what is certified holds, and saves what it should."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from routing.core.certify import certify_losses
from routing.core.chain import PilotData, build_chains
from routing.core.keys import V_MAX
from tests.core.worlds import World, plan_of

FOLDER = Path(os.environ.get("HYPAC_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

TABLES = {
    # file, m, costs, least mean net saving over the draws below
    "imagenet_resnet34_resnet152.csv": (1000, (1, 2, 8), 0.36),
    "zeroeval_math-l5_2tier.csv": (300, (1000, 6000, 32768), 0.13),
    "zeroeval_gsm_2tier.csv": (300, (1000, 6000, 32768), 0.60),
}


def same(prediction: str, truth: str) -> bool:
    """Numeric comparison where both are numbers; a blank prediction is wrong."""
    if not prediction:
        return False
    try:
        return abs(float(prediction.replace(",", "")) - float(truth.replace(",", ""))) < 1e-9
    except ValueError:
        return prediction == truth


def load(name: str) -> tuple[World, np.ndarray | None]:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"no table at {path}; set HYPAC_DATA to the folder that holds it")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    u = np.array([1 - float(row["conf1"]) for row in rows])
    answers = np.array([[row["pred1"] or "blank 1", row["pred2"] or "blank 2"] for row in rows], dtype=object)
    losses = np.array(
        [[not same(row[k], row["y_true"]) for k in ("pred1", "pred2")] for row in rows], dtype=float
    )
    own = None
    if "conf2" in rows[0]:
        own = np.column_stack([u, [1 - float(row["conf2"]) for row in rows]])
    return World(u, np.zeros(len(u), dtype=np.int64), answers, losses), own


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("target", ["dataset", "pool"])
def test_certificates_on_real_outputs(name: str, target: str) -> None:
    table, own = load(name)
    m, costs, least = TABLES[name]
    size, repeats = len(table.u), 25
    plan = plan_of(size, m, costs=costs, target=target)
    rng = np.random.default_rng(9)
    false, saving = 0, 0.0
    for _ in range(repeats):
        world = World(table.u, rng.integers(0, V_MAX, size), table.answers, table.losses)
        chosen = rng.choice(size, plan.pilot, replace=False)
        pilot = world.pilot(chosen)
        if own is not None:
            pilot = PilotData(pilot.u, pilot.v, pilot.answers, own[chosen])
        chains = build_chains(plan, u=world.u, v=world.v, pilot=pilot)
        drawn = rng.permutation(size)[:m]
        result = certify_losses(plan, chains, world.observe(drawn[rng.random(m) < 0.9], m))
        mended = result.observed_errors if result.certified and target == "dataset" else 0
        false += world.wrong(result.thresholds) - mended > plan.budget
        saving += result.expected.net_saving / repeats
    assert false <= stats.binom.isf(0.01 / (2 * len(TABLES)), repeats, 0.05)
    assert saving >= least - (0.06 if target == "pool" else 0.0)
