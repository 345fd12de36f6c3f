"""Losses that the team's own program measures: labels with models' answers given out to it, row by row, and
what it measured taken in.

Nothing is given out before the calibration labels are locked (`routing.runs.ask_losses`), and no score ever:
a loss is of one label and one answer.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common import audit
from annotation.models import Item, User
from routing.core.losses import MeasuredElsewhere, make_loss
from routing.elsewhere.answers import Taken
from routing.elsewhere.work import PAGE, seen_of
from routing.models import GivenLosses, Run
from routing.runs.given_losses import ToMeasure, given_losses
from routing.runs.losses_to_measure import HANDED_OUT, losses_so_far, to_measure, wanted_items

LONGEST = 100
"""Characters of a loss that is written as text, as tables have it."""

DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A number as programs write it; Python's own reading takes other digits and underscores, too."""


@dataclass(frozen=True)
class LossesAsked:
    """How far the measuring is. `models`: the name of the source behind each pair of columns `answerK` and
    `lossK`, K from 1; `missing`: names of the first items whose losses are not here.
    """

    measure: str
    binary: bool
    models: Sequence[str]
    items: int
    measured: int
    missing: Sequence[str]
    conditions: Sequence[str]


def losses_asked(run: Run) -> LossesAsked:
    """Raises ConflictError where nothing is to be measured now."""
    so_far, loss = losses_so_far(run), _loss_of(run)
    return LossesAsked(
        measure=loss.measure,
        binary=loss.binary,
        models=list(run.run_sources.order_by("position").values_list("source__name", flat=True)),
        items=so_far.wanted,
        measured=so_far.done,
        missing=so_far.missing,
        conditions=[
            _("Measure with the program and the version that the plan names, the same way for every item."),
            _(
                "The loss of an answer comes from that answer and the label of its item alone: not from how "
                "sure a model was, which model it was, or how other items came out."
            ),
            _("What cannot be measured, a label or an answer that cannot be read, counts 1."),
            _(
                "Nobody who labels in this project may see these answers before the run is analysed: they "
                "are for the program that measures."
            ),
            _(
                "The certificate says that the losses were measured elsewhere; whoever checks it can "
                "recompute it from them, and takes them on trust."
            ),
        ],
    )


def hand_out_losses(*, run: Run, user: User) -> Callable[[], Iterator[Sequence[dict[str, Any]]]]:
    """Pages of rows: what people see of an item, its label, each model's answer, and `measured`, which names
    both. That they were given out stands in the audit trail.

    Raises ConflictError where nothing is to be measured now.
    """
    wanted = wanted_items(run)
    _record(run, user, HANDED_OUT, {"items": len(wanted)})

    def pages() -> Iterator[Sequence[dict[str, Any]]]:
        for start in range(0, len(wanted), PAGE):
            part = wanted[start : start + PAGE]
            found = Item.objects.select_related("image").in_bulk(part)
            yield [_row(one, found[one.item]) for one in to_measure(run, part) if one.item in found]

    return pages


def _row(one: ToMeasure, item: Item) -> dict[str, Any]:
    answers = {f"answer{place}": answer for place, answer in enumerate(one.answers, start=1)}
    own = {"item": one.item, "name": one.name, **seen_of(item)}
    return {**own, "label": one.label, **answers, "measured": one.measured}


