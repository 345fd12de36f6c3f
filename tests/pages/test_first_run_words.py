"""What a page tells somebody who has not used the product before is true, said once, and meant for them."""

from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Project
from routing.core.correctness import MEANING, meaning_of_right
from routing.delivery.deliver import deliver
from routing.runs.plan import outlook_of_plan
from routing.sources.manage import save_source
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import files_of, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
MOST_UNCERTAIN = "counts as most uncertain: the next model labels it only if"


def page_of(client: Client, name: str, *args: object, **fields: str) -> str:
    return " ".join(unescape(client.get(reverse(name, args=args), fields).content.decode()).split())


def recorded(project: Project, name: str, column: str, cost: int = 0, **params: str) -> None:
    save_source(
        project=project,
        user=project.created_by,
        name=name,
        backend="recorded",
        params={"label_column": column, **params},
        cost_per_label=cost,
    )


def with_unusable(*rows: dict[str, str]) -> Project:
    """40 items of each row, whose columns answer for a project with the labels cat and dog."""
    project = make_project(human_cost=1)
    for row in rows:
        make_items(project, 40, data=row)
    Project.objects.filter(pk=project.pk).update(columns=list(rows[0]))
    project.refresh_from_db()
    return project


@pytest.fixture
def odd() -> Project:
    project = with_unusable(
        {"guess": "Cat", "sure": "0.9"}, {"guess": "cat", "sure": "87 %"}, {"guess": "dog", "sure": "0.7"}
    )
    recorded(project, "fast", "guess", confidence_column="sure")
    return project


class TestUnusableAnswers:
    def test_who_labels_instead_is_said_before_a_start(self, odd: Project, client_of: Any) -> None:
        plan = {"epsilon": "10", "alpha": "10", "target": "dataset", "m": "60", "p": "0.9"}
        answer = client_of(odd.created_by).post(reverse("plan", args=[odd.slug]), plan)
        page = " ".join(unescape(answer.content.decode()).split())
        assert MOST_UNCERTAIN in page
        assert "goes on to the next source" not in page

    def test_what_to_write_instead_and_how_to_bring_it_in(self, odd: Project, client_of: Any) -> None:
        page = page_of(client_of(odd.created_by), "sources", odd.slug)
        assert "a number from 0 to 1 with a point, for example 0.87" in page
        assert "labels exactly as the project has them, capitals included" in page
        assert "take its import back" in page
        assert "but for capitals" in page

    def test_the_least_counts_people_for_what_no_model_can_answer(self, odd: Project) -> None:
        seen = outlook_of_plan(project=odd, epsilon="0.1", alpha="0.1", m=60, p="0.5")
        # 30 of the 120 are asked about; of the other 90 two thirds have no usable answer.
        assert (seen.labels_at_least, seen.people_at_least) == (90, 90)
        assert seen.at_least == 90 + seen.model_cost
        assert seen.committed == 30 + seen.model_cost

    def test_a_column_that_is_offered_with_doubts_says_why_and_what_to_do(self, client_of: Any) -> None:
        project = with_unusable(
            {"fast_label": "cat", "fast_confidence": "0.9", "body_label": "x y"},
            {"fast_label": "Shipping", "fast_confidence": "0.9", "body_label": "z"},
        )
        page = page_of(client_of(project.created_by), "sources", project.slug)
        assert (
            "40 of 80 answers looked at are no labels of this project (“Shipping”). Use it, and say" in page
        )
        assert "No model yet" not in page, "one word about models is enough"
        assert "“body_label”" not in page
        recorded(project, "fast", "fast_label", confidence_column="fast_confidence")
        assert "answers looked at are no labels" not in page_of(
            client_of(project.created_by), "sources", project.slug
        )


class TestWhatTheServerLacks:
    def test_comes_first_wherever_the_next_step_is_told(self, client_of: Any, settings: Any) -> None:
        settings.HYPAC_EMBEDDINGS_URL = settings.HYPAC_EMBEDDINGS_MODEL = ""
        settings.HYPAC_LOSSES = []
        setting = "HYPAC_EMBEDDINGS_URL"
        project = make_project(task_type="long_text", choices=[], loss="cosine_distance")
        owner, annotator = client_of(project.created_by), add_member(project, "annotator")

        def told() -> None:
            for name in ("overview", "annotate"):
                assert setting in page_of(owner, name, project.slug)
            page = page_of(client_of(annotator), "annotate", project.slug)
            assert setting not in page

        told()
        make_items(project, 3, data={"guess": "x"})
        told()
        page = page_of(owner, "overview", project.slug)
        assert page.index(setting) < page.index("There is no model yet")
        recorded(project, "m", "guess")
        told()
        page = page_of(owner, "overview", project.slug)
        # A plan may name another loss.
        assert page.index(setting) < page.index("Choose how many errors you accept")


