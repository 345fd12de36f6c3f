"""The OpenAPI schema of /api/v1/: how drf-spectacular reads our views, and parts that their schemas share.

The settings name `HypacSchema`, so this module imports no views.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.authentication import SessionScheme as BuiltInSessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from annotation.common.converters import LARGEST
from annotation.error_codes import ERROR_CODES, FAULT_CODES, codes_by_status

PREFIX = "/api/v1/"
OF_A_PROJECT = f"{PREFIX}projects/{{slug}}/"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_KEY_HEADER = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!#-~]+$"},
    "description": "Of your own, new for each request: one that is sent again under its key is done once.",
}
_KNOWN_HEADER = {
    "in": "header",
    "name": "If-None-Match",
    "schema": {"type": "string"},
    "description": "The ETag of an answer that you have: what is still the same is answered by 304.",
}
_TEXT = {"type": "string"}
_HEADERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ETag": ("Send it back as If-None-Match: what is still the same is answered by 304.", _TEXT),
    "Idempotency-Replayed": ("Whether this is the stored answer to an Idempotency-Key.", {"enum": ["true"]}),
    "Link": ("The pages beside this one, with rel next and prev (RFC 8288).", _TEXT),
    "Location": ("The address of what was made, or of the job, where it has one.", _TEXT),
    "RateLimit": ("How many requests are left, and in how many seconds it is a whole limit again.", _TEXT),
    "RateLimit-Policy": ("How many requests one has in how many seconds.", _TEXT),
    "Retry-After": ("Seconds to wait before it is asked again.", {"type": "integer", "minimum": 1}),
}
_OF_ALL = ("RateLimit", "RateLimit-Policy")
# Of problems: the statuses after which waiting may help.
_LATER = ("409", "429", "503")


class Nothing(serializers.Serializer[Any]):
    """No field at all."""


class RegisteredField(serializers.ChoiceField):
    """One of the names that a registry has when the serializer is made, with titles where it has those."""

    def __init__(self, *, registered: Callable[[], Iterable[Any]], **options: Any) -> None:
        super().__init__(choices=list(registered()), **options)


class Fault(serializers.Serializer[Any]):
    """One field or parameter that is at fault."""

    field = serializers.CharField(help_text="By its path in the request, such as `params.model`.")
    code = RegisteredField(registered=lambda: FAULT_CODES)
    detail = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """What went wrong, after RFC 9457."""

    type = serializers.CharField(help_text="The address of a page on this code.")
    code = RegisteredField(registered=lambda: sorted(ERROR_CODES), help_text="What programs go by.")
    title = serializers.CharField(help_text="What the code means, in English.")
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What happened, where, and what to do.")
    faults = Fault(many=True, required=False, help_text="All fields at fault.")
    field = serializers.CharField(required=False, help_text="The first of them; `faults` says more.")
    request_id = serializers.CharField(
        required=False, help_text="Of an error of the server: the lines of its log about it have it, too."
    )
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="The messages by field; `faults` says more.",
    )


class PageQuery(serializers.Serializer[Any]):
    """What a list in pages takes. Filters of one's own: a subclass."""

    cursor = serializers.CharField(required=False, help_text="Comes with `next` and `previous`.")
    page_size = serializers.IntegerField(required=False, min_value=1, max_value=1000)


