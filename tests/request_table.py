"""The table of the API's requests in docs/, made from its schema: `python -m tests.request_table`."""

from collections.abc import Mapping
from typing import Any

from tests.error_table import DOCS, as_csv
from tests.openapi import write

FILE = DOCS / "requests.csv"
HEAD = ("method", "address", "in the query", "body", "what it does")
METHODS = ("get", "post", "put", "patch", "delete")
JSON = "application/json"

Schema = Mapping[str, Any]


def table(schema: Schema) -> str:
    rows = [
        (
            method.upper(),
            path,
            " ".join(given["name"] for given in known.get("parameters", ()) if given["in"] == "query"),
            _body(known, schema),
            " ".join(known.get("description", "").split()),
        )
        for path, operations in schema["paths"].items()
        for method, known in operations.items()
        if method in METHODS
    ]
    return as_csv([HEAD, *rows])


def _body(operation: Schema, schema: Schema) -> str:
    """The names of the fields of a body of JSON, or the other types that it can have."""
    content = operation.get("requestBody", {}).get("content", {})
    if JSON not in content:
        return " ".join(content)
    described = content[JSON]["schema"]
    while "$ref" in described:
        described = schema["components"]["schemas"][described["$ref"].rpartition("/")[2]]
    return " ".join(described.get("properties", ()))


if __name__ == "__main__":
    write(FILE, table)
