"""What may be kept of an answer: nothing of what programs are told, whatever is answered."""

import pytest
from django.test import Client

from annotation.people.tokens import make_token
from testbed.worlds import World
from tests.pages.test_access import (
    API,
    METHODS,
    PUBLIC,
    SIGNED_IN,
    address,
    arguments as arguments,
    world as world,
)

pytestmark = pytest.mark.costly

KEPT_NOWHERE = "private, no-store"
FOR_PROGRAMS = sorted({*API, *(name for name in (*SIGNED_IN, *PUBLIC) if name.startswith("api_")), "metrics"})


@pytest.mark.django_db
def test_nothing_that_programs_are_told_is_kept(world: World, arguments: dict[str, object]) -> None:
    """401, 403, 404, 405, 400 and 200: whoever asks, however."""
    token = make_token(user=world.manager, name="t")[1]
    known = Client(raise_request_exception=False, headers={"Authorization": f"Token {token}"})
    stranger = Client(raise_request_exception=False)
    found, wrong = set(), []
    for name in FOR_PROGRAMS:
        path = address(name, {**arguments, "path": "nothing", "token_id": 1, "code": "not_found"})
        asked = [(known, method) for method in METHODS if method != "DELETE"]  # the rest is still to be asked
        # A stranger is told 401 before anybody looks at the method.
        for client, method in [(stranger, "GET"), *asked]:
            answer = client.generic(method, path)
            found.add(answer.status_code)
            if answer.headers.get("Cache-Control") != KEPT_NOWHERE:
                wrong.append(f"{method} {name}: {answer.status_code}")
    assert wrong == []
    assert found >= {200, 400, 401, 404, 405}


@pytest.mark.django_db
def test_neither_is_what_comes_of_a_limit_a_large_body_or_a_bug(settings, monkeypatch) -> None:
    client = Client(raise_request_exception=False)
    settings.HYPAC_API_RATES = {**settings.HYPAC_API_RATES, "anonymous": "1/min"}
    client.get("/api/v1/projects/")
    limited = client.get("/api/v1/projects/")
    large = client.post("/api/v1/projects/", CONTENT_LENGTH="6000000")
    monkeypatch.setattr("annotation.api.root.reverse", lambda name: 1 / 0)
    monkeypatch.setattr("annotation.api.root.Root.permission_classes", [])
    settings.HYPAC_API_RATES = dict.fromkeys(settings.HYPAC_API_RATES, "")
    broken = client.get("/api/v1/")
    host = client.get("/api/v1/", headers={"Host": "elsewhere.example.org"})
    answers = [limited, large, broken, host]
    assert [answer.status_code for answer in answers] == [429, 413, 500, 400]
    assert {answer.headers["Cache-Control"] for answer in answers} == {KEPT_NOWHERE}


@pytest.mark.django_db
def test_errors_and_redirections_of_pages_are_not_kept_either() -> None:
    client = Client(raise_request_exception=False)
    for path, status in {"/": 302, "/projects/nothing/": 302, "/nothing/": 404, "/logout/": 405}.items():
        answer = client.get(path)
        assert answer.status_code in (status, 302), path
        assert answer.headers["Cache-Control"] == KEPT_NOWHERE, path


@pytest.mark.django_db
def test_static_files_are_kept() -> None:
    assert "max-age" in Client().get("/static/site.js").headers["Cache-Control"]