@cache
def page_of(row: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The serializer of a page of such rows, for `@extend_schema(responses=...)`."""
    fields = {
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
        "results": row(many=True),
    }
    return type(f"{row.__name__}Page", (serializers.Serializer,), fields)


@cache
def list_of(row: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The same for `{"results": [...]}` without pages."""
    return type(f"{row.__name__}List", (serializers.Serializer,), {"results": row(many=True)})


class HypacSchema(AutoSchema):
    """Operations are called by the names of their addresses; each can answer with a problem."""

    def get_operation_id(self) -> str:
        name = _names().get(self.path_regex, self.path)
        return f"{self.method.lower()}_{name.removeprefix('api_')}"

    def get_tags(self) -> list[str]:
        rest = self.path.removeprefix(OF_A_PROJECT).removeprefix(PREFIX)
        return [rest.split("/")[0].split(".")[0] or ("projects" if self.path == OF_A_PROJECT else "about")]

    def get_description(self) -> str:  # type: ignore[override]
        """Of the method or of its own view, not of what the view derives from."""
        method = getattr(self.view, self.method.lower(), None)
        words = getattr(method, "__doc__", None) or type(self.view).__doc__ or ""
        return " ".join(words.split())

    def get_auth(self) -> list[dict[str, Any]]:
        """Where only a session will do, a token is not named."""
        ways: list[dict[str, Any]] = super().get_auth()
        by_session = self.method in getattr(self.view, "by_session", ())
        return [way for way in ways if "token" not in way] if by_session else ways

    def query_names(self) -> set[str]:
        """The query parameters that the method's schema names."""
        names: set[str] = set()
        for parameter in self.get_override_parameters():
            if isinstance(parameter, type) and issubclass(parameter, serializers.Serializer):
                parameter = parameter()
            if isinstance(parameter, serializers.Serializer):
                names |= set(parameter.fields)
            elif getattr(parameter, "location", "") == "query":
                names.add(parameter.name)
        return names

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        """With the bounds that every whole number has which is sent in."""
        schema = super()._map_serializer_field(field, direction, bypass_extensions)
        if direction == "request" and isinstance(field, serializers.IntegerField):
            return {"maximum": LARGEST, "minimum": -LARGEST, **schema}
        return schema

    def _get_parameters(self) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = super()._get_parameters()
        if self.method in WRITES:
            return [*parameters, _KEY_HEADER]
        return parameters if self._streams else [*parameters, _KNOWN_HEADER]

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        self.resolve_serializer(Problem, "response")
        statuses = [400, 406, 429, 500, 503]
        if self.get_auth():
            statuses += [401, 403]
        if "{" in self.path:
            statuses.append(404)
        if self.method in WRITES:
            statuses += [409, 413, 415, 422]
        elif getattr(self.view, "may_conflict", False):
            statuses.append(409)
        problems = {
            str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in sorted(statuses)
        }
        same = {} if self.method != "GET" or self._streams else {"304": self._nothing_new()}
        return {**problems, **same, **bodies}

    @property
    def _streams(self) -> bool:
        """Whether the answer is made while it is sent, so that nobody knows its ETag beforehand."""
        return str(self.path).endswith(".ndjson")

    def _nothing_new(self) -> dict[str, Any]:
        told = "It is still what the ETag in If-None-Match names; without a body."
        return {"description": told, "headers": _headers("ETag", *_OF_ALL)}

    def _get_response_headers_for_code(self, status_code: str, direction: Any = "response") -> dict[str, Any]:
        known: dict[str, Any] = super()._get_response_headers_for_code(status_code, direction)
        names = list(_OF_ALL)
        if self.method == "GET" and not self._streams:
            names.append("ETag")
        if self.method in WRITES:
            names.append("Idempotency-Replayed")
        if status_code in ("201", "202"):
            names.append("Location")
        if "cursor" in self.query_names():
            names.append("Link")
        return {**_headers(*names), **known}


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}


def name_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe the problems of each status, with the codes that they may have, and the headers of answers (a
    hook of drf-spectacular).
    """
    result["components"]["headers"] = {
        name: {"description": told, "schema": schema} for name, (told, schema) in _HEADERS.items()
    }
    responses = result["components"].setdefault("responses", {})
    for status, codes in codes_by_status().items():
        told = {"type": "object", "properties": {"code": {"enum": [known.code for known in codes]}}}
        schema = {"allOf": [{"$ref": "#/components/schemas/Problem"}, told]}
        responses[f"Problem{status}"] = {
            "description": "; ".join(f"`{known.code}`: {known.title}" for known in codes) + ".",
            "headers": _headers(*_OF_ALL, *(["Retry-After"] if str(status) in _LATER else [])),
            "content": {"application/problem+json": {"schema": schema}},
        }
    return result


class SessionScheme(BuiltInSessionScheme):
    target_class = "annotation.people.authentication.SessionAuthentication"


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "annotation.people.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token <token>` or `Bearer <token>`; the page of one's account makes tokens.",
        }


@cache
def _names() -> dict[str, str]:
    """The name of each address by its pattern, as drf-spectacular writes it."""

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in patterns:
            path = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                found |= walk(entry.url_patterns, path)
            elif entry.name:
                found[path] = entry.name
        return found

    return walk(get_resolver().url_patterns, "")
