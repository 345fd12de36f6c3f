"""Pages are written in the language and the time zone of the reader."""

import html
import re
from datetime import UTC, datetime

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from annotation.errors import InputError
from annotation.labelling import queue
from annotation.labelling.queries import annotator_pace
from annotation.labelling.validation import validate_value
from annotation.models import Job
from hypac_site.middleware import ZONE_COOKIE, ReaderMiddleware
from testbed.factories import make_items
from testbed.worlds import make_world

pytestmark = pytest.mark.costly


@pytest.fixture(autouse=True)
def as_it_was():
    """A request leaves its language in the thread; the next test starts without it."""
    with translation.override(None):
        yield


@pytest.mark.django_db
class TestLanguage:
    def test_the_browser_says_it_to_whoever_has_not_chosen(self, project) -> None:
        answer = Client().get(reverse("login"), headers={"Accept-Language": "fr-CA,fr;q=0.9"})
        assert answer.headers["Content-Language"] == "fr"
        assert '<html lang="fr">' in answer.content.decode()
        assert "Mot de passe" in answer.content.decode()

    @pytest.mark.parametrize("asked", ["", "tlh", "x" * 5000])
    def test_a_language_that_is_not_there_gives_english(self, asked: str) -> None:
        answer = Client().get(reverse("login"), headers={"Accept-Language": asked})
        assert answer.headers["Content-Language"] == "en"
        assert "Password" in answer.content.decode()

    def test_the_choice_of_a_person_comes_before_the_browser(self, project) -> None:
        client, user = Client(), project.created_by
        client.force_login(user)
        for chosen, asked, found in (
            ("fr", "en", "fr"),
            ("en", "fr", "en"),
            ("tlh", "fr", "fr"),
            ("", "fr", "fr"),
        ):
            type(user).objects.filter(pk=user.pk).update(language=chosen)
            answer = client.get(reverse("project_list"), headers={"Accept-Language": asked})
            assert answer.headers["Content-Language"] == found, (chosen, asked)
            assert f'<html lang="{found}">' in answer.content.decode()

    def test_kinds_of_jobs_are_named_in_it(self, project) -> None:
        client, user = Client(), project.created_by
        type(user).objects.filter(pk=user.pk).update(language="fr")
        Job.objects.create(project=project, kind="import_undo", created_by=user)
        client.force_login(user)
        shown = client.get(reverse("jobs", args=[project.slug])).content.decode()
        assert "Annulation d’un import" in html.unescape(shown)

    def test_formats_of_files_are_named_in_it(self, project) -> None:
        client, user = Client(), project.created_by
        type(user).objects.filter(pk=user.pk).update(language="fr")
        client.force_login(user)
        rows = SimpleUploadedFile("rows.csv", b"a,b\n1,2\n")
        page = client.post(reverse("import_upload", args=[project.slug]), {"file": rows}, follow=True)
        shown = page.content.decode()
        assert "Tableau CSV, virgules entre les cellules" in shown
        assert "CSV table" not in shown

    def test_what_is_refused_on_the_way_in_is_said_in_it_too(self, project) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(project.created_by)
        type(project.created_by).objects.update(language="fr")
        answer = client.post(reverse("project_new"), {})
        assert answer.status_code == 403
        assert '<html lang="fr">' in answer.content.decode()


