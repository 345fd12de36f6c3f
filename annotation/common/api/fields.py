"""Fields of what the API takes in, where those of Django REST framework read more than their schema says."""

from math import isfinite
from typing import Any

from rest_framework import serializers


class NumberField(serializers.FloatField):
    """A number as JSON writes it: no text, which may say "nan", no true and false."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            number = super().to_internal_value(data)
        except OverflowError:
            self.fail("invalid")
        if not isfinite(number):
            self.fail("invalid")
        return number
