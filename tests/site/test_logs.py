"""Lines of the log: as text and JSON, with the request or job they belong to, without tokens."""

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.conf import settings
from django.core import signing
from django.test import Client
from django.urls import get_resolver, reverse
from django.urls.converters import IntConverter
from django.utils.module_loading import import_string

from annotation.common.log_context import bind
from annotation.jobs import jobs, kinds
from annotation.jobs.context import JobContext
from annotation.models import Job
from annotation.projects import views as projects
from hypac_site.logs import JsonFormatter, TextFormatter, hidden
from testbed.factories import add_member, make_project

TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(params=[JsonFormatter, TextFormatter], ids=["json", "text"])
def lines(request) -> Iterator[io.StringIO]:
    """What the console gets."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param())
    for name in settings.LOGGING["handlers"]["console"]["filters"]:
        handler.addFilter(import_string(settings.LOGGING["filters"][name]["()"])())
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def parsed(stream: io.StringIO) -> list[dict]:
    text = stream.getvalue()
    return [json.loads(line) if line.startswith("{") else {"message": line} for line in text.splitlines()]


def test_a_line_names_what_it_belongs_to(lines) -> None:
    log = logging.getLogger("annotation.tests")
    with bind(job=7), bind(job_kind="import_items"):
        log.warning("a chunk of %d rows", 12)
    log.warning("outside")
    inside, outside = lines.getvalue().splitlines()
    if inside.startswith("{"):
        line = json.loads(inside)
        assert (line["job"], line["job_kind"], line["message"]) == (7, "import_items", "a chunk of 12 rows")
        assert (line["level"], line["logger"]) == ("WARNING", "annotation.tests")
        assert line["time"].endswith("+00:00")
        assert "job" not in json.loads(outside)
    else:
        assert inside.endswith("WARNING annotation.tests a chunk of 12 rows [job=7 job_kind=import_items]")
        assert outside.endswith("outside")


def test_an_exception_is_one_line_of_json_without_the_tokens_in_it(lines) -> None:
    try:
        raise ValueError(f"no page at /join/{TOKEN}/ for you")
    except ValueError:
        logging.getLogger("annotation.tests").exception("failed")
    text = lines.getvalue()
    assert "ValueError" in text
    assert TOKEN not in text
    if text.startswith("{"):
        assert text.count("\n") == 1
        assert "Traceback" in json.loads(text)["exc_info"]


def test_neither_a_message_nor_a_trace_forges_a_line(lines) -> None:
    log, forged = logging.getLogger("annotation.tests"), "2026-01-01 00:00:00,000 ERROR hypac nobody did it"
    log.warning("project %s is deleted", f"Reviews\r\n{forged}\x1b[2J\u2028{forged}")
    try:
        raise ValueError(f"no such label: x\n{forged}\x1b[1A\r{forged}")
    except ValueError:
        log.exception("failed", stack_info=True)
    text = lines.getvalue()
    assert text.count("nobody did it") >= 4
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith(forged)]


@pytest.mark.parametrize("colon", [":", "%3A"])
def test_a_signed_address_of_an_image_is_hidden_and_its_hash_is_not(lines, colon) -> None:
    signed, sha256 = colon.join(["WzEsImFiYyIsOV0", "1vOaXb", "s1gnatur-e_0"]), "0123456789abcdef" * 4
    log = logging.getLogger("annotation.tests")
    log.warning("GET /images/%s/ 200", signed)
    log.warning("GET /login/?next=%%2Fimages%%2F%s%%2F 200", signed)
    log.warning("GET /api/v1/projects/p/images/%s/ 200", sha256)
    text = lines.getvalue()
    assert "s1gnatur" not in text
    assert "1vOaXb" not in text
    assert "GET /images/.../ 200" in text
    assert f"/images/{sha256}/ 200" in text


# Parts of addresses that open nothing by themselves.
OPEN_PARTS = {"slug", "sha256", "code", "document", "uidb64", "path", "object_id", "content_type_id", "id"}


def addresses(patterns: list, before: str = "/") -> Iterator[tuple[str, dict[str, object]]]:
    for one in patterns:
        route = before + str(one.pattern)
        if hasattr(one, "url_patterns"):
            yield from addresses(one.url_patterns, route)
        else:
            yield route, one.pattern.converters


def test_every_part_of_an_address_that_is_a_secret_is_hidden() -> None:
    """A new one is either named above, or hidden."""
    signed, secret = signing.dumps([7, "ann@example.org"], salt="any"), []
    for route, parts in addresses(get_resolver().url_patterns):
        named = {name for name, kind in parts.items() if not isinstance(kind, IntConverter)} - OPEN_PARTS
        for name in named if "deliveries/" not in route else ():
            shown = re.sub(rf"<\w+:{name}>", signed, route)
            shown = re.sub(r"<[^>]*>", "Mg", shown)
            assert signed in shown
            for told in (shown, f"/login/?next={quote(shown, safe='')}", f"/login/?next={quote(shown)}"):
                assert signed.rpartition(":")[2] not in hidden(told), f"{told}: see SECRET_PARTS"
            secret.append(route)
    assert len(secret) == 5, secret


def _break(*args: object, **kwargs: object) -> None:
    raise RuntimeError("a bug")


@pytest.mark.django_db
class TestRequests:
    def test_a_refused_one_is_a_line_and_a_failed_one_has_its_trace(self, lines, monkeypatch) -> None:
        client = Client(raise_request_exception=False)
        project = make_project()
        client.force_login(add_member(project))
        assert client.get(reverse("members", args=[project.slug])).status_code == 403
        assert "Forbidden" in lines.getvalue()
        assert "Traceback" not in lines.getvalue()
        monkeypatch.setattr(projects, "render", _break)
        assert client.get("/").status_code == 500
        assert "Traceback" in lines.getvalue()

    def test_each_answer_carries_an_id(self) -> None:
        first, second = (Client().get("/login/").headers["X-Request-ID"] for _ in range(2))
        assert len(first) == 32
        assert first != second

    @pytest.mark.parametrize(
        ("behind_proxy", "given", "taken"),
        [
            (True, "7f9c-of-the-proxy", True),
            (True, "short", False),
            (True, "x" * 65, False),
            (True, 'a"b\\c {"level": 1}', False),
            (False, "7f9c-of-a-stranger", False),
        ],
    )
    def test_the_id_of_the_proxy_is_taken_if_it_is_sane(self, settings, behind_proxy, given, taken) -> None:
        settings.HYPAC_BEHIND_PROXY = behind_proxy
        answer = Client().get("/login/", headers={"X-Request-ID": given})
        assert (answer.headers["X-Request-ID"] == given) is taken

    def test_a_line_for_each_request_where_that_is_wanted(self, settings, lines) -> None:
        logging.getLogger("hypac.requests").setLevel(logging.INFO)
        Client().get("/login/?q=secret+search")
        assert "GET /login/" not in lines.getvalue()
        settings.HYPAC_LOG_REQUESTS = True
        number = Client().get("/login/?q=secret+search").headers["X-Request-ID"]
        Client().get(f"/join/{TOKEN}/")
        Client().get("/healthz")
        text = lines.getvalue()
        assert "GET /login/ 200 in " in text
        assert number in text
        assert "secret" not in text
        assert TOKEN not in text
        assert "healthz" not in text
        if text.startswith("{"):
            line = next(line for line in parsed(lines) if line["logger"] == "hypac.requests")
            assert (line["status"], line["method"], line["path"]) == (200, "GET", "/login/")

    def test_a_path_begins_no_line_of_its_own(self, settings, lines) -> None:
        logging.getLogger("hypac.requests").setLevel(logging.INFO)
        settings.HYPAC_LOG_REQUESTS = True
        Client().get("/a%0A2026-01-01 INFO hypac.requests POST /admin/ 200%1B[31m/")
        assert not [line for line in lines.getvalue().splitlines() if line.startswith("2026-01-01 INFO")]
        assert "\x1b" not in lines.getvalue()
        assert "GET /a%0A2026-01-01%20INFO" in lines.getvalue()

    def test_what_django_says_of_an_answer_belongs_to_the_request(self, lines) -> None:
        number = Client().get("/no-such-page/").headers["X-Request-ID"]
        assert "Not Found: /no-such-page/" in lines.getvalue()
        assert number in lines.getvalue()

    def test_the_address_behind_a_proxy_is_the_one_that_the_proxy_saw(self, settings, lines) -> None:
        settings.HYPAC_LOG_REQUESTS = settings.HYPAC_BEHIND_PROXY = True
        logging.getLogger("hypac.requests").setLevel(logging.INFO)
        seen = "198.51.100.7"
        Client(REMOTE_ADDR="10.0.0.2").get("/login/", headers={"X-Forwarded-For": f"203.0.113.9, {seen}"})
        Client(REMOTE_ADDR="10.0.0.2").get("/login/", headers={"X-Forwarded-For": '"><script>'})
        if lines.getvalue().startswith("{"):
            found = [line["address"] for line in parsed(lines) if line["logger"] == "hypac.requests"]
            assert found == [seen, "10.0.0.2"]


@pytest.mark.django_db(transaction=True)
def test_what_a_job_logs_names_it(project, lines, monkeypatch) -> None:
    def handler(context: JobContext) -> None:
        logging.getLogger("annotation.tests").warning("at work in %s", threading.current_thread().name)

    monkeypatch.setattr(kinds, "KINDS", dict(kinds.KINDS))
    jobs.register("tell", handler, title="Tell")
    job = jobs.enqueue(project=project, kind_name="tell", params={})
    assert jobs.run(job.pk)
    assert Job.objects.get(pk=job.pk).state == Job.State.DONE
    line = next(line for line in lines.getvalue().splitlines() if "at work in" in line)
    if line.startswith("{"):
        assert (json.loads(line)["job"], json.loads(line)["job_kind"]) == (job.pk, "tell")
    else:
        assert line.endswith(f"[job={job.pk} job_kind=tell]")
