"""What parts of addresses may be; the application registers them before any address is read; and numbers
in their queries.
"""

from django.http import Http404
from django.urls import register_converter
from django.urls.converters import IntConverter, StringConverter

LARGEST = 2**63 - 1
"""Of a whole number in any database: a larger one is none of a row."""


class RowNumber(IntConverter):
    """A number that a row can have, in its one form: at others, such as 007, is nothing."""

    regex = "0|[1-9][0-9]{0,18}"

    def to_python(self, value: str) -> int:
        number = super().to_python(value)
        if number > LARGEST:
            raise ValueError(value)
        return number


class Anything(StringConverter):
    """Line breaks, too, which may be in an address, and which the converter `path` does not take."""

    regex = r"[\s\S]*"


def register() -> None:
    register_converter(RowNumber, "row")
    register_converter(Anything, "anything")


def whole_number(text: str | None) -> int:
    """A number in a query or a form of a page; anything else is not found."""
    if not text or not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Http404("not a number")
    return int(text)
