"""From frozen chains and a labelled calibration set to a certified policy on every model's own score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from routing.core.answer_losses import losses_of_answers
from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.calibration import Calibration
from routing.core.certify import Outcome, outcome_messages, required_of, why_nothing_of
from routing.core.every_score.build import ScoreChains
from routing.core.every_score.chain import OWN
from routing.core.every_score.items import ScoredItems
from routing.core.every_score.kept import kept_of
from routing.core.every_score.losses import AskedItems
from routing.core.every_score.select import PilotCosts, ScoreSelection, ScoreTest, select_every_score
from routing.core.keys import Thresholds
from routing.core.outlook import smallest_n
from routing.core.plan import Plan, validate
from routing.core.sample_split import ChainTest
from routing.core.savings import Expected
from routing.core.targets.dataset import WIDE_SHARE


@dataclass(frozen=True, kw_only=True)
class ScoreCertification(Outcome):
    """The outcome of one analysis along chains on every model's own score; ``selection`` is its tests and
    its choice.
    """

    selection: ScoreSelection

    @property
    def certified(self) -> bool:
        return self.selection.index > 0

    @property
    def thresholds(self) -> Thresholds:
        """Of the chosen policy, as its chain's shape reads them."""
        return self.selection.thresholds


def certify_every_score(
    plan: Plan,
    chains: ScoreChains,
    calibration: Calibration,
    *,
    pilot: PilotCosts | None = None,
    names: Sequence[str] = (),
) -> ScoreCertification:
    """Test the chains on the labelled calibration set and choose the cheapest certified policy.

    Parameters
    ----------
    chains
        From `build_score_chains`, frozen before the draw.
    calibration
        Every asked row labelled, or tried without success, with ``own`` and ``called`` of the later models.
    pilot
        What the policies cost on the pilot items outside the asked ones.
    names
        Of the K models, for what is said; "model 1" and so on where there are none.

    Raises
    ------
    AnswersMissingError
        A model has to be called on asked items first; what is then stored makes the next try go further.
    PlanError, CalibrationError, ValueError
        The plan cannot certify, the rows do not fit it, the chains are not those of the rule, or no pilot
        can have cost what is said.
    """
    validate(plan)
    calibration.check(plan)
    if fault := chains.fault(plan) or (pilot.fault(plan) if pilot else ""):
        raise ValueError(fault)
    asked = asked_of(plan, chains, calibration)
    chosen = select_every_score(plan, chains, asked, pilot)
    least = smallest_n(plan, chains=_chains_at_full_level(plan, chains))
    tests = [_as_chain_test(test) for test in chosen.tests]
    why = None if chosen.index else why_nothing_of(plan, tests, asked.asked, least)
    outlay = _expected(plan, chosen, asked, pilot)
    test = chosen.tests[chosen.number]
    shown = max(chosen.index, 1) if test.chain.size > 1 else 0
    allowed = test.verdict.allowed[shown]
    return ScoreCertification(
        selection=chosen,
        asked=asked.asked,
        unanswered=calibration.unanswered,
        allowed_errors=None if np.isnan(allowed) else int(allowed),
        observed_errors=float(test.upper[shown]),
        required_errors=required_of(test.verdict, chosen.index),
        pointwise_upper_bound=_bound(plan, chosen, asked) if chosen.index else None,
        expected=outlay,
        smallest_n=least,
        why_nothing=why,
        said=(
            *outcome_messages(plan, why, calibration.unanswered, outlay),
            *kept_of(test.chain.shape, test.chain.models, chosen.thresholds, names or named(plan)),
        ),
    )


def named(plan: Plan) -> list[str]:
    """What the models of a plan are called where nobody says it."""
    return [f"model {number}" for number in range(1, plan.sources)]


def _chains_at_full_level(plan: Plan, chains: ScoreChains) -> Fraction:
    """1 / the part of alpha at which the main chain is tested where few labels leave the others nothing."""
    together = chains.main.shape == OWN and plan.target == "dataset"
    return 1 / WIDE_SHARE if together and isinstance(plan.bound_rule(), Hypergeometric) else Fraction(1)


