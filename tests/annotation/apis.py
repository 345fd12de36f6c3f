"""A client of one person in one project, and what an error has to look like."""

import json
from typing import Any

from django.test import Client
from django.urls import reverse

from annotation.error_codes import ERROR_CODES
from annotation.models import Project, User

NDJSON = "application/x-ndjson"


class Api:
    """A client of one person in one project."""

    def __init__(self, project: Project, user: User | None) -> None:
        self.base = f"/api/v1/projects/{project.slug}/"
        self.client = Client()
        if user:
            self.client.force_login(user)

    def get(self, path: str = "", **query: Any) -> Any:
        return self.client.get(self.base + path, query)

    def post(self, path: str, **body: Any) -> Any:
        return self.send("POST", path, body)

    def put(self, path: str, **body: Any) -> Any:
        return self.send("PUT", path, body)

    def patch(self, path: str = "", **body: Any) -> Any:
        return self.send("PATCH", path, body)

    def delete(self, path: str = "") -> Any:
        return self.client.delete(self.base + path)

    def send(self, method: str, path: str, body: Any, **headers: str) -> Any:
        return self.client.generic(
            method, self.base + path, json.dumps(body), content_type="application/json", headers=headers
        )

    def raw(self, path: str, body: bytes, content_type: str = NDJSON) -> Any:
        # Without a body the client would leave out the type.
        extra = {"CONTENT_TYPE": content_type}
        return self.client.generic("POST", self.base + path, body, content_type=content_type, **extra)

    def lines(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """The objects of an answer that is NDJSON."""
        response = self.get(path, **query)
        assert response.status_code == 200, response.content
        assert response["Content-Type"] == NDJSON
        content = b"".join(response.streaming_content)
        assert content == b"" or content.endswith(b"\n")
        return [json.loads(line) for line in content.splitlines()]


def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["detail"]
    assert ERROR_CODES[body["code"]].status == status
    assert body["type"] == reverse("api_error", args=[body["code"]])
    return body
