"""Pages and answers of the API show a bounded part of what others stored, and say that there is more."""

import hashlib
import io
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.common import audit, limits
from annotation.common.files import store_file
from annotation.errors import ConflictError
from annotation.imports.limits import MAX_COLUMNS
from annotation.labelling.comments import add_comment
from annotation.models import Comment, Label, Project, WorkBatch, WorkItem
from annotation.people.members import add_member
from annotation.permissions import access_to
from annotation.projects.manage import update_project
from routing.items.history import item_history
from routing.models import Delivery, ModelPrice, Prediction, PromptVersion, Run
from routing.sources.manage import save_source
from routing.sources.prices import save_price
from testbed.factories import make_items, make_project, make_user
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def page_of(client: Any, name: str, *arguments: object, **query: object) -> str:
    answer = client.get(reverse(name, args=arguments), query)
    assert answer.status_code == 200
    return answer.content.decode()


class TestStored:
    """One more than there may be is refused."""

    def test_comments_of_an_item(self, project, monkeypatch) -> None:
        monkeypatch.setattr(limits, "COMMENTS", 2)
        item = make_items(project, 1)[0]
        add_comment(item=item, author=project.created_by, text="one")
        add_comment(item=item, author=project.created_by, text="odd", is_flag=True)
        for is_flag in (False, True):
            with pytest.raises(ConflictError, match="at most 2 comments"):
                add_comment(item=item, author=project.created_by, text="more", is_flag=is_flag)
        assert add_comment(item=item, author=project.created_by, text="odd", is_flag=True).text == "odd"

    def test_members_sources_and_prices_of_a_project(self, project, monkeypatch) -> None:
        user = project.created_by
        for name in ("MEMBERS", "SOURCES", "PRICES"):
            monkeypatch.setattr(limits, name, 1)
        make_user("another")
        with pytest.raises(ConflictError, match="at most 1 members"):
            add_member(project=project, actor=user, username="another", role="viewer")
        Project.objects.filter(pk=project.pk).update(columns=["fast"])
        project.refresh_from_db()
        make_items(project, 1, data={"text": "x", "fast": "cat"})

        def add(name: str) -> None:
            save_source(project=project, user=user, name=name, backend="recorded",
                        params={"label_column": "fast"}, cost_per_label=Decimal(0))  # fmt: skip

        def price(name: str) -> None:
            prices = {"per_token": "1"}
            save_price(project=project, user=user, name=name, cost_function="tokens", prices=prices)

        add("one")
        with pytest.raises(ConflictError, match="at most 1 sources"):
            add("two")
        ModelPrice.objects.create(project=project, name="one", cost_function="flat")
        with pytest.raises(ConflictError, match="at most 1 lines"):
            price("two")

    def test_runs_of_a_project(self, monkeypatch) -> None:
        world = make_world(60)
        world.start(m=10)
        Run.objects.update(state="cancelled")
        monkeypatch.setattr(limits, "RUNS", 1)
        with pytest.raises(ConflictError, match="at most 1 runs"):
            world.start(m=10)

    def test_the_audit_trail_keeps_whole_guidelines_and_its_page_is_short(self, project, client_of) -> None:
        old, new = ("x" * 49_990 + end for end in ("old", "new"))
        for guidelines in (old, new):
            update_project(project=project, user=project.created_by, guidelines=guidelines)
        event = project.audit_events.filter(action="project.changed").latest("id")
        assert event.data["guidelines"] == [old, new]
        page = client_of(project.created_by).get(reverse("audit", args=[project.slug])).content.decode()
        assert "guidelines: " in page
        assert "x" * 200 not in page

    def test_of_a_text_that_nothing_bounds_the_audit_trail_keeps_what_tells_it(self, project) -> None:
        text = "y" * (limits.AUDITED + 1)
        data = {"n": 1, "deep": [{"a": "short"}], "long": text}
        event = audit.record(project=project, actor=None, action="a", data=data)
        digest = hashlib.sha256(text.encode()).hexdigest()
        kept = f"{'y' * limits.AUDITED_BEGINNING}… (50,001 characters, SHA-256 {digest})"
        assert event.data == {**data, "long": kept}

    def test_a_page_of_the_api_of_long_events_ends_earlier(self, project, client_of, monkeypatch) -> None:
        for _number in range(5):
            audit.record(project=project, actor=None, action="long", data={"text": "z" * 40_000})
        monkeypatch.setattr(limits, "PAGE_CHARACTERS", 100_000)
        client = client_of(project.created_by)
        address, seen = reverse("api_audit", args=[project.slug]) + "?action=long", []
        while address:
            body = client.get(address).json()
            assert len(body["results"]) <= 2
            seen += [len(event["data"]["text"]) for event in body["results"]]
            address = body["next"]
        assert seen == [40_000] * 5


