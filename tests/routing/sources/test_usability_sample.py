"""How little is read and how often, to say how many answers can be used; and who is shown what of them."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.common import limits
from annotation.models import AuditEvent, Project
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import set_choices
from routing.models import Certificate, ItemScore, Prediction, Run, Source
from routing.runs import start
from routing.runs.plan import outlook_of_plan
from routing.sources import seen_answers
from routing.sources.usability import usability_of, usability_of_sources
from routing.sources.warnings import usability_in_words
from testbed.factories import add_member, make_items
from testbed.worlds import make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.sources.test_usability import PLAN, TYPED, source_of

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def asked_of(project: Project, sources: list[Source]) -> list[str]:
    """The statements that read imported data."""
    with CaptureQueriesContext(connection) as queries:
        usability_of_sources(project, sources)
    return [query["sql"] for query in queries if '."data"' in query["sql"]]


def test_of_items_no_other_column_is_read_than_the_source_names() -> None:
    project, sources = source_of(20)
    statements = asked_of(project, sources)
    assert statements
    for statement in statements:
        assert '"annotation_item"."data",' not in statement.replace(" ", "")
        assert "guess" in statement


def test_of_long_cells_so_many_are_read_as_a_page_may_have_characters(monkeypatch: Any) -> None:
    project, sources = source_of(0)
    for number in range(40):
        make_items(project, 1, data={"guess": "x" * 1_000 if number % 4 else "cat", "sure": "0.5"})
    monkeypatch.setattr(limits, "PAGE_CHARACTERS", 10_000)
    seen = usability_of_sources(project, sources).sources[0]
    assert (seen.looked_at, seen.items, seen.sampled) == (10, 40, True)


def test_a_name_of_a_column_is_taken_as_it_is() -> None:
    project, [source] = source_of(0)
    make_items(project, 5, data={'a"b': "cat", "2": "0.5"})
    source.params = {"label_column": 'a"b', "confidence_column": "2"}
    source.save()
    assert usability_of(source).usable == 5


def test_what_was_seen_is_remembered_until_items_columns_or_labels_change() -> None:
    project, sources = source_of(20, bad=10)
    assert usability_of_sources(project, sources).sources[0].unusable == 10
    assert asked_of(project, sources) == []
    make_items(project, 1, data={"guess": "bird", "sure": "0.5"})
    assert usability_of_sources(project, sources).sources[0].unusable == 11
    set_choices(
        project=project,
        user=project.created_by,
        choices=[*(ChoiceSpec(c.name, key=c.key) for c in project.choices.all()), ChoiceSpec("bird")],
    )
    assert usability_of_sources(project, sources).sources[0].unusable == 0
    sources[0].params = {"label_column": "sure", "confidence_column": "sure"}
    assert usability_of_sources(project, sources).sources[0].unusable == 21


def test_one_outlook_reads_the_items_once() -> None:
    project, _sources = source_of(60)
    with CaptureQueriesContext(connection) as queries:
        outlook_of_plan(project=project, **{**PLAN, "m": 40})
    # How long the cells are, and the cells.
    assert len([query for query in queries if "guess" in query["sql"]]) == 2


def say(items: Any, **answers: str) -> None:
    for item in items:
        item.data |= answers
        item.save()


def asked_in_a_run(world: Any, position: int = 1, **fields: Any) -> Source:
    """The source after a run, as one of which only what it gave there is known."""
    world.analysed(m=40, **fields)
    Source.objects.update(backend="openai_api", params={"url": "http://127.0.0.1:9/v1", "model": "m"})
    return world.project.sources.get(position=position)


@pytest.fixture
def its_score(monkeypatch: Any) -> None:
    """The score that such a model has, whose server is none."""
    monkeypatch.setattr(seen_answers, "_key", lambda source, score, params: score or "recorded")


@pytest.mark.usefixtures("its_score")
class TestOfARun:
    @pytest.fixture
    def source(self) -> Source:
        """A model of which only what it gave in a run is known."""
        return asked_in_a_run(make_world(60))

    def test_values_of_another_score_do_not_count(self, source: Source) -> None:
        before = usability_of(source)
        assert (before.basis, before.looked_at, before.unusable) == ("run", 60, 0)
        ItemScore.objects.bulk_create(
            ItemScore(prediction=row, name="another", value=1, reason="the confidence is missing")
            for row in Prediction.objects.filter(source=source)
        )
        assert usability_of(source) == before
        assert usability_of_sources(source.project, [source], score="another").sources[0].unusable == 60

    def test_without_values_of_the_score_the_answers_alone_count(self, source: Source) -> None:
        seen = usability_of_sources(source.project, [source], score="never computed").sources[0]
        assert (seen.looked_at, seen.unusable, seen.score_values) == (60, 0, None)

    def test_it_says_where_the_answers_are_from_also_where_all_can_be_used(self, source: Source) -> None:
        assert "all 60 answers in its newest run can be used." in usability_in_words(usability_of(source))

    def test_no_item_is_read_for_the_order_of_answers(self, source: Source) -> None:
        """Or all of a million answers would be sorted for each stretch of them."""
        with CaptureQueriesContext(connection) as queries:
            usability_of(source)
        read = [query["sql"] for query in queries if 'FROM "routing_prediction"' in query["sql"]]
        assert read
        assert not any('JOIN "annotation_item"' in statement for statement in read)

    def test_of_many_it_says_so_and_looks_at_stretches_of_all(self, monkeypatch: Any) -> None:
        world = make_world(60)
        say(world.project.items.order_by("-position")[:6], model1="bird")
        source = asked_in_a_run(world)
        monkeypatch.setattr(seen_answers, "LOOKED_AT", 20)
        seen = usability_of(source)
        assert (seen.looked_at, seen.items, seen.unusable) == (20, 60, 2)
        assert (
            "of 20 answers looked at, spread over the 60 in its newest run, 2 cannot"
            in usability_in_words(seen)
        )


class TestAccepting:
    def test_nothing_is_recorded_where_nothing_was_asked(self) -> None:
        project, _sources = source_of(60)
        start.start_run(project=project, user=project.created_by, accept_unusable=True, **{**PLAN, "m": 40})
        assert not AuditEvent.objects.filter(action="run.unusable_accepted").exists()
        assert AuditEvent.objects.get(action="run.started").data["accepts_unusable"] is True

    def test_answers_are_not_looked_at_while_the_project_is_locked(self, monkeypatch: Any) -> None:
        project, _sources = source_of(60, bad=10)
        depths = []
        monkeypatch.setattr(
            start,
            "usability_of_sources",
            lambda *a, **k: depths.append(len(connection.savepoint_ids)) or usability_of_sources(*a, **k),
        )
        outside = len(connection.savepoint_ids)
        start.start_run(project=project, user=project.created_by, accept_unusable=True, **{**PLAN, "m": 40})
        assert depths == [outside]
        assert AuditEvent.objects.get(action="run.unusable_accepted").data["sources"][0]["unusable"] == 10


class TestBlind:
    """Answers are quoted to owners and managers alone, and to nobody while a run is open: they may label."""

    def pages(self, client: Any, project: Project) -> list[Any]:
        source, slug = project.sources.get(position=1), project.slug
        return [
            client.get(reverse("sources", args=[slug])),
            client.get(reverse("source_edit", args=[slug, source.pk])),
            client.get(reverse("plan", args=[slug])),
            client.get(reverse("plan_outlook", args=[slug]), TYPED),
            client.get(reverse("api_source", args=[slug, source.pk])),
            client.post(reverse("api_plan", args=[slug]), {**PLAN, "m": 40}, "application/json"),
            client.post(reverse("api_runs", args=[slug]), {**PLAN, "m": 40}, "application/json"),
        ]

    @pytest.fixture
    def project(self) -> Project:
        return source_of(200, bad=100)[0]

    @pytest.mark.parametrize("role", ["annotator", "reviewer", "viewer"])
    def test_roles_that_may_not_set_up_models_see_none(self, project, client_of, role) -> None:  # noqa: F811
        answers = self.pages(client_of(add_member(project, role)), project)
        assert {answer.status_code for answer in answers} == {403}
        assert not any("bird" in answer.content.decode() for answer in answers)

    def test_managers_see_them_until_a_run_is_open(self, project, client_of) -> None:  # noqa: F811
        client = client_of(project.created_by)
        assert all("bird" in answer.content.decode() for answer in self.pages(client, project))
        start.start_run(project=project, user=project.created_by, **{**PLAN, "m": 40})
        for state in ("preparing", "calibrating", "analysing"):
            Run.objects.update(state=state)
            assert not any("bird" in answer.content.decode() for answer in self.pages(client, project))

    @pytest.mark.usefixtures("its_score")
    @pytest.mark.parametrize(("state", "quoted"), [("cancelled", ()), ("analysed", ("bird",))])
    def test_what_a_run_gave_is_quoted_once_it_was_analysed(self, state, quoted) -> None:
        world = make_world(60)
        say(world.project.items.all(), model2="bird")
        source = asked_in_a_run(world, 2, accept_unusable=True)
        if state == "cancelled":
            Certificate.objects.all().delete()
        Run.objects.update(state=state)
        [reason] = usability_of(source).reasons
        assert (reason.code, reason.examples) == ("unknown_label", quoted)
