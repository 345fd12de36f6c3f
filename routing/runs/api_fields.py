"""Fields of requests about plans."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from routing.core.plan import PlanError, validate_level
from routing.core_language import refusal_in_words


def share_field(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=9, decimal_places=8, **options)


def level_field(part: str) -> serializers.DecimalField:
    """Epsilon or alpha: one out of range is told together with what is wrong with other fields."""

    def check(value: Decimal) -> None:
        try:
            validate_level(part, value)
        except PlanError as error:
            raise serializers.ValidationError(refusal_in_words(error)) from None

    return share_field(validators=[check])


def budget_field(**options: Any) -> serializers.DecimalField:
    """The most that the models of a run may cost; null: no limit."""
    return serializers.DecimalField(max_digits=20, decimal_places=6, min_value=0, allow_null=True, **options)
