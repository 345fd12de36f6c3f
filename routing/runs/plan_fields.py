"""What a manager chooses for a run, beside what a project allows: losses, and probabilities of asking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from typing import Any

from django.db.models import Count, Min, QuerySet
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Item, Project
from routing.common.sql import DataCell
from routing.core.bounds import BOUNDS
from routing.core.choices import DEFAULT_TARGET
from routing.core.rules import RULES, split_fixed_sequence
from routing.models import Run

PLACES = 8
MOST_NESTED = 20
LARGEST = 2**53
LOOKED_AT = 50
DEFAULT_SHARE = Decimal("0.3")
LEARNS = split_fixed_sequence.RULE.name


@dataclass(frozen=True, kw_only=True)
class PlanFields:
    """A plan as a manager writes it down.

    Attributes
    ----------
    p, p_column
        The probability that people are asked about a drawn item, 1 where nothing is said, or the imported
        column that holds each item's own: at most one of the two.
    rule, bound, loss, score
        "" for the default: of the models' scores, of target and loss, of the project's task, of the first
        source.
    loss_params, score_params
        Plain JSON.
    split_share
        For the rule `split_fixed_sequence` only: the part of the asked items that it learns its chain from;
        None for the default.
    pilot_size
        None for the items that were measured, or else the default.
    leave_out
        Names of models that the run is to do without.
    reference
        Whose label is right: a name of `Run.Reference`.
    roster
        Username -> share of the work, None for equal shares. Empty: everybody who may label, or for the
        reference `person` no roster.
    expert, expert_cost, recheck_share, audit_share, accepted_error
        For the reference `expert` only: username, or as of `roster` of several who share the work; what a
        label costs, r, the share of people's labels after the routing that the expert labels too, and eta.
        None for the defaults.
    final_sample, final_models_error, final_models_alpha, final_people_alpha
        The same for the final audit: how many labels are drawn for it, None for no final audit; the share of
        all items that models may get wrong in it, and the levels of its two tests, None for the defaults.
    later_audit_share
        For the target `population` only: of the items that come later and are taken in, the share that people
        label, too; None for the default, 0 for no audit.
    draw_from
        Where the number comes from that the calibration set is drawn from: a name of `Run.DrawFrom`.
    suggestions
        For the reference `person` only: whoever labels a routed item is shown what a model answered.
    """

    epsilon: Decimal
    alpha: Decimal
    m: int
    p: Decimal | None = None
    p_column: str = ""
    target: str = DEFAULT_TARGET
    bound: str = ""
    rule: str = ""
    split_share: Decimal | None = None
    loss: str = ""
    loss_params: Mapping[str, Any] = field(default_factory=dict)
    score: str = ""
    score_params: Mapping[str, Any] = field(default_factory=dict)
    pilot_size: int | None = None
    leave_out: Sequence[str] = ()
    reference: str = Run.Reference.PERSON
    roster: Mapping[str, Fraction | None] = field(default_factory=dict)
    expert: str | Mapping[str, Fraction | None] = ""
    expert_cost: Decimal | None = None
    recheck_share: Decimal | None = None
    audit_share: Decimal | None = None
    accepted_error: Decimal | None = None
    final_sample: int | None = None
    final_models_error: Decimal | None = None
    final_models_alpha: Decimal | None = None
    final_people_alpha: Decimal | None = None
    later_audit_share: Decimal | None = None
    draw_from: str = Run.DrawFrom.SYSTEM
    suggestions: bool = False

    def __post_init__(self) -> None:
        """Raise InputError where a part could not be stored with the run, or written into its certificate."""
        if self.draw_from not in Run.DrawFrom.values:
            raise InputError(
                _("“%(value)s” is none of %(known)s.")
                % {"value": self.draw_from, "known": ", ".join(Run.DrawFrom.values)},
                where="draw_from",
            )
        for name in ("p_column", "loss_params", "score_params"):
            if not _storable(getattr(self, name), MOST_NESTED):
                raise InputError(
                    _(
                        "This cannot be stored: it is nested more than %(most_nested)s deep, a whole "
                        "number in it is larger than %(largest)s, or a text holds NUL or half of a "
                        "surrogate pair."
                    )
                    % {"most_nested": MOST_NESTED, "largest": LARGEST},
                    where=name,
                )

    @property
    def experts(self) -> Mapping[str, Fraction | None]:
        """Username -> share of the experts' work, None for equal shares."""
        if isinstance(self.expert, str):
            return {self.expert: None} if self.expert else {}
        return self.expert


@dataclass(frozen=True)
class SamplingProbabilities:
    """The sampling probabilities p_i: with which people are asked about a drawn item of the pool.

    `p` is the mean, rounded to 8 places; `p_min` is None, and `column` empty, where all are asked with one
    probability.
    """

    p: Decimal
    p_min: Decimal | None
    column: str


