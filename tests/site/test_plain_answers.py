"""What holds for answers, whatever they are about: their type, methods and fields, and the way out."""

import re
from pathlib import Path

import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client

from testbed.factories import PASSWORD, make_project, make_user

pytestmark = pytest.mark.django_db
STATIC = Path(__file__).resolve().parents[2] / "static"
OPEN = ("/login/", "/login/passkey/", "/healthz", "/readyz", "/.well-known/security.txt", "/metrics")


@pytest.fixture
def known() -> Client:
    client = Client()
    client.force_login(make_user("ann"), "annotation.people.log_in.PasswordBackend")
    return client


def test_text_says_in_which_characters_it_is(known, settings) -> None:
    settings.HYPAC_SECURITY_CONTACT, settings.HYPAC_METRICS_TOKEN = "mailto:s@example.org", "t" * 40
    told = {path: Client().get(path)["Content-Type"] for path in OPEN}
    told |= {
        path: known.get(path)["Content-Type"] for path in ("/", "/account/", "/nowhere/", "/static/no.css")
    }
    assert {path for path, kind in told.items() if kind.startswith("text/")} > {"/healthz", "/metrics", "/"}
    lacking = {
        path: kind for path, kind in told.items() if kind.startswith("text/") and "charset=utf-8" not in kind
    }
    assert lacking == {}


def test_trace_is_answered_nowhere(known) -> None:
    for path in (
        *OPEN,
        "/",
        "/account/",
        "/admin/",
        "/api/v1/projects/",
        "/static/site.js",
        "/sign-on/log-out/",
    ):
        answer = known.generic("TRACE", path, headers={"X-Told": "echo-of-this"})
        assert answer.status_code in (302, 403, 404, 405), path
        assert b"echo-of-this" not in b"".join(answer), path


def test_no_folder_is_listed(known) -> None:
    for path in (
        "/static/",
        "/static/icons/",
        "/static/annotate/",
        "/media/",
        "/templates/",
        "/docs/",
        "/var/",
    ):
        assert known.get(path).status_code == 404, path
    assert known.get("/static/site.js").status_code == 200


def test_a_form_is_what_is_sent_in_its_body_and_once(settings) -> None:
    make_user("ann")
    client = Client()
    client.post(f"/login/?username=ann&password={PASSWORD}", {})
    assert SESSION_KEY not in client.session
    client.post("/login/", {"username": ["ann", "bob"], "password": PASSWORD})
    assert SESSION_KEY not in client.session, "the last one counts, for all who look"
    client.post("/login/?username=bob", {"username": ["bob", "ann"], "password": PASSWORD})
    assert SESSION_KEY in client.session


def test_passwords_are_hidden_as_they_are_typed_and_may_be_pasted_and_filled_in(known) -> None:
    pages = [Client().get("/login/"), known.get("/password/"), known.get("/account/")]
    pages += [known.get(f"/account/second-step/{page}/") for page in ("app", "passkeys/new")]
    found = [
        field
        for page in pages
        for field in re.findall(r"<input[^>]*>", page.content.decode())
        if re.search(r'name="[a-z_0-9]*password[a-z_0-9]*"', field)
    ]
    assert len(found) == 7
    for field in found:
        assert 'type="password"' in field
        assert re.search(r'autocomplete="(current|new)-password"', field), field
    scripts = [file for file in STATIC.rglob("*.js") if "vendor" not in file.parts]
    assert len(scripts) > 10
    assert [file.name for file in scripts if re.search(r"[\"']paste[\"']|onpaste", file.read_text())] == []


def test_each_page_has_the_log_out(known) -> None:
    project = make_project(make_user("bob"))
    owner = Client()
    owner.force_login(project.created_by, "annotation.people.log_in.PasswordBackend")
    inside = [
        f"/projects/{project.slug}/{page}" for page in ("", "annotate/", "items/", "members/", "manage/")
    ]
    for path in (
        "/",
        "/account/",
        "/account/tokens/",
        "/account/second-step/",
        "/password/",
        "/help/",
        *inside,
    ):
        page = owner.get(path, follow=True)
        assert page.status_code == 200, path
        assert 'action="/logout/"' in page.content.decode(), path
