"""Real data for the demonstration: the handwritten digits that come with scikit-learn.

Alpaydin & Kaynak, Optical Recognition of Handwritten Digits (UCI): 1,797 images of 8 x 8 pixels, 0 to 16.
"""

import io
import json
import warnings
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from routing.demo.scene import content_key, write_whole
from routing.sample.digits import CLASSES, FAST_TRAINING_IMAGES, SLOW_TRAINING_IMAGES, WHITE, png, trained


@dataclass(frozen=True)
class Model:
    name: str
    description: str
    mistakes: int
    pool_size: int

    @property
    def error(self) -> float:
        return self.mistakes / self.pool_size


@dataclass(frozen=True)
class DigitsPool:
    """What is handed to HyPAC (`archive`, model files) and what it never sees (`truth_file`)."""

    archive: Path
    truth_file: Path
    fast: Model
    slow: Model

    @classmethod
    def load(cls, folder: Path) -> "DigitsPool | None":
        """The pool made earlier in this folder; None where there is none, or it was not finished."""
        file = folder / "pool.json"
        if not file.exists():
            return None
        facts = json.loads(file.read_text())
        return cls(folder / "pool.zip", folder / "truth.json", Model(**facts["fast"]), Model(**facts["slow"]))

    @property
    def size(self) -> int:
        return self.fast.pool_size


def make_pool(folder: Path, *, seed: int) -> DigitsPool:
    """Train the two models on a few hundred images and write the others, the pool, as a zip of PNG files.

    The truth goes to a file of its own, for the simulated people and the summary alone.
    """
    images, truth, features, pool, fast, slow = trained(seed)
    for name, estimator in (("digits-fast", fast), ("digits-slow", slow)):
        _write_model(folder / "models" / f"{name}.joblib", estimator)
    archive, truth_file = folder / "pool.zip", folder / "truth.json"
    _write_archive(archive, images[pool], pool)
    hashes = [content_key(png(image)) for image in images[pool]]
    write_whole(
        truth_file, json.dumps(dict(zip(hashes, truth[pool].astype(str).tolist(), strict=True))).encode()
    )
    made = DigitsPool(
        archive=archive,
        truth_file=truth_file,
        fast=Model(
            "Fast model",
            f"logistic regression trained on {FAST_TRAINING_IMAGES} images",
            int((fast.predict(features[pool]) != truth[pool]).sum()),
            len(pool),
        ),
        slow=Model(
            "Slow model",
            f"support vector machine trained on {SLOW_TRAINING_IMAGES} images",
            int((slow.predict(features[pool]) != truth[pool]).sum()),
            len(pool),
        ),
    )
    facts = {"fast": asdict(made.fast), "slow": asdict(made.slow)}
    write_whole(folder / "pool.json", json.dumps(facts).encode())  # last: it says that all of it is there
    return made


def _write_model(path: Path, estimator: Any) -> None:
    content = {
        "estimator": estimator,
        "kind": "image",
        "size": [8, 8],
        "scale": 1 / WHITE,
        "classes": [CLASSES[index] for index in estimator.classes_],
    }
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joblib.dump(content, buffer)
    write_whole(path, buffer.getvalue())


def _write_archive(path: Path, images: NDArray[np.float64], numbers: NDArray[np.int64]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for image, number in zip(images, numbers, strict=True):
            archive.writestr(zipfile.ZipInfo(f"digit-{number:04d}.png"), png(image))
    write_whole(path, buffer.getvalue())
