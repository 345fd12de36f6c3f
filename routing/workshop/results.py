"""What came of candidates on the development items: how often each is wrong, what it costs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean
from typing import Any

import numpy as np

from annotation.common.replaced_labels import choice_names, replaced_labels
from annotation.common.value_reader import Value, as_text
from annotation.errors import HypacError
from annotation.labelling.alike import Alike
from annotation.labelling.label_queries import label_in_words
from annotation.models import Item, Project
from routing.core.experiment.paired import mcnemar
from routing.core.experiment.reliability import interval, reliability
from routing.core.losses import Loss, LossError, LossNotComputedError, each_loss, is_quick, losses_of
from routing.models import ItemScore, Prediction, PromptCandidate, Source
from routing.runs.plan_options import loss_of
from routing.sources.backend_for import context_of, params_of, prompt_of
from routing.sources.backends import open_backend
from routing.sources.prompt_versions import prompt_in_force
from routing.sources.storable import REASON, stored_reason
from routing.workshop.candidates import candidates_of, ways_to_ask
from routing.workshop.development import labelled_items


@dataclass(frozen=True)
class OneAnswer:
    """`wrong` is None where the answer cannot be used, or its loss is still being computed, `u` its
    uncertainty score where it has one.
    """

    value: Value | None
    reason: str
    wrong: bool | None
    u: float | None
    cost: Decimal
    tokens_in: int | None
    tokens_out: int | None

    @property
    def computing(self) -> bool:
        return self.wrong is None and self.value is not None


@dataclass(frozen=True)
class CandidateResult:
    """What one candidate answered for the `items` labelled development items, by item.

    `in_force`: the source is asked so now. `changed`: the answers were asked for in another way than it would
    be asked now, as guidelines or labels have changed.
    """

    candidate: PromptCandidate
    items: int
    answers: Mapping[int, OneAnswer]
    in_force: bool
    changed: bool
    whole: int = 0
    """Items of the project."""

    @property
    def asked(self) -> int:
        return len(self.answers)

    @property
    def usable(self) -> list[OneAnswer]:
        return [one for one in self.answers.values() if one.value is not None]

    @property
    def computing(self) -> int:
        """Usable answers whose loss is still being computed: until then nothing is said of errors."""
        return sum(one.computing for one in self.usable)

    @property
    def _judged(self) -> list[OneAnswer]:
        return [] if self.computing else self.usable

    @property
    def wrong(self) -> int:
        return sum(bool(one.wrong) for one in self._judged)

    @property
    def error(self) -> float | None:
        return self.wrong / len(self._judged) if self._judged else None

    @property
    def low(self) -> float | None:
        """Of the exact 95 % interval of the error."""
        return interval(self.wrong, len(self._judged))["low"] if self._judged else None

    @property
    def high(self) -> float | None:
        return interval(self.wrong, len(self._judged))["high"] if self._judged else None

    @property
    def usable_share(self) -> float | None:
        return len(self.usable) / self.asked if self.asked else None

    @property
    def mean_cost(self) -> Decimal | None:
        costs = [one.cost for one in self.answers.values()]
        return sum(costs, Decimal(0)) / len(costs) if costs else None

    @property
    def whole_cost(self) -> Decimal | None:
        """Of asking about every item of the project, at this mean."""
        return None if self.mean_cost is None else self.mean_cost * self.whole

    @property
    def mean_tokens_in(self) -> float | None:
        return _mean([one.tokens_in for one in self.answers.values()])

    @property
    def mean_tokens_out(self) -> float | None:
        return _mean([one.tokens_out for one in self.answers.values()])

    @property
    def confidence(self) -> float | None:
        """How sure it says it is, on average, of the usable answers that tell."""
        return _mean([None if one.u is None else 1 - one.u for one in self.usable])

    @property
    def ece(self) -> float | None:
        """By how much that differs from how often it is right; None without a score."""
        scored = [one for one in self._judged if one.u is not None]
        if not scored:
            return None
        u = np.array([one.u for one in scored], dtype=float)
        return reliability(u, np.array([float(bool(one.wrong)) for one in scored])).ece


@dataclass(frozen=True)
class Difference:
    """An item on which two candidates do not say the same, with its label; answers in words."""

    item: Item
    label: str
    answers: tuple[str, str]
    right: tuple[bool, bool]

    @property
    def shown(self) -> Sequence[tuple[str, bool]]:
        return list(zip(self.answers, self.right, strict=True))


@dataclass(frozen=True)
class Mistake:
    """An item of which a candidate says something else than people, or, with the `reason`, nothing usable."""

    item: Item
    label: str
    answer: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Of two candidates on the items that both were asked about. `only_first` counts those on which the first
    alone is right, `p` is how often chance alone would part two equally good ones at least so far.
    """

    first: PromptCandidate
    second: PromptCandidate
    both: int
    rows: Sequence[Difference]
    only_first: int
    only_second: int

    @property
    def p(self) -> float:
        return mcnemar(self.only_first, self.only_second)


def results_of(source: Source) -> list[CandidateResult]:
    """Of all its candidates; a few queries, whatever their number."""
    candidates, known = candidates_of(source), _known(source.project)
    asked_by = ways_to_ask(source)
    in_force, whole = asked_by(prompt_in_force(source), source.params), source.project.items.count()
    answers = _answers(source, candidates, known)
    found = []
    for one in candidates:
        now = asked_by(prompt_of(one), params_of(one))
        found.append(
            CandidateResult(
                candidate=one,
                items=len(known),
                answers=answers[one.number],
                in_force=now == in_force,
                changed=bool(one.asked_as) and one.asked_as != now,
                whole=whole,
            )
        )
    return found


