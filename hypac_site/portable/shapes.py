"""What stands in JSON columns, and in names of registries: what pages and jobs read there without asking.

`SHAPES` has every JSON column, which a test compares with the models. Where a value has to be right beyond
its shape, another check sees to it: that a sentence can be said `sentences`, what numbers refer to `ids`, and
what follows from other rows `verifying`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from annotation.errors import HypacError
from annotation.imports.limits import MAX_DEPTH
from hypac_site.portable.tables import Model, Row, name_of
from hypac_site.portable.values import Wrong
from routing.core.bounds import BOUNDS
from routing.core.costs import COSTS, read_prices
from routing.core.losses import imported_paths, make_loss
from routing.core.messages import CoreError
from routing.core.rules import RULES
from routing.core.scores import make_score
from routing.sources.backends import backend_class

Shape = Callable[[Any], None]
"""Raises Wrong, in words that go on after the name of the column."""
# Python compares and shows numbers of any length; pages and databases count with 64 bits.
LARGEST = 2**63
# A cell of an import may be nested so deeply, and stands within a row.
DEEPEST = MAX_DEPTH + 5


# --- Parts --------------------------------------------------------------------------------------------------


def text(value: Any) -> None:
    if not isinstance(value, str):
        raise Wrong("it has no text where one has to be")


def whole(value: Any) -> None:
    if type(value) is not int or not -LARGEST <= value < LARGEST:
        raise Wrong("it has no whole number where one has to be")


def number(value: Any) -> None:
    if type(value) not in (int, float) or not -1e300 < value < 1e300:
        raise Wrong("it has no number where one has to be")


def truth(value: Any) -> None:
    if type(value) is not bool:
        raise Wrong("it has neither true nor false where one has to be")


def decimal(value: Any) -> None:
    """As text: a price or a cost."""
    try:
        if not isinstance(value, str) or len(value) > 60 or abs(float(value)) > 1e15 or "n" in value.lower():
            raise ValueError
        float(value)
    except ValueError:
        raise Wrong("it has no decimal number as text where one has to be") from None


def plain(value: Any, depth: int = 0) -> None:
    """Any JSON that can be shown."""
    if depth > DEEPEST:
        raise Wrong("it is nested too deeply")
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            plain(inner, depth + 1)


def maybe(shape: Shape) -> Shape:
    return lambda value: None if value is None else shape(value)


def listed(shape: Shape) -> Shape:
    def check(value: Any) -> None:
        if not isinstance(value, list):
            raise Wrong("it has no list where one has to be")
        for inner in value:
            shape(inner)

    return check


def mapped(shape: Shape) -> Shape:
    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise Wrong("it has no object where one has to be")
        for inner in value.values():
            shape(inner)

    return check


def of(**shapes: Shape) -> Shape:
    """An object that has these names, and may have others that can be shown."""

    def check(value: Any) -> None:
        plain(value)
        mapped(lambda _inner: None)(value)
        for name, shape in shapes.items():
            if name not in value:
                raise Wrong(f"it has no {name}")
            shape(value[name])

    return check


def may_have(shape: Shape, **shapes: Shape) -> Shape:
    """The same of names that may be missing."""

    def check(value: Any) -> None:
        shape(value)
        for name, inner in shapes.items():
            if name in value:
                inner(value[name])

    return check


def pair(value: Any) -> None:
    listed(text)(value)
    if len(value) != 2:
        raise Wrong("it has no pair of texts where one has to be")


def either(*shapes: Shape) -> Shape:
    def check(value: Any) -> None:
        for shape in shapes[:-1]:
            try:
                return shape(value)
            except Wrong:
                continue
        return shapes[-1](value)

    return check


# --- Columns ------------------------------------------------------------------------------------------------

anything = mapped(plain)
label = either(text, listed(text))
example = of(fields=mapped(text), answer=text)
share = maybe(number)
tried = may_have(
    of(
        item=maybe(whole), name=text, text=text, value=text, reason=text, cost=decimal, cost_note=text,
        tokens_in=maybe(whole), tokens_out=maybe(whole), latency_ms=share, served_model=text,
        finish_reason=text,
    ),
    asked=listed(of(role=text, content=text)), score=number, score_reason=text, score_name=text,
    reasoning=text, prompt=whole, asked_as=text,
)  # fmt: skip
sent = may_have(
    of(label=maybe(label)),
    raw=anything, reason=text, reason_code=text, reason_quotes=text, tokens_in=maybe(whole),
    tokens_out=maybe(whole), finish_reason=text, seconds=maybe(either(decimal, number)),
    cost=maybe(decimal), served_model=text, served_revision=text,
)  # fmt: skip

SHAPES: dict[str, Shape] = {
    "annotation.auditevent.data": anything,
    "annotation.draft.value": label,
    "annotation.heldoutitem.answer": maybe(label),
    "annotation.item.data": mapped(text),
    "annotation.item.fields": listed(pair),
    "annotation.item.typed": maybe(anything),
    "annotation.job.error_params": anything,
    "annotation.job.params": anything,
    "annotation.job.result": anything,
    "annotation.job.stage_params": anything,
    "annotation.jobproblem.message_params": anything,
    "annotation.jobproblem.where_params": anything,
    "annotation.label.value": label,
    "annotation.practiceanswer.value": label,
    "annotation.project.columns": listed(text),
    "annotation.project.loss_params": anything,
    "annotation.replacedchoice.into": listed(text),
    "annotation.settlement.value": maybe(label),
    "annotation.shownsuggestion.value": label,
    "routing.certificate.figures": anything,
    "routing.certificate.messages": anything,
    "routing.certificate.model_positions": listed(whole),
    "routing.certificate.thresholds": listed(maybe(of(u=number, v=whole))),
    "routing.delivery.filters": mapped(text),
    "routing.delivery.two_people": maybe(
        may_have(
            of(items=whole, asked=whole, differ=whole, unknown=whole, estimate=share, low=share, high=share),
            used=whole,
        )
    ),
    "routing.draw.critical": maybe(anything),
    "routing.draw.randomness": maybe(of(kind=text, value=maybe(text))),
    "routing.finalaudit.invalid_reasons": listed(of(code=text, params=anything, words=text)),
    "routing.finalcertificate.messages": listed(of(code=text, params=anything)),
    "routing.finalsample.label": label,
    "routing.givenlosses.losses": listed(share),
    "routing.ledgerentry.document": anything,
    "routing.measuredsource.prices": mapped(decimal),
    "routing.mendversion.labels": mapped(text),
    "routing.modelprice.prices": mapped(decimal),
    "routing.prediction.raw": anything,
    "routing.prediction.value": maybe(label),
    "routing.promptcandidate.examples": listed(example),
    "routing.promptcandidate.params": anything,
    "routing.promptcandidate.prices": mapped(decimal),
    "routing.promptversion.examples": listed(example),
    "routing.roundnote.value": maybe(label),
    "routing.run.audit_found": maybe(
        of(place=whole, item=whole, audited=whole, differ=whole, logs=listed(number), highest=number)
    ),
    "routing.run.chains": plain,
    "routing.run.chosen": maybe(
        may_have(of(filters=mapped(text)), found=maybe(whole), sample=maybe(whole), last=maybe(whole))
    ),
    "routing.run.invalid_reasons": listed(of(code=text, params=anything, words=text)),
    "routing.run.loss_params": anything,
    "routing.run.score_params": anything,
    "routing.run.slices": plain,
    "routing.run.tally": maybe(of(sent=listed(whole), answers=listed(whole), saving=maybe(decimal))),
    "routing.runsource.prices": mapped(decimal),
    "routing.sentanswer.answer": sent,
    "routing.source.params": anything,
    "routing.source.prices": mapped(decimal),
    "routing.source.served": mapped(text),
    "routing.sourcerevision.fields": listed(text),
    "routing.sourcetry.reasons": listed(listed(pair)),
    "routing.sourcetry.rows": listed(tried),
}


def _cost(row: Row) -> None:
    cost = COSTS.get(row["cost_function"])
    if cost.name != "flat":  # its price is a column
        read_prices(cost, row["prices"])


def _backend(row: Row) -> None:
    """Whether its params are of the kinds that the backend declares; whether they can be used is another
    matter, which depends on where it is.
    """
    declared = {param.name: param for param in backend_class(row["backend"]).params}
    if unknown := sorted(row["params"].keys() - declared.keys()):
        raise Wrong(f"params: its backend takes no {unknown[0][:60]!r}")
    for name, param in declared.items():
        param.check_kind(row["params"].get(name))


def _loss(row: Row) -> None:
    """One that names Python code is looked at elsewhere (`checking`), and not made here."""
    if row["loss"] and not imported_paths(row["loss"], row["loss_params"]):
        make_loss(row["loss"], row["loss_params"], allow_import=False)


def _plan(row: Row) -> None:
    if row["by_people"]:
        return
    _loss(row)
    BOUNDS.get(row["bound"])
    RULES.get(row["rule"])
    make_score(row["score"], row["score_params"])


REGISTRIES: dict[str, tuple[Callable[[Row], None], ...]] = {
    "annotation.project": (_loss,),
    "routing.measuredsource": (_cost,),
    "routing.modelprice": (_cost,),
    "routing.promptcandidate": (_cost,),
    "routing.run": (_plan,),
    "routing.runsource": (_cost,),
    "routing.source": (_backend, _cost),
}


def check_shapes(model: Model, row: Row) -> None:
    """Raises Wrong where a value is none that its column has, or a name is in no registry."""
    name = name_of(model)
    for column, shape in _shapes_of(name).items():
        try:
            shape(row[column])
        except Wrong as wrong:
            raise Wrong(f"{column}: {wrong}") from None
    for check in REGISTRIES.get(name, ()):
        try:
            check(row)
        except (CoreError, HypacError) as error:
            raise Wrong(str(error).rstrip(".")) from None


@cache
def _shapes_of(name: str) -> Mapping[str, Shape]:
    return {
        column.rpartition(".")[2]: shape for column, shape in SHAPES.items() if column.startswith(f"{name}.")
    }