class TestPeopleWhoLabel:
    def test_are_not_told_the_managers_job(self, client_of: Any) -> None:
        project = make_project()
        make_items(project, 3)
        page = page_of(client_of(add_member(project, "annotator")), "annotate", project.slug)
        assert "A manager has to go on: There is no model yet" in page
        assert "Say which models label" not in page

    def test_are_not_promised_work_where_all_is_done(self, client_of: Any) -> None:
        project = make_project()
        late, other = (add_member(project, "annotator") for _ in range(2))
        items = make_items(project, 1)
        queue.create_batch(project=project, item_ids=[items[0].pk], blind=True, priority=1, entropy=3)
        task = queue.claim(project=project, user=other)
        assert "Nothing to label yet" in page_of(client_of(late), "annotate", project.slug)
        queue.submit(
            user=other,
            work_item_id=task.work_item.pk,
            token=task.token,
            value="cat",
            idempotency_key="k" * 32,
        )
        page = page_of(client_of(late), "annotate", project.slug)
        assert "Nothing left to label" in page
        assert "Nothing to label yet" not in page


class TestResult:
    def test_peoples_own_mistakes_are_spoken_of_once(self, client_of: Any) -> None:
        world = make_world(400)
        run = world.routed(m=200)
        page = page_of(client_of(world.manager), "run", world.project.slug, run.number)
        assert page.count("People's own mistakes are not counted") == 1
        assert "Differences observed" in page
        assert "Errors observed" not in page
        deliver(run=run, user=world.manager)
        world.do("deliver_run")
        card = files_of(run.deliveries.get())["README.md"].decode()
        assert card.count("People's own mistakes are not counted") == 1
        assert "What counts as right" in card

    def test_where_nothing_is_promised_they_are_spoken_of_all_the_same(self) -> None:
        assert meaning_of_right(certified=False) == MEANING

    def test_what_the_test_allowed_is_told_from_what_the_plan_named(self, client_of: Any) -> None:
        """The plan has the most that any choice may show, the result what the test of its choice allowed."""
        world = make_world(200, error=(lambda u: 0.0, lambda u: 0.0))
        run = world.analysed(m=40, p="1", epsilon="0.1", alpha="0.1")
        client = client_of(world.manager)
        page = page_of(client, "run", world.project.slug, run.number)
        assert "the test of this choice allowed 1 (the plan said what any choice may show at most)" in page
        assert "the test allowed 1." in page_of(
            client, "run_certificate_page", world.project.slug, run.number
        )
        other = make_world(200)
        page = page_of(client_of(other.manager), "plan", other.project.slug)
        assert "at most, whatever is chosen; the test of a choice that shows few may allow fewer" in page


def test_prices_of_people_are_explained_without_tokens(client_of: Any) -> None:
    project = make_project()
    page = page_of(client_of(project.created_by), "sources", project.slug)
    assert "the wage of an hour divided by the labels" in page
    assert "32,768" not in page


class TestAnImportOfAnswersAlone:
    """What a model answered about items that are there is no import: the page leads to where it belongs."""

    SENT_IN = "is sent in on the page “Sources”, by a model whose answers “are sent in from outside”."

    def mapping(self, client: Client, project: Project, table: str) -> str:
        sent = client.post(
            reverse("import_upload", args=[project.slug]),
            {"file": SimpleUploadedFile("answers.csv", table.encode())},
        )
        return " ".join(unescape(client.get(sent["Location"]).content.decode()).split())

    def test_without_texts(self, client_of: Any) -> None:
        project = make_project()
        client = client_of(project.created_by)
        page = self.mapping(client, project, "id,m_label,m_conf\n1,cat,0.9\n2,dog,0.8\n")
        assert "Nothing in this file is for people to read." in page
        assert self.SENT_IN in page
        assert f'<a href="{reverse("sources", args=[project.slug])}">To the sources</a>' in page
        assert self.SENT_IN not in self.mapping(client, project, "id,text,m_label\n1,one,cat\n2,two,dog\n")

    def test_about_items_that_are_there_already(self, client_of: Any) -> None:
        project = make_project()
        make_items(project, 2, data={"text": "x"})
        names = list(project.items.order_by("position").values_list("external_id", "text"))
        rows = "".join(f"{name},{text},cat,0.9\n" for name, text in names)
        page = self.mapping(client_of(project.created_by), project, f"id,text,m_label,m_conf\n{rows}")
        assert "All of these items are here already, and an import changes none of them." in page
        assert self.SENT_IN in page
