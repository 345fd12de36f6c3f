"""The sources beside the reference `expert`: who delivers what, and the loss against the expert's label e.

============  ==========================  ================  =========================
source        delivers                    loss against e    cost
============  ==========================  ================  =========================
0 .. K - 1    f_k                         f_k != e          as ever
K, person     h                           h != e            c_h
K + 1,        h where h = f_best,         h = f_best != e   c_h + c_best, and c_e
checked       else e                                        where h != f_best
K + 2,        e                           0                 c_e
expert
============  ==========================  ================  =========================

f_best is the dearest model, h the label of the item's annotator by the roster.  A model without a usable
answer passes the item to the next one, the last one to the expert.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from routing.core.answer_losses import losses_of_answers
from routing.core.arrays import Bools, Floats, Ints, Keys
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationError, CalibrationRow
from routing.core.keys import pack
from routing.core.losses import Loss
from routing.core.messages import declare, gettext_noop, say
from routing.core.pilot_losses import disagreement
from routing.core.reference.plan import ExpertPlan

PERSON, CHECKED, EXPERT = range(3)
"""Places of the sources after the models."""
NAMES = ("person", "checked", "expert")

ASKED, RECHECK, SECOND_LOOK, ROUTED, NO_ANSWER, AUDIT = (
    "asked",
    "recheck",
    "second_look",
    "routed",
    "no_answer",
    "audit",
)
"""Why the expert saw an item."""

Labels = NDArray[np.object_]
"""Canonical labels, None where there is none."""


def source_name(source: int, models: int) -> str:
    """ "model 1" and so on, "person", "checked", "expert"."""
    return f"model {source + 1}" if source < models else NAMES[source - models]


def present(labels: Labels) -> Bools:
    """Where there is a label; any shape."""
    return np.array([label is not None for label in labels.flat], dtype=np.bool_).reshape(labels.shape)


def equal(first: Labels, second: Labels, loss: Loss) -> Bools:
    """Whether two columns of labels (n,) are there and the same; one that is missing equals nothing."""
    there = present(first) & present(second)
    return np.asarray(there & (disagreement(first, second, loss) == 0), dtype=np.bool_)


def unanimous(answers: Labels, annotator: Labels, loss: Loss) -> Bools:
    """Whether annotator (n,) and all models (n, K) are there and say the same, (n,): the items B."""
    alike = np.ones(len(annotator), dtype=np.bool_)
    for column in answers.T:
        alike &= equal(column, annotator, loss)
    return alike


def to_label(alike: Bools, rechecked: int) -> Bools:
    """Which of the n asked items, in draw order, the expert labels: those not alike, and the recheck set."""
    return ~alike | (np.arange(len(alike)) < rechecked)


def source_losses(
    *, models: Floats, usable: Bools, person: Floats, answered: Bools, looks: Bools, labelled: Bools
) -> tuple[Floats, Floats]:
    """Losses of every source on items that the expert was to label, with 1 and with 0 where one is unknown.

    Parameters
    ----------
    models, usable : (n, K)
        Loss of each model's own answer, and whether there is one.
    person, answered : (n,)
        Loss of the annotator's label, and whether there is one.  Nobody replaces an annotator who did not
        answer: `person` and `checked` then count 1 and 0.
    looks : (n,)
        Whether h != f_best, so that the expert labels what goes to `checked`.
    labelled : (n,)
        Whether the expert could label the item; if not, whoever else labels it counts 1 and 0.

    Returns
    -------
    Upper and lower losses, each (n, K + 3).
    """
    n, k = models.shape
    both = []
    for unknown in (1.0, 0.0):
        losses = np.zeros((n, k + 3))
        for model in range(k - 1, -1, -1):
            own = np.where(labelled, models[:, model], unknown)
            losses[:, model] = np.where(usable[:, model], own, losses[:, model + 1] if model < k - 1 else 0.0)
        human = np.where(answered, np.where(labelled, person, unknown), unknown)
        losses[:, k + PERSON] = human
        losses[:, k + CHECKED] = np.where(answered & looks, 0.0, human)
        both.append(losses)
    return both[0], both[1]


@dataclass(frozen=True)
class AskedLabels:
    """What models, annotators and the expert say about the n asked items, in draw order.

    Attributes
    ----------
    keys : (n,)
        (U_1, V_1) of each.
    upper, lower : (n, K + 3)
        As from `source_losses`; 0 where the expert was not to label.
    alike : (n,)
        Whether annotator and all models say the same.
    rechecked : int
        n_B: of the items that are alike the expert labels those among the first n_B.
    looks : (n,)
        Whether h != f_best.
    answered, labelled : (n,)
        Whether the annotator answered, and the expert labelled.
    order : (n,)
        Place of each in the draw, 0 .. m - 1, rising.
    """

    keys: Keys
    upper: Floats
    lower: Floats
    alike: Bools
    rechecked: int
    looks: Bools
    answered: Bools
    labelled: Bools
    order: Ints

    @classmethod
    def of(
        cls,
        keys: Keys,
        *,
        models: Floats,
        usable: Bools,
        person: Floats,
        answered: Bools,
        looks: Bools,
        labelled: Bools,
        alike: Bools,
        rechecked: int,
        order: Ints | None = None,
    ) -> AskedLabels:
        """From losses against e, as in `source_losses`; those of items that the expert was not to label are
        not read.
        """
        upper, lower = source_losses(
            models=models, usable=usable, person=person, answered=answered, looks=looks, labelled=labelled
        )
        seen = to_label(alike, rechecked)[:, None]
        places = np.arange(len(keys)) if order is None else order
        upper, lower = np.where(seen, upper, 0.0), np.where(seen, lower, 0.0)
        return cls(keys, upper, lower, alike, rechecked, looks, answered, labelled, places)

    @classmethod
    def of_calibration(cls, run: ExpertPlan, calibration: Calibration) -> AskedLabels:
        """From the rows of a draw, whose ``label`` is the expert's and ``person`` the annotator's, None where
        there is none.

        Raises
        ------
        CalibrationError
            An asked row names no annotator, or a loss cannot be computed or lies outside its range.
        """
        rows = [row for row in calibration.rows if row.asked]
        for row in rows:
            if not row.annotator:
                raise CalibrationError(
                    say("row.wrong", row=row.order, item=repr(row.item_id), why=say("row.nobodys"))
                )
        loss, models = run.plan.loss_function(), run.plan.sources - 1
        answers, human = answers_of(rows, models), people_of(rows)
        losses = losses_of_answers(rows, loss, models)
        people = [replace(row, answers=(label,)) for row, label in zip(rows, human, strict=True)]
        return cls.of(
            pack([row.u for row in rows], [row.v for row in rows]),
            models=losses,
            usable=present(answers),
            person=losses_of_answers(people, loss, 1)[:, 0],
            answered=present(human),
            looks=~equal(human, answers[:, -1], loss),
            labelled=np.array([row.label is not None for row in rows], dtype=np.bool_),
            alike=unanimous(answers, human, loss),
            rechecked=run.rechecked(len(rows)),
            order=np.array([row.order for row in rows], dtype=np.int64),
        )

    @property
    def asked(self) -> int:
        """n."""
        return len(self.keys)

    @property
    def seen(self) -> Bools:
        """The items that the expert was to label, (n,)."""
        return to_label(self.alike, self.rechecked)

    def weighted(self, weight: int) -> Floats:
        """Upper losses (n, K + 3), those on items that are alike ``weight`` times: they add up to Q+."""
        return np.where(self.alike[:, None], weight * self.upper, self.upper)

    def of_models_only(self, models: int) -> AskedLabels:
        """The same with no loss for people's labels: what the models' part of a file is judged by."""
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[:, models:] = lower[:, models:] = 0.0
        return replace(self, upper=upper, lower=lower)


def answers_of(rows: Sequence[CalibrationRow], models: int) -> Labels:
    """What the models answered (n, K) about asked rows."""
    return label_table([row.answers for row in rows], models)


def people_of(rows: Sequence[CalibrationRow]) -> Labels:
    """What the annotators said (n,) of asked rows."""
    return label_table([(row.person,) for row in rows], 1)[:, 0]


def label_table(rows: Sequence[Sequence[str | None]], width: int) -> Labels:
    """Rows of labels as an array of objects (n, width)."""
    table = np.empty((len(rows), width), dtype=object)
    for index, row in enumerate(rows):
        table[index, :] = list(row)
    return table


@dataclass(frozen=True)
class Delivered:
    """One delivered item.

    Attributes
    ----------
    label : str or None
        None for a blank.
    source : int
        Where the policy sends the item.
    by : int
        Whose label it is: a model's place, K + PERSON or K + EXPERT.
    why : str
        Why the expert saw the item, '' where she did not.
    """

    label: str | None
    source: int
    by: int
    why: str


def deliver(
    source: int,
    *,
    answers: Sequence[str | None],
    annotator: str | None,
    expert: str | None,
    loss: Loss,
    seen: str = "",
) -> Delivered:
    """What is delivered of an item that the policy sends to ``source``.

    Parameters
    ----------
    expert
        Her label, None where she gave none: then an asked item that she saw and that the policy sends to
        `checked` stays blank, as she is a part of that source.
    seen
        Why she saw the item whatever the policy says, `ASKED`, `RECHECK` or `AUDIT`; '' where she did not:
        an item that was not asked, or one that was and was neither unlike nor rechecked.
    """
    models = len(answers)
    by, why = _by(source, answers, annotator, loss)
    if (seen and expert is not None) or (seen in (ASKED, RECHECK) and source == models + CHECKED):
        return Delivered(expert, source, models + EXPERT, seen)
    label = expert if by == models + EXPERT else annotator if by == models + PERSON else answers[by]
    return Delivered(label, source, by, seen or why)


def _by(source: int, answers: Sequence[str | None], annotator: str | None, loss: Loss) -> tuple[int, str]:
    """Whose label is delivered, and why it is the expert's."""
    models = len(answers)
    for model in range(source, models):
        if answers[model] is not None:
            return model, ""
    if source >= models + EXPERT or source < models:
        return models + EXPERT, ROUTED
    if annotator is None:
        return models + EXPERT, NO_ANSWER
    if source == models + CHECKED:
        pair = label_table([(annotator, answers[-1])], 2)
        if not equal(pair[:, 0], pair[:, 1], loss)[0]:
            return models + EXPERT, SECOND_LOOK
    return models + PERSON, ""


SAYS = {
    "row.nobodys": gettext_noop("it was asked about, and does not say whose item it is"),
}
declare(SAYS)
