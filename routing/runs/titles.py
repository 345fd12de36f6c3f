"""Rules, baselines and chains in the words of pages."""

from django.utils.translation import gettext as _

from routing.core.every_score.chain import CASCADE, OWN
from routing.core.rules import RULES
from routing.core_language import translated


def rule_titles() -> dict[str, str]:
    """The names of rules and baselines in words."""
    return {rule.name: translated(rule.title) or rule.name for rule in RULES} | {
        "pac_labeling_1": _("PAC labeling with the first model"),
        "pac_labeling_2": _("PAC labeling with the second model"),
        "cse": _("Cascaded selective evaluation"),
        "coannotating": _("CoAnnotating"),
        "bargain_1": _("BARGAIN with the first model"),
        "bargain_2": _("BARGAIN with the second model"),
        "lotus_1": _("LOTUS cascade with the first model"),
        "lotus_2": _("LOTUS cascade with the second model"),
        "best_single_model": _("Best single model"),
        "people_only": _("People only"),
    }


def chain_title(name: str) -> str:
    """How a chain was ordered, in words, with its name in the certificate."""
    words = {
        "ordered": _("by uncertainty alone"),
        "assumed": _("without a pilot, by uncertainty alone"),
        "attributed": _("by a pilot, each disagreement of the models shared between them by their scores"),
        "disagreement": _("by a pilot, after how often the models disagree"),
        "first model": _("with the first model and people alone"),
        "last model": _("with the last model and people alone"),
        "learnt": _("learnt from the first part of the labels"),
    }.get(name)
    return f"{words} ({name})" if words else name


def score_chain_title(shape: str, names: list[str], positions: list[int]) -> str:
    """How a chain of `every_score` was ordered; "" where all its thresholds lie on the first score."""
    if shape == OWN:
        return _("%(model)s and people alone, by its own score") % {"model": names[positions[0] - 1]}
    if shape == CASCADE:
        first, last = (names[position - 1] for position in positions)
        return _(
            "%(first)s, then %(last)s, then people, each model by its own score; foretold by a pilot"
        ) % {
            "first": first,
            "last": last,
        }
    return ""
