"""What others stored costs a page no more than its bounds: guidelines, Markdown, long items."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import maintenance
from annotation.common import limits, markdown
from annotation.common.markdown import render, render_cached
from annotation.errors import InputError
from annotation.labelling import queue
from annotation.models import Item, Project
from annotation.projects.manage import update_project
from testbed.factories import make_items, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
TOO_LONG = "**word** " * (5_000_000 // 9)


@pytest.fixture
def rendered(monkeypatch) -> list[str]:
    """Every source that is rendered from now on."""
    sources: list[str] = []
    monkeypatch.setattr(
        markdown, "_tokens", lambda source, make=markdown._tokens: sources.append(source) or make(source)
    )
    render_cached.cache_clear()
    return sources


def hand_out(project: Project, items: list[Item]) -> None:
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=False, priority=1, entropy=5
    )


class TestGuidelines:
    @pytest.fixture
    def project(self) -> Project:
        return make_project(guidelines="Look **well**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")

    def test_pages_that_show_them_render_nothing(self, project, owner, client_of, rendered) -> None:
        hand_out(project, make_items(project, 1))
        for name in ("annotate", "review", "overview"):
            page = owner.get(reverse(name, args=[project.slug])).content.decode()
            assert ("<strong>well</strong>" in page) == (name != "overview"), name
        assert rendered == []

    def test_they_are_rendered_when_they_are_stored(self, project, owner, rendered) -> None:
        update_project(project=project, user=project.created_by, guidelines="Look *again*")
        assert len(rendered) == 1
        assert "<em>again</em>" in owner.get(reverse("annotate", args=[project.slug])).content.decode()
        update_project(project=project, user=project.created_by, name="Another")
        assert len(rendered) == 1

    def test_too_long_ones_are_refused_by_pages_and_api(self, project, owner) -> None:
        long = TOO_LONG[: limits.GUIDELINES + 1]
        data = {"form": "basics", "name": "x", "currency": "EUR", "human_cost": "1", "lease_seconds": "900",
                "text_format": "plain", "overlap": "1", "overlap_share": "1", "consensus": "majority",
                "guidelines": long}  # fmt: skip
        page = owner.post(reverse("project_settings", args=[project.slug]), data)
        assert "at most 50,000 fit" in page.content.decode()
        new = {"name": "New", "task_type": "number", "human_cost": "1", "currency": "EUR", "guidelines": long}
        assert "at most 50,000 fit" in owner.post(reverse("project_new"), new).content.decode()
        body: dict[str, Any] = {"name": "By program", "task_type": "number", "guidelines": long}
        made = owner.post(reverse("api_projects"), body, content_type="application/json")
        changed = owner.patch(
            reverse("api_project", args=[project.slug]), {"guidelines": long}, content_type="application/json"
        )
        assert (made.status_code, changed.status_code) == (400, 400)
        assert (made.json()["field"], changed.json()["field"]) == ("guidelines", "guidelines")
        assert Project.objects.get().guidelines == project.guidelines

    def test_as_many_as_may_be_are_kept(self, project) -> None:
        text = TOO_LONG[: limits.GUIDELINES]
        assert update_project(project=project, user=project.created_by, guidelines=text).guidelines == text

    def test_the_two_characters_of_a_browser_for_the_end_of_a_line_count_as_one(
        self, project, rendered
    ) -> None:
        text = ("x" * 99 + "\r\n") * (limits.GUIDELINES // 100)
        kept = update_project(project=project, user=project.created_by, guidelines=text)
        assert kept.guidelines_html
        with pytest.raises(InputError, match="have 50,001 characters"):
            update_project(project=project, user=project.created_by, guidelines=text + "x")

    def test_those_of_an_earlier_version_stay_shown_and_kept(self, project, owner, rendered) -> None:
        Project.objects.update(guidelines=TOO_LONG, guidelines_html="", guidelines_version=0)
        answer = owner.get(reverse("annotate", args=[project.slug]))
        assert len(answer.content) < 3 * limits.GUIDELINES
        assert "more characters" in answer.content.decode()
        maintenance.guidelines.render_outdated()
        assert rendered == []
        project.refresh_from_db()
        update_project(project=project, user=project.created_by, name="Other", guidelines=TOO_LONG)
        project.refresh_from_db()
        assert (project.name, project.guidelines) == ("Other", TOO_LONG)
        with pytest.raises(InputError, match="at most 50,000"):
            update_project(project=project, user=project.created_by, guidelines=TOO_LONG + "more")

    def test_a_project_with_those_of_an_earlier_version_can_be_copied(self, project, owner) -> None:
        Project.objects.update(guidelines=TOO_LONG)
        owner.post(reverse("project_duplicate", args=[project.slug]), {"name": "Copy"})
        copy = Project.objects.get(name="Copy")
        assert (copy.guidelines, copy.guidelines_html) == (TOO_LONG, "")

    def test_another_renderer_makes_all_anew_in_steps(self, project, monkeypatch, rendered) -> None:
        make_project(guidelines="*two*")
        rendered.clear()
        monkeypatch.setattr(markdown, "VERSION", markdown.VERSION + 1)
        monkeypatch.setattr("annotation.projects.guidelines.AT_ONCE", 1)
        maintenance.guidelines.render_outdated()
        assert len(rendered) == 1
        maintenance.guidelines.render_outdated()
        maintenance.guidelines.render_outdated()
        assert len(rendered) == 2
        assert set(Project.objects.values_list("guidelines_version", flat=True)) == {markdown.VERSION}

    def test_texts_that_take_long_to_render_do_not_keep_the_upkeep_from_all_else(
        self, project, monkeypatch
    ) -> None:
        for _ in range(3):
            make_project(guidelines="*more*")
        Project.objects.update(guidelines_version=0)
        clock = iter(range(0, 1_000, 2))
        monkeypatch.setattr(maintenance.guidelines, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        for left in (3, 2):
            maintenance.guidelines.render_outdated()
            assert Project.objects.filter(guidelines_version=0).count() == left

    def test_lists_of_projects_leave_them_out(self, project, owner) -> None:
        Project.objects.update(guidelines="G" * 1000, guidelines_html="H" * 1000)
        for name in ("project_list", "api_projects", "account", "tokens"):
            with CaptureQueriesContext(connection) as asked:
                assert owner.get(reverse(name)).status_code == 200
            read = " ".join(query["sql"] for query in asked)
            assert 'guidelines"' not in read, name
            assert "guidelines_html" not in read, name


class TestWhatMarkdownMakes:
    @pytest.mark.parametrize(
        "source",
        [
            "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|\n" * 1000,
            "[a]: http://x/" + "y" * 20_000 + "\n\n" + "[a] " * 900,
            "[" * 20_000,
            "![" * 10_000,
        ],
        ids=["a table of empty rows", "one long address named often", "brackets", "images never closed"],
    )
    def test_what_makes_far_more_than_it_holds_is_shown_plain(self, source: str) -> None:
        assert render(source) is None

    @pytest.mark.parametrize(
        "source",
        ["> " * 10_000, "`" * 20_000, "*_" * 10_000,
         "".join("  " * depth + "- a\n" for depth in range(140)), "|a|\n|-|\n" + "|b|\n" * 5_000],
    )  # fmt: skip
    def test_hostile_input_makes_an_answer_of_bounded_size(self, source: str) -> None:
        html = render(source)
        assert html is not None
        assert len(html) < 20 * len(source) + 1_000

    def test_nothing_longer_than_guidelines_is_rendered(self, rendered) -> None:
        assert render("a" * (limits.GUIDELINES + 1)) is None
        assert rendered == []


class TestItems:
    @pytest.fixture
    def project(self) -> Project:
        return make_project(text_format="markdown")

    def page(self, project: Project, client: Any, items: list[Item]) -> str:
        hand_out(project, items)
        return client.get(reverse("annotate", args=[project.slug])).content.decode()

    def test_a_long_one_is_shown_as_plain_text(self, project, owner, rendered) -> None:
        text = "**word** " * (limits.MARKDOWN // 9 + 1)
        page = self.page(project, owner, make_items(project, [text]))
        assert rendered == []
        assert "**word**" in page
        assert "too much for Markdown" in page

    def test_many_fields_together_are_a_long_one(self, project, owner, rendered) -> None:
        fields = [[f"f{number}", "**word** " * 100] for number in range(100)]
        page = self.page(project, owner, make_items(project, 1, fields=fields))
        assert rendered == []
        assert "too much for Markdown" in page

    def test_looking_again_renders_nothing(self, project, owner, rendered) -> None:
        items = make_items(project, ["**word**"])
        assert "<strong>word</strong>" in self.page(project, owner, items)
        owner.get(reverse("annotate", args=[project.slug]))
        owner.get(reverse("item", args=[project.slug, items[0].pk]))
        assert rendered == ["**word**"]

    @pytest.mark.parametrize("text_format", ["plain", "markdown"])
    def test_some_of_many_fields_are_shown(self, project, owner, text_format: str) -> None:
        Project.objects.update(text_format=text_format)
        fields = [[f"name {number} ", "x"] for number in range(5_000)]
        page = self.page(project, owner, make_items(project, 1, fields=fields))
        assert page.count("<dt") - page.count("<dt><kbd") <= limits.ITEM_FIELDS + 20
        assert f"{5_000 - limits.ITEM_FIELDS:,} more fields are not shown" in page

    def test_all_fields_together_are_as_long_as_one_text_may_be(self, project, owner, settings) -> None:
        settings.HYPAC_MAX_CELL_CHARACTERS = 1_000
        fields = [[f"f{number}", "x" * 900] for number in range(5)]
        page = self.page(project, owner, make_items(project, 1, fields=fields))
        assert page.count("xxxxxxxxxx") == 100
        assert "3,500 more characters are not shown" in page
