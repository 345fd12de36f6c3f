"""What a plan can promise before any label exists."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from routing.core.bounds import Evidence
from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say, sentences
from routing.core.plan import Plan, validate
from routing.core.rules import every_score, split_fixed_sequence
from routing.core.targets import counted

ALL = Fraction(1)


@dataclass(frozen=True)
class Outlook:
    """What to expect of a plan.

    Attributes
    ----------
    smallest_n : int
        Least number of calibration labels with which anything can be certified.
    expected_human_labels : Decimal
        m p: calibration labels that people will be asked for, on average.
    expected_tested_labels : int
        Those of them that the tests are made on: all, unless the first part teaches the chain.
    allowed_errors_at_expected_n : int
        Most errors of the models that may show up among the latter; -1 where not even none would do.  For a
        loss that is no count: labels that cost the full B.
    allowed_mean_loss : float or None
        The same as a mean loss per tested label; None where none would do.
    exact : bool
        Whether the number of errors decides; else it is a forecast, as if they came evenly along the draw.
    certifiable : bool
        Whether the expected number of labels suffices.
    said : messages
        The same in plain words.
    """

    smallest_n: int
    expected_human_labels: Decimal
    expected_tested_labels: int
    allowed_errors_at_expected_n: int
    allowed_mean_loss: float | None
    exact: bool
    certifiable: bool
    said: tuple[Message, ...]

    @property
    def sentence(self) -> str:
        """In English."""
        return sentences(self.said)


def labels_at_least(plan: Plan, *, unanswered: Fraction) -> Decimal:
    """Items that people label whatever the thresholds, on average.

    Parameters
    ----------
    unanswered
        Share of the items for which no model has a usable answer.
    """
    asked = plan.expected_labels
    return asked + (plan.pool_size - asked) * unanswered.numerator / unanswered.denominator


def smallest_n(plan: Plan, *, chains: int | Fraction = 1) -> int:
    """Least n with which an observed loss of zero certifies, each of ``chains`` tested at alpha / chains.

    Where the first part of the labels teaches the chain, the rest of them has to be enough.
    """
    least = _smallest_rest(plan, 0, chains)
    if plan.rule != split_fixed_sequence.RULE.name or least > plan.pool_size:
        return least
    # More labels right in the first part leave more errors to the rest: fewer labels to test on are needed.
    high = _with_first_part(plan, least)
    low = _with_first_part(plan, _smallest_rest(plan, _first(plan, min(high, plan.pool_size)), chains)) - 1
    while high - low > 1:
        middle = (low + high) // 2
        first = _first(plan, middle)
        if _smallest_rest(plan, first, chains) <= middle - first:
            high = middle
        else:
            low = middle
    return high


def _first(plan: Plan, labels: int) -> int:
    """How many of so many labels teach the chain."""
    return split_fixed_sequence.first_part(labels, plan.split_share)


def _with_first_part(plan: Plan, rest: int) -> int:
    """Least number of labels of which ``rest`` are left to test on."""
    labels = floor((rest - 1) / (1 - Fraction(plan.split_share)))
    while labels - _first(plan, labels) < rest:
        labels += 1
    return labels


def _smallest_rest(plan: Plan, first: int, chains: int | Fraction) -> int:
    """Least number of labels to test on where ``first`` others, all right, have taught the chain."""
    limit, size = _limit(plan, first), plan.pool_size - first
    bound = plan.loss_function().bound
    if limit >= bound:
        return 1
    return plan.bound_rule().smallest_sample(
        epsilon=limit,
        alpha=float(plan.exact_alpha / chains),
        p=plan.exact_p if plan.rule != split_fixed_sequence.RULE.name else Fraction(1),
        pool_size=size,
        loss_bound=bound,
        p_min=None if plan.p_min is None else Fraction(plan.p_min),
        target=plan.target,
    )


def _limit(plan: Plan, first: int) -> Fraction:
    """Largest mean loss over the items that have taught nothing, if the models were right about the rest."""
    if not plan.target_rule().finite:
        return plan.risk_limit
    return plan.risk_limit * Fraction(plan.pool_size, plan.pool_size - first)


def outlook(plan: Plan, *, chains: int = 1) -> Outlook:
    """What ``plan`` can certify at the expected number of labels.

    Parameters
    ----------
    chains
        How many chains will be tested: two where the last model brings a score of its own, else one.

    Raises
    ------
    PlanError
        The plan cannot be carried out.
    """
    validate(plan)
    first, template = _expected(plan)
    tested = template.asked
    least = smallest_n(plan, chains=chains)
    loss = plan.loss_function()
    allowed = _allowed(plan, first, template, Fraction(1, chains))
    mean = None if allowed < 0 else allowed * loss.bound / max(tested, 1)
    # Chains of the rule every_score share alpha as their tests turn out.
    exact = counted(plan.bound_rule(), template) and plan.rule != every_score.RULE.name
    return Outlook(
        smallest_n=least,
        expected_human_labels=plan.expected_labels,
        expected_tested_labels=tested,
        allowed_errors_at_expected_n=allowed,
        allowed_mean_loss=mean,
        exact=exact,
        certifiable=allowed >= 0,
        said=_said(plan, first, tested, least, allowed, exact),
    )


def allowed_errors(plan: Plan, *, share: Fraction = ALL) -> tuple[int, int]:
    """On how many labels the tests are made, on average, and how many errors may show up among them, -1 where
    none, at a ``share`` of alpha: as in `Outlook`, without the rest of it.
    """
    first, template = _expected(plan)
    return template.asked, _allowed(plan, first, template, share)


def _allowed(plan: Plan, first: int, template: Evidence, share: Fraction) -> int:
    return plan.target_rule().allowed(
        bound=plan.bound_rule(),
        evidence=template,
        epsilon=plan.risk_limit,
        level=plan.exact_alpha * share,
        first=first,
    )


def _expected(plan: Plan) -> tuple[int, Evidence]:
    """How many of the expected labels teach the chain, and the sizes of the sample of the others."""
    expected_n = int(plan.expected_labels)
    splits = plan.rule == split_fixed_sequence.RULE.name
    first = _first(plan, expected_n) if splits else 0
    tested = expected_n - first
    loss = plan.loss_function()
    return first, Evidence(
        total=np.zeros(1),
        squares=np.zeros(1),
        asked=tested,
        drawn=tested if splits else plan.m,
        p=Fraction(1) if splits else plan.exact_p,
        pool_size=plan.pool_size - first,
        loss_bound=loss.bound,
        binary=loss.binary,
        p_min=None if plan.p_min is None else Fraction(plan.p_min),
    )


def _said(plan: Plan, first: int, tested: int, least: int, allowed: int, exact: bool) -> tuple[Message, ...]:
    loss = plan.loss_function()
    wanted = {"share": percent(plan.epsilon)} if loss.binary else {"epsilon": plain(plan.epsilon)}
    if plan.constant_p and plan.p == 1:
        who = say("outlook.all", drawn=plan.m)
    else:
        chance = plain(plan.p) if plan.constant_p else say("outlook.p_on_average", p=plain(plan.p))
        who = say("outlook.some", labels=first + tested, drawn=plan.m, p=chance)
    labels: dict[str, Any] = {"who": who}
    taught = ""
    if first:
        taught = "_taught"
        labels |= {"first": first, "tested": tested}
    if allowed < 0:
        mean = "" if loss.binary else "_mean"
        if least > plan.pool_size:
            return (Message(f"outlook.no_draw{mean}{taught}", labels | wanted),)
        return (Message(f"outlook.too_few{mean}{taught}", labels | wanted | {"least": least}),)
    if not loss.binary:
        most = say("outlook.allowed_mean", mean=f"{allowed * loss.bound / max(tested, 1):.3g}", **wanted)
    elif exact and not first:
        most = say("outlook.allowed", errors=allowed, **wanted)
    else:
        most = say("outlook.allowed_about", errors=allowed, **wanted)
    return Message(f"outlook.labels{taught}", labels), most


SAYS = {
    "outlook.labels": gettext_noop("%(who)s."),
    "outlook.labels_taught": gettext_noop(
        "%(who)s: the first %(first)s teach the order of the steps, %(tested)s test it."
    ),
    "outlook.too_few": gettext_noop(
        "%(who)s: too few to certify %(share)s even if the models differ from people on none; at least "
        "%(least)s labels are needed."
    ),
    "outlook.no_draw": gettext_noop(
        "%(who)s: too few to certify %(share)s even if the models differ from people on none; no draw of "
        "this pool would do."
    ),
    "outlook.too_few_taught": gettext_noop(
        "%(who)s: the first %(first)s teach the order of the steps, %(tested)s test it, which is too few to "
        "certify %(share)s even if the models differ from people on none; at least %(least)s labels are "
        "needed."
    ),
    "outlook.no_draw_taught": gettext_noop(
        "%(who)s: the first %(first)s teach the order of the steps, %(tested)s test it, which is too few to "
        "certify %(share)s even if the models differ from people on none; no draw of this pool would do."
    ),
    "outlook.too_few_mean": gettext_noop(
        "%(who)s: too few to certify a mean loss of %(epsilon)s even if none shows a loss; at least "
        "%(least)s labels are needed."
    ),
    "outlook.no_draw_mean": gettext_noop(
        "%(who)s: too few to certify a mean loss of %(epsilon)s even if none shows a loss; no draw of this "
        "pool would do."
    ),
    "outlook.too_few_mean_taught": gettext_noop(
        "%(who)s: the first %(first)s teach the order of the steps, %(tested)s test it, which is too few to "
        "certify a mean loss of %(epsilon)s even if none shows a loss; at least %(least)s labels are needed."
    ),
    "outlook.no_draw_mean_taught": gettext_noop(
        "%(who)s: the first %(first)s teach the order of the steps, %(tested)s test it, which is too few to "
        "certify a mean loss of %(epsilon)s even if none shows a loss; no draw of this pool would do."
    ),
    "outlook.some": gettext_noop("About %(labels)s of %(drawn)s drawn items go to people (p = %(p)s)"),
    "outlook.all": gettext_noop("All %(drawn)s drawn items go to people"),
    "outlook.p_on_average": gettext_noop("%(p)s on average"),
    "outlook.allowed": gettext_noop(
        "Thresholds with which the models differ from people on at most %(errors)s of these can be "
        "certified at %(share)s."
    ),
    "outlook.allowed_about": gettext_noop(
        "Thresholds with which the models differ from people on at most about %(errors)s of these can be "
        "certified at %(share)s."
    ),
    "outlook.allowed_mean": gettext_noop(
        "Thresholds with which the models show a mean loss of at most about %(mean)s among these can be "
        "certified at a mean loss of %(epsilon)s."
    ),
}
declare(SAYS)
