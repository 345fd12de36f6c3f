"""What a certificate says about who is right, and the reference `settled`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from routing.core.correctness import odds_of, spent_said
from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say
from routing.core.plan import Plan
from routing.core.reference.plan import ExpertPlan

PERSON, SETTLED, EXPERT = "person", "settled", "expert"
REFERENCES = (PERSON, SETTLED, EXPERT)


class Step(NamedTuple):
    """How far the tests along one chain came.

    ``passed`` of its ``steps`` showed at most ``allowed`` errors, Q+, and at least ``required`` have to be
    seen.
    """

    chain: str
    passed: int
    steps: int
    allowed: int
    required: int


def why_nothing_of(asked: int, least: int, steps: Sequence[Step], *, saves: bool) -> Message:
    """Why nothing is certified from ``asked`` items, or what is does not save anything (not ``saves``);
    ``least`` are the least with which a step without an error passes.
    """
    if not steps or not saves:
        return say("nothing.no_step")
    if asked < least:
        return say("reference.too_few", asked=asked, least=least)
    return say("reference.errors", steps=tuple(_told(step) for step in steps))


def _told(step: Step) -> Message:
    told = {"chain": step.chain, "passed": step.passed, "steps": step.steps, "allowed": step.allowed}
    if not step.required:
        return say("reference.step", **told)
    return say("reference.step_least", **told, required=step.required)


def expert_says(
    run: ExpertPlan, why_nothing: Message | None, *, unlabelled: int, replaced: int, dearer: bool
) -> tuple[Message, ...]:
    """What is certified, or what is not and why, in plain words.

    Parameters
    ----------
    unlabelled
        Items that the expert was to label and could not.
    dearer
        Whether the run costs more than the expert's labels of everything.
    """
    said = expert_promises(run, replaced=replaced)
    if why_nothing is not None:
        said = [say("reference.nothing", expert=run.who, reason=why_nothing)]
    if unlabelled:
        said.append(say("reference.unlabelled", expert=run.who, items=unlabelled))
    if dearer:
        said.append(say("reference.dearer", expert=run.who))
    return tuple(said)


def expert_promises(run: ExpertPlan, *, replaced: int = 0) -> list[Message]:
    """The promise with the reference `expert`, and what it rests on.

    ``replaced`` are X, delivered items whose annotator left and that somebody else than the expert labelled:
    as each may be wrong, (E + X) / N is what is promised.
    """
    share = run.plan.epsilon
    if replaced:
        exact = Decimal(run.plan.budget + replaced) / Decimal(run.plan.pool_size)
        share = exact.quantize(Decimal("1e-6"), rounding=ROUND_CEILING)
    said = [
        say(
            "reference.expert",
            expert=say("reference.by_roster", experts=run.who) if run.experts else run.who,
            share=percent(share),
            items=f"{run.plan.pool_size:,}",
            **_odds(run.plan),
        )
    ]
    if replaced:
        said.append(say("reference.replaced", items=replaced, share=percent(run.plan.epsilon)))
    if run.experts:
        said.append(say("reference.experts"))
    return [*said, say("reference.expert_holds"), *spent_said(run.plan.alpha, run.plan.alpha_spent)]


def settled_promises(plan: Plan) -> list[Message]:
    """The promise with the reference `settled`; its certificate is an ordinary one of the settled labels."""
    return [
        say(
            "reference.settled",
            share=percent(plan.epsilon),
            items=f"{plan.pool_size:,}",
            **_odds(plan),
        ),
        say("reference.settled_alike"),
        *spent_said(plan.alpha, plan.alpha_spent),
    ]


def settled_label(first: str, second: str, decider: str | None = None) -> str | None:
    """What two people, and a decider where they differ, give; None while the decider has not."""
    return first if first == second else decider


def settled_cost(person_cost: Decimal, differing: Decimal) -> Decimal:
    """Cost of one settled label, where two people differ on the share ``differing``."""
    return person_cost * (2 + differing)


def _odds(plan: Plan) -> dict[str, str]:
    return {
        "epsilon": plain(plan.epsilon),
        **odds_of(plan.alpha, plan.alpha_spent),
    }


SAYS = {
    "reference.nothing": gettext_noop(
        "Nothing could be certified, so %(expert)s labels everything: %(reason)s."
    ),
    "reference.too_few": gettext_noop(
        "%(asked)s items were asked about, and with fewer than %(least)s not even a step without an error "
        "passes"
    ),
    "reference.errors": gettext_noop("of the steps of the chains, tested in order, %(steps)s"),
    "reference.step": gettext_noop(
        "%(passed)s of the %(steps)s of '%(chain)s' showed at most the %(allowed)s errors, each by its "
        "weight, that may be seen"
    ),
    "reference.step_least": gettext_noop(
        "%(passed)s of the %(steps)s of '%(chain)s' showed at most the %(allowed)s errors, each by its "
        "weight, that may be seen, and none of these the %(required)s that must be"
    ),
    "reference.unlabelled": gettext_noop(
        "Asked items that %(expert)s could not label: %(items)s. Each counted as an error wherever somebody "
        "else labels it."
    ),
    "reference.dearer": gettext_noop(
        "%(expert)s alone is cheaper: this run is expected to cost more than having %(expert)s label every "
        "item."
    ),
    "reference.expert": gettext_noop(
        "At most %(share)s of the delivered labels of the run's %(items)s items differ from what %(expert)s "
        "would give, blind (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw "
        "(alpha = %(alpha)s). Mistakes of models and of people are counted."
    ),
    "reference.by_roster": gettext_noop("%(experts)s, by a fixed roster,"),
    "reference.experts": gettext_noop(
        "Right is the expert whose item it is: no two of them label the same one, and how much they differ "
        "among themselves is not known."
    ),
    "reference.replaced": gettext_noop(
        "It would be %(share)s, but %(items)s items were labelled by others than the annotators whose they "
        "were, and each of these may be wrong."
    ),
    "reference.expert_holds": gettext_noop(
        "This holds if people label the items that are routed to them as they label those of the calibration "
        "set."
    ),
    "reference.settled": gettext_noop(
        "At most %(share)s of the delivered labels of the run's %(items)s items differ from what two of our "
        "people, and a decider where they differ, would give (epsilon = %(epsilon)s), with probability at "
        "least %(odds)s over the random draw (alpha = %(alpha)s)."
    ),
    "reference.settled_alike": gettext_noop("A mistake that two people make alike is not counted."),
}
declare(SAYS)
