"""What the statistical core says, on pages."""

from django import template

from routing.core.right import beside
from routing.core_sentences import told as sentences
from routing.core_words import said
from routing.services.unusable import advice, all_passed_on
from routing.services.usability import Usability

register = template.Library()


@register.filter
def told(text: str) -> str:
    """A sentence of the core in the language of the reader."""
    return sentences(text)


@register.simple_tag
def what_is_right(sentence: str) -> str:
    """What the words of a promise leave open: what its labels are compared with."""
    return said(beside(sentence))


@register.simple_tag
def where_unusable_goes() -> str:
    """Who labels the items for which a model, the first or a later one, has no usable answer."""
    return all_passed_on()


@register.filter
def advised(seen: Usability) -> str:
    """What to do about the answers that cannot be used."""
    return advice(seen.reasons, basis=seen.basis)
