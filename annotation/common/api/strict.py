"""Finds what a serializer would turn into the type that the schema names: a 0 is no text, and no "no"."""

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from rest_framework import serializers


def other_types(serializer: Any, data: Any) -> dict[str, Any]:
    """The messages by field, in the form of a serializer's own; nothing for a form, where all is text."""
    if not isinstance(data, Mapping) or isinstance(data, QueryDict):
        return {}
    found = {name: _wrong(field, data[name]) for name, field in serializer.fields.items() if name in data}
    return {name: wrong for name, wrong in found.items() if wrong}


def _wrong(field: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(field, serializers.Serializer):
        return other_types(field, value)
    if isinstance(field, serializers.ListSerializer | serializers.ListField) and isinstance(value, list):
        rows = {number: _wrong(field.child, row) for number, row in enumerate(value)}
        return {number: wrong for number, wrong in rows.items() if wrong}
    text = isinstance(field, serializers.CharField) and not isinstance(value, str)
    truth = isinstance(field, serializers.BooleanField) and not isinstance(value, bool)
    return [str(field.error_messages["invalid"])] if text or truth else None
