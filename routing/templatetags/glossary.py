"""The words of statistics, each with its sentence at hand: `{% glossary "draw rule chain" %}`."""

from django import template
from django.utils.translation import gettext_lazy as _

register = template.Library()

WORDS = {
    "epsilon": (
        _("epsilon (ε)"),
        _(
            "The largest share of the delivered labels that may differ from what counts as right; with a "
            "loss that has values between 0 and 1, the largest mean loss."
        ),
    ),
    "alpha": (
        _("alpha (α)"),
        _(
            "How often the promise may be missed: with 5 %, at most one of twenty runs like this "
            "one breaks it."
        ),
    ),
    "reference": (
        _("reference"),
        _("Whose label is right by definition: one person's, what two people settle, or an expert's."),
    ),
    "target": (
        _("target"),
        _(
            "What the promise is about: the delivered data set, the same as if nobody had labelled the "
            "calibration set, or also items that come later from the same source."
        ),
    ),
    "pilot": (
        _("pilot"),
        _(
            "A few items that all models answer before anything is drawn, to foretell costs. "
            "Nobody labels them for it."
        ),
    ),
    "calibration": (
        _("calibration set"),
        _(
            "The items that people label without seeing any model's answer. All that is certified "
            "rests on them."
        ),
    ),
    "draw": (
        _("draw"),
        _("The choice of the calibration set by chance. It is made once, and can be recomputed by anybody."),
    ),
    "asked": (
        _("m and p"),
        _("m items are drawn, and people are asked about each with the probability p."),
    ),
    "uncertainty": (
        _("uncertainty"),
        _("How unsure a model is of its answer, from 0 to 1: 1 less its confidence."),
    ),
    "threshold": (
        _("threshold (u)"),
        _("Up to this uncertainty a model's answer is kept; what lies above goes to the next source."),
    ),
    "source": (
        _("source"),
        _("Whoever can label an item: the models, cheapest first, and at last people."),
    ),
    "loss": (
        _("loss"),
        _(
            "How wrong a label is, from 0 for right to 1: for a choice right or wrong, for texts "
            "and numbers in between."
        ),
    ),
    "rule": (
        _("rule"),
        _("How thresholds are chosen so that the promise holds for the chosen ones, and not for each alone."),
    ),
    "chain": (
        _("chain"),
        _(
            "Choices of thresholds in an order that is fixed before any label is seen, tested one "
            "after the other."
        ),
    ),
    "bound": (
        _("bound"),
        _("The largest share of errors that the calibration labels still allow for, at the chosen alpha."),
    ),
    "certificate": (
        _("certificate"),
        _(
            "The result as a file that anybody can check without this server: what is promised, "
            "and what it rests on."
        ),
    ),
    "delivery": (
        _("delivery"),
        _("The labelled data as files that never change, with what is promised of them as a whole."),
    ),
    "provenance": (
        _("provenance"),
        _("Who or what gave each label, how unsure it was, and by which run."),
    ),
    "savings": (
        _("net and routing saving"),
        _(
            "Against people for everything: net counts all that is paid, routing leaves out what "
            "the calibration cost."
        ),
    ),
    "ledger": (
        _("ledger of alpha"),
        _(
            "Each draw on the same items adds its alpha: the chance that any of their certificates is false "
            "is at most the sum."
        ),
    ),
}
"""Name -> the word, and its sentence."""


@register.inclusion_tag("routing/_glossary.html")
def glossary(names: str) -> dict[str, object]:
    """Buttons that open the sentences of these words."""
    return {"words": [(name, *WORDS[name]) for name in names.split()]}


@register.simple_tag
def all_words() -> list[tuple[str, str, str]]:
    return [(name, str(word), str(sentence)) for name, (word, sentence) in WORDS.items()]
