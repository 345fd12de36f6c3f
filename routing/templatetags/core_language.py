"""What the statistical core says, on pages."""

from django import template

from routing.core_language import translated
from routing.sources.usability import Usability, advice, where_all_unusable_go

register = template.Library()


register.filter(translated)


@register.simple_tag
def where_unusable_goes() -> str:
    """Who labels the items for which a model, the first or a later one, has no usable answer."""
    return where_all_unusable_go()


@register.filter
def unbroken(words: str) -> str:
    """A sentence of the core whose percentages no line breaks between number and sign."""
    return words.replace(" %", "\N{NO-BREAK SPACE}%")


@register.filter
def advised(seen: Usability) -> str:
    """What to do about the answers that cannot be used."""
    return advice(seen.reasons, basis=seen.basis)
