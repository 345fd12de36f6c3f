"""The API's own schema, held against the views that it describes."""

import csv
from collections.abc import Iterator
from typing import Any

import pytest

from tests import openapi, request_table
from tests.client_types import FILE, module

pytestmark = pytest.mark.costly
# What a lease's token gives, nobody but its holder can use: an answer that holds one is kept and given again.
SECRETS = {"secret", "link"}
WRITES = {"POST", "PUT", "PATCH"}


class Described:
    """One method of one view, and what the schema says of it."""

    def __init__(self, path: str, method: str, view: Any, operation: dict[str, Any]) -> None:
        self.name, self.method, self.view, self.operation = f"{method} {path}", method, view, operation

    @property
    def handler(self) -> Any:
        return getattr(type(self.view), self.method.lower())

    @property
    def answers(self) -> dict[str, Any]:
        """The answers of success by their status."""
        return {code: body for code, body in self.operation["responses"].items() if code.startswith("2")}


@pytest.fixture(scope="module")
def generator() -> Any:
    return openapi.generator()


@pytest.fixture(scope="module")
def schema(generator) -> Any:
    return generator.get_schema(public=True)


@pytest.fixture(scope="module")
def operations(generator, schema) -> list[Described]:
    generator._initialise_endpoints()
    return [
        Described(path, method, view, schema["paths"][path][method.lower()])
        for path, _, method, view in generator._get_paths_and_endpoints()
        if method.lower() in schema["paths"].get(path, {})
    ]


def test_each_method_says_what_it_takes_and_what_it_answers(operations) -> None:
    silent = []
    for one in operations:
        described = getattr(one.handler, "kwargs", {}).get("schema")
        answers = [body for code, body in one.answers.items() if code != "204"]
        if described is None or not one.answers or not all(body.get("content") for body in answers):
            silent.append(one.name)
    assert len(operations) > 100
    assert silent == []


def test_answers_say_which_headers_they_have(operations, schema) -> None:
    silent = []
    for one in operations:
        for status, body in one.answers.items():
            wanted = {"RateLimit", "RateLimit-Policy"}
            wanted |= {"Location"} if status in ("201", "202") else set()
            wanted |= {"ETag"} if one.method == "GET" and ".ndjson" not in one.name else set()
            wanted |= {"Idempotency-Replayed"} if one.method in {*WRITES, "DELETE"} else set()
            if not wanted <= set(body.get("headers", {})):
                silent.append((one.name, status))
        if one.method == "GET" and ("304" in one.operation["responses"]) == (".ndjson" in one.name):
            silent.append((one.name, "304"))
    assert silent == []
    headers = schema["components"]["headers"]
    assert set(headers) == {_at(schema, one["$ref"])["description"] and name for one, name in _named(schema)}
    assert "Retry-After" in schema["components"]["responses"]["Problem429"]["headers"]


def _named(part: Any) -> Iterator[tuple[dict[str, str], str]]:
    """All mentions of headers in the schema, with their names."""
    if isinstance(part, dict):
        for name, inner in part.get("headers", {}).items():
            if "$ref" in inner:
                yield inner, name
        for inner in part.values():
            yield from _named(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _named(inner)


def test_each_method_that_reads_a_body_describes_it(operations) -> None:
    """A body of no described field is one of none: `request=None` says so."""
    silent = []
    for one in operations:
        body = one.operation.get("requestBody", {}).get("content", {})
        if one.method in WRITES and any(not media.get("schema") for media in body.values()):
            silent.append(one.name)
    assert silent == []


def test_answers_with_a_secret_are_not_kept(operations, schema) -> None:
    """Also an answer that some view gives later on: the names of its fields tell."""
    kept, seen = [], 0
    for one in operations:
        if one.method in {*WRITES, "DELETE"} and SECRETS & set(_fields(one.answers, schema)):
            seen += 1
            if one.method not in one.view.answers_secret:
                kept.append(one.name)
    assert seen >= 3
    assert kept == []


def _fields(part: Any, schema: Any) -> Iterator[str]:
    """The names of all fields of an answer, however deep."""
    if isinstance(part, list):
        for inner in part:
            yield from _fields(inner, schema)
    elif isinstance(part, dict):
        if "$ref" in part:
            part = _at(schema, part["$ref"])
        yield from part.get("properties", {})
        for inner in part.values():
            yield from _fields(inner, schema)


def _at(schema: Any, ref: str) -> Any:
    for name in ref.removeprefix("#/").split("/"):
        schema = schema[name]
    return schema


def test_the_client_s_types_are_those_of_the_schema(schema) -> None:
    assert FILE.read_text() == module(schema), "run `python -m tests.client_types`"


def test_the_documents_have_the_table_of_requests(schema) -> None:
    rows = request_table.table(schema)
    assert request_table.FILE.read_text() == rows, "run `python -m tests.request_table`"
    assert [row["address"] for row in csv.DictReader(rows.splitlines()) if not row["what it does"]] == []


@pytest.mark.django_db
def test_the_schema_is_made_once_and_named_at_the_root(client, monkeypatch) -> None:
    from testbed.factories import make_user

    client.force_login(make_user())
    links = client.get("/api/v1/").json()
    assert {name: link.removeprefix("http://testserver") for name, link in links.items()} == {
        "me": "/api/v1/me/",
        "projects": "/api/v1/projects/",
        "invitations": "/api/v1/invitations/",
        "tokens": "/api/v1/tokens/",
        "schema": "/api/v1/schema/",
        "docs": "/api/v1/docs/",
    }
    first = client.get(links["schema"]).content
    assert b"/api/v1/projects/" in first
    from drf_spectacular.generators import SchemaGenerator

    monkeypatch.setattr(SchemaGenerator, "get_schema", None)
    assert client.get(links["schema"]).content == first
