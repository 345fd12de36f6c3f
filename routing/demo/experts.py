"""The demonstration on handwritten digits with an expert as the reference, and annotators who err.

The annotators are wrong on `ERROR` of the items, and on `COPIED` of these they say what the slow model says:
mistakes that people and models share are those that hurt.
"""

import json
import zipfile
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from PIL import Image

from routing.core.calibration import Calibration
from routing.core.certify import certify
from routing.core.route import route
from routing.core.rules import fixed_sequence
from routing.demo import handwriting
from routing.demo.scene import Pool, content_key, write_whole
from routing.models import Run
from routing.runs.chain_inputs import ChainInputs
from routing.runs.expert.rows import annotated_rows
from routing.runs.plan import plan_of
from routing.sample.digits import CLASSES, WHITE

ERROR, COPIED, SEED = 0.06, 0.4, 6
EXPERT = "expert1"
PRICE = 3
SCENE = replace(
    handwriting.SCENE,
    title="handwritten digits, two models, annotators who err, and an expert who is right",
    command="make demo DEMO_ARGS=--expert",
    name="Handwritten digits with an expert",
    slug="handwritten-digits-with-an-expert",
    folder="expert",
    expert=EXPERT,
    plan={
        "epsilon": Decimal("0.05"),
        "alpha": Decimal("0.05"),
        "target": "dataset",
        "m": 500,
        "p": Decimal(1),
        "reference": "expert",
        "expert": EXPERT,
        "expert_cost": PRICE * handwriting.HUMAN_COST,
        "entropy": handwriting.SEED,
    },
)


def annotators_truth(folder: Path, pool: Pool) -> Path:
    """What the annotators take for right, as a file like `pool.truth_file`: made once from `SEED`."""
    path = folder / "expert" / "annotators.json"
    if path.exists():
        return path
    truth: dict[str, str] = json.loads(pool.truth_file.read_text())
    slow = slow_answers(folder, pool)
    rng = np.random.default_rng(SEED)
    keys = sorted(truth)
    wrong = rng.choice(len(keys), round(ERROR * len(keys)), replace=False).tolist()
    copied = [key for key in keys if slow[key] != truth[key]][: round(COPIED * len(wrong))]
    said = dict(truth)
    for place in wrong[len(copied) :]:
        others = [name for name in CLASSES if name != truth[keys[place]]]
        said[keys[place]] = str(rng.choice(others))
    said |= {key: slow[key] for key in copied}
    write_whole(path, json.dumps(said).encode())
    return path


def slow_answers(folder: Path, pool: Pool) -> dict[str, str]:
    """What the slow model says of every item, by `content_key`."""
    model = joblib.load(folder / "models" / "digits-slow.joblib")
    keys, features = [], []
    with zipfile.ZipFile(pool.file) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            keys.append(content_key(content))
            with archive.open(name) as file, Image.open(file) as image:
                features.append(np.asarray(image, dtype=np.float64).ravel() / WHITE)
    found = model["estimator"].predict(np.array(features))
    return {key: str(digit) for key, digit in zip(keys, found.tolist(), strict=True)}


@dataclass(frozen=True)
class PeoplesWord:
    """What the same draw would have come to if one person's label counted as right.

    `errors` of the delivered labels are wrong; `cost` is that of models and people.
    """

    certified: bool
    errors: int
    cost: float

    def summary(self, run: Run) -> str:
        share = self.errors / run.pool_size
        what = "certified" if self.certified else "nothing certified"
        return (
            f"{what}; {self.errors} of {run.pool_size:,} = {share:.2%} wrong against the truth, "
            f"at {self.cost:,.0f} {run.project.currency}"
        )


def peoples_word(run: Run, folder: Path, pool: Pool) -> PeoplesWord:
    """Certify the annotators' labels of the same draw by the ordinary rule, and deliver by its thresholds."""
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    plan = replace(plan_of(run), rule=fixed_sequence.RULE.name)
    inputs = ChainInputs.of(run, run_sources)
    rows, _own = annotated_rows(run, run_sources)
    labels = Calibration.from_rows(
        [replace(row, label=row.person, annotator="", person=None, own=()) for row in rows.rows]
    )
    found = certify(plan, inputs.chains(plan), labels)
    places = route(inputs.u, inputs.v, found.thresholds)
    truth: dict[str, str] = json.loads(pool.truth_file.read_text())
    said: dict[str, str] = json.loads(annotators_truth(folder, pool).read_text())
    slow = slow_answers(folder, pool)
    fast = dict(_answers(run, 1))
    asked = set(run.draw.items.filter(asked=True).values_list("item", flat=True))
    errors, prices = 0, [float(cost) for cost in plan.costs]
    cost = prices[0] * run.pool_size
    items = run.pool_items.order_by("position").values_list("item", "item__image__sha256")
    for (item, key), place in zip(items, places.tolist(), strict=True):
        by_person = item in asked or place == len(prices) - 1
        label = said[key] if by_person else slow[key] if place == 1 else fast[item]
        errors += label != truth[key]
        cost += (prices[-1] if by_person else 0.0) + (prices[1] if place == 1 or item in asked else 0.0)
    return PeoplesWord(found.certified, errors, cost)


def _answers(run: Run, position: int) -> Any:
    source = run.run_sources.get(position=position)
    rows = source.source.predictions.filter(fingerprint=source.fingerprint)
    return rows.values_list("item", "value")