def asked_of(plan: Plan, chains: ScoreChains, calibration: Calibration) -> AskedItems:
    """The asked rows of a calibration set, with the losses of each model's own answer.

    Raises
    ------
    CalibrationError, LossUnavailableError
        As of `observed_losses`.
    ValueError
        A row lacks the later models' scores, or those that it has do not fit.
    """
    rows = [row for row in calibration.rows if row.asked]
    models, loss = plan.sources - 1, plan.loss_function()
    for row in rows:
        if len(row.own) != models - 1 or len(row.called or (True,) * models) != models:
            raise ValueError(
                f"item {row.item_id!r}: {len(row.own)} scores and {len(row.called)} marks of calls came for "
                f"{models} models; one score of each later model, and one mark of each or none"
            )
    known = np.array([row.called or (True,) * models for row in rows], dtype=np.bool_).reshape(-1, models)
    usable = np.array([[a is not None for a in row.answers] for row in rows], dtype=np.bool_)
    keys = [[(row.u, row.v), *(key or (np.nan, 0) for key in row.own)] for row in rows]
    scored = np.array(keys, dtype=np.float64).reshape(-1, models, 2)
    # V has 53 bits, which a float64 holds exactly.
    items = ScoredItems.of(
        scored[:, :, 0], scored[:, :, 1].astype(np.int64), usable.reshape(-1, models) & known,
        scored=chains.scored,
    )  # fmt: skip
    values = losses_of_answers(rows, loss, models)
    unlabelled = np.array([row.label is None for row in rows], dtype=np.bool_)[:, None]
    values = np.where(items.usable, values, 0.0)
    return AskedItems.of(
        items,
        np.where(unlabelled & items.usable, loss.bound, values),
        np.where(unlabelled, 0.0, values),
        drawn=len(calibration.rows),
        known=known,
        places=np.array([row.order for row in rows], dtype=np.int64),
        weights=None if plan.constant_p else np.array([1 / float(row.p) for row in rows]),
    )


def _as_chain_test(test: ScoreTest) -> ChainTest:
    """The same in the words of the other rules, for what is said where nothing is certified."""
    return ChainTest(test.chain.name, test.level, test.upper, test.lower, test.verdict)


def _bound(plan: Plan, chosen: ScoreSelection, asked: AskedItems) -> float:
    policy, bound = chosen.chain.only(chosen.index), plan.bound_rule()
    evidence, lower = asked.evidence(plan, policy)
    upper = bound.upper(evidence, float(plan.alpha), target=plan.target)
    if plan.target == "dataset" and isinstance(bound, Hypergeometric):
        # It takes off all of K+, but errors that nobody could mend stay in the data set: put them back.
        upper = upper + (evidence.total - lower) / plan.pool_size
    return float(upper[0] * Fraction(plan.pool_size, plan.whole_size))


def _expected(plan: Plan, chosen: ScoreSelection, asked: AskedItems, pilot: PilotCosts | None) -> Expected:
    """Everything the run pays: source 1 on every item, all models on the pilot, those that the tests called
    and people on the asked items, and what the chosen policy is estimated to cost on the rest.
    """
    prices = [float(cost) for cost in plan.costs]
    size, people, outside = plan.pool_size, prices[-1], pilot.items if pilot else 0
    rest = size - asked.asked
    policy = chosen.chain.only(chosen.index)
    models = float(policy.paid(asked.items, [*prices[:-1], 0.0])[0]) / max(asked.asked, 1)
    all_of_it = float(chosen.costs[chosen.number][chosen.index])
    # What is measured elsewhere is so before the tests: all that was called counts, needed by them or not.
    # Of the pilot items that people are asked about, too, as many were called by the tests as of the others.
    called = (asked.known if plan.measured_elsewhere else chosen.called)[:, 1:].sum(axis=0)
    on_both = plan.pilot - outside if pilot else 0
    calls = float((called + on_both * (1 - called / max(asked.asked, 1))) @ np.array(prices[1:-1]))
    # Nothing is paid twice: on a pilot item the policy's calls have been made already.
    net = (
        size * prices[0]
        + outside * sum(prices[1:-1])
        + calls
        + asked.asked * people
        + rest * all_of_it
        - outside * models
    )
    delivered = np.bincount(policy.delivers(asked.items)[0], minlength=len(prices))
    routed = float(delivered @ np.array(prices)) / max(asked.asked, 1)
    return Expected(net, 1 - net / (size * people), 1 - routed / people)
