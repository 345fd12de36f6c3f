"""Refusals by a list of what is allowed say what is on it: values of a field, media types, methods."""

from collections.abc import Iterator
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from rest_framework import serializers
from rest_framework.exceptions import APIException, MethodNotAllowed, NotAcceptable, UnsupportedMediaType

from annotation.common.converters import LARGEST

ANY = "*/*"


def within(field: Any) -> Iterator[Any]:
    """The field, and all that are in it, however deep."""
    yield field
    if isinstance(field, serializers.Serializer):
        for inner in field.fields.values():
            yield from within(inner)
    elif isinstance(field, serializers.ListSerializer | serializers.ListField | serializers.DictField):
        yield from within(field.child)


def name_choices(serializer: Any) -> None:
    """Let each choice in a serializer name what there is to choose from where it refuses."""
    for field in within(serializer):
        if isinstance(field, serializers.ChoiceField):
            names = ", ".join(str(name) for name in field.choices if name != "")
            # The message is a format: what is sent takes the place of `input`.
            known = names.replace("{", "{{").replace("}", "}}")
            field.error_messages["invalid_choice"] = f"There is no “{{input}}”; choose one of {known}."


def bound_numbers(serializer: Any) -> None:
    """Let each whole number in a serializer refuse what no database holds."""
    for field in within(serializer):
        if isinstance(field, serializers.IntegerField):
            most = [MaxValueValidator(LARGEST)] if field.max_value is None else []
            least = [MinValueValidator(-LARGEST)] if field.min_value is None else []
            field.validators = [*field.validators, *most, *least]


def what_is_allowed(error: APIException, context: dict[str, Any]) -> str:
    """A sentence that ends the message of such a refusal; "" for every other error. `context` is that of an
    exception handler.
    """
    request, view = context.get("request"), context.get("view")
    if isinstance(error, UnsupportedMediaType) and request is not None:
        names = [parser.media_type for parser in request.parsers or () if parser.media_type != ANY]
        return f"This address takes {_or(names)}: name it in the header Content-Type." if names else ""
    if isinstance(error, NotAcceptable):
        names = [renderer.media_type for renderer in error.available_renderers or ()]
        return f"This address answers with {_or(names)}: name it in the header Accept." if names else ""
    if isinstance(error, MethodNotAllowed) and view is not None:
        names = [name for name in view.allowed_methods if name not in ("HEAD", "OPTIONS")]
        return f"This address takes {_or(names)}." if names else ""
    return ""


def _or(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
