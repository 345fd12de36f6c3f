"""Pages of projects in which several people answer about an item."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Settlement, WorkItem
from annotation.projects.manage import update_project
from testbed.factories import make_project
from testbed.worlds import make_world
from tests.annotation.labelling.several import SeveralDesk

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
SETTINGS = {
    "form": "basics",
    "name": "Owls",
    "guidelines": "",
    "human_cost": "1",
    "currency": "USD",
    "lease_seconds": "900",
    "text_format": "markdown",
    "overlap": "3",
    "overlap_share": "0.25",
    "consensus": "dawid_skene",
}


def text(response) -> str:
    return response.content.decode()


class TestSettings:
    def test_all_is_stored_and_shown(self, owner, project) -> None:
        url = reverse("project_settings", args=[project.slug])
        assert owner.post(url, SETTINGS).status_code == 302
        project.refresh_from_db()
        assert (project.overlap, project.overlap_share) == (3, Decimal("0.25"))
        assert (project.consensus, project.text_format) == ("dawid_skene", "markdown")
        page = text(owner.get(url))
        assert 'value="0.25"' in page
        assert '<option value="dawid_skene" selected>' in page

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"overlap": "0"}, "at least 1"),
            ({"overlap": "10"}, "at most 9"),
            ({"overlap_share": "0"}, "a share above 0"),
            ({"overlap_share": "1.5"}, "at most 1"),
            ({"consensus": "dice"}, "not one of the available choices"),
        ],
    )
    def test_what_cannot_be_is_told_and_nothing_is_stored(self, owner, project, change, words) -> None:
        page = text(owner.post(reverse("project_settings", args=[project.slug]), SETTINGS | change))
        assert words in page
        assert 'value="Owls"' in page  # what was typed stays
        project.refresh_from_db()
        assert project.overlap == 1

    def test_other_tasks_than_single_choices_have_no_dawid_skene(self, client_of) -> None:
        project = make_project(choices=(), task_type="number")
        client = client_of(project.created_by)
        url = reverse("project_settings", args=[project.slug])
        assert "Dawid" not in text(client.get(url))
        assert client.post(url, SETTINGS).status_code == 302
        project.refresh_from_db()
        assert (project.overlap, project.consensus) == (3, "majority")


class TestStuck:
    def test_the_answers_given_can_be_enough(self, client_of) -> None:
        desk = SeveralDesk(people=2)
        desk.project.memberships.filter(user=desk.project.created_by).update(role="owner")
        desk.project.memberships.filter(user__in=desk.people).update(role="reviewer")
        client = client_of(desk.project.created_by)
        desk.answer("cat", "cat")
        queue.claim(project=desk.project, user=desk.project.created_by)
        work_item = desk.batch.work_items.get(state=WorkItem.State.LEASED)
        queue.release_all(project=desk.project, user=desk.project.created_by)
        # The owner may label, too: only once nobody could is a manager asked.
        assert "Its answers are enough" not in text(client.get(reverse("overview", args=[desk.project.slug])))
        held = queue.claim(project=desk.project, user=desk.project.created_by)
        queue.skip(
            user=desk.project.created_by, work_item_id=held.work_item.pk, token=held.token, reason="unclear"
        )
        page = text(client.get(reverse("overview", args=[desk.project.slug])))
        assert 'value="ask_no_more" data-ask="Go by the answers that are there?' in page
        assert "Its answers are enough" in page
        url = reverse("work_decide", args=[desk.project.slug, work_item.pk])
        page = text(client.post(url, {"decision": "ask_no_more"}, follow=True))
        assert "the answers given are enough" in page
        assert Settlement.objects.get().value == "cat"


class TestRun:
    def test_the_page_tells_answers_from_items_and_what_waits_for_a_reviewer(self, client_of) -> None:
        world = make_world(40, error=(lambda u: u,), costs=("1",))
        update_project(project=world.project, user=world.manager, overlap=2)
        client = client_of(world.manager)
        plan = {"epsilon": "10", "alpha": "10", "m": "10", "p": "1"}
        shown = text(client.post(reverse("plan", args=[world.project.slug]), plan))
        assert "with 2 people per item on average" in shown
        run = world.start(m=10, p=Decimal(1))
        world.do("prepare_run")
        overview = reverse("overview", args=[world.project.slug])
        assert "20 answers about calibration items are still missing" in text(client.get(overview))
        for user, value in zip(world.annotators, ("cat", "dog"), strict=True):
            task = queue.claim(project=world.project, user=user)
            queue.submit(
                user=user,
                work_item_id=task.work_item.pk,
                token=task.token,
                value=value,
                idempotency_key=value,
            )
        page = text(client.get(reverse("run", args=[world.project.slug, run.number])))
        assert "2 of 20 done" in page
        assert "0 of 10 items have their label" in page
        assert "1 item waits for a reviewer" in page
        world.label()
        assert "people disagree about 1 item" in text(client.get(overview))
        viewer = client_of(world.manager)
        world.project.memberships.filter(user=world.manager).update(role="viewer")
        page = text(viewer.get(reverse("run", args=[world.project.slug, run.number])))
        assert "1 item waits for a reviewer" in page
        assert f'<a href="{reverse("review", args=[world.project.slug])}">1 item' not in page
