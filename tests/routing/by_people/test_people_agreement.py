"""How far people agree in a run without any model."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Label, WorkItem
from annotation.review import compared_items
from routing.runs.people_agreement import agreement_in_words, people_agreement
from testbed.factories import add_member, make_image_items, make_items, make_project
from tests.routing.by_people.people import answer, asked

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestAgreement:
    def test_is_that_of_all_items_from_those_that_two_people_had(self) -> None:
        project = make_project()
        people = [add_member(project, "annotator") for _ in range(2)]
        make_items(project, 200)
        run = asked(project, overlap=2, overlap_share=Decimal("0.5"))
        several = WorkItem.objects.filter(batch=run.routed_batch, slot=1).count()
        assert 60 < several < 140
        figure = people_agreement(run)
        assert (figure["items"], figure["unknown"], figure["estimate"]) == (several, several, None)
        assert "not known yet" in agreement_in_words(figure)[0]
        for user in people:
            answer(project, user)
        figure = people_agreement(run)
        assert (figure["differ"], figure["unknown"], figure["estimate"], figure["low"]) == (0, 0, 0.0, 0.0)
        assert 0 < figure["high"] < 0.05  # of the items that one person had, some may differ

    def test_a_missing_answer_widens_the_range(self, monkeypatch: Any) -> None:
        project = make_project()
        people = [add_member(project, "annotator") for _ in range(2)]
        make_items(project, 10)
        run = asked(project, overlap=2)
        answer(project, people[0])
        answer(project, people[1], most=9)
        figure = people_agreement(run)
        assert (figure["unknown"], figure["low"], figure["high"]) == (1, 0.0, 0.1)

        # Of a sample, which nobody knows without the salt.
        monkeypatch.setattr(compared_items, "MAX_ITEMS", 1)
        for number in range(200):
            run.salt = str(number)
            with CaptureQueriesContext(connection) as queries:
                figure = people_agreement(run)
            (names,) = [one["sql"] for one in queries if "external_id" in one["sql"]]
            assert re.search(r"IN \(\d+\)", names), names  # that of the chosen item alone
            if figure["unknown"]:
                break
        assert (figure["items"], figure["used"], figure["unknown"]) == (10, 1, 1)
        assert (
            "none of the 1 items that are looked at (of 10) has two answers" in agreement_in_words(figure)[0]
        )

    def test_what_a_reviewer_or_a_correction_says(self) -> None:
        project = make_project()
        people = [add_member(project, "annotator") for _ in range(2)]
        make_items(project, 1)
        run = asked(project, overlap=2)
        answer(project, people[0], "cat")
        answer(project, people[1], "dog")
        assert people_agreement(run)["differ"] == 1
        label = Label.objects.get(annotator=people[1])
        queue.correct(user=people[1], label_id=label.pk, value="cat", idempotency_key="c" * 32)
        assert people_agreement(run)["differ"] == 0

    def test_of_one_person_an_item_it_says_so(self) -> None:
        project = make_project()
        annotator = add_member(project, "annotator")
        make_items(project, 2)
        run = asked(project)
        answer(project, annotator)
        assert "each item was put to one of them" in agreement_in_words(people_agreement(run))[0]

    def test_boxes_differ_where_the_loss_finds_a_difference_and_no_filter_says_otherwise(
        self, client_of: Any, monkeypatch: Any
    ) -> None:
        project = make_project(task_type="boxes", choices=("cat",))
        people = [add_member(project, "annotator") for _ in range(2)]
        make_image_items(project, 4)
        run = asked(project, overlap=2)
        near, far = (
            json.dumps([{"label": "cat", "x": x, "y": 10, "width": 30, "height": 30}]) for x in (10.5, 60)
        )
        answer(project, people[0], near.replace("10.5", "10"))
        answer(project, people[1], near, most=3)
        answer(project, people[1], far)
        figure = people_agreement(run)
        assert (figure["items"], figure["unknown"], figure["differ"]) == (4, 0, 1)
        client, address = client_of(project.created_by), reverse("items", args=[project.slug])
        assert 'name="differ"' not in client.get(address).content.decode()
        refused = client.get(address, {"differ": "people"}).content.decode()
        assert "s loss to say here" in refused
        monkeypatch.setattr(compared_items, "MAX_CHARACTERS", 5 * len(json.dumps(near)))
        figure = people_agreement(run)
        assert (figure["items"], figure["used"], figure["low"] < figure["high"]) == (4, 2, True)
        address = reverse("run", args=[project.slug, run.number])
        page = client.get(address).content.decode()
        assert "drawn at random from the 4 that" in page
        assert "if people differ as often where answers are long" in page
        told = client.get(f"/api/v1{address}").json()["people_agreement"]
        assert told == figure
