"""Numbers that no row can have, and characters that no database stores, wherever something takes them."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver
from django.urls.converters import IntConverter

from annotation.api.root import CachedSchemaGenerator
from tests.annotation.apis import problem
from tests.pages.test_access import (
    API,
    PAGES,
    address,
    addresses,
    arguments,  # noqa: F401 - fixture
    world,  # noqa: F401 - fixture
)

pytestmark = [pytest.mark.costly, pytest.mark.long]

TOO_LARGE = (2**63, 2**64, 10**30, -(2**64))
# The same number in another form, or none: an address has one form alone.
NO_NUMBERS = (*map(str, TOO_LARGE), "9" * 5_000, "-1", "007", "٣", "1_0", "+1", "1.0")
MARK = 77_077_077
QUERIES = {
    "annotate": ("correct",),
    "review": ("work_item", "after", "take"),
    "items": ("after", "before", "run", "label", "job"),
    "item": ("run", "after"),
    "items_changed": ("run",),
    "overview": ("told",),
    "source_prompt": ("version",),
    "run": ("state",),
    "audit": ("before",),
}
FIELDS = ("work_item", "label", "before", "connection", "item", "run", "lead_time_ms", "number", "position")
TEXTS = (
    "name",
    "comment",
    "text",
    "value",
    "token",
    "reason",
    "idempotency_key",
    "q",
    "next",
    "key",
    "prefix",
)
JSON = "application/json"


def numbered() -> Iterator[tuple[str, str, type[IntConverter]]]:
    """Names of addresses, each with a part that is a number, and with what reads it."""
    for names, entry in addresses():
        if "admin" not in names:
            kinds = get_resolver().reverse_dict.getlist(entry.name)[0][3]
            for part, kind in kinds.items():
                if isinstance(kind, IntConverter):
                    yield entry.name, part, type(kind)


@pytest.fixture
def client(world) -> Client:  # noqa: F811
    client = Client(raise_request_exception=False)
    client.force_login(world.manager)
    return client


@pytest.mark.django_db
def test_addresses_have_nothing_at_numbers_that_no_row_has(client, arguments) -> None:  # noqa: F811
    """All of them are read by one converter: every form is asked for where each kind of part is first."""
    asked = list(numbered())
    assert len(asked) > 90
    assert len({reader for _name, _part, reader in asked}) == 1
    wrong, seen = [], set()
    for name, part, _reader in asked:
        path = address(name, {**arguments, part: MARK})
        first = (part, name in API) not in seen
        seen.add((part, name in API))
        for number in NO_NUMBERS if first else NO_NUMBERS[:1]:
            # Nothing is found there, so nobody looks at the method.
            for method in ("GET", "POST", "DELETE") if first and number == NO_NUMBERS[0] else ("POST",):
                response = client.generic(method, path.replace(str(MARK), number))
                kind = response.headers["Content-Type"]
                if response.status_code != 404:
                    wrong.append((name, method, number[:40], response.status_code))
                elif name in API and kind != "application/problem+json":
                    wrong.append((name, method, number[:40], kind))
    assert wrong == []


@pytest.mark.django_db
def test_pages_go_on_with_any_number_in_their_query(client, arguments) -> None:  # noqa: F811
    wrong = []
    for name, table in PAGES.items():
        path = address(name, arguments)
        number = str(2**63)
        if "GET" in table:
            known = QUERIES.get(name, ("page",))
            statuses = {one: client.get(path, {one: number}).status_code for one in known}
            wrong += [(name, one) for one, status in statuses.items() if status >= 500]
        if "POST" in table:
            status = _tried(client, "post", path, dict.fromkeys(FIELDS, number)).status_code
            wrong += [(name, "POST")] if status >= 500 else []
    assert wrong == []


@pytest.mark.django_db
def test_no_address_has_a_character_that_no_database_stores(client, arguments) -> None:  # noqa: F811
    """At such an address is nothing; with it in the query the request is refused."""
    wrong = []
    slug = str(arguments["slug"])
    for name in {**PAGES, **API}:
        path = address(name, arguments)
        asked = {path.replace(slug, "%00"): 404}
        asked |= {f"{path}?{query}": 400 for query in ("q=%00", "%00=1", "a=%ED%A0%80&q=x%00")}
        for one, status in asked.items():
            found = client.get(one).status_code
            wrong += [(one, found)] if found != status else []
    paths = ("/static/%00", "/static/site%00.js", "/api/v1/%00/", "/%00", f"/projects/{slug}/images/%00/")
    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 404)
    assert wrong == []


@pytest.mark.django_db
def test_no_form_fails_at_such_a_character(client, arguments) -> None:  # noqa: F811
    wrong = []
    for name in (name for name, table in PAGES.items() if "POST" in table):
        sent = dict.fromkeys((*FIELDS, *TEXTS), "a\0b")
        status = _tried(client, "post", address(name, arguments), sent).status_code
        wrong += [name] if status >= 500 else []
    assert wrong == []


def _tried(client: Client, method: str, *sent: Any, **how: Any) -> Any:
    """The answer, without what it changed."""
    point = transaction.savepoint()
    answer = getattr(client, method)(*sent, **how)
    transaction.savepoint_rollback(point)
    return answer


Operation = tuple[str, str, dict[str, Any]]


def operations() -> Iterator[Operation]:
    """(path, method, operation) of the API's schema."""
    for path, methods in CachedSchemaGenerator().get_schema(public=True)["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def in_bodies(kind: str) -> Iterator[tuple[str, str, list[str | int]]]:
    """(path, method, place in the body) of all fields of a type that requests in JSON have."""
    for path, method, operation in operations():
        content = operation.get("requestBody", {}).get("content", {})
        for place in _places(content.get("application/json", {}).get("schema", {}), kind):
            yield path, method, place


def _places(schema: dict[str, Any], kind: str) -> Iterator[list[str | int]]:
    if reference := schema.get("$ref"):
        known = CachedSchemaGenerator().get_schema(public=True)["components"]["schemas"]
        schema = known[reference.rpartition("/")[2]]
    for inner in schema.get("allOf", []):
        yield from _places(inner, kind)
    if schema.get("type") == kind:
        yield []
    for name, inner in schema.get("properties", {}).items():
        yield from ([name, *rest] for rest in _places(inner, kind))
    if "items" in schema:
        yield from ([0, *rest] for rest in _places(schema["items"], kind))


def _body(place: list[str | int], value: Any) -> Any:
    for part in reversed(place):
        value = [value] if part == 0 else {part: value}
    return value


def _named(place: list[str | int]) -> str:
    return "".join(f"[{part}]" if part == 0 else f".{part}" for part in place).lstrip(".")


@pytest.mark.django_db
def test_the_api_refuses_such_numbers_in_every_query_and_body(client, arguments) -> None:  # noqa: F811
    queries = [
        (path, method, parameter)
        for path, method, operation in operations()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter["schema"].get("type") == "integer"
    ]
    bodies = list(in_bodies("integer"))
    assert len(queries) > 15
    assert len(bodies) > 15
    for number in TOO_LARGE:
        for path, method, parameter in queries:
            name = parameter["name"]
            answer = client.generic(
                method.upper(), path.format(**arguments), query_params={name: str(number)}
            )
            assert problem(answer, 400)["field"] == name, (path, method, name)
        for path, method, place in bodies:
            here = path.format(**arguments, token_id=1)
            told = problem(_tried(client, method, here, _body(place, number), content_type=JSON), 400)
            named = chain([told["field"]], told.get("errors", {}))
            assert any(one.startswith(_named(place)) for one in named), (path, method, place, told)


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_the_api_has_no_error_at_such_characters_in_any_body(client, arguments, text) -> None:  # noqa: F811
    bodies = list(in_bodies("string"))
    assert len(bodies) > 60
    wrong = []
    for path, method, place in bodies:
        here = path.format(**arguments, token_id=1)
        answer = _tried(client, method, here, _body(place, text), content_type=JSON)
        wrong += [(path, method, place)] if answer.status_code >= 500 else []
    assert wrong == []


@pytest.mark.django_db
def test_the_trail_has_no_page_at_what_is_no_place_in_it(client, world) -> None:  # noqa: F811
    trail = address("audit", {"slug": world.project.slug})
    assert client.get(trail, {"before": "5"}).status_code == 200
    for place in ("garbage", "-1", str(2**63), "٣"):
        assert client.get(trail, {"before": place}).status_code == 404
