"""What is said about a selection rule."""

from __future__ import annotations

from dataclasses import dataclass

from routing.core.messages import Message, declare, gettext_noop, say


@dataclass(frozen=True)
class Rule:
    """A rule that turns observed losses into thresholds; only one that holds its level may certify.

    Attributes
    ----------
    name : str
    holds_level : bool
    description : str
        One plain sentence.
    title : str
        The name in words, for pages.
    constant_p_only : bool
        Whether it needs one probability of asking for all items.
    """

    name: str
    holds_level: bool
    description: str
    title: str = ""
    constant_p_only: bool = False

    def refusal(self, *, constant_p: bool = True) -> Message | None:
        """Why the rule cannot certify such a plan, naming what to use instead; None where it can."""
        if not self.holds_level:
            return say("rule.comparison", rule=self.name)
        if self.constant_p_only and not constant_p:
            return say("rule.constant_p", rule=self.name)
        return None


SAYS = {
    "rule.comparison": gettext_noop(
        "the rule '%(rule)s' does not hold its stated level and is offered as a comparison only; use "
        "'fixed_sequence'"
    ),
    "rule.constant_p": gettext_noop(
        "the rule '%(rule)s' needs one probability of asking for all items, so that the rest of the asked "
        "items is a simple random sample; use 'fixed_sequence'"
    ),
}
declare(SAYS)
