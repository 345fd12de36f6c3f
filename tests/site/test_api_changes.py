"""What breaks the programs that use the API, told from what is merely new (`testbed/api_changes.py`)."""

import copy
import json
from typing import Any

import pytest

from testbed import api_changes
from testbed.api_changes import Reducer, compare, packed, unpacked

OBJECT: dict[str, Any] = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
    },
}
SCHEMA: dict[str, Any] = {
    "paths": {
        "/things/{id}/": {
            "put": {
                "parameters": [
                    {"in": "path", "name": "id", "required": True, "schema": {"type": "integer"}},
                    {"in": "query", "name": "q", "schema": {"type": "string"}},
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string", "maxLength": 9},
                                    "kind": {"$ref": "#/components/schemas/Kind"},
                                    "share": {"type": "number", "nullable": True},
                                },
                            }
                        }
                    }
                },
                "responses": {"200": {"content": {"application/json": {"schema": OBJECT}}}, "409": {}},
            }
        }
    },
    "components": {
        "schemas": {
            "Kind": {"type": "string", "enum": ["a", "b"]},
            # It holds itself.
            "Part": {
                "type": "object",
                "properties": {
                    "size": {"type": "number"},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                },
            },
        }
    },
}


class Parts:
    """The places of a copy of the schema that tests change."""

    def __init__(self) -> None:
        self.schema = copy.deepcopy(SCHEMA)
        self.paths = self.schema["paths"]
        self.put = self.paths["/things/{id}/"]["put"]
        self.parameters = self.put["parameters"]
        self.asked = self.put["requestBody"]["content"]["application/json"]["schema"]
        self.takes = self.asked["properties"]
        self.statuses = self.put["responses"]
        self.answer = self.statuses["200"]["content"]["application/json"]["schema"]
        self.gives = self.answer["properties"]
        self.components = self.schema["components"]["schemas"]


def changes(statement: str) -> tuple[list[str], list[str]]:
    now = Parts()
    exec(statement, {"now": now})  # noqa: S102 - the statements below
    before = unpacked(packed(Reducer(SCHEMA).operations()))
    breaks, added = compare(before, Reducer(now.schema).operations())
    return [str(each) for each in breaks], [str(each) for each in added]


PUT = "PUT /things/{}/: "


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("now.paths.clear()", "the operation was removed"),
        ("del now.gives['name']", "200 .name: was removed or has another name"),
        ("now.gives['title'] = now.gives.pop('name')", "200 .name: was removed or has another name"),
        ("del now.gives['parts']", "200 .parts: was removed or has another name"),
        ("del now.components['Part']['properties']['size']", "200 .parts[].size: was removed"),
        ("now.gives['name']['nullable'] = True", "200 .name: can be null now"),
        ("now.gives['id']['type'] = 'string'", "200 .id: was integer, is string now"),
        ("now.gives['id']['type'] = 'number'", "200 .id: was integer, is number now"),
        ("now.answer['required'].remove('id')", "200 .id: can be missing now"),
        ("del now.statuses['409']", "409: the status was removed"),
        ("del now.statuses['200']['content']", "200: the body of application/json was removed"),
        ("now.asked['required'].append('kind')", "request .kind: is required now"),
        (
            "now.asked['required'].append('x'); now.takes['x'] = {'type': 'string'}",
            "request .x: new, and required",
        ),
        ("del now.takes['share']", "request .share: was removed"),
        ("now.takes['share']['nullable'] = False", "request .share: took null|number, takes number now"),
        ("now.takes['share']['type'] = 'integer'", "request .share: took null|number, takes integer|null"),
        ("now.takes['name']['format'] = 'uuid'", "request .name: took string, takes string:uuid now"),
        ("now.takes['name']['maxLength'] = 8", "request .name: its maxLength is 8 now (was 9)"),
        ("now.components['Kind']['enum'].remove('b')", "request .kind: takes b no more"),
        ("now.takes['name']['enum'] = ['a']", "request .name: takes only values of a list now"),
        ("now.put['requestBody']['required'] = True", "request: is required now"),
        ("del now.parameters[1]", "query q: was removed"),
        ("now.parameters[1]['required'] = True", "query q: is required now"),
        ("now.parameters[1]['schema']['type'] = 'integer'", "query q: took string, takes integer now"),
        (
            "now.parameters.append({'in': 'query', 'name': 'x', 'required': True, 'schema': {}})",
            "query x: new, and required",
        ),
    ],
)
def test_what_breaks_a_program_is_told_with_its_place(statement: str, told: str) -> None:
    breaks, _ = changes(statement)
    assert len(breaks) >= 1
    assert breaks[0].startswith(PUT + told)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("pass", []),
        (
            "now.paths['/things/{n}/'] = now.paths.pop('/things/{id}/'); now.parameters[0]['name'] = 'n'",
            [],
        ),
        ("now.put['description'] = 'x'", []),
        ("now.gives['more'] = {'type': 'string', 'nullable': True}", ["200 .more: new"]),
        ("now.takes['more'] = {'type': 'string'}", ["request .more: new"]),
        (
            "now.takes['o'] = {'type': 'object', 'required': ['p'], 'properties': {'p': {}}}",
            ["request .o: new", "request .o.p: new"],
        ),
        ("now.asked['required'].clear()", []),
        ("now.answer['required'].append('parts')", []),
        ("now.takes['name'].update(nullable=True, maxLength=10)", []),
        ("now.takes['kind'] = {'type': 'string'}", []),
        ("now.components['Kind']['enum'].append('c')", []),
        ("now.components['Part']['properties']['size']['type'] = 'integer'", []),
        (
            "c = now.components; c['K'] = c['Kind']; now.takes['kind']['$ref'] = '#/components/schemas/K'",
            [],
        ),
        ("now.takes['kind'] = {'allOf': [now.takes['kind']], 'nullable': True}", []),
        ("now.statuses['404'] = {}", ["404: new status"]),
        ("now.parameters.append({'in': 'query', 'name': 'x', 'schema': {}})", ["query x: new"]),
    ],
)
def test_what_is_new_or_wider_breaks_nothing(statement: str, told: list[str]) -> None:
    assert changes(statement) == ([], [PUT + each for each in told])


def test_a_new_operation_breaks_nothing() -> None:
    assert changes("now.paths['/x/'] = {'get': {'responses': {}}}") == ([], ["GET /x/: new"])


def test_the_command_says_one_line_or_each_break_and_what_to_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api_changes, "RELEASED", tmp_path / "released.json")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    assert api_changes.main([str(schema), "--release"]) == 0
    assert api_changes.main([str(schema)]) == 0
    assert capsys.readouterr().out == "API: nothing breaks since the last release; 0 additions.\n"

    now = Parts()
    del now.gives["name"], now.takes["kind"]
    schema.write_text(json.dumps(now.schema))
    assert api_changes.main([str(schema)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[1:] == [
        f"  {PUT}request .kind: was removed or has another name",
        f"  {PUT}200 .name: was removed or has another name",
        api_changes.ADVICE,
    ]
