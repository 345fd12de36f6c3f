"""Chains in which each slice of the first model's score may go to any source.

There is no fixed order of `person`, `checked` and `expert`: it is another one for each kind of human error.
So a chain starts with everything at the expert, and walks down the lower hull of (predicted loss, predicted
cost) of each slice, all segments in the order of cost saved per predicted loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from routing.core.arrays import Floats, Ints, Keys
from routing.core.bins import Bins
from routing.core.chain import ChainError, cut_slices
from routing.core.every_score.build import ScoreChains, build_score_chains
from routing.core.keys import Key, pack_thresholds
from routing.core.pilot import PilotData
from routing.core.reference.forecast import Foretold, PeopleForecast, foretell
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.sources import CHECKED, EXPERT, PERSON

ALL, NO_PERSON, MODELS = "all sources", "without people alone", "models and expert"


@dataclass(frozen=True)
class SliceChain:
    """A chain over b slices; policy 0 sends everything to the expert.

    Attributes
    ----------
    name : str
    ends : b keys
        Upper end of each slice on the key (U_1, V_1), rising.
    moves : (J - 1, 2)
        From one policy to the next: a slice, and the source it goes to from then on.
    models : int
        K.
    """

    name: str
    ends: tuple[Key, ...]
    moves: tuple[tuple[int, int], ...]
    models: int

    @property
    def size(self) -> int:
        """J."""
        return len(self.moves) + 1

    @cached_property
    def packed_ends(self) -> Keys:
        return np.asarray(pack_thresholds([self.ends])[0], dtype=np.complex128)

    def slice_of(self, keys: Keys) -> Ints:
        """The slice of each item (n,); an item above all ends lies in the last."""
        found = np.searchsorted(self.packed_ends, keys, side="left")
        return np.minimum(found, len(self.ends) - 1).astype(np.int64)

    def sources(self, index: int) -> Ints:
        """The source of each slice (b,) under one policy."""
        found = np.full(len(self.ends), self.models + EXPERT, dtype=np.int64)
        for where, source in self.moves[:index]:
            found[where] = source
        return found

    def along(self, values: Floats) -> Floats:
        """Totals (J,) of each policy, ``values`` (K + 3, b) being those of a slice at each source."""
        where, before, after = self._steps
        start = values[self.models + EXPERT].sum()
        return np.cumsum(np.concatenate([[start], values[after, where] - values[before, where]]))

    @cached_property
    def _steps(self) -> tuple[Ints, Ints, Ints]:
        """Of each move the slice, the source it had before, and the one it has from then on, (J - 1,)."""
        place = [self.models + EXPERT] * len(self.ends)
        found = np.empty((3, len(self.moves)), dtype=np.int64)
        for step, (where, source) in enumerate(self.moves):
            found[:, step] = where, place[where], source
            place[where] = source
        return found[0], found[1], found[2]

    def totals(self, keys: Keys, losses: Floats) -> Floats:
        """Summed losses (J,) of the items with ``keys`` (n,) and ``losses`` (n, K + 3) by source."""
        where, values = self.slice_of(keys), np.zeros((losses.shape[1], len(self.ends)))
        for source in range(losses.shape[1]):
            values[source] = np.bincount(where, weights=losses[:, source], minlength=len(self.ends))
        return self.along(values)

    def fault(self) -> str:
        """Why this is no chain, in words; '' if it is one."""
        ends = self.packed_ends
        if not len(ends) or np.any(ends[1:] <= ends[:-1]):
            return "its slices do not rise"
        if any(not (0 <= b < len(ends) and 0 <= s < self.models + 3) for b, s in self.moves):
            return "it moves a slice or a source that there is not"
        return ""


@dataclass(frozen=True)
class ReferenceChains:
    """What a run with the reference `expert` freezes before its draw.

    Attributes
    ----------
    slices : Bins
        Of the pool along the first model's key.
    chains : tuple
        Over slices; each is tested at alpha / 3.
    scores : ScoreChains or None
        In place of the third, where later models have scores of their own.
    """

    slices: Bins
    chains: tuple[SliceChain, ...]
    scores: ScoreChains | None = None

    def fault(self, run: ExpertPlan) -> str:
        """Why these are not the chains of ``run``; '' if they are."""
        for chain in self.chains:
            if chain.models != run.plan.sources - 1:
                return f"chain {chain.name!r} is for {chain.models} models"
            if fault := chain.fault():
                return f"chain {chain.name!r}: {fault}"
        names = [chain.name for chain in self.chains] + ([MODELS] if self.scores else [])
        if names != [ALL, NO_PERSON, MODELS]:
            return "which chains there are does not follow from the plan"
        # A result names its chain, and a chain on every score may be called anything.
        every = [chain.name for chain in self.chains]
        every += [chain.name for chain in self.scores.chains] if self.scores else []
        if len(set(every)) != len(every):
            return "two chains have the same name"
        return self.scores.fault(run.models_and_expert) if self.scores else ""


def build_reference_chains(
    run: ExpertPlan,
    *,
    u: ArrayLike,
    v: ArrayLike,
    usable: ArrayLike | None = None,
    pilot: PilotData | None = None,
    people: PeopleForecast | None = None,
) -> ReferenceChains:
    """The three chains: all sources, all but `person`, models and expert alone.

    The third is that of `every_score`, with c_h := c_e, where the last model has a score.

    Parameters
    ----------
    u, v : (N,)
        Uncertainties and tie-breaks of the first model on the pool, in pool order.
    usable : (N,), optional
        Whether its answer can be used.
    pilot
        What all models said about the pilot, with ``own_scores`` where they have scores.

    Raises
    ------
    ChainError
        Shapes or scores do not fit the plan.
    """
    scores, ties = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.int64)
    if usable is not None:
        # The tie-break stays its own: of many items with one key, slices would end at the same place.
        scores = np.where(np.asarray(usable, dtype=np.bool_), scores, 1.0)
    if pilot is not None and len(pilot.u) and (problem := pilot.problem(run.plan.sources)):
        raise ChainError(problem)
    slices = cut_slices(run.plan, u=scores, v=ties)
    foretold, models = foretell(run, slices, pilot, people), run.plan.sources - 1
    every = range(models + 3)
    allowed = {ALL: every, NO_PERSON: [s for s in every if s != models + PERSON]}
    by_score = None
    if later_scores(pilot):
        by_score = build_score_chains(run.models_and_expert, u=u, v=v, usable=usable, pilot=pilot)
    else:
        allowed[MODELS] = [s for s in every if s not in (models + PERSON, models + CHECKED)]
    chains = tuple(hull_chain(name, slices, foretold, use) for name, use in allowed.items())
    return ReferenceChains(slices, chains, by_score)


def hull_chain(name: str, slices: Bins, foretold: Foretold, use: Sequence[int]) -> SliceChain:
    """The chain along the lower hull of loss and cost of every slice, over the sources ``use``."""
    ratio, where, step, place = _hulls(foretold.losses[use].T, foretold.costs[use].T, len(use) - 1)
    order = np.lexsort((step, where, -ratio))
    sources = np.asarray(use, dtype=np.int64)[place[order]]
    moves = tuple(zip(where[order].tolist(), sources.tolist(), strict=True))
    return SliceChain(name, slices.ends, moves, len(foretold.losses) - 3)


def _hulls(losses: Floats, costs: Floats, start: int) -> tuple[Floats, Ints, Ints, Ints]:
    """The vertices after ``start`` of the lower hull of every slice, whose losses and costs are a row each.

    Of each vertex the cost saved per loss on the way to it, its slice, its number on the hull, and its place.
    All slices at once: row by row it took most of the time of an analysis.
    """
    each, at = np.arange(len(losses)), np.full(len(losses), start, dtype=np.int64)
    ratios, wheres, steps, places = [np.empty(0)], [each[:0]], [each[:0]], [at[:0]]
    while True:
        saved, added = costs[each, at][:, None] - costs, losses - losses[each, at][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(added > 0, saved / added, np.inf)
        ratio = np.where(saved > 0, ratio, -np.inf)
        best = ratio.max(axis=1)
        (goes,) = np.nonzero(best > -np.inf)
        if not len(goes):
            where, step, place = (np.concatenate(parts) for parts in (wheres, steps, places))
            return np.concatenate(ratios), where, step, place
        # Of several on one line the last, so that the ratios fall strictly.
        at[goes] = np.argmin(np.where(ratio == best[:, None], costs, np.inf), axis=1)[goes]
        ratios.append(best[goes])
        wheres.append(goes)
        steps.append(np.full(len(goes), len(steps) - 1))
        places.append(at[goes])


def later_scores(pilot: PilotData | None) -> bool:
    """Whether the last of several models has a score of its own."""
    if pilot is None or pilot.own_scores is None or pilot.own_scores.shape[1] < 2:
        return False
    return bool(not np.isnan(pilot.own_scores[:, -1]).all())
