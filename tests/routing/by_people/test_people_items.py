"""Which items people are asked about without any model, and what that leaves for models."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.urls import NoReverseMatch, URLResolver, get_resolver, reverse

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Item, Job, WorkItem
from annotation.permissions import access_to
from routing.by_people import start
from routing.by_people.start import Wanted, people_outlook
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.runs.pool import nothing_to_plan_for, pool_of
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world, rows_of
from tests.routing.by_people.people import answer, asked, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestWhichItems:
    def test_a_sample_is_drawn_from_what_the_filters_find(self) -> None:
        project = make_project()
        make_items(project, [f"wanted {n}" for n in range(30)] + ["other"])
        run = asked(project, filters={"q": "wanted"}, sample=10)
        texts = run.pool_items.values_list("item__text", flat=True)
        assert len(texts) == 10
        assert all("wanted" in text for text in texts)
        assert run.chosen | {"last": 0} == {
            **{"filters": {"q": "wanted"}, "found": 30, "sample": 10, "last": 0},
        }
        assert WorkItem.objects.filter(batch=run.routed_batch).count() == 10

    def test_which_have_a_label_keep_it_and_are_not_asked_about(self) -> None:
        project = make_project()
        annotator = add_member(project, "annotator")
        make_items(project, 5)
        first = asked(project, sample=2)
        labelled = set(answer(project, annotator))
        first.refresh_from_db()
        assert first.state == Run.State.COMPLETE
        access = access_to(project.created_by, project.slug)
        found = people_outlook(access=access, wanted=Wanted({}))
        assert (found.matching, found.labelled, found.items) == (5, 2, 3)
        second = asked(project)
        names = set(second.pool_items.values_list("item__external_id", flat=True))
        assert len(names) == 3
        assert not names & labelled
        answer(project, annotator, "dog")
        with pytest.raises(InputError, match="has a label already"):
            asked(project)

    def test_while_a_draw_is_labelled_nothing_tells_which_items_have_a_label(self, client_of: Any) -> None:
        """Not even a count: by filters that find one item each it would name the drawn ones."""
        world = make_world(40)
        world.calibrating(m=20)
        world.label(limit=5)
        access = access_to(world.manager, world.project.slug)
        with pytest.raises(ConflictError, match="is under way"):
            people_outlook(access=access, wanted=Wanted({"q": world.project.items.first().external_id}))
        body = page_of(client_of(world.manager), "people_run", world.project.slug)
        assert "Have a label already" not in body
        assert "is under way" in body

    @pytest.mark.parametrize(
        ("wanted", "where"),
        [
            ({"filters": {"q": "nowhere"}}, "filters"),
            ({"filters": {"colour": "red"}}, "colour"),
            ({"sample": 4}, "sample"),
            ({"sample": 0}, "sample"),
            ({"overlap": 10}, "overlap"),
            ({"overlap_share": Decimal(0)}, "overlap_share"),
            ({"overlap_share": Decimal("0.33333")}, "overlap_share"),
        ],
    )
    def test_what_cannot_be_used_is_refused_by_name(self, wanted: dict[str, Any], where: str) -> None:
        project = make_project()
        make_items(project, 3)
        with pytest.raises(InputError) as refused:
            asked(project, **wanted)
        assert refused.value.where == where
        assert not Run.objects.exists()

    def test_a_filter_by_what_models_said_tells_nothing(self) -> None:
        project = make_project()
        make_items(project, 3)
        with pytest.raises(InputError, match="may not be looked at now"):
            asked(project, filters={"u_from": "0.5"})

    def test_many_are_given_by_a_job_which_finds_the_same_items(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(start, "AT_ONCE", 2)
        project = make_project()
        make_items(project, 5)
        run = asked(project)
        assert run.state == Run.State.ROUTING
        make_items(project, 2)  # what comes later is not of it
        job = Job.objects.get(kind=start.KIND)
        jobs.run(job.pk)
        run.refresh_from_db()
        assert (run.state, run.pool_items.count()) == (Run.State.LABELLING, 5)

    def test_where_others_would_be_found_nobody_is_asked(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(start, "AT_ONCE", 2)
        project = make_project()
        items = make_items(project, 5)
        run = asked(project)
        items[0].delete()
        job = Job.objects.get(kind=start.KIND)
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.FAILED
        assert not WorkItem.objects.exists()
        cancel_run(run=run, user=project.created_by)


class TestBesideModels:
    def test_one_run_at_a_time(self) -> None:
        world = make_world(20)
        run = asked(world.project)
        with pytest.raises(ConflictError, match="under way"):
            world.start(m=10)
        with pytest.raises(ConflictError, match="under way"):
            asked(world.project)
        cancel_run(run=run, user=world.manager)
        assert world.start(m=10).number == 2

    def test_labels_by_people_serve_as_labels_and_are_in_no_draw(self, client_of: Any) -> None:
        world = make_world(60)
        project = world.project
        first = asked(project, sample=20)
        labelled = set(answer(project, world.annotators[0], "emu"))
        page = page_of(client_of(world.manager), "plan", project.slug)
        assert "20 items have their labels from people already" in page
        run = world.complete(m=20)
        drawn = set(run.draw.items.values_list("item__external_id", flat=True))
        assert run.pool_size == 40
        assert not drawn & labelled
        assert run.whole_size == 60  # they count as right, as any label by people does
        rows = {row.external_id: row for row in rows_of(run)}
        assert {rows[name].label for name in labelled} == {"emu"}
        assert {rows[name].run for name in labelled} == {first.number}
        assert {rows[name].certificate_id for name in labelled} == {None}

    def test_what_a_filter_left_is_no_sample_of_a_source(self) -> None:
        world = make_world(20)
        project = world.project
        one = Item.objects.filter(project=project).first()
        run = asked(project, filters={"q": one.external_id})
        answer(project, world.annotators[0])
        run.refresh_from_db()
        assert run.state == Run.State.COMPLETE
        assert pool_of(project, "dataset").count() == 20 - run.pool_size
        assert not pool_of(project, "population").exists()
        assert "no random sample" in str(nothing_to_plan_for(project))
        make_items(project, 2)
        assert pool_of(project, "population").count() == 2

    def test_a_random_sample_leaves_one(self) -> None:
        world = make_world(20)
        asked(world.project, sample=5)
        answer(world.project, world.annotators[0])
        assert pool_of(world.project, "population").count() == 15

    def test_nothing_of_the_models_way_can_be_done_with_such_a_run(self, client_of: Any) -> None:
        world = make_world(20)
        run = asked(world.project)
        client, here = client_of(world.manager), [world.project.slug, run.number]
        for name in (
            "run_analyse",
            "run_route",
            "run_take_in",
            "run_ask_expert",
            "run_final_audit",
            "run_analyse_final_audit",
            "run_accept_unusable",
        ):
            assert client.post(reverse(name, args=here)).status_code == 302, name
            told = client.post(reverse(f"api_{name}", args=here), {}, content_type="application/json")
            assert told.status_code in (400, 409), (name, told.status_code)
        for name in ("run_certificate", "run_certificate_page", "run_draw"):
            assert client.get(reverse(name, args=here)).status_code == 404
        run.refresh_from_db()
        assert run.state == Run.State.LABELLING

    def test_of_several_runs_one_is_chosen_to_be_delivered(self, client_of: Any) -> None:
        world = make_world(40)
        asked(world.project, sample=5)
        answer(world.project, world.annotators[0])
        world.complete(m=10)
        client = client_of(world.manager)
        page = page_of(client, "deliveries", world.project.slug)
        assert "Run 1 (people)" in page
        assert "/runs/2/deliver/" in page
        page = client.get(reverse("deliveries", args=[world.project.slug]) + "?run=1").content.decode()
        assert "/runs/1/deliver/" in page


class TestEveryAddress:
    def test_of_such_a_run_answers(self, client_of: Any) -> None:
        """Whatever expects a plan or a certificate refuses, and does not fail."""
        world = make_world(10)
        run = asked(world.project)
        client = client_of(world.manager)
        patterns = [*_patterns(get_resolver().url_patterns)]
        seen = 0
        for name in patterns:
            try:
                address = reverse(name, kwargs={"slug": world.project.slug, "number": run.number})
            except NoReverseMatch:
                continue
            seen += 1
            assert client.get(address).status_code < 500, name
            if name not in ("run_cancel", "api_run_cancel"):
                told = client.post(address, {}, content_type="application/json")
                assert told.status_code < 500, name
        assert seen > 30


def _patterns(patterns: Any) -> Iterator[str]:
    for one in patterns:
        if isinstance(one, URLResolver):
            yield from _patterns(one.url_patterns)
        elif one.name:
            yield one.name
