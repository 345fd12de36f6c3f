"""From a CSV or Parquet file to a `Table`, every cell checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing.core.arrays import Bools, Floats
from routing.core.experiment.columns import Columns, open_columns
from routing.core.experiment.table import People, Table, TableError
from routing.core.losses import Loss, LossError, losses_of, make_loss
from routing.core.losses.base import IN_ROW
from routing.core.scores.base import complement

MOST_MODELS = 99
HUMAN = "human1"
PRICE_OF_EXPERTS = 3
"""Labels by people that one by an expert costs where nothing is said."""
PER_MODEL = ("pred", "loss", "conf", "u", "cost")
RECORDED = "routing.core.experiment.table:RecordedLoss"


def read_table(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    models: Sequence[int] = (),
    costs: Sequence[float] = (),
    human_cost: float | None = None,
    expert_cost: float | None = None,
    loss: str = "zero_one",
    loss_params: Mapping[str, Any] | None = None,
    loss_bound: float = 1.0,
    blank: str = "wrong",
    p_column: str = "",
) -> Table:
    """The table in the file ``path``.

    Parameters
    ----------
    columns
        What a column is called in the file, by its name here: ``item_id``, ``y_true``, ``predK`` or
        ``lossK``, ``confK`` or ``uK``, ``costK``, ``cost_h``; ``human1`` with what an annotator says of each
        item; then ``expert`` or ``y_true`` is what an expert says, and ``cost_e`` her price.  Columns that
        are not known are ignored.
    models
        Numbers K of the models to use, cheapest first; empty: all that the file has, in order.
    costs, human_cost
        Cost of a label from each model, and from people; they take the place of ``costK`` and ``cost_h``.
        Without ``models``, as many models are used, from the first on, as there are costs.
    expert_cost
        Of a label by the expert, in place of ``cost_e``; by default three labels by people.
    loss, loss_params
        Name and parameters of the loss between ``y_true`` and ``predK``.
    loss_bound
        B of ``lossK``, where these are not 0 and 1 only.
    blank
        "wrong": a blank prediction is an answer with the full loss; "pass": the item goes to the next
        source.
    p_column
        Column with each item's probability of being asked about.

    Raises
    ------
    TableError
        The file or one of its cells cannot be used; the message names row and column.
    """
    if blank not in {"wrong", "pass"}:
        raise TableError(f"blank predictions can be 'wrong' or 'pass', not {blank!r}")
    names = {**(columns or {}), **({"p": p_column} if p_column else {})}
    per_model = [f"{kind}{k}" for k in range(1, MOST_MODELS + 1) for kind in PER_MODEL]
    known = ["item_id", "y_true", "expert", "human1", "cost_h", "cost_e", *(["p"] if p_column else [])]
    cells = open_columns(path, names=names, wanted=[*known, *per_model])
    _check_ids(cells)
    numbers = tuple(models) or tuple(
        k for k in range(1, MOST_MODELS + 1) if f"pred{k}" in cells or f"loss{k}" in cells
    )
    if len(set(numbers)) < len(numbers):
        raise TableError("--models: a model stands there twice")
    if costs and not models:
        numbers = numbers[: len(costs)]
    if not numbers:
        raise TableError(f"{path.name}: there is no column pred1 or loss1; name another with --columns")
    recorded = _recorded(cells, numbers)
    usable = np.ones((cells.size, len(numbers)), dtype=np.bool_)
    answers: NDArray[np.object_] | None = None
    if recorded:
        values, binary, bound = _recorded_losses(cells, numbers, loss_bound)
        name, params = ("zero_one", {}) if binary else (RECORDED, {"bound": bound})
    else:
        function = _make(loss, loss_params or {})
        answers = _answers(cells, numbers)
        values = _losses(cells, numbers, answers, function, HUMAN if HUMAN in cells else "y_true")
        name, params, binary, bound = loss, dict(loss_params or {}), function.binary, function.bound
        if blank == "pass":
            usable = ~_blank(answers)
    priced = _costs(cells, numbers, costs, human_cost)
    return Table(
        name=path.stem,
        numbers=numbers,
        loss=values,
        usable=usable,
        u=_scores(cells, numbers, answers),
        costs=priced,
        # A blank answer that counts as wrong differs from every other answer, other blanks included.
        answers=answers if answers is None or blank == "pass" else _named_blanks(answers, numbers),
        loss_name=name,
        loss_params=params,
        loss_bound=bound,
        binary=binary,
        p=_probabilities(cells) if p_column else None,
        people=_people(cells, numbers, answers, loss, loss_params or {}, priced[:, -1], expert_cost),
    )


def _people(
    cells: Columns,
    numbers: Sequence[int],
    answers: NDArray[np.object_] | None,
    loss: str,
    loss_params: Mapping[str, Any],
    human_costs: Floats,
    expert_cost: float | None,
) -> People | None:
    """What annotators say, where the table has it, against what the expert says."""
    if HUMAN not in cells:
        for name, given in (("'expert'", "expert" in cells), ("--expert-cost", expert_cost is not None)):
            if given:
                raise TableError(f"{cells.name}: {name} needs a column {HUMAN!r} with what people say")
        return None
    if answers is None:
        raise TableError(f"{cells.name}: {HUMAN!r} is compared with answers; give pred1 in place of loss1")
    right = _need(cells, "expert", "y_true")
    function = _make(loss, loss_params)
    said = np.array(cells.texts(HUMAN), dtype=object)[:, None]
    costs = PRICE_OF_EXPERTS * human_costs
    if expert_cost is not None:
        costs = np.full(cells.size, expert_cost)
    elif "cost_e" in cells:
        costs = cells.complete("cost_e")
    if not np.all(np.isfinite(costs)) or (costs <= 0).any():
        raise TableError("the cost of a label by the expert must be above 0")
    return People(
        loss=_losses(cells, (1,), said, function, right, what="human")[:, 0],
        models=_losses(cells, numbers, answers, function, right),
        expert_cost=costs,
    )


def _check_ids(cells: Columns) -> None:
    if "item_id" not in cells:
        return
    seen: dict[str, int] = {}
    for row, item in enumerate(cells.texts("item_id")):
        if item in seen:
            raise TableError(f"{cells.where(row, 'item_id')}: the id stands in row {seen[item] + 1} already")
        seen[item] = row


def _need(cells: Columns, *either: str) -> str:
    """Which of the columns the file has."""
    column = cells.first(*either)
    if column is not None:
        return column
    options = " or ".join(repr(column) for column in either)
    raise TableError(f"{cells.name}: there is no column {options}; name another with --columns")


def _recorded(cells: Columns, numbers: Sequence[int]) -> bool:
    kinds = {_need(cells, f"pred{k}", f"loss{k}").rstrip("0123456789") for k in numbers}
    if len(kinds) > 1:
        raise TableError(f"{cells.name}: some models have predictions and some losses; give one kind for all")
    return kinds == {"loss"}


def _recorded_losses(cells: Columns, numbers: Sequence[int], bound: float) -> tuple[Floats, bool, float]:
    if not (bound > 0 and isfinite(bound)):
        raise TableError(f"--loss-bound {bound:g}: the largest loss must be a number above 0")
    values = np.column_stack([cells.complete(f"loss{k}", most=bound) for k in numbers])
    binary = bound == 1 and bool(np.all((values == 0) | (values == 1)))
    return values, binary, bound


def _make(name: str, params: Mapping[str, Any]) -> Loss:
    try:
        return make_loss(name, params)
    except ValueError as error:
        raise TableError(str(error)) from None


def _answers(cells: Columns, numbers: Sequence[int]) -> NDArray[np.object_]:
    """Predictions (N, K), None where blank."""
    answers = np.empty((cells.size, len(numbers)), dtype=object)
    for place, k in enumerate(numbers):
        answers[:, place] = [text if text.strip() else None for text in cells.texts(f"pred{k}")]
    return answers


def _blank(answers: NDArray[np.object_]) -> Bools:
    missing = np.frompyfunc(lambda answer: answer is None, 1, 1)(answers)
    return np.asarray(missing, dtype=np.bool_)


def _named_blanks(answers: NDArray[np.object_], numbers: Sequence[int]) -> NDArray[np.object_]:
    named = answers.copy()
    for place, k in enumerate(numbers):
        named[_blank(answers[:, place]), place] = f"(no answer of model {k})"
    return named


def _losses(
    cells: Columns,
    numbers: Sequence[int],
    answers: NDArray[np.object_],
    function: Loss,
    right: str,
    what: str = "pred",
) -> Floats:
    """Losses (N, K) against the column ``right``; the full one for a blank prediction.  Each distinct pair is
    compared once.
    """
    truth = cells.texts(_need(cells, right))
    for row, label in enumerate(truth):
        if not label.strip():
            raise TableError(f"{cells.where(row, right)}: the cell is blank; every item needs its label")
    values = np.full(answers.shape, function.bound)
    for place, k in enumerate(numbers):
        rows: dict[tuple[str, str], list[int]] = {}
        for row, (label, answer) in enumerate(zip(truth, answers[:, place], strict=True)):
            if answer is not None:
                rows.setdefault((label, answer), []).append(row)
        try:
            found = losses_of(function, [pair[0] for pair in rows], [pair[1] for pair in rows])
        except LossError as error:
            raise _name_row(cells, f"{what}{k}", rows, function, error, right) from None
        for value, same in zip(found.tolist(), rows.values(), strict=True):
            values[same, place] = value
    return values


def _name_row(
    cells: Columns,
    column: str,
    rows: Mapping[tuple[str, str], Sequence[int]],
    function: Loss,
    error: LossError,
    right: str,
) -> TableError:
    """The error of the first row that cannot be compared on its own."""
    for (label, answer), same in rows.items():
        try:
            losses_of(function, [label], [answer])
        except LossError as reason:
            said = reason.said
            why = said.params["error"] if said.code == IN_ROW else said  # there is but one row
            return TableError(f"{cells.where(same[0], right)}, with {column}: {why}")
    return TableError(f"{cells.name}: {column}: {error}")


def _scores(cells: Columns, numbers: Sequence[int], answers: NDArray[np.object_] | None) -> Floats:
    """Own scores (N, K); a blank one beside a blank prediction is 1, no certainty at all."""
    scores = np.full((cells.size, len(numbers)), np.nan)
    for place, k in enumerate(numbers):
        if place == 0:
            _need(cells, f"conf{k}", f"u{k}")
        column = cells.first(f"conf{k}", f"u{k}")
        if column is None:
            continue
        values = cells.numbers(column, most=1.0)
        if column.startswith("conf"):
            values = np.fromiter(map(complement, values.tolist()), float, len(values))
        blank = np.isnan(values)
        excused: Bools = np.zeros_like(blank) if answers is None else _blank(answers[:, place])
        missing = np.flatnonzero(blank & ~excused)
        if len(missing):
            raise TableError(
                f"{cells.where(int(missing[0]), column)}: the score is blank beside an answer; give a number "
                "from 0 to 1"
            )
        scores[:, place] = np.where(blank, 1.0, values)
    return scores


def _costs(
    cells: Columns, numbers: Sequence[int], costs: Sequence[float], human_cost: float | None
) -> Floats:
    """Costs (N, K + 1), people last."""
    if costs and len(costs) != len(numbers):
        raise TableError(f"{len(costs)} costs for {len(numbers)} models; give one for each, cheapest first")
    result = np.empty((cells.size, len(numbers) + 1))
    for place, k in enumerate(numbers):
        if not costs and f"cost{k}" not in cells:
            raise TableError(f"{cells.name}: there is no column 'cost{k}'; give the costs with --costs")
        result[:, place] = costs[place] if costs else cells.complete(f"cost{k}")
    if human_cost is None and "cost_h" not in cells:
        raise TableError(f"{cells.name}: there is no column 'cost_h'; give the cost with --human-cost")
    result[:, -1] = cells.complete("cost_h") if human_cost is None else human_cost
    if not np.all(np.isfinite(result)) or (result < 0).any():
        raise TableError("a cost must be a number of at least 0")
    free = np.flatnonzero(result[:, -1] <= 0)
    if len(free):
        where = "--human-cost" if human_cost is not None else cells.where(int(free[0]), "cost_h")
        raise TableError(f"{where}: the cost of people must be above 0, else there is nothing to save")
    return result


def _probabilities(cells: Columns) -> Floats:
    values = cells.complete("p", most=1.0)
    zero = np.flatnonzero(values <= 0)
    if len(zero):
        raise TableError(f"{cells.where(int(zero[0]), 'p')}: a probability of asking must be above 0")
    return values
