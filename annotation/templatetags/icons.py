"""The symbols of actions and states; every template has this tag without loading it (settings)."""

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def icon(name: str, place: str = "before") -> SafeString:
    """A symbol of static/icons.svg, "before" or "after" words, or "alone" in what has a name of its own.

    It says nothing by itself: readers of screens go by the words beside it, or by the name.
    """
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        place,
        static("icons.svg"),
        name,
    )