def mistakes_of(result: CandidateResult) -> list[Mistake]:
    project = result.candidate.project
    names, labels = choice_names(project), _known(project)
    told = {pk: one for pk, one in result.answers.items() if not one.computing and pk in labels}
    wrong = {pk: one for pk, one in told.items() if one.wrong is not False}
    items = Item.objects.select_related("image").in_bulk(list(wrong))
    return [
        Mistake(items[pk], label_in_words(labels[pk], names), _in_words(wrong[pk], names), wrong[pk].reason)
        for pk in sorted(wrong)
    ]


def compare_candidates(first: CandidateResult, second: CandidateResult) -> Comparison:
    project = first.candidate.project
    names, labels = choice_names(project), _known(project)
    held = {one.item_id: one for one in labelled_items(project).select_related("item__image")}
    both = [pk for pk in held if pk in first.answers and pk in second.answers]
    both = [pk for pk in both if not (first.answers[pk].computing or second.answers[pk].computing)]
    rows, only, alike = [], [0, 0], Alike(project)
    for pk in both:
        one, other = first.answers[pk], second.answers[pk]
        right = (one.wrong is False, other.wrong is False)
        only[0] += right == (True, False)
        only[1] += right == (False, True)
        if not _same(alike, one, other):
            words = (_in_words(one, names), _in_words(other, names))
            rows.append(Difference(held[pk].item, label_in_words(labels[pk], names), words, right))
    return Comparison(first.candidate, second.candidate, len(both), rows, only[0], only[1])


def _known(project: Project) -> dict[int, Value]:
    """By item its label now."""
    now = replaced_labels(project).now
    held = labelled_items(project).values_list("item_id", "answer")
    return {item: now(label) for item, label in held if label is not None}


def _answers(
    source: Source, candidates: Sequence[PromptCandidate], known: Mapping[int, Value]
) -> dict[int, dict[int, OneAnswer]]:
    """By the number of the candidate, then by item."""
    by_fingerprint: dict[str, list[dict[str, Any]]] = defaultdict(list)
    run = {one.fingerprint for one in candidates if one.fingerprint}
    rows = Prediction.objects.filter(source=source, fingerprint__in=run, item__in=list(known))
    columns = ("pk", "item_id", "fingerprint", "value", *REASON, "cost", "tokens_in", "tokens_out")
    for row in rows.values(*columns):
        by_fingerprint[row["fingerprint"]].append(row)
    scores = ItemScore.objects.filter(prediction__in=rows, reason="")
    scored = {(pk, name): u for pk, name, u in scores.values_list("prediction_id", "name", "value")}
    errors, names = _Errors(source.project, known), _scores(source, candidates)
    errors.look_up([(row["item_id"], row["value"]) for row in rows.values("item_id", "value")])
    return {
        one.number: {
            row["item_id"]: OneAnswer(
                value=row["value"],
                reason=stored_reason(*(row[name] for name in REASON)),
                wrong=None if row["value"] is None else errors.wrong(row["item_id"], row["value"]),
                u=scored.get((row["pk"], names[one.number])),
                cost=row["cost"],
                tokens_in=row["tokens_in"],
                tokens_out=row["tokens_out"],
            )
            for row in by_fingerprint.get(one.fingerprint, ())
        }
        for one in candidates
    }


class _Errors:
    """Which answers are wrong: by the loss that a plan takes for such a project unless told otherwise; where
    that is more than right or wrong, by whether agreement counts both as equal.
    """

    def __init__(self, project: Project, known: Mapping[int, Value]) -> None:
        self._alike = Alike(project)
        self._known, self._seen = known, dict[tuple[str, str], bool | None]()
        self._now = replaced_labels(project).now
        self._loss: Loss | None = None
        with suppress(HypacError):  # this server cannot compute it
            loss = loss_of(project, "", {}).computed_here
            self._loss = loss if loss is not None and loss.binary else None

    def look_up(self, answers: Iterable[tuple[int, Value | None]]) -> None:
        """Find these losses together; those of a slow loss are stored, or wanted from now on."""
        if self._loss is not None and not is_quick(self._loss):
            given = [(item, self._now(answer)) for item, answer in answers if answer is not None]
            each_loss(self._loss, [(as_text(self._known[item]), as_text(answer)) for item, answer in given])

    def wrong(self, item: int, answer: Value) -> bool | None:
        """None while the loss is still being computed."""
        label, answer = self._known[item], self._now(answer)
        pair = as_text(label), as_text(answer)
        if pair not in self._seen:
            self._seen[pair] = self._differ(label, answer)
        return self._seen[pair]

    def _differ(self, label: Value, answer: Value) -> bool | None:
        if self._loss is not None:
            try:
                return bool(losses_of(self._loss, [as_text(label)], [as_text(answer)])[0])
            except LossNotComputedError:
                return None
            except LossError:
                pass
        return not self._alike(label, answer)


def _scores(source: Source, candidates: Sequence[PromptCandidate]) -> dict[int, str]:
    """By the number of a candidate the name of the score that its answers have, "" where none can be told."""
    found = dict.fromkeys((one.number for one in candidates), "")
    with suppress(HypacError):  # its key cannot be read
        context = context_of(source)
        for one in candidates:
            with suppress(HypacError):  # a param cannot be used any more
                found[one.number] = open_backend(source.backend, params_of(one), context).default_score
    return found


def _same(alike: Alike, one: OneAnswer, other: OneAnswer) -> bool:
    if one.value is None or other.value is None:
        return one.value is other.value
    return alike.now(one.value, other.value)


def _in_words(answer: OneAnswer, names: Mapping[str, str]) -> str:
    return "" if answer.value is None else label_in_words(answer.value, names)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
