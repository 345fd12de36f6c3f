"""Runs of the rule `every_score`: each model's own score decides. What models said, and what follows from it.

Which items a model has to be called on, and who labels an item, the core says (routing.core.every_score):
here the stored answers are brought to it, and what it decides is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation.common.bulk import copy_rows
from annotation.common.ranges import of_items
from annotation.jobs.context import JobContext
from annotation.words import Words
from routing.core.every_score.build import ScoreChains
from routing.core.every_score.chain import CASCADE, ScoreChain
from routing.core.every_score.documents import read_score_chains
from routing.core.every_score.items import EVERYTHING, ScoredItems
from routing.core.every_score.select import MissingCalls
from routing.core.keys import Key, Threshold
from routing.core.rules import every_score
from routing.core.sampling import tie_breaks
from routing.models import DrawItem, ItemScore, Prediction, Route, Run, RunSource, Spend
from routing.runs.chains import at_or_below, thresholds_from_json
from routing.runs.own_record import has_own_record
from routing.runs.predict import NamedItems, on_calibration_set, predict_band, predict_missing
from routing.runs.score import score_of
from routing.runs.usable_answers import has_usable_answer, table_of_answers

PART = 10_000


def uses_every_score(run: Run) -> bool:
    """Whether every model's own score decides in this run."""
    return run.rule == every_score.RULE.name


def chains_of(run: Run) -> ScoreChains:
    """The chains that the run has frozen."""
    document = run.chains or {}
    return read_score_chains(document["scores"] if run.by_expert else document)


def calibration_row_fields(
    run: Run,
    run_sources: Sequence[RunSource],
    asked: Sequence[tuple[int, str]],
    scores: Mapping[int, Sequence[float | None]],
) -> dict[int, dict[str, Any]]:
    """What the certificate's rows tell of the asked items, keys and external ids, beside the answers: the
    keys (U_k, V_k) of the later models, and which models have been asked; with an expert all have.
    """
    ids, names = [item for item, _ in asked], [name for _, name in asked]
    later = range(1, len(run_sources))
    breaks = {place: tie_breaks(run.salt, names, model=place + 1).tolist() for place in later}
    called = {} if run.by_expert else called_models(run, run_sources, ids)
    return {
        item: {
            "own": tuple(_key(scores[item][place], breaks[place][row]) for place in later),
            "called": called.get(item, ()),
        }
        for row, item in enumerate(ids)
    }


def _key(u: float | None, v: int) -> Key | None:
    return None if u is None else Key(u, v)


def called_models(
    run: Run, run_sources: Sequence[RunSource], item_ids: Sequence[int]
) -> dict[int, tuple[bool, ...]]:
    """Of each item which models have been asked about it."""
    called = {item: [False] * len(run_sources) for item in item_ids}
    for place, run_source in enumerate(run_sources):
        for start in range(0, len(item_ids), PART):
            part = item_ids[start : start + PART]
            rows = Prediction.objects.filter(
                of_items("item", part), source=run_source.source_id, fingerprint=run_source.fingerprint
            )
            for item in rows.values_list("item", flat=True):
                if item in called:
                    called[item][place] = True
    return {item: tuple(marks) for item, marks in called.items()}


def pilot_outside_draw(run: Run, run_sources: Sequence[RunSource], chains: ScoreChains) -> ScoredItems:
    """What the models said of the pilot items that people are not asked about."""
    asked = set(DrawItem.objects.filter(draw__run=run, asked=True).values_list("item", flat=True))
    rows = [
        (item, name)
        for item, name in run.pilot_items.order_by("order").values_list("item", "item__external_id")
        if item not in asked
    ]
    return scored_items(run, run_sources, [item for item, _ in rows], [name for _, name in rows], chains)


def scored_items(
    run: Run,
    run_sources: Sequence[RunSource],
    item_ids: Sequence[int],
    names: Sequence[str],
    chains: ScoreChains,
) -> ScoredItems:
    """What all models said of some items, with their keys; at most a few thousand."""
    answers, scores = table_of_answers(run, run_sources, item_ids)
    shape = (len(item_ids), len(run_sources))
    u = np.array([scores[item] for item in item_ids], dtype=np.float64).reshape(shape)
    usable = np.array([[a is not None for a in answers[item]] for item in item_ids], dtype=np.bool_)
    v = np.column_stack([tie_breaks(run.salt, names, model=k + 1) for k in range(len(run_sources))])
    return ScoredItems.of(u, v, usable.reshape(shape), scored=chains.scored)


