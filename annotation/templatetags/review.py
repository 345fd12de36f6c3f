"""How measures of agreement are written, and what they mean in words."""

from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from annotation.review.agreement import Estimate

register = template.Library()

RELIABLE = 0.8
TENTATIVE = 0.667
"""K. Krippendorff, Content Analysis, chapter on reliability: below this he advises to draw no conclusion."""


@register.filter
def coefficient(value: Any) -> str:
    """A kappa or an alpha with two digits; None -> a dash."""
    if value is None or value == "":
        return "–"
    text = number_format(round(float(value), 2) + 0.0, decimal_pos=2)
    return text.replace("-", "\N{MINUS SIGN}")


@register.filter
def meaning(estimate: Estimate) -> str:
    """What an alpha says about the labels, in a sentence."""
    if estimate.value is None:
        return _("Everybody always gave the same answer, so there is nothing that chance could be taken off.")
    if estimate.value <= 0:
        return _(
            "People agree no more than by chance. Look at the guidelines and the labels before going on."
        )
    if estimate.value < TENTATIVE:
        return _(
            "Agreement is low: such labels say too much about who gave them. Look at which labels are "
            "confused, and make the guidelines clearer."
        )
    if estimate.value < RELIABLE:
        return _("Agreement is moderate: enough for tentative conclusions, not for labels to rely on.")
    if estimate.low is not None and estimate.low < RELIABLE:
        return _("Agreement is good, but the range still reaches below 0.8: more items will tell.")
    return _("Agreement is good: another person would mostly give the same labels.")