class TestAnItem:
    @pytest.fixture
    def world(self):
        return make_world(60)

    def test_columns_whose_names_begin_alike_are_both_shown(self, world, client_of) -> None:
        item = world.project.items.first()
        item.data = {"c" * limits.NAME + end: f"cell {end}" for end in ("one", "two")}
        item.save()
        page = page_of(client_of(world.manager), "item", world.project.slug, item.pk)
        assert "cell one" in page
        assert "cell two" in page

    def test_prompts_are_looked_up_of_the_answers_that_are_shown(self, world, client_of, monkeypatch) -> None:
        world.analysed(m=40)
        item, source = world.project.items.first(), world.project.sources.first()
        Prediction.objects.bulk_create(
            Prediction(item=item, source=source, fingerprint=f"{number:064}", value="cat", raw={}, cost=0)
            for number in range(20)
        )
        monkeypatch.setattr(limits, "LISTED", 3)
        with CaptureQueriesContext(connection) as asked:
            item_history(world.project, access_to(world.manager, world.project.slug), item.pk)
        [prompts] = [query["sql"] for query in asked if "routing_promptversion" in query["sql"]]
        shown = Prediction.objects.filter(item=item).order_by("-pk").values_list("pk", flat=True)[:3]
        assert all(str(pk) in prompts for pk in shown)
        assert " IN (" in prompts

    def test_lists_of_its_history_are_the_newest_entries(self, world, client_of, monkeypatch) -> None:
        monkeypatch.setattr(limits, "LISTED", 3)
        monkeypatch.setattr(limits, "COMMENTS", 3)
        item, user = world.project.items.first(), world.manager
        Comment.objects.bulk_create(Comment(item=item, author=user, text=f"said {n}") for n in range(50))
        batch = WorkBatch.objects.create(project=world.project, blind=False)
        work = WorkItem.objects.create(batch=batch, item=item, order=1, state="done")
        label = None
        for version in range(1, 9):
            row = Label(item=item, work_item=work, annotator=user, value="cat", idempotency_key=str(version))
            row.version, row.supersedes = version, label
            row.save()
            label = row
        history = item_history(world.project, access_to(user, world.project.slug), item.pk)
        assert [comment.text for comment in history.comments] == ["said 47", "said 48", "said 49"]
        assert [label.version for label in history.labels] == [6, 7, 8]
        assert page_of(client_of(user), "item", world.project.slug, item.pk).count("said ") < 20

    def test_long_answers_of_models_are_cut(self, world, client_of) -> None:
        world.routed(m=40)
        row = Prediction.objects.first()
        row.pk, row.fingerprint, row.raw = None, "another", {"text": "y" * 3_000_000}
        row.save(force_insert=True)
        page = page_of(client_of(world.manager), "item", world.project.slug, row.item_id)
        assert limits.LONG_TEXT // 2 < page.count("y" * 10) * 10 < 2 * limits.LONG_TEXT

    def test_the_prompt_in_force_is_told_without_reading_every_version(self, world) -> None:
        world.routed(m=40)
        row = Prediction.objects.select_related("source").first()
        PromptVersion.objects.bulk_create(
            PromptVersion(source=row.source, number=number, template="{{ text }}" * 100)
            for number in range(1, 300)
        )
        row.pk, row.fingerprint = None, "another"
        row.save(force_insert=True)
        with CaptureQueriesContext(connection) as asked:
            history = item_history(world.project, access_to(world.manager, world.project.slug), row.item_id)
        assert [answer.prompt for answer in history.predictions if answer.fingerprint == "another"] == [299]
        assert not [query for query in asked if "template" in query["sql"]]

    def test_some_of_many_columns_are_shown(self, world, client_of) -> None:
        item = world.project.items.first()
        names = [f"column {number}" for number in range(MAX_COLUMNS + 500)]
        Project.objects.filter(pk=world.project.pk).update(columns=names)
        item.data = dict.fromkeys(names, "z")
        item.save()
        page = page_of(client_of(world.manager), "item", world.project.slug, item.pk)
        assert page.count("<bdi>column ") == MAX_COLUMNS
        assert "and 500 more columns" in page


