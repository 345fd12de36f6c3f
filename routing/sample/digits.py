"""Handwritten digits that come with scikit-learn, and two models trained on a few of them.

Alpaydin & Kaynak, Optical Recognition of Handwritten Digits (UCI): 1,797 images of 8 x 8 pixels, 0 to 16.
"""

import csv
import io
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

KEPT_FROM_POOL = 300
FAST_TRAINING_IMAGES = 60
# So few that neither model alone keeps the demonstration's epsilon.
SLOW_TRAINING_IMAGES = 150
WHITE = 255
INK = 15  # grey levels per pixel unit: 16 units of ink leave 255 - 240 = 15, nearly black
SAMPLE_COLUMNS = ("fast", "fast_confidence", "slow", "slow_confidence")
CLASSES = [str(digit) for digit in range(10)]


def sample_archive(count: int, *, seed: int) -> bytes:
    """A zip of PNG files: `count` images that neither model was trained on, and a table of what both say."""
    images, _truth, features, pool, fast, slow = trained(seed)
    chosen = pool[:count]
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["file_name", *SAMPLE_COLUMNS])
    said = [
        (model.predict(features[chosen]), model.predict_proba(features[chosen]).max(axis=1))
        for model in (fast, slow)
    ]
    for place, number in enumerate(chosen):
        answers = [cell for labels, sure in said for cell in (CLASSES[labels[place]], f"{sure[place]:.4f}")]
        rows.writerow([f"digit-{number:04d}.png", *answers])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("metadata.csv"), table.getvalue())
        for number in chosen:
            archive.writestr(zipfile.ZipInfo(f"digit-{number:04d}.png"), png(images[number]))
    return buffer.getvalue()


def trained(seed: int) -> tuple[Any, ...]:
    """Images, their truth, the models' features, the numbers of the pool's images, and the two models."""
    # It takes a second to load, and web processes import this module.
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    digits = load_digits()
    images: NDArray[np.float64] = digits.images
    truth: NDArray[np.int64] = digits.target
    order = np.random.default_rng(seed).permutation(len(truth))
    training, pool = order[:KEPT_FROM_POOL], np.sort(order[KEPT_FROM_POOL:])
    # Features as the backend will compute them from the PNG files: grey level / 255, 0 is black.
    features = (WHITE - INK * images).reshape(len(truth), -1) / WHITE
    small, large = training[:FAST_TRAINING_IMAGES], training[:SLOW_TRAINING_IMAGES]
    fast = LogisticRegression(max_iter=1000).fit(features[small], truth[small])
    machine = SVC(C=10.0, gamma="scale", random_state=seed)
    slow = CalibratedClassifierCV(machine, ensemble=False).fit(features[large], truth[large])
    return images, truth, features, pool, fast, slow


def png(image: NDArray[np.float64]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray((WHITE - INK * image).astype(np.uint8), mode="L").save(buffer, "PNG")
    return buffer.getvalue()
