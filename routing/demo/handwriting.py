"""The demonstration on handwritten digits: two scikit-learn models."""

from decimal import Decimal
from pathlib import Path

from annotation.imports.columns import ColumnMapping as Columns
from annotation.projects.choices import ChoiceSpec
from routing.demo import digits
from routing.demo.digits import DigitsPool
from routing.demo.scene import Model, Pool, Scene
from routing.sample.digits import CLASSES

SEED = 0
HUMAN_COST = Decimal(100)
GUIDELINES = """Which digit is written here?

- Say what you see, even where the writing is poor.
- Where two digits are equally likely, choose the one that you thought of first.
"""
MODELS = (
    Model(name="Fast model", backend="sklearn", params={"model": "digits-fast"}, cost=Decimal(1)),
    Model(name="Slow model", backend="sklearn", params={"model": "digits-slow"}, cost=Decimal(4)),
)


def make_pool(folder: Path) -> Pool:
    made = DigitsPool.load(folder)  # trained once: another model file would be another model
    made = made or digits.make_pool(folder, seed=SEED)
    trained = (made.fast, made.slow)
    return Pool(
        file=made.archive,
        media_type="application/zip",
        columns=Columns(),
        truth_file=made.truth_file,
        size=made.size,
        models=[
            f"{entry.name}: {entry.description}; a label costs {model.cost}; alone it labels "
            f"{entry.mistakes} of {entry.pool_size:,} wrong ({entry.error:.1%})"
            for entry, model in zip(trained, MODELS, strict=True)
        ],
        alone="; ".join(f"{entry.name.lower()} {entry.error:.1%}" for entry in trained),
    )


SCENE = Scene(
    title="handwritten digits, a fast model, a slow model and people",
    command="make demo",
    name="Handwritten digits",
    slug="handwritten-digits",
    choices=tuple(ChoiceSpec(name=name, key=name, hotkey=name) for name in CLASSES),
    guidelines=GUIDELINES,
    currency="units",
    human_cost=HUMAN_COST,
    models=MODELS,
    plan={
        "epsilon": Decimal("0.05"),
        "alpha": Decimal("0.05"),
        "target": "dataset",
        "m": 300,
        "p": Decimal("0.9"),
        "entropy": SEED,
    },
    make_pool=make_pool,
)