def test_the_first_rows_of_a_file_say_how_many_more_columns_there_are(project, client_of) -> None:
    """Rows of JSON may each have their own; a project has no more of them than are shown."""
    lines = (json.dumps({f"column {row}-{n}": "x" for n in range(300)}) for row in range(5))
    stored = store_file(
        project=project,
        content=io.BytesIO("\n".join(lines).encode()),
        original_name="rows.jsonl",
        media_type="",
    )
    page = page_of(client_of(project.created_by), "import_mapping", project.slug, stored.pk)
    assert page.count("<bdi>column ") == MAX_COLUMNS
    assert "and 1,000 more columns" in page


class TestLists:
    def test_runs_come_in_pages(self, client_of) -> None:
        world = make_world(60)
        run = world.start(m=10)
        rows = [Run.objects.get(pk=run.pk) for _ in range(limits.RUNS_LISTED + 5)]
        for number, row in enumerate(rows, 2):
            row.pk, row.number, row.state = None, number, "cancelled"
        Run.objects.bulk_create(rows)
        client = client_of(world.manager)
        page = page_of(client, "runs", world.project.slug)
        assert page.count('<th scope="row">') == limits.RUNS_LISTED
        assert "?page=2" in page
        assert page_of(client, "runs", world.project.slug, page=2).count('<th scope="row">') == 6

    def test_deliveries_come_in_pages(self, client_of) -> None:
        world = make_world(60)
        run = world.routed(m=40)
        Delivery.objects.bulk_create(
            Delivery(run=run, number=number, rows=1, blanks=0) for number in range(1, limits.RUNS_LISTED + 4)
        )
        client = client_of(world.manager)
        page = page_of(client, "deliveries", world.project.slug)
        assert page.count('class="card delivery"') == limits.RUNS_LISTED
        assert page_of(client, "deliveries", world.project.slug, page=2).count('class="card delivery"') == 3

    def test_projects_of_an_account_that_takes_part_in_many(self, client_of, monkeypatch) -> None:
        monkeypatch.setattr(limits, "LISTED", 3)
        user = make_user("busy")
        for _ in range(6):
            make_project(user)
        page = page_of(client_of(user), "account")
        assert page.count("<dt><a") == 3
        assert "All projects" in page


class TestPagesOfTheApi:
    """A page ends earlier where its texts are long, and the pages together have every row once."""

    @pytest.fixture
    def project(self, monkeypatch) -> Project:
        monkeypatch.setattr(limits, "PAGE_CHARACTERS", 1_000)
        project = make_project()
        make_items(project, [("x" * (50 if n % 7 else 900)) + str(n) for n in range(60)])
        return project

    def test_items(self, project, client_of) -> None:
        client = client_of(project.created_by)
        address: str | None = reverse("api_items", args=[project.slug]) + "?page_size=1000"
        names, last = [], ""
        while address:
            page = client.get(address).json()
            assert sum(len(row["text"]) for row in page["results"]) <= 1_000
            names += [row["external_id"] for row in page["results"]]
            last, address = address, page["next"]
        assert names == [f"t{number}" for number in range(60)]
        back: list[str] = []
        address = last
        while address:
            page = client.get(address).json()
            back = [row["external_id"] for row in page["results"]] + back
            address = page["previous"]
        assert back == names

    def test_a_row_that_is_too_long_by_itself_comes_alone(self, project, client_of) -> None:
        Project.objects.update(columns=["text"])
        project.items.update(text="y" * 2_000)
        answer = client_of(project.created_by).get(
            reverse("api_items", args=[project.slug]), {"columns": "true"}
        )
        assert len(answer.json()["results"]) == 1


def test_a_template_names_so_many_placeholders_at_most(project) -> None:
    from annotation.errors import InputError
    from routing.sources.backend_for import task_spec
    from routing.sources.backends import Prompt
    from routing.sources.prompts import check_prompt

    with pytest.raises(InputError, match="more than 100 placeholders"):
        check_prompt(Prompt(template="{{ text }}" * 5_000), task_spec(project))
    check_prompt(Prompt(template="{{ text }}" * 100), task_spec(project))


def test_no_template_has_a_limit_of_its_own_for_what_pages_are_bounded_by() -> None:
    """Short names may be clipped anywhere; what is long has its limit in annotation.common.limits."""
    for template in (settings.BASE_DIR / "templates").rglob("*.html"):
        for length in re.findall(r"truncatechars:(\d+)|slice:\":(\d+)\"", template.read_text()):
            assert int("".join(length)) not in (limits.LONG_TEXT, limits.CELL, limits.NAME), template
