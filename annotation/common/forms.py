"""What forms of all rooms share: prices, and how a refusal of a service is shown."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.errors import HypacError


def add_error(form: forms.Form, error: HypacError) -> None:
    """Show what a service refused beside the field it names, or above the form."""
    form.add_error(error.where if error.where in form.fields else None, error.message)


def price_field(**options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        min_value=Decimal(0),
        max_digits=14,
        decimal_places=6,
        error_messages={"min_value": _("A price cannot be negative.")},
        **options,
    )
