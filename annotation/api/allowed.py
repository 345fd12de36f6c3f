"""Refusals by a list of what is allowed say what is on it: values of a field, media types, methods."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import APIException, MethodNotAllowed, NotAcceptable, UnsupportedMediaType

ANY = "*/*"


def name_choices(field: Any) -> None:
    """Let each choice in a serializer, however deep, name what there is to choose from where it refuses."""
    if isinstance(field, serializers.Serializer):
        for inner in field.fields.values():
            name_choices(inner)
    elif isinstance(field, serializers.ListSerializer | serializers.ListField | serializers.DictField):
        name_choices(field.child)
    elif isinstance(field, serializers.ChoiceField):
        names = ", ".join(str(name) for name in field.choices if name != "")
        # The message is a format: what is sent takes the place of `input`.
        known = names.replace("{", "{{").replace("}", "}}")
        field.error_messages["invalid_choice"] = f"There is no “{{input}}”; choose one of {known}."


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
