"""Worlds in which the truth is known: synthetic sources with error rates in closed form, and tables of real
outputs.

A setting says how a pool comes about and what a run on it looks like; `draw` makes a pool.  The benchmarks
and the tests of the core share them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from routing.core.bins import Bins
from routing.core.calibration import cumulative
from routing.core.keys import V_MAX, Thresholds, pack
from testbed.settings import LANGUAGE, Floats, Setting, World

VISION = (1, 4, 10)
DATA = Path(os.environ.get("HYPAC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


Rate = Callable[[Floats], Floats]
"""Error probability (n,) of a model, given all models' scores (n, K)."""


@dataclass(frozen=True)
class Scored(Setting):
    """A synthetic world in which every model has a score of its own, uniform unless ``mixed``.

    Attributes
    ----------
    errors : K functions
        Of a model on its own score and, of two models, the first one's.
    mixed : bool
        The score of the second model is (u1 + w) / 2, w uniform.
    """

    errors: tuple[Rate, ...] = ()
    mixed: bool = False
    wrong_answers: int = 3

    def draw(self, rng: np.random.Generator) -> World:
        shape = (self.size, len(self.errors))
        u = np.column_stack([rng.random(self.size) for _ in self.errors])
        if self.mixed:
            u[:, 1] = (u[:, 0] + u[:, 1]) / 2
        wrong = np.column_stack([rng.random(self.size) < rate(u) for rate in self.errors])
        answers = np.where(wrong, rng.integers(1, self.wrong_answers + 1, shape), 0)
        v = rng.integers(0, V_MAX, self.size)
        return World(u[:, 0], v, answers, wrong.astype(np.float64), own=u)

    def bin_losses(self, world: World, slices: Bins) -> Floats:
        return mean_losses(world, slices)

    def risk(self, thresholds: Thresholds) -> float:
        """R of the paper's policies, all of whose thresholds are on the first score."""
        ends = [0.0, *(0.0 if t is None else min(t.u, 1.0) for t in thresholds)]
        bands = zip(range(len(self.errors)), ends[:-1], ends[1:], strict=True)
        return sum(self.band(model, 0, (low, high), 1.0) for model, low, high in bands)

    def band(self, model: int, first: int, band: tuple[float, float], limit: float) -> float:
        """Expected loss of ``model`` on the items with the score of ``first`` in ``band``, its own up to
        ``limit``: by the midpoint rule, far below any risk that matters.
        """
        low, high = band
        points = 400
        inside = (np.arange(points) + 0.5) / points
        u = np.full((points, points, len(self.errors)), 0.5)
        u[:, :, first] = low + (high - low) * inside[:, None]
        mass = np.full((points, 1), limit)
        if model != first and self.mixed:
            mass = np.clip(2 * limit - u[:, :1, first], 0.0, 1.0)
            u[:, :, model] = (u[:, :, first] + mass * inside) / 2
        elif model != first:
            u[:, :, model] = limit * inside
        else:
            mass = np.ones((points, 1))
        rates = self.errors[model](u.reshape(-1, len(self.errors))).reshape(points, points)
        return float((high - low) * (rates * mass).mean())


@dataclass(frozen=True)
class Cliff(Setting):
    """A block of E + 1 tied items, which both models get wrong in the same way, and nothing else wrong.

    The ties are kept together: a policy that takes the block exceeds epsilon by one item, and it passes
    exactly as often as the tail of the test says.  Drawn from a source, an item lies in the block with
    probability (E + 1) / N.
    """

    @property
    def block(self) -> int:
        return self.plan("pool").budget + 1

    def draw(self, rng: np.random.Generator) -> World:
        return self._world(np.arange(self.size) < self.block, rng)

    def draw_from_source(self, rng: np.random.Generator) -> World:
        """A pool of independent items."""
        return self._world(rng.random(self.size) < self.block / self.size, rng)

    def _world(self, inside: NDArray[np.bool_], rng: np.random.Generator) -> World:
        u = np.where(inside, 0.5, rng.random(self.size))
        answers = np.where(inside[:, None], 1, np.zeros((self.size, 2), dtype=np.int8))
        # One tie-break for all items keeps each block of ties in one piece.
        return World(u, np.zeros(self.size, dtype=np.int64), answers, answers.astype(np.float64))

    def risk(self, thresholds: Thresholds) -> float:
        reach = max((t.u for t in thresholds if t is not None), default=-1.0)
        return self.block / self.size if reach >= 0.5 else 0.0


@dataclass(frozen=True)
class Table(Setting):
    """Real outputs of two models; a pool is the whole table with fresh tie-breaks, so there is no source."""

    file: str = ""

    targets = ("dataset", "pool")

    def draw(self, rng: np.random.Generator) -> World:
        world = read_table(self.file)
        return World(world.u, rng.integers(0, V_MAX, len(world.u)), world.answers, world.losses, world.own)

    def bin_losses(self, world: World, slices: Bins) -> Floats:
        return mean_losses(world, slices)


def mean_losses(world: World, slices: Bins) -> Floats:
    """The mean loss of each model in each slice of this very pool (S - 1, b)."""
    sums = cumulative(world.losses[np.argsort(pack(world.u, world.v))])
    edges = sums[np.concatenate([[0], np.cumsum(slices.sizes)])]
    return np.asarray(np.diff(edges, axis=0).T / slices.sizes, dtype=np.float64)


