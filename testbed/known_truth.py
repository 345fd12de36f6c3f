"""Worlds in which the truth is known: synthetic sources with error rates in closed form, and tables of real
outputs.

A setting says how a pool comes about and what a run on it looks like; `draw` makes a pool.  The benchmarks
and the tests of the core share them.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from routing.core.bins import Bins
from routing.core.calibration import ObservedLosses, along, cumulative, sorted_losses
from routing.core.keys import V_MAX, Thresholds, count_at_or_below, pack, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.plan import Plan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANGUAGE = (1000, 6000, 32768)
"""Tokens per label: a small model, a large one, people; the costs of the paper's language experiments."""
VISION = (1, 4, 10)
CLASSES = 10
DATA = Path(os.environ.get("HYPAC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class World:
    """A pool: scores and tie-breaks (N,), answers (0: right) and losses (N, S - 1).

    ``own`` are the models' own scores, where they have any; ``blank`` marks items that nobody can label.
    """

    u: Floats
    v: Ints
    answers: NDArray[Any]
    losses: Floats
    own: Floats | None = None
    blank: NDArray[np.bool_] | None = None

    def wrong(self, thresholds: Thresholds) -> float:
        """T(theta): wrong labels in the pool."""
        keys = pack(self.u, self.v)
        order = np.argsort(keys)
        counts = count_at_or_below(keys[order], pack_thresholds([thresholds]))
        return float(along(cumulative(self.losses[order]), counts)[0])

    def observe(self, asked: Ints, drawn: int) -> ObservedLosses:
        """What people find out on the items ``asked``, which come in the order of the draw."""
        upper = lower = self.losses[asked]
        if self.blank is not None:
            nobody = self.blank[asked, None]
            upper, lower = np.where(nobody, 1.0, upper), np.where(nobody, 0.0, lower)
        return sorted_losses(self.u[asked], self.v[asked], upper, lower, drawn=drawn)

    def pilot(self, items: Ints) -> PilotData:
        """What the models say about ``items``."""
        own = None if self.own is None else self.own[items]
        return PilotData(self.u[items], self.v[items], self.answers[items].astype(str).astype(object), own)


@dataclass(frozen=True)
class Setting:
    """A synthetic world: U uniform, model k wrong with probability a polynomial in U.

    Attributes
    ----------
    rates : S - 1 tuples
        Coefficients of each model's error probability in powers of U.
    nested : bool
        The errors of a later model lie inside those of the one before it; else they are independent.
    decimals : int or None
        U is rounded to so many decimals.
    unlabelled : float
        Share of the items with a wrong answer that nobody can label.
    bar : float or None
        Points of net saving that a run may stay below the best chain in hindsight; None: reported only.
    held_out : bool
        Nothing was ever chosen by looking at this world; drawn only where it is asked for by name.
    """

    name: str
    rates: tuple[tuple[float, ...], ...]
    costs: tuple[int, ...] = LANGUAGE
    size: int = 3000
    m: int = 500
    p: str = "0.9"
    epsilon: str = "0.05"
    nested: bool = False
    decimals: int | None = None
    unlabelled: float = 0.0
    bar: float | None = None
    held_out: bool = False

    targets = ("dataset", "pool", "population")

    def plan(self, target: str, **changes: Any) -> Plan:
        return plan_of(
            self.size,
            self.m,
            **{"p": self.p, "epsilon": self.epsilon, "costs": self.costs, "target": target, **changes},
        )

    def draw(self, rng: np.random.Generator) -> World:
        """A fresh pool."""
        u = rng.random(self.size)
        probability = np.column_stack([polynomial.polyval(u, rate) for rate in self.rates])
        models = 1 if self.nested else len(self.rates)
        wrong = rng.random((self.size, models)) < probability
        answers = np.where(wrong, rng.integers(1, CLASSES, (self.size, models), dtype=np.int8), 0)
        blank = None
        if self.unlabelled:
            blank = wrong.any(axis=1) & (rng.random(self.size) < self.unlabelled)
        score = u if self.decimals is None else np.round(u, self.decimals)
        return World(score, rng.integers(0, V_MAX, self.size), answers, wrong.astype(np.float64), blank=blank)

    def risk(self, thresholds: Thresholds) -> float:
        """R(theta) in closed form: the integral of each model's error probability over its band."""
        half = 0.0 if self.decimals is None else 0.5 * 10.0**-self.decimals
        reach = [0.0, *(0.0 if t is None else min(t.u + half, 1.0) for t in thresholds)]
        parts = [self._below(k, reach[k + 1]) - self._below(k, reach[k]) for k in range(len(self.rates))]
        return float(sum(parts))

    def bin_losses(self, world: World, slices: Bins) -> Floats:
        """The true mean error probability of each model in each slice (S - 1, b)."""
        half = 0.0 if self.decimals is None else 0.5 * 10.0**-self.decimals
        ends = np.array([0.0, *(min(end.u + half, 1.0) for end in slices.ends)])
        middle = (ends[:-1] + ends[1:]) / 2
        width = np.diff(ends)
        losses = np.empty((len(self.rates), len(width)))
        for k, rate in enumerate(self.rates):
            mass = self._below(k, ends[1:]) - self._below(k, ends[:-1])
            losses[k] = np.where(
                width > 0, mass / np.where(width > 0, width, 1.0), polynomial.polyval(middle, rate)
            )
        return losses

    def _below(self, model: int, u: Any) -> Any:
        return polynomial.polyval(u, polynomial.polyint(self.rates[model]))


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
        keys = pack(world.u, world.v)
        sums = cumulative(world.losses[np.argsort(keys)])[np.concatenate([[0], np.cumsum(slices.sizes)])]
        return np.asarray(np.diff(sums, axis=0).T / slices.sizes, dtype=np.float64)


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


def plan_of(size: int, m: int, **changes: Any) -> Plan:
    """A plan at epsilon = alpha = 0.05, p = 0.9, the costs of the paper's language experiments."""
    settings: dict[str, Any] = {
        "epsilon": "0.05",
        "alpha": "0.05",
        "target": "dataset",
        "m": m,
        "p": "0.9",
        "pool_size": size,
        "costs": LANGUAGE,
    }
    return Plan(**{**settings, **changes})


def make_world(name: str, size: int, rng: np.random.Generator) -> World:
    """A pool of any size from the source of a synthetic setting; its answers are texts."""
    world = replace(SETTINGS[name], size=size).draw(rng)
    return replace(world, answers=world.answers.astype(str).astype(object))


def risk(name: str, thresholds: Thresholds) -> float:
    """R(theta) of a setting."""
    return SETTINGS[name].risk(thresholds)