def ask_for(
    context: JobContext, run: Run, run_sources: Sequence[RunSource], missing: MissingCalls, *, done: int
) -> int:
    """Have models answer the asked items that the tests cannot go on without. Their labels are locked.

    `done` is the job's count before; returns by how much it grows. How many more the tests will need nobody
    knows beforehand.
    """
    asked = DrawItem.objects.filter(draw__run=run, asked=True).order_by("order")
    ids = np.array(asked.values_list("item", flat=True), dtype=np.int64)
    total, begun = done + sum(len(rows) for _, rows in missing.calls), done
    for place, rows in missing.calls:
        with context.chunk(total=total):
            pass
        done += predict_missing(
            context,
            frozen_source=run_sources[place],
            items=NamedItems(ids[rows]),
            stage=Spend.Stage.CALIBRATION.value,
            says=on_calibration_set(run_sources[place].source.name),
            done=done,
        )
    return done - begun


@dataclass(frozen=True)
class Routing:
    """The routing of a run by the policy that was chosen.

    Attributes
    ----------
    run, run_sources
    policy : ScoreChain
        Of one policy; of a shape other than `FIRST_SCORE`.
    scored : K bools
    people : int
        Position of the routes to whoever labels what no model does.
    positions : range
        Of the items that are routed: the pool's, or those of what is taken in.
    """

    run: Run
    run_sources: Sequence[RunSource]
    policy: ScoreChain
    scored: tuple[bool, ...]
    people: int
    positions: range

    @classmethod
    def of(
        cls,
        run: Run,
        run_sources: Sequence[RunSource],
        thresholds: Sequence[Threshold],
        *,
        people: int | None = None,
        positions: range | None = None,
    ) -> "Routing":
        certificate = run.certificate
        models = tuple(position - 1 for position in certificate.model_positions)
        policy = ScoreChain.of("chosen", certificate.shape, models, [tuple(thresholds)])
        return cls(
            run,
            run_sources,
            policy,
            chains_of(run).scored,
            people or len(run_sources) + 1,
            range(run.pool_size) if positions is None else positions,
        )

    def predict(self, context: JobContext) -> None:
        """Have the models answer whose scores the policy looks at, each where it does: first the one whose
        key decides for all items, then the last one of a cascade. Items with a label by a person need none.
        """
        done = 0
        people_alone = not any(self.policy.policy(0))
        for place in () if people_alone else self.policy.models:
            if place == 0:
                continue  # it has answered the whole pool
            run_source = self.run_sources[place]
            context.progress(
                stage=Words(gettext_noop("%(source)s: which items"), source=run_source.source.name)
            )
            done += predict_band(context, run_source, NamedItems(self._called(place)), done)

    def store(self, context: JobContext) -> None:
        """Store who labels each of the items, part by part."""
        routes = Route.objects.filter(run=self.run)
        for part in self._parts():
            if routes.filter(item=part.ids[0]).exists():
                continue  # stored before this job was interrupted
            # In the order in which the index of the routes has them, so that it grows at its end.
            rows = sorted(zip(part.ids, self._sent(part), strict=True))
            with context.chunk(stage=Words(gettext_noop("Routes"))):
                copy_rows(Route, ("run", "item", "position"), [(self.run.pk, *row) for row in rows])

    def sent(self, *conditions: object) -> Iterator[dict[int, int]]:
        """Of the items that meet the conditions, part by part, the position that each is sent to, by key."""
        for part in self._parts(*conditions):
            yield dict(zip(part.ids, self._sent(part), strict=True))

    def _sent(self, part: "PoolPart") -> list[int]:
        found = self.policy.delivers(part.scored(self))[0]
        positions: list[int] = np.where(found == len(self.run_sources), self.people, found + 1).tolist()
        return positions

    def _called(self, place: int) -> NDArray[np.int64]:
        """Ids of the unlabelled items that the policy looks at this model for."""
        found = []
        for part in self._parts(~has_own_record(self.run, item="item")):
            ids = np.array(part.ids, dtype=np.int64)
            if place != self.policy.models[0]:
                ids = ids[self.policy.calls(part.scored(self))[place][0]]
            found.append(ids)
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def _parts(self, *conditions: object) -> Iterator["PoolPart"]:
        pool = self.run.pool_items.filter(*conditions).order_by("position")
        rows = pool.values_list("item", "item__external_id", "u", "v")
        places = self.positions
        for start in range(places.start, places.stop, PART):
            part = list(rows.filter(position__gte=start, position__lt=min(start + PART, places.stop)))
            if part:
                yield PoolPart(*map(list, zip(*part, strict=True)))


