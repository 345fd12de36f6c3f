"""What a change does to the programs that use `/api/v1/`: its schema beside that of the last release.

    python -m testbed.api_changes [SCHEMA.json]     # fails on what breaks a program
    python -m testbed.api_changes --release [...]   # at a release: keep the schema as the released one

Without a file the schema is made here. `api_released.json` is that of the release, reduced to what is
compared. Fields are flattened, so that the names of components, which no program sees, can change:
`.results[].id` is the id in each of the results, "" the body itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RELEASED = Path(__file__).with_name("api_released.json")
METHODS = ("get", "put", "post", "delete", "patch")
LOWEST = ("minimum", "minLength", "minItems")
HIGHEST = ("maximum", "maxLength", "maxItems")
ADVICE = "Keep it as it was, beside what is new, or make the change in a v2 (docs/api.md, What stays)."

Field = dict[str, Any]
"""`type` (names joined by "|"; "null" is one, a format follows its type), `required`, `enum`, bounds."""
Fields = dict[str, Field]


class Change(NamedTuple):
    operation: str
    where: str
    """Such as `200 .results[].id`, `request .name` or `query page_size`."""
    what: str

    def __str__(self) -> str:
        return (
            f"{self.operation}: {self.where}: {self.what}" if self.where else f"{self.operation}: {self.what}"
        )


# --- Reduced ------------------------------------------------------------------------------------------------


class Reducer:
    """Makes `{operation: {"parameters": Fields, "request": bodies, "answers": {status: bodies}}}`.

    Bodies are `{media type: Fields}`.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def operations(self) -> dict[str, Any]:
        return {
            f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}": self.operation(path, known, known[method])
            for path, known in self.schema["paths"].items()
            for method in METHODS
            if method in known
        }

    def operation(self, path: str, known: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
        parameters = [
            self.found(each) for each in [*known.get("parameters", []), *operation.get("parameters", [])]
        ]
        body = self.found(operation.get("requestBody", {}))
        answers = {status: self.found(answer) for status, answer in operation["responses"].items()}
        return {
            "parameters": {key: field for each in parameters for key, field in self.parameter(path, each)},
            "request": self.bodies(body, body.get("required", False)),
            "answers": {status: self.bodies(answer, True) for status, answer in answers.items()},
        }

    def parameter(self, path: str, known: dict[str, Any]) -> Iterator[tuple[str, Field]]:
        """By its name, one in the path by its place: its name is not part of an address."""
        name = known["name"]
        if known["in"] == "path":
            name = str(re.findall(r"{([^}]*)}", path).index(name) + 1)
        for below, field in self.fields(known.get("schema", {}), known.get("required", False)):
            yield f"{known['in']} {name}{below}", field

    def bodies(self, known: dict[str, Any], required: bool) -> dict[str, Fields]:
        return {
            media: dict(self.fields(content.get("schema", {}), required))
            for media, content in known.get("content", {}).items()
        }

    def found(self, known: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in known:
            target: Any = self.schema
            for step in known["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            known = target
        return known

    def fields(
        self, schema: dict[str, Any], required: bool, path: str = "", above: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Field]]:
        """What stands at a path, then all below it; ``above``: components around it, one may hold itself."""
        whole = self.whole(schema)
        field: Field = {"type": "|".join(sorted(whole["types"])) or "any"}
        if required:
            field["required"] = True
        if whole["enum"] is not None:
            field["enum"] = sorted(whole["enum"], key=str)
        yield path, field | whole["bounds"]
        if not above.count(schema.get("$ref", "")):
            above += (schema["$ref"],) if "$ref" in schema else ()
            for below, (known, needed) in sorted(whole["below"].items()):
                yield from self.fields(known, needed, path + below, above)

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema with those that it is made of: of `allOf` each holds, of `oneOf` and `anyOf` one."""
        known = self.found(schema)
        whole = _plain(known)
        for part in map(self.whole, known.get("allOf", [])):
            whole["types"] |= part["types"]
            whole["enum"] = part["enum"] if part["enum"] is not None else whole["enum"]
            whole["bounds"] |= part["bounds"]
            whole["below"] |= part["below"]
        choices = [self.whole(each) for each in [*known.get("oneOf", []), *known.get("anyOf", [])]]
        for part in choices:
            whole["types"] |= part["types"]
            whole["below"] |= {
                name: (one, needed and all(name in other["below"] for other in choices))
                for name, (one, needed) in part["below"].items()
            }
        if choices and all(part["enum"] is not None or part["types"] == {"null"} for part in choices):
            whole["enum"] = {value for part in choices for value in part["enum"] or ()}
        return whole


def _plain(known: dict[str, Any]) -> dict[str, Any]:
    kinds = known.get("type", "object" if "properties" in known else [])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    types = {
        f"{kind}:{known['format']}" if kind == "string" and "format" in known else kind for kind in kinds
    }
    enum = set(known["enum"]) if "enum" in known else None
    if known.get("nullable") or (enum and None in enum):
        types.add("null")
    needed = known.get("required", [])
    below = {f".{name}": (each, name in needed) for name, each in known.get("properties", {}).items()}
    if "items" in known:
        below["[]"] = (known["items"], False)
    if isinstance(known.get("additionalProperties"), dict):
        below["{}"] = (known["additionalProperties"], False)
    if enum is not None:
        enum.discard(None)
        if enum == set():
            enum, types = None, {"null"}
    bounds = {name: known[name] for name in (*LOWEST, *HIGHEST) if name in known}
    return {"types": types, "enum": enum, "bounds": bounds, "below": below}


# --- Compared -----------------------------------------------------------------------------------------------


def compare(before: dict[str, Any], now: dict[str, Any]) -> tuple[list[Change], list[Change]]:
    """What breaks programs that were written for ``before``, and what is merely new."""
    breaks: list[Change] = []
    added: list[Change] = []
    for operation in sorted(before.keys() | now.keys()):
        if operation not in now:
            breaks.append(Change(operation, "", "the operation was removed"))
        elif operation not in before:
            added.append(Change(operation, "", "new"))
        else:
            for breaking, where, what in _operation(before[operation], now[operation]):
                (breaks if breaking else added).append(Change(operation, where, what))
    return breaks, added


Found = Iterator[tuple[bool, str, str]]


def _operation(before: dict[str, Any], now: dict[str, Any]) -> Found:
    yield from _asked(before["parameters"], now["parameters"], "")
    yield from _bodies(before["request"], now["request"], "request", _asked)
    for status in sorted(before["answers"].keys() | now["answers"].keys()):
        if status not in now["answers"]:
            yield True, status, "the status was removed"
        elif status not in before["answers"]:
            yield False, status, "new status"
        else:
            yield from _bodies(before["answers"][status], now["answers"][status], status, _answered)


def _bodies(before: dict[str, Fields], now: dict[str, Fields], where: str, fields: Any) -> Found:
    for media in sorted(before.keys() | now.keys()):
        if media not in now:
            yield True, where, f"the body of {media} was removed"
        elif media in before:
            yield from fields(before[media], now[media], f"{where} ")
        elif not before and where == "request" and now[media][""].get("required"):
            yield True, where, f"a body of {media} is required now"
        else:
            yield False, where, f"new body of {media}"


def _asked(before: Fields, now: Fields, prefix: str) -> Found:
    """Parameters and fields of a request: they may only become more, and take more."""
    for path, what in _gone(before, now):
        yield True, prefix + path, what
    for path in sorted(now):
        field, old = now[path], before.get(path)
        where = (prefix + path).strip()
        if old is None:
            # What is below something new is asked only of whoever sends that.
            needed = field.get("required", False) and (_parent(path) == path or _parent(path) in before)
            yield needed, where, "new, and required" if needed else "new"
            continue
        if field.get("required") and not old.get("required"):
            yield True, where, "is required now"
        if not _within(old["type"], field["type"]):
            yield True, where, f"took {old['type']}, takes {field['type']} now"
        if "enum" in field and ("enum" not in old or not set(old["enum"]) <= set(field["enum"])):
            lost = sorted(set(old.get("enum", ())) - set(field["enum"]), key=str)
            yield (
                True,
                where,
                f"takes {', '.join(map(str, lost))} no more" if lost else "takes only values of a list now",
            )
        for bound in (*LOWEST, *HIGHEST):
            if bound in field and _narrower(bound, old.get(bound), field[bound]):
                yield True, where, f"its {bound} is {field[bound]} now (was {old.get(bound, 'none')})"


def _answered(before: Fields, now: Fields, prefix: str) -> Found:
    """Fields of an answer: what was there stays, and is what it was."""
    for path, what in _gone(before, now):
        yield True, prefix + path, what
    for path in sorted(now):
        field, old = now[path], before.get(path)
        where = (prefix + path).strip()
        if old is None:
            yield False, where, "new"
            continue
        if old.get("required") and not field.get("required"):
            yield True, where, "can be missing now"
        if not _within(field["type"], old["type"]):
            others = "|".join(kind for kind in field["type"].split("|") if kind != "null")
            only_null = others and _within(others, old["type"])
            yield (
                True,
                where,
                "can be null now" if only_null else f"was {old['type']}, is {field['type']} now",
            )
        if "enum" in old and "enum" not in field:
            yield True, where, "is no more a value of a list"
        new = sorted(set(field.get("enum", ())) - set(old.get("enum", ())), key=str) if "enum" in old else []
        if new:
            yield False, where, f"can be {', '.join(map(str, new))}, too"


def _gone(before: Fields, now: Fields) -> Iterator[tuple[str, str]]:
    """The highest of what is there no more."""
    for path in sorted(before.keys() - now.keys()):
        if _parent(path) == path or _parent(path) in now or _parent(path) not in before:
            yield path, "was removed or has another name"


def _parent(path: str) -> str:
    return path[: max(path.rfind(sign) for sign in ".[{")] if re.search(r"[.\[{]", path) else path


def _within(some: str, others: str) -> bool:
    """Whether whoever takes ``others`` can take all of ``some``."""
    wide = set(others.split("|"))
    takes = "any" in wide
    return takes or all(
        kind in wide or kind.split(":")[0] in wide or (kind == "integer" and "number" in wide)
        for kind in some.split("|")
    )


def _narrower(bound: str, old: float | None, new: float) -> bool:
    if old is None:
        return not (bound in ("minLength", "minItems") and new == 0)
    return new > old if bound in LOWEST else new < old


# --- Kept ---------------------------------------------------------------------------------------------------


def packed(operations: dict[str, Any]) -> str:
    """As text: one operation or body a line, sorted, each body once, under a part of its own SHA-256."""
    bodies: dict[str, Any] = {}

    def kept(body: Fields) -> str:
        name = hashlib.sha256(_line(body).encode()).hexdigest()[:10]
        bodies[name] = body
        return name

    short = _each_body(operations, kept)
    bodies = {name: {path: _short(field) for path, field in body.items()} for name, body in bodies.items()}
    parts = (
        f'"{title}": {{\n'
        + ",\n".join(f"{json.dumps(key)}:{_line(part[key])}" for key in sorted(part))
        + "\n}"
        for title, part in (("bodies", bodies), ("operations", short))
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def unpacked(text: str) -> dict[str, Any]:
    kept = json.loads(text)
    bodies = {
        name: {path: _long(field) for path, field in body.items()} for name, body in kept["bodies"].items()
    }
    return _each_body(kept["operations"], bodies.__getitem__)


def _short(field: Field) -> Field | str:
    """A field of which there is no more to say than its type, which ends with "!" where it is required."""
    required = "!" if field.get("required") else ""
    return field if field.keys() - {"type", "required"} else field["type"] + required


def _long(field: Field | str) -> Field:
    if isinstance(field, dict):
        return field
    return {"type": field.removesuffix("!")} | ({"required": True} if field.endswith("!") else {})


def _each_body(operations: dict[str, Any], change: Any) -> dict[str, Any]:
    def bodies(of: dict[str, Any]) -> dict[str, Any]:
        return {media: change(body) for media, body in of.items()}

    return {
        name: {
            "parameters": known["parameters"],
            "request": bodies(known["request"]),
            "answers": {status: bodies(answer) for status, answer in known["answers"].items()},
        }
        for name, known in operations.items()
    }


def _line(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def schema_here() -> str:
    command = [sys.executable, "manage.py", "spectacular", "--format", "openapi-json", "--fail-on-warn"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main(arguments: list[str]) -> int:
    files = [each for each in arguments if not each.startswith("--")]
    now = Reducer(json.loads(Path(files[0]).read_text() if files else schema_here())).operations()
    if "--release" in arguments:
        RELEASED.write_text(packed(now))
        return 0
    breaks, added = compare(unpacked(RELEASED.read_text()), now)
    if not breaks:
        print(f"API: nothing breaks since the last release; {len(added)} additions" + (":" if added else "."))
    for change in added:
        print(f"  + {change}")
    if breaks:
        print(
            f"API: {len(breaks)} changes break programs that were written for the last release:",
            file=sys.stderr,
        )
        for change in breaks:
            print(f"  {change}", file=sys.stderr)
        print(ADVICE, file=sys.stderr)
    return 1 if breaks else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
