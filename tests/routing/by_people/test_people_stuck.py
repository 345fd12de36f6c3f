"""Items of a run without any model that those who were asked have skipped."""

import csv
import io
from typing import Any

import pytest

from annotation.labelling import queue
from annotation.models import Item, Project, User
from routing.models import Delivery, Run
from testbed.factories import add_member, make_items, make_project, make_user
from testbed.worlds import files_of, make_world
from tests.routing.by_people.people import answer, asked, delivered, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def rows_in(delivery: Delivery) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files_of(delivery)["labels.csv"].decode())))


class Skipped:
    """Of `items` items that two people each are asked about two annotators, Anna and Ben, answer all but the
    last, which both have skipped; the owner can still label it.
    """

    def __init__(self, items: int = 3, *, people: int = 2) -> None:
        self.project: Project = make_project(name="Mails")
        self.owner: User = self.project.created_by
        self.anna = add_member(self.project, "annotator", make_user("anna"))
        self.ben = add_member(self.project, "annotator", make_user("ben"))
        self.items: list[Item] = make_items(self.project, [f"mail {n}" for n in range(items)])
        self.run: Run = asked(self.project, overlap=people)
        self.label(self.anna, "cat", "unclear")
        self.label(self.ben, "cat", "no_label_fits")

    def label(self, user: User, value: str, reason: str, skipped: int | None = None) -> None:
        """All that this person gets, but the last item, or the last `skipped` ones."""
        left_out = {item.pk for item in self.items[-(skipped or 1) :]}
        while task := queue.claim(project=self.project, user=user):
            held: dict[str, Any] = {"user": user, "work_item_id": task.work_item.pk, "token": task.token}
            if task.item.pk in left_out:
                queue.skip(**held, reason=reason, comment=f"says {user.username}")
            else:
                key = f"{user.pk}-{task.work_item.pk}".ljust(32, "k")
                queue.submit(**held, value=value, idempotency_key=key)

    def enough(self) -> None:
        """What the owner answered alone is enough."""
        answer(self.project, self.owner, "dog")
        queue.ask_no_more(work_item=queue.stuck_items(self.project).get(), actor=self.owner)


class TestTheOneAnswer:
    def test_is_no_majority_in_a_delivery_nor_on_the_items_page(self, client_of: Any) -> None:
        mails = Skipped()
        mails.enough()
        client = client_of(mails.owner)
        rows = rows_in(delivered(client, mails.run))
        assert [(row["label"], row["settled_by"]) for row in rows] == [
            ("cat", "majority"),
            ("cat", "majority"),
            ("dog", ""),
        ]
        assert rows[2]["annotator"] == mails.owner.username
        page = page_of(client, "item", mails.project.slug, mails.items[-1].pk)
        assert "More than half gave it" not in page
        assert "The one answer there is" in page
        assert "More than half gave it" in page_of(client, "item", mails.project.slug, mails.items[0].pk)

    def test_two_equal_answers_of_three_people_are_one(self, client_of: Any) -> None:
        mails = Skipped(people=3)
        mails.label(mails.owner, "dog", "other", skipped=3)
        for stuck in queue.stuck_items(mails.project):
            answered = stuck.item_id != mails.items[-1].pk
            decide = queue.ask_no_more if answered else queue.give_up
            decide(work_item=stuck, actor=mails.owner)
        rows = rows_in(delivered(client_of(mails.owner), mails.run))
        assert [row["settled_by"] for row in rows] == ["majority", "majority", ""]


class TestWhoCanGoOn:
    def test_the_overview_says_that_only_the_owner_can(self, client_of: Any) -> None:
        mails = Skipped()
        client, slug = client_of(mails.owner), mails.project.slug
        page = page_of(client, "overview", slug)
        assert "2 answers by people are still missing." in page
        assert "Only you can still give what is missing" in page
        assert "1 item was skipped; its page says by whom and why." in page
        assert "left at this pace" not in page
        assert "left at this pace" not in page_of(client, "run", slug, mails.run.number)
        manager = add_member(mails.project, "manager", make_user("mara"))
        mails.label(manager, "dog", "other")
        page = page_of(client_of(manager), "overview", slug)
        assert f"Only {mails.owner.username} can still give what is missing" in page
        assert "See who takes part" in page

    def test_as_long_as_everybody_can_nothing_is_said(self, client_of: Any) -> None:
        project = make_project()
        people = [add_member(project, "annotator") for _ in range(2)]
        make_items(project, 4)
        asked(project, overlap=2)
        answer(project, people[0], "cat", most=2)
        page = page_of(client_of(project.created_by), "overview", project.slug)
        assert "can still give" not in page
        assert "left at this pace" in page


class TestDeciding:
    def test_who_skipped_it_and_why_and_the_one_answer_stand_beside_the_decision(
        self, client_of: Any
    ) -> None:
        mails = Skipped()
        answer(mails.project, mails.owner, "dog")
        client, slug = client_of(mails.owner), mails.project.slug
        page = page_of(client, "overview", slug)
        assert "skipped by everybody" not in page
        assert "Nobody is left to label 1 item: whoever could has skipped it, or answered already." in page
        assert "<bdi>anna</bdi> skipped it: Cannot tell" in page
        assert "<bdi>ben</bdi> skipped it: No label fits" in page
        assert "says anna" in page
        assert f"<bdi>{mails.owner.username}</bdi> answered <bdi>dog</bdi>" in page
        assert "left at this pace" not in page
        page = page_of(client, "run", slug, mails.run.number)
        assert "Nobody is left to label 1 item" in page
        assert f'href="/projects/{slug}/#stuck">Decide</a>' in page

    def test_of_what_is_labelled_blind_nothing_is_shown(self, client_of: Any) -> None:
        world = make_world(40)
        world.start(m=20)
        world.do("prepare_run")
        for user in [*world.annotators, world.manager]:
            while task := queue.claim(project=world.project, user=user):
                queue.skip(
                    user=user,
                    work_item_id=task.work_item.pk,
                    token=task.token,
                    reason="other",
                    comment="a secret",
                )
        page = page_of(client_of(world.manager), "overview", world.project.slug)
        assert "Its answers are enough" not in page
        assert "Cannot be shown: people label this item without knowing what others said of it." in page
        assert "a secret" not in page
        assert "skipped it:" not in page