@dataclass(frozen=True)
class PoolPart:
    """Some items of a pool: their keys, external ids, and the first model's U and V."""

    ids: list[int]
    names: list[str]
    u: list[float]
    v: list[int]

    def scored(self, routing: Routing) -> ScoredItems:
        """What the models whose keys the policy looks at said of them; the others count as unusable."""
        shape = (len(self.ids), len(routing.run_sources))
        u, v, usable = (
            np.full(shape, np.nan),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.bool_),
        )
        for place in {0, *routing.policy.models}:
            if place == 0:
                u[:, 0], v[:, 0] = self.u, self.v
                doubtful = [item for item, score in zip(self.ids, self.u, strict=True) if score == 1.0]
                good = _own_scores(routing.run, routing.run_sources[0], doubtful)
                usable[:, 0] = [s < 1.0 or item in good for item, s in zip(self.ids, self.u, strict=True)]
                continue
            found = _own_scores(routing.run, routing.run_sources[place], self.ids)
            u[:, place] = [found.get(item, np.nan) for item in self.ids]
            usable[:, place] = [item in found for item in self.ids]
            v[:, place] = tie_breaks(routing.run.salt, self.names, model=place + 1)
        return ScoredItems.of(u, v, usable, scored=routing.scored)


def _own_scores(run: Run, run_source: RunSource, item_ids: Sequence[int]) -> Mapping[int, float]:
    """Item id -> the model's own score of its usable answer, of the items that have both; maybe others."""
    found: dict[int, float] = {}
    name = score_of(run, run_source).key
    for start in range(0, len(item_ids), PART):
        rows = ItemScore.objects.filter(
            of_items("prediction__item", item_ids[start : start + PART]),
            name=name,
            reason="",
            prediction__source=run_source.source_id,
            prediction__fingerprint=run_source.fingerprint,
            prediction__value__isnull=False,
        )
        found |= dict(rows.values_list("prediction__item_id", "value"))
    return found


def takes(first: RunSource, threshold: Threshold) -> Q:
    """As `at_or_below`, but an item without a usable answer of the first model has the last key of all."""
    taken = at_or_below(threshold)
    return taken if threshold == EVERYTHING else taken & ~_unusable(first)


def keeps(first: RunSource, threshold: Threshold) -> Q:
    """Of which items of the pool the first model's answer is kept by its own score: never without one."""
    return at_or_below(threshold) & ~_unusable(first)


def kept_on_own_score(run_source: RunSource, threshold: Threshold) -> Exists:
    """Whether the stored answer of a later model would be kept, for rows that have an `item_id`; what lies on
    the threshold counts as kept, whatever its tie-break.
    """
    scores = ItemScore.objects.filter(
        name=score_of(run_source.run, run_source).key,
        reason="",
        prediction__item=OuterRef("item_id"),
        prediction__source=run_source.source_id,
        prediction__fingerprint=run_source.fingerprint,
        prediction__value__isnull=False,
    )
    return Exists(scores.none() if threshold is None else scores.filter(value__lte=threshold.u))


def was_called(run_source: RunSource) -> Exists:
    """Whether a model has been asked, for rows that have an `item_id`."""
    answers = Prediction.objects.filter(source=run_source.source_id, fingerprint=run_source.fingerprint)
    return Exists(answers.filter(item=OuterRef("item_id")))


def _unusable(first: RunSource) -> Q:
    return Q(u=1.0) & ~Q(has_usable_answer(first))


def looked_at(run: Run, position: int) -> Q:
    """Of which items of the pool the chosen policy looks at the score of the model at this place, where the
    first model's score decides about that; of all where another one's does.
    """
    certificate = run.certificate
    thresholds = thresholds_from_json(certificate.thresholds)
    if position not in certificate.model_positions or not any(thresholds):
        return Q(pk__in=[])
    if certificate.shape != CASCADE or certificate.model_positions != [1, position]:
        return Q()
    first = run.run_sources.select_related("run").get(position=1)
    low, high = thresholds[0], thresholds[1]
    return _unusable(first) if low == EVERYTHING else takes(first, high) & ~takes(first, low)