def share_of(fields: PlanFields) -> Decimal:
    """The part of the labels that teaches the chain, the default where none is given.

    Raises InputError, whose `where` is "split_share", also where the rule would not read it.
    """
    if fields.split_share is None:
        return DEFAULT_SHARE
    refuse_too_fine("split_share", fields.split_share)
    if not 0 < fields.split_share < 1:
        raise InputError(_("This part must lie between 0 and 1, both excluded."), where="split_share")
    if fields.rule != LEARNS:
        raise InputError(
            _(
                "Only the rule %(learns)r learns its chain from a part of the labels. Leave this "
                "empty, or choose that rule."
            )
            % {"learns": LEARNS},
            where="split_share",
        )
    return fields.split_share


def sampling_probabilities(fields: PlanFields, items: QuerySet[Item]) -> SamplingProbabilities:
    """The probabilities with which people would be asked about `items`, the pool.

    Raises InputError, whose `where` is "p" or "p_column".
    """
    if not fields.p_column:
        p = Decimal(1) if fields.p is None else fields.p
        refuse_too_fine("p", p)
        return SamplingProbabilities(Decimal(p), None, "")
    if fields.p is not None:
        raise InputError(
            _("Leave the probability for all items empty where a column holds each item's own."), where="p"
        )
    text = DataCell("data", fields.p_column)
    rows = list(items.order_by().values_list(text).annotate(count=Count("pk"), first=Min("position")))
    if all(value is None for value, _, _ in rows):
        raise InputError(
            _("There is no column %(p_column)r: none of the items has one of that name.")
            % {"p_column": fields.p_column[:40]},
            where="p_column",
        )
    counts: dict[str, int] = {}
    by_text: dict[str, Decimal] = {}
    for value, count, first in rows:
        probability = _probability(value)
        if probability is None:
            name = items.get(position=first).external_id
            # The cell itself is not told: it may hold what a model said of the item.
            raise InputError(
                _(
                    "The column %(p_column)r holds no probability for item %(name)r: each item needs "
                    "a number above 0 and at most 1 with at most %(places)s places after the point."
                )
                % {"p_column": fields.p_column, "name": name, "places": PLACES},
                where="p_column",
            )
        counts[value], by_text[value] = count, probability
    total = sum(counts.values())
    if len(set(by_text.values())) < 2:
        # One probability for all is no varying one, and leaves every bound open.
        return SamplingProbabilities(next(iter(by_text.values()), Decimal(1)), None, "")
    mean = sum((by_text[value] * count for value, count in counts.items()), Decimal(0)) / total
    smallest = min(by_text.values())
    return SamplingProbabilities(max(round(mean, PLACES), smallest), smallest, fields.p_column)


def columns_of_probabilities(project: Project) -> list[str]:
    """The imported columns that may hold each item's own probability: more than half of the first items have
    a number above 0 and at most 1 there, and no source has its label there.
    """
    labels = {source.params.get("label_column") for source in project.sources.all()}
    cells = list(project.items.order_by("position").values_list("data", flat=True)[:LOOKED_AT])
    return [
        name
        for name in project.columns
        if name not in labels
        and 2 * sum(_probability(row.get(name)) is not None for row in cells) > len(cells)
    ]


def probabilities_by_position(pool: QuerySet[Any], column: str) -> list[Decimal | None]:
    """The probability in `column` of every item of a stored pool, by position; None where there is none."""
    texts = pool.order_by("position").values_list(DataCell("item__data", column), flat=True)
    read = cache(_probability)
    return [read(text) for text in texts.iterator(chunk_size=10_000)]


def refuse_unknown_names(fields: PlanFields) -> None:
    """Raise InputError where there is no such bound or rule, naming those that can certify.

    One that is there and cannot certify is refused by the core, which says why.
    """
    bounds = [entry.name for entry in BOUNDS if entry.certifies]
    rules = [entry.name for entry in RULES if entry.holds_level]
    for name, value, known, offered in (
        ("bound", fields.bound, BOUNDS, bounds),
        ("rule", fields.rule, RULES, rules),
    ):
        if value and value not in known:
            raise InputError(
                _("There is no %(name)s %(value)r; choose one of %(names)s.")
                % {"name": name, "value": value[:40], "names": ", ".join(offered)},
                where=name,
            )


def refuse_too_fine(name: str, value: Decimal) -> None:
    """Raise InputError where `value` is no number, or has more places than the database keeps."""
    number = _number(value)
    if number is None:
        raise InputError(_("Write a number such as 0.05."), where=name)
    if _places(number) > PLACES:
        raise InputError(
            _("Write at most %(places)s places after the point.") % {"places": PLACES}, where=name
        )


def _storable(value: object, depth: int) -> bool:
    """Whether a value of JSON has no more levels than `depth`, only texts that can be written as UTF-8,
    without NUL, and only whole numbers that a float holds exactly.
    """
    if isinstance(value, int):
        return abs(value) <= LARGEST
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return depth > 0 and all(_storable(entry, depth - 1) for entry in value)
    return True


def _probability(value: object) -> Decimal | None:
    number = _number(value)
    return number if number is not None and 0 < number <= 1 and _places(number) <= PLACES else None


def _number(value: object) -> Decimal | None:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _places(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0
