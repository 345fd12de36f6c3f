"""What the statistical core says, on pages."""

from django import template

from routing.core_sentences import told as sentences

register = template.Library()


@register.filter
def told(text: str) -> str:
    """A sentence of the core in the language of the reader."""
    return sentences(text)
