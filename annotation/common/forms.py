"""What forms of all rooms share: prices, and how a refusal of a service is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from annotation.errors import HypacError, InputError
from annotation.models import StoredFile


def add_error(form: forms.Form, error: HypacError) -> None:
    """Show what a service refused beside the field it names, or above the form."""
    form.add_error(error.where if error.where in form.fields else None, error.message)


@contextmanager
def told_beside(form: forms.Form, field: str) -> Iterator[None]:
    """Show what a check of a service refuses beside the field, so that it is told along with what else is
    wrong, and not once all of that is mended.
    """
    try:
        yield
    except InputError as error:
        form.add_error(field, error.message if error.where in ("choices", field) else str(error))


def kept_file(request: HttpRequest, files: QuerySet[StoredFile]) -> StoredFile | None:
    """The one of `files` that came with a form before, which was shown again, so that it need not be chosen
    anew. None where there is none, or another one comes now.
    """
    number = request.POST.get("kept", "")
    if not number.isdecimal() or len(number) > 18 or request.FILES:
        return None
    return files.filter(pk=number).first()


def nonblank_lines(text: str) -> list[str]:
    """What stands on each line, without those that are empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def price_field(**options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        min_value=Decimal(0),
        max_digits=14,
        decimal_places=6,
        error_messages={"min_value": _("A price cannot be negative.")},
        **options,
    )
