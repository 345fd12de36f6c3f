"""Guideline rounds: all answer the same items blind, see who said what, and no run ever draws these."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from annotation.errors import ConflictError, InputError, NotAllowedError
from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements, record_values
from annotation.models import AuditEvent, Label, Project, User
from annotation.permissions import Access, access_to
from annotation.projects.lifecycle import delete_project
from annotation.review.agreement_queries import agreement
from routing.items.table import item_rows
from routing.models import GuidelineRound, RoundItem, RoundNote
from routing.rounds.results import figures_of, people_in, result_of
from routing.rounds.start import add_note, close_round, start_round
from routing.runs.pool import nothing_to_plan_for, pool_of, size_of_pool
from routing.runs.untouched_items import untouched_items
from testbed.factories import add_member, make_items, make_project, remove_deleted
from testbed.worlds import make_world, rows_of
from tests.routing.by_people.people import answer, asked, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def access_of(project: Project, user: User | None = None) -> Access:
    access = access_to(user or project.created_by, project.slug)
    assert access is not None
    return access


class World:
    def __init__(self, size: int = 12) -> None:
        self.project = make_project(choices=["cat", "dog", "emu"], guidelines="A cat purrs.")
        make_items(self.project, size)
        self.first, self.second = add_member(self.project), add_member(self.project)
        self.lead = access_of(self.project)

    def answered(self, *, size: int = 4, differ: int = 1) -> GuidelineRound:
        found = start_round(access=self.lead, size=size)
        answer(self.project, self.first, "cat")
        answer(self.project, self.second, "dog", most=differ)
        answer(self.project, self.second, "cat")
        return found

    def closed(self, **how: int) -> GuidelineRound:
        found = self.answered(**how)
        close_round(access=self.lead, found=found)
        return GuidelineRound.objects.get(pk=found.pk)


@pytest.fixture
def world() -> World:
    return World()


class TestAnswering:
    def test_every_annotator_gets_every_item_and_nobody_else_does(self, world: World) -> None:
        found = start_round(access=world.lead, size=4)
        assert queue.claim(project=world.project, user=world.project.created_by) is None
        names = {row.item.external_id for row in found.items.all()}
        assert set(answer(world.project, world.first)) == names
        assert set(answer(world.project, world.second)) == names
        assert {user: done for user, _asked, done in people_in(found)} == {world.first: 4, world.second: 4}

    def test_until_it_is_closed_nobody_sees_what_others_answered(self, world: World, client_of: Any) -> None:
        found = world.answered()
        reviewer, slug = add_member(world.project, "reviewer"), world.project.slug
        assert not any(row.label for row in item_rows(world.project, access_of(world.project, reviewer)).rows)
        item = found.items.all()[0].item
        for user in (reviewer, world.project.created_by):
            assert (
                world.first.username
                not in page_of(client_of(user), "item", slug, item.pk).split("Activity")[-1]
            )
        told = client_of(reviewer).get(reverse("api_labels", args=[slug])).json()["results"]
        assert told == []
        assert not disagreements(world.project, reviewer).exists()
        page = page_of(client_of(world.first), "round", slug, 1)
        assert world.second.username not in page
        assert client_of(reviewer).get(reverse("round", args=[slug, 1])).status_code == 404
        with pytest.raises(ConflictError, match="The round is open"):
            add_note(access=world.lead, found=found, item=item, text="odd")

    def test_once_it_is_closed_answers_stay(self, world: World) -> None:
        world.closed()
        label = Label.objects.filter(annotator=world.first)[0]
        with pytest.raises(ConflictError, match="round is closed"):
            queue.correct(user=world.first, label_id=label.pk, value="dog", idempotency_key="k" * 32)

    def test_closing_ends_what_is_still_asked(self, world: World) -> None:
        found = start_round(access=world.lead, size=4)
        answer(world.project, world.first, most=1)
        close_round(access=world.lead, found=found)
        close_round(access=world.lead, found=found)
        assert queue.claim(project=world.project, user=world.second) is None
        assert AuditEvent.objects.filter(action="round.closed").count() == 1
        assert figures_of(found).compared == 0


class TestOutsideEveryDraw:
    def test_no_run_covers_its_items_and_people_may_be_asked_about_them(self, world: World) -> None:
        found = world.closed()
        inside = {row.item_id for row in found.items.all()}
        for target in ("dataset", "population", "pool"):
            assert not inside.intersection(pool_of(world.project, target).values_list("pk", flat=True))
        assert size_of_pool(world.project, "dataset") == 8
        assert not untouched_items(world.project).filter(pk__in=inside).exists()
        assert asked(world.project).pool_size == 12

    def test_what_named_items_leave_is_no_random_sample(self, world: World) -> None:
        start_round(access=world.lead, names=["t1", "t2"])
        assert pool_of(world.project, "dataset").count() == 10
        assert not pool_of(world.project, "population").exists()
        assert "named items for a guideline round" in str(nothing_to_plan_for(world.project))
        make_items(world.project, 3)
        assert pool_of(world.project, "population").count() == 3

    def test_its_answers_are_no_labels_of_record(self, world: World) -> None:
        found = world.closed(differ=0)
        assert not record_values(world.project, [row.item_id for row in found.items.all()])
        assert agreement(world.project).items == 0

    def test_a_run_with_models_leaves_them_out_and_its_delivery_says_why(self) -> None:
        world = make_world(80)
        access = access_of(world.project)
        found = start_round(access=access, size=20)
        for person in world.annotators:
            answer(world.project, person)
        close_round(access=access, found=found)
        run = world.complete(m=30)
        assert run.pool_size == 60
        inside = set(RoundItem.objects.values_list("item__external_id", flat=True))
        rows = rows_of(run)
        assert {row.external_id for row in rows if row.label is None} == inside
        assert {row.reason for row in rows if row.label is None} == {
            "not covered by run 1: it was in guideline round 1"
        }
        assert not untouched_items(world.project).exists()

    def test_where_all_were_in_rounds_the_plan_says_so(self) -> None:
        world = World(4)
        start_round(access=world.lead, size=4)
        assert "in a guideline round" in str(nothing_to_plan_for(world.project))

    def test_facts_of_a_round_are_kept(self, world: World) -> None:
        found = world.closed()
        with pytest.raises(IntegrityError), transaction.atomic():
            RoundItem.objects.update(item=world.project.items.last())
        with pytest.raises(IntegrityError), transaction.atomic():
            GuidelineRound.objects.filter(pk=found.pk).update(guidelines="others")


class TestResults:
    def test_agreement_disputes_and_who_said_what(self, world: World) -> None:
        result = result_of(world.closed(size=4, differ=1))
        assert (result.figures.compared, result.figures.disputed) == (4, 1)
        assert result.figures.equal.value == 0.75
        [disputed] = result.disputed
        said = {one.annotator: one.value for one in disputed.answers}
        assert said == {world.first: "cat", world.second: "dog"}
        assert [person.equal for person in result.people] == [0.75, 0.75]

    def test_numbers_are_compared_by_distance(self) -> None:
        project = make_project(choices=(), task_type="number")
        make_items(project, 4)
        access = access_of(project)
        people = [add_member(project) for _ in range(2)]
        found = start_round(access=access, size=3)
        for person, values in zip(people, (("1", "5", "9"), ("1.5", "5", "9")), strict=True):
            for value in values:
                answer(project, person, value, most=1)
        close_round(access=access, found=found)
        figures = figures_of(found)
        assert figures.alpha.value is not None
        assert figures.alpha.value > 0.9

    def test_people_talk_and_reviewers_decide(self, world: World) -> None:
        found = world.closed()
        [one] = result_of(found).disputed
        add_note(access=access_of(world.project, world.first), found=found, item=one.item, text="It purrs.")
        with pytest.raises(NotAllowedError, match="Reviewers and managers decide"):
            add_note(access=access_of(world.project, world.first), found=found, item=one.item, value="cat")
        with pytest.raises(InputError, match="Write something"):
            add_note(access=world.lead, found=found, item=one.item, text=" ")
        other = world.project.items.exclude(round_item__round=found)[0]
        with pytest.raises(InputError, match="not in the round"):
            add_note(access=world.lead, found=found, item=other, text="x")
        add_note(access=world.lead, found=found, item=one.item, value="dog")
        add_note(access=world.lead, found=found, item=one.item, text="No: it purrs.", value="cat")
        [one] = result_of(found).disputed
        assert one.decided is not None
        assert one.decided.value == "cat"
        assert [note.text for note in one.notes] == ["It purrs.", "", "No: it purrs."]
        assert not record_values(world.project, [one.item.pk])


class TestStarting:
    def test_by_name_and_by_the_people_that_are_named(self, world: World) -> None:
        reviewer = add_member(world.project, "reviewer")
        found = start_round(
            access=world.lead, names=["t3", "t1"], people=[world.first.username, reviewer.username]
        )
        assert found.by_name
        assert found.guidelines == "A cat purrs."
        assert {row.item.external_id for row in found.items.all()} == {"t1", "t3"}
        assert {user for user, *_counts in people_in(found)} == {world.first, reviewer}
        assert AuditEvent.objects.get(action="round.started").data["items"] == 2

    @pytest.mark.parametrize(
        ("how", "where"),
        [
            ({"size": 13}, "size"),
            ({"size": 1}, "size"),
            ({"names": ["t1", "no such"]}, "names"),
            ({"size": 4, "people": ["nobody"]}, "people"),
        ],
    )
    def test_what_cannot_be(self, world: World, how: dict[str, Any], where: str) -> None:
        with pytest.raises(InputError) as refused:
            start_round(access=world.lead, **how)
        assert refused.value.where == where
        assert not GuidelineRound.objects.exists()

    def test_one_person_is_no_round(self) -> None:
        project = make_project()
        make_items(project, 5)
        with pytest.raises(InputError, match="at least two"):
            start_round(access=access_of(project), size=3)

    def test_one_at_a_time_and_none_under_a_run(self, world: World) -> None:
        start_round(access=world.lead, size=2)
        with pytest.raises(ConflictError, match="A round is open"):
            start_round(access=world.lead, size=2)
        other = World()
        asked(other.project)
        with pytest.raises(ConflictError, match="under way"):
            start_round(access=other.lead, size=2)

    def test_another_round_has_other_items(self, world: World) -> None:
        first = {row.item_id for row in world.closed(size=6).items.all()}
        second = {row.item_id for row in start_round(access=world.lead, size=6).items.all()}
        assert not first & second


class TestTheEndOfAProject:
    def test_it_is_removed_with_its_rounds(self, world: World) -> None:
        found = world.closed()
        [one] = result_of(found).disputed
        add_note(access=world.lead, found=found, item=one.item, value="cat")
        delete_project(project=world.project, actor=world.project.created_by, name=world.project.name)
        remove_deleted(world.project)
        assert not RoundNote.objects.exists()


class TestPagesAndApi:
    def test_two_rounds_by_the_pages(self, world: World, client_of: Any) -> None:
        client, slug = client_of(world.project.created_by), world.project.slug
        fields = {"size": "4", "names": "", "people": [world.first.username, world.second.username]}
        assert "12 items can be in it" in page_of(client, "rounds", slug)
        client.post(reverse("rounds", args=[slug]), fields)
        answer(world.project, world.first, "cat")
        answer(world.project, world.second, "dog")
        assert "Everybody has answered" in page_of(client, "round", slug, 1)
        client.post(reverse("round_close", args=[slug, 1]))
        page = page_of(client, "round", slug, 1)
        assert page.count("round-item") == 4
        item = RoundItem.objects.all()[0].item
        note = reverse("round_note", args=[slug, 1, item.pk])
        client_of(world.first).post(note, {"text": "<b>It</b> purrs"})
        client.post(note, {"text": "", "value": "cat", "decide": "1"})
        page = page_of(client_of(world.second), "round", slug, 1)
        assert "&lt;b&gt;It&lt;/b&gt; purrs" in page
        assert "Decided: cat" in page
        assert "who said what" in page_of(client_of(world.second), "overview", slug)
        client.post(reverse("rounds", args=[slug]), fields)
        listed = page_of(client, "rounds", slug)
        assert listed.index("Round 2") < listed.index("Round 1")
        assert "4 / 4" in listed
        events = page_of(client, "audit", slug)
        assert "A guideline round was started" in events

    def test_by_the_api(self, world: World, client_of: Any) -> None:
        client, slug = client_of(world.project.created_by), world.project.slug

        def post(name: str, *args: Any, user: User | None = None, **body: Any) -> Any:
            return client_of(user or world.project.created_by).post(
                reverse(name, args=[slug, *args]), body, content_type="application/json"
            )

        made = post("api_rounds", size=3)
        assert (made.status_code, made.json()["items"], made.json()["figures"]) == (201, 3, None)
        answer(world.project, world.first, "cat")
        answer(world.project, world.second, "dog")
        assert client.get(reverse("api_round", args=[slug, 1])).json()["each"] == []
        inside = Label.objects.first().item.external_id
        outside = world.project.items.filter(round_item__isnull=True)[0].external_id
        open_ = [
            post("api_round_notes", 1, user=world.first, external_id=name, text="?").json()
            for name in (inside, outside, "nowhere")
        ]
        assert len({(one["status"], one["detail"]) for one in open_}) == 1, "which items it has is told later"
        closed = post("api_round_close", 1).json()
        assert closed["figures"]["disputed"] == 3
        detail = client.get(reverse("api_round", args=[slug, 1])).json()
        assert sorted(one["value"] for one in detail["each"][0]["answers"]) == ["cat", "dog"]
        name = detail["each"][0]["external_id"]
        assert post("api_round_notes", 1, user=world.first, external_id=name, text="odd").status_code == 201
        assert post("api_round_notes", 1, user=world.first, external_id=name, value="cat").status_code == 403
        assert post("api_round_notes", 1, external_id=name, value="cat").json()["value"] == "cat"
        other = [
            post("api_round_notes", 1, user=world.first, external_id=name, text="?").json()
            for name in (outside, "nowhere")
        ]
        assert [one["status"] for one in other] == [400, 400]
        assert other[0]["detail"] == other[1]["detail"], "names of items are not to be found out by trying"
        [told] = client.get(reverse("api_rounds", args=[slug])).json()["results"]
        assert (told["number"], told["people"][0]["done"]) == (1, 3)
        assert RoundNote.objects.count() == 2
