"""Who labels, as the API takes it: names with shares of the work."""

from fractions import Fraction
from typing import Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from routing.runs.reference_forms import share_in

LONGEST_USERNAME, LONGEST_TEXT = 150, 40
"""Characters of a name, and of a share as it is written."""
Shares = dict[str, Fraction | None]


class RosterField(serializers.DictField):
    """Username to share; None for equal shares."""

    child = serializers.CharField(max_length=LONGEST_TEXT, allow_null=True)

    def to_internal_value(self, data: Any) -> Shares:
        given = super().to_internal_value(data)
        try:
            return {name: None if share is None else share_in(name, share) for name, share in given.items()}
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from None


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "maxLength": LONGEST_USERNAME},
            {
                "type": "object",
                "additionalProperties": {"type": "string", "maxLength": LONGEST_TEXT, "nullable": True},
            },
        ]
    }
)
class ExpertsField(serializers.Field[Any, Any, Any, Any]):
    """A username, or as a roster of several."""

    one = serializers.CharField(max_length=LONGEST_USERNAME, allow_blank=True)
    several = RosterField()

    def to_internal_value(self, data: Any) -> str | Shares:
        found = self.several if isinstance(data, dict) else self.one
        value: str | Shares = found.run_validation(data)
        return value
