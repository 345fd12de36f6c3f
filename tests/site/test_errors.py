"""Errors that no view tells: pages for people, problems for programs."""

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from annotation.api.root import Root
from annotation.people.tokens import make_token
from annotation.projects import views as projects
from hypac_site.errors import permission_denied
from testbed.factories import make_project, make_user
from tests.annotation.apis import problem

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE")
UNKNOWN = (
    "/api/",
    "/api/v2/",
    "/api/v2/projects/",
    "/api/nowhere",
    "/api/v1/nowhere",
    "/api/v1/nowhere/",
    "/api/v1/projects/a/members/9223372036854775808/",
    "/api/v1/projects/a/members/one/",
    "/api/v1/a\nb",
    "/api/v1/%FF%FE/",
    "/label-studio/",
    "/label-studio/a/nothing",
    "/label-studio/a/runs/99999999999999999999/health",
)


def test_a_page_refused_outside_of_projects_sends_nobody_to_administrators_in_vain(rf) -> None:
    request = rf.get("/somewhere/")
    request.user = make_user()
    request.htmx = False
    request.session = {}
    answer = permission_denied(request, PermissionDenied("no"))
    assert answer.status_code == 403
    assert "This is not for your account" in answer.content.decode()
    assert "taff" not in answer.content.decode()


def _clients() -> dict[str, Client]:
    user = make_user()
    session = Client()
    session.force_login(user)
    return {
        "nobody": Client(),
        "somebody": session,
        "a token": Client(headers={"Authorization": f"Token {make_token(user=user, name='t')[1]}"}),
        "a wrong token": Client(headers={"Authorization": "Token hypac_wrong"}),
        "a browser": Client(headers={"Accept": "text/html"}),
    }


def test_unknown_addresses_of_programs_are_problems_for_all_and_by_every_method() -> None:
    for who, client in _clients().items():
        for path in UNKNOWN:
            for method in METHODS:
                response = client.generic(method, path, b"{}", content_type="application/json")
                kind = response.headers["Content-Type"]
                assert (response.status_code, kind) == (404, "application/problem+json"), (who, method, path)


def test_an_address_with_or_without_its_slash_is_named_and_nobody_is_sent_there() -> None:
    client = Client()
    for path, meant in (
        ("/api/v1/projects", "/api/v1/projects/."),
        ("/api/v1", "/api/v1/."),
        ("/api/v1/projects/a/items.ndjson/", "/api/v1/projects/a/items.ndjson."),
        ("/label-studio/a/health/", "/label-studio/a/health."),
    ):
        for method in ("GET", "POST"):
            told = problem(client.generic(method, path, b"{}", content_type="application/json"), 404)
            assert told["detail"].endswith(meant)
    assert "slash" in problem(client.get("/api/v1/nowhere"), 404)["detail"]
    with_one = problem(client.get("/api/v1/nowhere/"), 404)["detail"]
    assert "end with a slash" not in with_one
    assert reverse("api_docs") in with_one


def _break(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("a bug, and a secret")


def test_a_bug_is_a_problem_with_the_id_that_its_log_has(monkeypatch) -> None:
    monkeypatch.setattr(Root, "get", _break)
    monkeypatch.setattr(projects, "render", _break)
    client = _clients()["somebody"]
    client.raise_request_exception = False
    response = client.get("/api/v1/")
    told = problem(response, 500)
    assert told["request_id"] == response.headers["X-Request-ID"]
    assert "secret" not in response.content.decode()
    page = client.get("/")
    assert (page.status_code, page.headers["Content-Type"][:9]) == (500, "text/html")


def test_what_is_refused_before_any_view_is_a_problem_too() -> None:
    client = Client(SERVER_NAME="elsewhere.example")
    assert "Host" in problem(client.get("/api/v1/projects/"), 400)["detail"]
    page = client.get("/healthz/nothing")
    assert (page.status_code, page.headers["Content-Type"][:9]) == (400, "text/html")


def test_refusals_of_the_framework_are_problems() -> None:
    user = make_project().created_by
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    told = problem(client.post("/api/v1/projects/", {}, content_type="application/json"), 403)
    assert "CSRF" in told["detail"]
    program = Client(headers={"Authorization": f"Token {make_token(user=user, name='t')[1]}"})
    problem(program.generic("PURGE", "/api/v1/projects/"), 405)
    problem(program.get("/api/v1/projects/", headers={"Accept": "text/html"}), 406)
    problem(program.post("/api/v1/projects/", "x", content_type="text/plain"), 415)
    problem(program.post("/api/v1/projects/", "{", content_type="application/json"), 400)
    odd = "application/json; charset=nothing"
    problem(program.generic("POST", "/api/v1/projects/", b"{}", content_type=odd), 400)