class TestZone:
    # In Auckland the 3rd of May has begun, in Los Angeles it is still the 2nd.
    NOW = datetime(2026, 5, 2, 15, 0, tzinfo=UTC)

    def zone_within(self, rf, cookie: str) -> str:
        seen: list[str] = []
        request = rf.get("/")
        request.user = type("Nobody", (), {"is_authenticated": False})()
        request.COOKIES[ZONE_COOKIE] = cookie

        def answer(_request):
            seen.append(timezone.get_current_timezone_name())
            return HttpResponse()

        ReaderMiddleware(answer)(request)
        return seen[0]

    def test_the_browser_says_it(self, rf) -> None:
        assert self.zone_within(rf, "Pacific/Auckland") == "Pacific/Auckland"
        assert timezone.get_current_timezone_name() == "UTC"

    @pytest.mark.parametrize("cookie", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "a\0b"])
    def test_what_is_no_zone_is_the_servers(self, rf, cookie: str) -> None:
        assert self.zone_within(rf, cookie) == "UTC"

    @pytest.mark.django_db
    def test_a_page_writes_times_in_it(self, project, owner, monkeypatch) -> None:
        type(project).objects.update(created_at=self.NOW)
        page = reverse("project_list")
        for zone, words in (
            ("Pacific/Auckland", "3 May 2026, 03:00 NZST"),
            ("America/Los_Angeles", "2 May 2026, 08:00 PDT"),
            ("Mars/Olympus", "2 May 2026, 15:00 UTC"),
        ):
            owner.cookies[ZONE_COOKIE] = zone
            assert words in owner.get(page).content.decode()

    @pytest.mark.django_db
    def test_today_begins_at_the_readers_midnight(self, project, monkeypatch) -> None:
        monkeypatch.setattr(timezone, "now", lambda: self.NOW.replace(hour=6))
        items = [item.pk for item in make_items(project, 1)]
        queue.create_batch(project=project, item_ids=items, blind=False, priority=0, entropy=1)
        task = queue.claim(project=project, user=project.created_by)
        label = queue.submit(
            user=project.created_by,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key="k",
        )
        assert label.created_at == self.NOW.replace(hour=6)
        monkeypatch.setattr(timezone, "now", lambda: self.NOW)
        today = {}
        for zone in ("UTC", "Pacific/Auckland", "America/Los_Angeles"):
            with timezone.override(zone):
                today[zone] = annotator_pace(project, project.created_by).today
        assert today == {"UTC": 1, "Pacific/Auckland": 0, "America/Los_Angeles": 0}


class TestNumbers:
    @pytest.mark.parametrize(
        ("source", "english", "french"),
        [
            ("{{ 0.0512|percent }}", "5.1\xa0%", "5,1\xa0%"),
            ("{{ 1234567|number }}", "1,234,567", "1\xa0234\xa0567"),
            ('{{ "1234.5"|money:"USD" }}', "1,234.50\xa0USD", "1\xa0234,50\xa0USD"),
            ('{{ "0.0004"|money }}', "0.0004", "0,0004"),
            ('{{ "-0.5"|money }}', "-0.50", "-0,50"),
            ('{{ "0.0500"|decimal }}', "0.05", "0,05"),
            ('{{ "-1200"|number }}', "-1,200", "-1\xa0200"),
        ],
    )
    def test_as_the_language_writes_them(self, source: str, english: str, french: str) -> None:
        template = Template("{% load hypac %}" + source)
        for language, expected in (("en", english), ("fr", french)):
            with translation.override(language):
                assert template.render(Context()) == expected


@pytest.mark.django_db
def test_what_browsers_and_the_server_read_keeps_its_point() -> None:
    """In figures, fields and data a comma would be read as another number, or as none."""
    world = make_world(60, human_cost="8.5")
    run = world.analysed(m=40)
    client = Client(headers={"accept-language": "fr"})
    client.force_login(world.manager)
    read = re.compile(
        r'\s(?:x|y|x1|x2|y1|y2|cx|cy|r|width|height|min|max|step|data-[\w-]+)="-?\d+,\d+"'
        r'|<input type="number"[^>]*\svalue="\d+,\d+"'
    )
    for name, parts in (
        ("overview", {}),
        ("run", {"number": run.number}),
        ("run_evidence", {"number": run.number}),
        ("run_plan", {"number": run.number}),
        ("plan", {}),
        ("sources", {}),
        ("project_settings", {}),
        ("items", {}),
    ):
        page = client.get(reverse(name, kwargs={"slug": world.project.slug, **parts})).content.decode()
        assert '<html lang="fr">' in page
        assert read.findall(page) == [], name
    shown = client.get(reverse("run_plan", args=[world.project.slug, run.number])).content.decode()
    assert "8,50\xa0USD" in shown
    assert "8.50\xa0USD" not in shown


@pytest.mark.django_db
def test_what_a_service_refuses_is_said_in_the_language_of_the_reader(project) -> None:
    with translation.override("fr"), pytest.raises(InputError) as refused:
        validate_value(project, "emu", item=0)
    with translation.override("en"), pytest.raises(InputError) as plain:
        validate_value(project, "emu", item=0)
    assert plain.value.message == "'emu' is not one of this project's labels."
    assert refused.value.message != plain.value.message
    assert "'emu'" in refused.value.message
