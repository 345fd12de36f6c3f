"""Numbers that stand in addresses and forms of pages."""

from django.http import Http404


def whole_number(text: str | None) -> int:
    if not text or not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Http404("not a number")
    return int(text)
