"""Which answers to one item are the same. Mostly equal ones are; where no two people give quite the same
value, as with boxes and masks, those are between which the loss of their run is 0, or else the project's.
"""

import json
from collections import Counter
from collections.abc import Hashable, Sequence

from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Value
from annotation.models import Project
from annotation.ports import routing_port
from annotation.task_types import TASK_TYPES


class Alike:
    """Compares answers of a project, those to one batch of a run by its loss: one object for many of them."""

    def __init__(self, project: Project, *, batch: int | None = None) -> None:
        self._kind, self._now = TASK_TYPES[project.task_type], replaced_labels(project).now
        self._by_loss = (
            routing_port().same_answers(project=project, batch=batch) if self._kind.compared_by_loss else None
        )

    def __call__(self, first: Value, second: Value) -> bool:
        """Of two answers as they are now, after labels that were merged."""
        same = self._kind.comparable(first) == self._kind.comparable(second)
        return same or self.by_loss(first, second)

    def now(self, first: Value, second: Value) -> bool:
        """Of two as they were given."""
        return self(self._now(first), self._now(second))

    def by_loss(self, first: Value, second: Value) -> bool:
        """The same for answers that are not equal; False for types of which only equal ones are the same."""
        return self._by_loss is not None and self._by_loss(str(first), str(second))

    def given_by_most(self, values: Sequence[Value]) -> Value | None:
        """What more than half of the answers to one item are, or are the same as; None where nothing is.

        Of answers that are the same without being equal it is the one that most of them are the same as, of
        several such the first. That A is the same as B and B as C does not say that A is the same as C.
        """
        counts = self._counts(values)
        most = max(counts, default=0)
        return values[counts.index(most)] if 2 * most > len(values) else None

    def comparable(self, values: Sequence[Value]) -> list[Hashable]:
        """What of the answers to one item counts when they are compared, in whatever order they come: where
        they can be the same without being equal, the one that most of them are the same as stands for these.
        """
        answers = [self._now(value) for value in values]
        found: list[Hashable] = [self._kind.comparable(answer) for answer in answers]
        if self._by_loss is None:
            return found
        alike = self._pairs(answers)
        left = sorted(range(len(values)), key=lambda place: str(found[place]))
        while left:
            counts = [sum(alike[place][other] for other in left) for place in left]
            chosen = left[counts.index(max(counts))]
            same = [place for place in left if alike[chosen][place]]
            for place in same:
                found[place] = found[chosen]
            left = [place for place in left if place not in same]
        return found

    def _counts(self, values: Sequence[Value]) -> list[int]:
        """Of each answer how many are the same as it, itself among them."""
        if self._by_loss is None:
            texts = [json.dumps(value) for value in values]
            number = Counter(texts)
            return [number[text] for text in texts]
        return [sum(row) for row in self._pairs(values)]

    def _pairs(self, values: Sequence[Value]) -> list[list[bool]]:
        """Which are the same as which, each of two compared once."""
        alike = [[True] * len(values) for _value in values]
        for place, one in enumerate(values):
            for other in range(place):
                # In an order that does not depend on who answered first.
                pair = sorted((values[other], one), key=str)
                alike[place][other] = alike[other][place] = self(*pair)
        return alike
