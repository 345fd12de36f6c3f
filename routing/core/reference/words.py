"""What a certificate says about who is right, and the reference `settled`."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say
from routing.core.plan import Plan
from routing.core.reference.plan import ExpertPlan

PERSON, SETTLED, EXPERT = "person", "settled", "expert"
REFERENCES = (PERSON, SETTLED, EXPERT)


def expert_promises(run: ExpertPlan, expert: str, *, replaced: int = 0) -> list[Message]:
    """The promise with the reference `expert`, and what it rests on.

    ``replaced`` are X, delivered items whose annotator left and that somebody else than the expert labelled:
    as each may be wrong, (E + X) / N is what is promised.
    """
    share = run.plan.epsilon
    if replaced:
        exact = Decimal(run.plan.budget + replaced) / Decimal(run.plan.pool_size)
        share = exact.quantize(Decimal("1e-6"), rounding=ROUND_CEILING)
    said = [say("reference.expert", expert=expert, share=percent(share), **_odds(run.plan))]
    if replaced:
        said.append(say("reference.replaced", items=replaced, share=percent(run.plan.epsilon)))
    return [*said, say("reference.expert_holds")]


def settled_promises(plan: Plan) -> list[Message]:
    """The promise with the reference `settled`; its certificate is an ordinary one of the settled labels."""
    return [
        say("reference.settled", share=percent(plan.epsilon), **_odds(plan)),
        say("reference.settled_alike"),
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
        "odds": percent(1 - plan.alpha),
        "alpha": plain(plan.alpha),
    }


SAYS = {
    "reference.expert": gettext_noop(
        "At most %(share)s of the labels in the delivered data set differ from what %(expert)s would give, "
        "blind (epsilon = %(epsilon)s), with probability at least %(odds)s over the random draw (alpha = "
        "%(alpha)s). Mistakes of models and of people are counted."
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
        "At most %(share)s of the labels in the delivered data set differ from what two of our people, and a "
        "decider where they differ, would give (epsilon = %(epsilon)s), with probability at least %(odds)s "
        "over the random draw (alpha = %(alpha)s)."
    ),
    "reference.settled_alike": gettext_noop("A mistake that two people make alike is not counted."),
}
declare(SAYS)
