"""The certificate with the reference `settled`: two people, and a decider where they differ."""

from __future__ import annotations

from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.certificate import REFERENCE, Document
from routing.core.certify import Outcome, guarantee
from routing.core.messages import Message, sentences
from routing.core.plan import Plan
from routing.core.reference.words import SETTLED, settled_promises


def settled_certificate(plan: Plan, outcome: Outcome, document: Document) -> Document:
    """The certificate with the reference `settled`, of an ordinary one of the settled labels.

    Raises
    ------
    ValueError
        The promise is not about the delivered data set itself.
    """
    if fault := settled_fault(plan):
        raise ValueError(fault)
    return {
        **document,
        "version": max(document["version"], REFERENCE),
        "reference": {"kind": SETTLED},
        "result": {**document["result"], "sentence": sentences(settled_says(plan, outcome))},
    }


def settled_says(plan: Plan, outcome: Outcome) -> tuple[Message, ...]:
    """What an ordinary analysis of the settled labels says, in the words of this reference."""
    if outcome.why_nothing is not None:
        return outcome.said
    ordinary = plan.target_rule().promises(guarantee(plan))
    return (*settled_promises(plan), *outcome.said[len(ordinary) :])


def settled_fault(plan: Plan) -> str:
    """Why `settled` can be no reference of ``plan``; '' if it can."""
    if plan.target == "dataset" and isinstance(plan.bound_rule(), Hypergeometric) and not plan.data_set_size:
        return ""
    return (
        "two people and a decider can be the reference where the promise is about one delivered data set, "
        "labels are right or wrong, and every item of the data set is in the pool"
    )
