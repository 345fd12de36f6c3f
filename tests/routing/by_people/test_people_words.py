"""What pages, and the delivery, of a project without any model say of what there is not."""

from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from annotation.models import Job
from routing.runs.people_agreement import agreement_in_words, people_agreement
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world
from tests.routing.by_people.people import answer, asked, delivered, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_two_people_asked_about_all_items_are_not_said_to_be_asked_about_some(client_of: Any) -> None:
    project = make_project()
    people = [add_member(project, "annotator") for _ in range(2)]
    make_items(project, 4)
    run = asked(project, overlap=2)
    answer(project, people[0])
    answer(project, people[1], most=3)
    page = page_of(client_of(project.created_by), "run", project.slug, run.number)
    assert "Several people are asked about each item: 3 of 4 items have their label." in page
    figure = people_agreement(run)
    of_before = {name: value for name, value in figure.items() if name != "used"}
    for one in (figure, of_before):
        words = " ".join(agreement_in_words(one))
        assert "two were asked about every item." in words
        assert "chance" not in words


def test_a_share_of_the_items_is_still_some(client_of: Any) -> None:
    project = make_project()
    person = add_member(project, "annotator")
    make_items(project, 60)
    run = asked(project, overlap=2, overlap_share=Decimal("0.5"))
    answer(project, person, most=3)
    answer(project, project.created_by, most=3)
    page = page_of(client_of(project.created_by), "run", project.slug, run.number)
    assert "Several people are asked about some items" in page


class TestWithoutModels:
    def test_no_page_speaks_of_certificates_scores_or_a_calibration(self, client_of: Any) -> None:
        project = make_project()
        person = add_member(project, "annotator")
        first = make_items(project, 3)[0]
        run = asked(project)
        answer(project, person)
        client = client_of(project.created_by)
        for name, args in (("item", [project.slug, first.pk]), ("items", [project.slug])):
            assert "Answers and scores of the models are not shown" not in page_of(client, name, *args)
        delivered(client, run)
        page = page_of(client, "deliveries", project.slug)
        assert "with a label for every item, and who gave it." in page
        assert "anyone can recompute" not in page
        assert "ledger of alpha" not in page
        assert "certificate.json" not in page
        viewer = client_of(add_member(project, "viewer"))
        assert "certificate.json" not in page_of(viewer, "deliveries", project.slug)

    def test_where_there_are_models_the_notice_stays(self, client_of: Any) -> None:
        world = make_world(20)
        world.start(m=10)
        client = client_of(world.manager)
        page = page_of(client, "items", world.project.slug)
        assert "Answers and scores of the models are not shown" in page

    def test_the_list_of_jobs_counts_the_items_that_were_given(self, client_of: Any) -> None:
        project = make_project()
        make_items(project, 7)
        asked(project)
        job = project.jobs.get(kind="give_to_people")
        assert (job.state, job.done, job.total) == (Job.State.DONE, 7, 7)


class TestReview:
    def test_shows_the_question_and_the_items_name(self, client_of: Any) -> None:
        project = make_project(question="Which animal is it?")
        people = [add_member(project, "annotator") for _ in range(2)]
        item = make_items(project, 1)[0]
        asked(project, overlap=2)
        answer(project, people[0], "cat")
        answer(project, people[1], "dog")
        page = client_of(project.created_by).get(reverse("review", args=[project.slug])).content.decode()
        assert "Which animal is it?" in page
        assert f"<bdi>{item.short_name}</bdi>" in page

    def test_agreement_says_of_how_many_items_the_share_is(self, client_of: Any) -> None:
        project = make_project()
        people = [add_member(project, "annotator") for _ in range(2)]
        make_items(project, 5)
        asked(project, overlap=2)
        answer(project, people[0], "cat")
        answer(project, people[1], "cat", most=3)
        answer(project, people[1], "dog")
        page = page_of(client_of(project.created_by), "agreement", project.slug)
        assert page.count("100 % of 3") == 2
