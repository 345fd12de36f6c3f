"""Cascades: what the methods of an experiment decide.

An item goes through stages in order, each with a score and a limit, and to people where no stage takes it.
The threshold policies of the paper are cascades in which all stages look at the score of the first model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from routing.core.arrays import Bools, Floats, Ints
from routing.core.keys import V_MAX, Thresholds

ALL_TIES = V_MAX
NO_TIES = -1


@dataclass(frozen=True)
class Stage:
    """An item that gets here is labelled by ``source`` where the score is below ``limit``, or at it with a
    tie-break of at most ``tie``.

    Attributes
    ----------
    source : int
        Model that labels, its place 0 .. K - 1.
    score : int or None
        Model whose own score decides; None: everything that gets here is labelled.
    limit : float
        -inf where nothing is labelled here.
    tie : int
        `ALL_TIES`: all items at the limit (score <= limit); `NO_TIES`: none of them (score < limit).
    """

    source: int
    score: int | None
    limit: float = np.inf
    tie: int = ALL_TIES


@dataclass(frozen=True)
class Decision:
    """Stages in order, and people for what no stage takes.

    Attributes
    ----------
    models : places in the table
        The models that the method works with, cheapest first; no other is paid.
    stages
        Each with a source among ``models``.
    pilot : bool
        Whether the models ran on the pilot.
    labelled : (n,) or None
        Of a method that chooses by itself what people label: the items that it asked about.  None: those of
        the calibration set.
    asked_calls : (n, len(models)) or None
        The items among those that each model ran on.  None: all of them.
    """

    models: tuple[int, ...]
    stages: tuple[Stage, ...]
    pilot: bool = False
    labelled: Ints | None = field(default=None, compare=False)
    asked_calls: Bools | None = field(default=None, compare=False)

    @property
    def looked_at(self) -> frozenset[int]:
        """The models that run on every drawn item, because their scores decide."""
        return frozenset(stage.score for stage in self.stages if stage.score is not None)

    @classmethod
    def of_thresholds(cls, thresholds: Thresholds, *, pilot: bool = False) -> Decision:
        """The policy of the paper's Section 3.1: all thresholds on the score of the first model."""
        stages = tuple(
            Stage(k, 0, -np.inf) if limit is None else Stage(k, 0, limit.u, limit.v)
            for k, limit in enumerate(thresholds)
        )
        return cls(tuple(range(len(thresholds))), stages, pilot)

    def route(self, u: Floats, v: Ints, usable: Bools) -> tuple[Ints, Bools]:
        """`apply` with tie-breaks (n, K) of each model's scores; only those of the first ever split ties.

        ``usable`` (n, K) is not looked at: whoever is sent an item passes it on where he cannot label it.
        """
        del usable
        return self.apply(u, v[:, 0])

    def apply(self, u: Floats, v: Ints) -> tuple[Ints, Bools]:
        """Who labels, and who had to be run for its score.

        Parameters
        ----------
        u : (n, K)
            Each model's own score.
        v : (n,)
            Tie-breaks.

        Returns
        -------
        nominal : (n,)
            Place in ``models``; ``len(models)`` is people.
        ran : (n, len(models))
            Whether the model was run because its score was looked at.
        """
        places = {model: place for place, model in enumerate(self.models)}
        nominal = np.full(len(v), len(self.models), dtype=np.int64)
        ran = np.zeros((len(v), len(self.models)), dtype=np.bool_)
        waiting = np.ones(len(v), dtype=np.bool_)
        for stage in self.stages:
            taken = waiting
            if stage.score is not None:
                score = u[:, stage.score]
                ran[:, places[stage.score]] |= waiting
                taken = score < stage.limit
                if stage.tie >= 0:
                    taken |= (score == stage.limit) & (v <= stage.tie)
                taken &= waiting
            nominal[taken] = places[stage.source]
            waiting = waiting & ~taken
        return nominal, ran