def take_losses(*, run: Run, actor: User, rows: Iterable[Mapping[str, Any]]) -> Taken:
    """Store what can be; what cannot is told with its row and why. A loss that comes again with another value
    replaces the one before it, until the analysis.

    Raises ConflictError where nothing is to be measured now.
    """
    stored, known, refused, rows = list[GivenLosses](), 0, [], list(rows)
    named = {item for row in rows if 0 < (item := _item_of(row.get("item"))) < 2**63}
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # the analysis waits, or has begun
        wanted = {one.item: one for one in to_measure(run, named)}
        there, loss = given_losses(run, named), _loss_of(run)
        for number, row in enumerate(rows, 1):
            found, reason = _read(row, wanted, loss)
            if found is None:
                refused.append({"row": number, **_about(row, wanted), "reason": reason, **NO_CODE})
                continue
            one, losses = found
            before = there.get(one.item)
            if before is not None and (before.measured, before.losses) == (one.measured, losses):
                known += 1
                continue
            there[one.item] = GivenLosses(
                run=run,
                item_id=one.item,
                version=1 if before is None else before.version + 1,
                losses=losses,
                measured=one.measured,
                given_by=actor,
            )
            stored.append(there[one.item])
        GivenLosses.objects.bulk_create(stored)
        counts = {"stored": len(stored), "known": known, "refused": len(refused)}
        _record(run, actor, "run.losses_given", counts)
    return Taken(len(stored), known, refused)


def _about(row: Mapping[str, Any], wanted: Mapping[int, ToMeasure]) -> dict[str, Any]:
    """Which item a row is about, as far as it says so."""
    item = _item_of(row.get("item"))
    one = wanted.get(item)
    return {"item": item or None, "name": "" if one is None else one.name, "annotator": ""}


NO_CODE = {"code": "", "again": False}
Read = tuple[tuple[ToMeasure, list[float | None]] | None, str]


def _read(row: Mapping[str, Any], wanted: Mapping[int, ToMeasure], loss: MeasuredElsewhere) -> Read:
    """What a row says of which item and "", or None and why it cannot be used, in a sentence."""
    one = wanted.get(_item_of(row.get("item")))
    if one is None:
        return None, _("It names no item whose losses this run asks for.")
    if row.get("measured") != one.measured:
        return None, _(
            "It is not said to be of the label and the answers that this item has: send “measured” back as "
            "losses.ndjson gives it."
        )
    columns = {f"loss{place}" for place in range(1, len(one.answers) + 1)}
    if more := sorted(name for name in row if _is_loss(name) and name not in columns):
        return None, _("The run has no model of %(column)s.") % {"column": more[0]}
    losses: list[float | None] = []
    for place, answer in enumerate(one.answers, start=1):
        column, given = f"loss{place}", row.get(f"loss{place}")
        if answer is None:
            if given not in (None, ""):
                return None, _("The model of %(column)s has no usable answer here: leave it out.") % {
                    "column": column
                }
            losses.append(None)
            continue
        value = _number(given)
        if value is None or not loss.allows(value):
            return None, _unusable(column, given, binary=loss.binary)
        losses.append(value)
    return (one, losses), ""


def _unusable(column: str, given: Any, *, binary: bool) -> str:
    if given in (None, ""):
        return _("%(column)s is missing.") % {"column": column}
    words = (
        _("%(column)s must be 0 or 1, as the plan says, not %(given)s.")
        if binary
        else _("%(column)s must be a number from 0 to 1, not %(given)s.")
    )
    return words % {"column": column, "given": repr(given)[:LONGEST]}


def _is_loss(name: Any) -> bool:
    text = str(name)
    return text.startswith("loss") and text[4:].isdecimal()


def _item_of(given: Any) -> int:
    """0, which no item has, for what is no number of one; as text, from a table, it is one, too."""
    if isinstance(given, bool):
        return 0
    if isinstance(given, int):
        return given
    text = given if isinstance(given, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _number(given: Any) -> float | None:
    if isinstance(given, str) and len(given) <= LONGEST and DECIMAL.fullmatch(given.strip()):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    value = float(given) if abs(given) < 2 else math.inf  # of a whole number of any length
    return value + 0.0  # -0.0 is 0


def _loss_of(run: Run) -> MeasuredElsewhere:
    loss = make_loss(run.loss, run.loss_params)
    if not isinstance(loss, MeasuredElsewhere):
        raise TypeError("its losses are computed here")
    return loss


def _record(run: Run, user: User, action: str, data: Mapping[str, int]) -> None:
    audit.record(project=run.project, actor=user, action=action, target=f"run:{run.number}", data=dict(data))
