"""What a plan can promise before any label exists."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from routing.core.bounds import Evidence
from routing.core.exact import percent, plain
from routing.core.plan import Plan, validate


@dataclass(frozen=True)
class Outlook:
    """What to expect of a plan.

    Attributes
    ----------
    smallest_n : int
        Least number of calibration labels with which anything can be certified.
    expected_human_labels : Decimal
        m p: calibration labels that people will be asked for, on average.
    allowed_errors_at_expected_n : int
        Most errors of the models that may show up among them; -1 where not even none would do.
    certifiable : bool
        Whether the expected number of labels suffices.
    sentence : str
        The same in plain words.
    """

    smallest_n: int
    expected_human_labels: Decimal
    allowed_errors_at_expected_n: int
    certifiable: bool
    sentence: str


def smallest_n(plan: Plan, *, chains: int = 1) -> int:
    """Least n with which an observed loss of zero certifies, each of ``chains`` tested at alpha / chains."""
    return plan.bound_rule().smallest_sample(
        epsilon=plan.exact_epsilon,
        alpha=float(plan.exact_alpha / chains),
        p=plan.exact_p,
        pool_size=plan.pool_size,
        loss_bound=plan.loss_function().bound,
    )


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
    expected_n = int(plan.expected_labels)
    least = smallest_n(plan, chains=chains)
    template = Evidence.of_counts(
        np.zeros(1), asked=expected_n, drawn=plan.m, p=plan.exact_p, pool_size=plan.pool_size
    )
    allowed = plan.target_rule().allowed(
        bound=plan.bound_rule(),
        evidence=template,
        epsilon=plan.exact_epsilon,
        level=plan.exact_alpha / chains,
    )
    certifiable = allowed >= 0
    labels = f"About {plain(Decimal(expected_n))} of {plan.m} drawn items go to people (p = {plain(plan.p)})"
    if certifiable:
        sentence = (
            f"{labels}. Thresholds with which the models make at most {allowed} "
            f"{'error' if allowed == 1 else 'errors'} among these can be certified at "
            f"{percent(plan.epsilon)}."
        )
    else:
        more = (
            f"at least {least} labels are needed"
            if least <= plan.pool_size
            else "no draw of this pool would do"
        )
        sentence = f"{labels}: too few to certify {percent(plan.epsilon)} even if none is wrong; {more}."
    return Outlook(least, plan.expected_labels, allowed, certifiable, sentence)