def _of_own_score(model: int, rate: float) -> Rate:
    return lambda u: rate * u[:, model] ** 2


SQUARES = ((0.0, 0.0, 0.4), (0.0, 0.0, 0.2))

SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("power", SQUARES, bar=1.5),
        Setting("nested", SQUARES, nested=True, bar=1.5),
        Setting("flat", ((0.2,), (0.1,)), costs=VISION),
        Setting("twins", ((0.102,), (0.1,)), costs=(3, 4, 10)),
        Setting("f2-worse", ((0.0, 0.0, 0.3), (0.12, -0.05)), costs=VISION),
        Setting("ties", SQUARES, decimals=1),
        Cliff("cliff", ((0.0,), (0.0,))),
        Setting("rare", ((0.001,), (0.001,)), size=20_000, m=8000, epsilon="0.0005", bar=1.5),
        Setting("tiny", SQUARES, size=164, m=100, bar=1.5),
        Setting("p = .2", SQUARES, p="0.2", bar=1.5),
        Setting("four sources", ((0.0, 0.0, 0.4), (0.0, 0.0, 0.3), (0.0, 0.0, 0.2)), costs=(300, *LANGUAGE)),
        Setting("unlabellable", SQUARES, unlabelled=0.4),
        Table(
            "ImageNet",
            (),
            costs=(1, 2, 8),
            size=50_000,
            m=1000,
            bar=3.0,
            file="imagenet_resnet34_resnet152.csv",
        ),
        Table("MATH-L5", (), size=721, m=300, bar=3.0, file="zeroeval_math-l5_2tier.csv"),
        Table("GSM8K", (), size=1319, m=300, bar=3.0, file="zeroeval_gsm_2tier.csv"),
        Scored(
            "A",
            (),
            costs=("0.0004", "0.005", "1"),
            size=1500,
            errors=(lambda u: 0.6 * u[:, 0] ** 1.5, lambda u: 0.8 * u[:, 1] ** 3),
            mixed=True,
        ),
        Scored(
            "A'",
            (),
            costs=("0.0004", "0.005", "1"),
            size=1500,
            errors=(lambda u: 0.1 + 0.3 * u[:, 0], lambda u: 0.6 * u[:, 1] ** 3),
        ),
        Scored(
            "B",
            (),
            costs=("0.03", "0.15", "1"),
            size=2000,
            epsilon="0.02",
            errors=(lambda u: np.where(u[:, 0] > 0.7, 0.45, 0.002), lambda u: 0.4 * u[:, 1] ** 12),
        ),
        Scored(
            "f2-worse cheap",
            (),
            costs=("0.001", "0.01", "1"),
            errors=(lambda u: 0.3 * u[:, 0] ** 2, lambda u: 0.12 - 0.05 * u[:, 0]),
        ),
        Scored(
            "four scored sources",
            (),
            costs=(300, *LANGUAGE),
            errors=tuple(_of_own_score(model, rate) for model, rate in enumerate((0.4, 0.3, 0.2))),
        ),
        Scored(
            "useless first",
            (),
            costs=("0.06", "0.15", "1"),
            size=1500,
            errors=(lambda u: np.full(len(u), 0.6), lambda u: 0.6 * u[:, 1] ** 3),
        ),
        Setting("large", SQUARES, size=20_000, m=1000, held_out=True),
        Setting("steep", ((0.0, 0.0, 0.0, 0.0, 0.6), (0.0, 0.1)), held_out=True),
        Setting("line", ((0.0, 0.25), (0.08,)), costs=(1, 3, 20), size=8000, m=800, held_out=True),
        Setting("shared", ((0.0, 0.3), (0.0, 0.1)), nested=True, size=1500, m=400, held_out=True),
    )
}


def available(setting: Setting) -> bool:
    """Whether the world can be drawn: a table must be in the data folder (`HYPAC_DATA`)."""
    return not isinstance(setting, Table) or (DATA / setting.file).exists()


@cache
def read_table(name: str) -> World:
    """The table ``name`` of the data folder: U = 1 - conf1, loss 0-1, a blank prediction an error."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: -float(row["conf1"]))
    u = np.array([1 - float(row["conf1"]) for row in rows])
    answers = np.array([[row["pred1"] or "blank 1", row["pred2"] or "blank 2"] for row in rows], dtype=object)
    losses = np.array([[not same(row[k], row["y_true"]) for k in ("pred1", "pred2")] for row in rows])
    own = None
    if "conf2" in rows[0]:
        own = np.column_stack([u, [1 - float(row["conf2"]) for row in rows]])
    return World(u, np.zeros(len(u), dtype=np.int64), answers, losses.astype(np.float64), own)


def same(prediction: str, truth: str) -> bool:
    """Numeric comparison where both are numbers; a blank prediction is wrong."""
    if not prediction:
        return False
    try:
        return abs(float(prediction.replace(",", "")) - float(truth.replace(",", ""))) < 1e-9
    except ValueError:
        return prediction == truth


def make_world(name: str, size: int, rng: np.random.Generator) -> World:
    """A pool of any size from the source of a synthetic setting; its answers are texts."""
    world = replace(SETTINGS[name], size=size).draw(rng)
    return replace(world, answers=world.answers.astype(str).astype(object))


def risk(name: str, thresholds: Thresholds) -> float:
    """R(theta) of a setting."""
    return SETTINGS[name].risk(thresholds)
