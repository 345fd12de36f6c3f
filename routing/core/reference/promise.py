"""What a plan with the reference `expert` or `settled` can promise before any label exists."""

from __future__ import annotations

from dataclasses import replace

from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say
from routing.core.outlook import Outlook, outlook
from routing.core.plan import Plan
from routing.core.reference.plan import ExpertPlan, validate_expert_plan
from routing.core.reference.recheck import least_asked


def expert_outlook(run: ExpertPlan) -> Outlook:
    """What `run` can certify at the expected number of labels; as `routing.core.outlook.outlook`.

    Raises
    ------
    PlanError
        The plan cannot be carried out.
    """
    validate_expert_plan(run)
    plan, asked = run.plan, int(run.plan.expected_labels)
    least = least_asked(
        pool_size=plan.pool_size, share=run.recheck_share, budget=plan.budget, level=run.level
    )
    allowed = run.levels(asked).wide if asked >= least else -1
    return Outlook(
        smallest_n=least,
        expected_human_labels=plan.expected_labels,
        expected_tested_labels=asked,
        allowed_errors_at_expected_n=allowed,
        allowed_mean_loss=None if allowed < 0 else allowed / max(asked, 1),
        exact=True,
        certifiable=allowed >= 0,
        said=_said(run, asked, least, allowed),
    )


def _said(run: ExpertPlan, asked: int, least: int, allowed: int) -> tuple[Message, ...]:
    share = percent(run.plan.epsilon)
    who = say(
        "promise.who",
        labels=asked,
        drawn=run.plan.m,
        p=plain(run.plan.p),
        expert=run.who,
        rechecked=run.rechecked(asked),
    )
    if allowed < 0:
        return who, say("promise.too_few", least=least, share=share)
    code = "promise.allowed" if run.weight == 1 else "promise.allowed_weighted"
    return who, say(code, errors=allowed, weight=run.weight, share=share)


def settled_outlook(plan: Plan, *, chains: int = 1) -> Outlook:
    """The same of a plan with the reference `settled`: an ordinary plan whose labels two people give, and a
    third where they differ.  Parameters and errors as of `routing.core.outlook.outlook`.
    """
    found = outlook(plan, chains=chains)
    return replace(found, said=_settled_said(plan, found))


def _settled_said(plan: Plan, found: Outlook) -> tuple[Message, ...]:
    share = percent(plan.epsilon)
    asked, tested = int(plan.expected_labels), found.expected_tested_labels
    said = [
        say("promise.two", drawn=plan.m)
        if plan.p == 1
        else say("promise.two_of", labels=asked, drawn=plan.m, p=plain(plan.p))
    ]
    if tested < asked:
        said.append(say("promise.two_taught", first=asked - tested, tested=tested))
    if found.certifiable:
        code = "promise.two_allowed" if found.exact and tested == asked else "promise.two_allowed_about"
        return *said, say(code, errors=found.allowed_errors_at_expected_n, share=share)
    return *said, say("promise.too_few", least=found.smallest_n, share=share)


SAYS = {
    "promise.two": gettext_noop(
        "Two people label each of the %(drawn)s drawn items, and a third those on which they differ."
    ),
    "promise.two_of": gettext_noop(
        "Two people label each of about %(labels)s of %(drawn)s drawn items (p = %(p)s), and a third those "
        "on which they differ."
    ),
    "promise.two_taught": gettext_noop(
        "The first %(first)s of these teach the order of the steps, %(tested)s test it."
    ),
    "promise.two_allowed": gettext_noop(
        "Thresholds with which the models differ from what these people give on at most %(errors)s of them "
        "can be certified at %(share)s."
    ),
    "promise.two_allowed_about": gettext_noop(
        "Thresholds with which the models differ from what these people give on at most about %(errors)s of "
        "them can be certified at %(share)s."
    ),
    "promise.who": gettext_noop(
        "About %(labels)s of %(drawn)s drawn items go to annotators (p = %(p)s). Of these %(expert)s labels "
        "%(rechecked)s in any case, and all others on which annotator and models do not agree."
    ),
    "promise.too_few": gettext_noop(
        "That is too few to certify %(share)s even without an error; at least %(least)s labels are needed."
    ),
    "promise.allowed": gettext_noop(
        "What differs from the expert on at most %(errors)s of them can be certified at %(share)s."
    ),
    "promise.allowed_weighted": gettext_noop(
        "What differs from the expert on at most %(errors)s of them can be certified at %(share)s, where "
        "each on which annotator and models agree counts %(weight)s times."
    ),
}
declare(SAYS)
