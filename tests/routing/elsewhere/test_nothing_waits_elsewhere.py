"""Where no item waits for an answer from another program: each state of a run, and of an item, says why."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import Membership, Skip, WorkItem
from routing.models import Run
from tests.routing.elsewhere.test_labelled_elsewhere import back, lines, out, waiting, world

__all__ = ["world"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_an_item_that_a_person_has_open_here_is_theirs_to_answer(client, world):
    ann, bob = world.annotators
    held = queue.claim(project=world.project, user=ann)
    row = {"item": held.item.pk, "value": "cat"}
    other = back(client, world, [{**row, "annotator": bob.username}]).json()["refused"][0]
    assert other["code"] == "item_with_other"
    assert "Somebody else has this item open now" in other["reason"]
    Membership.objects.filter(user=ann, project=world.project).update(max_labels=0)
    taken = back(client, world, [{**row, "annotator": ann.username}]).json()
    assert (taken["stored"], taken["refused"]) == (1, [])
    with pytest.raises(ConflictError) as late:
        queue.submit(
            user=ann,
            work_item_id=held.work_item.pk,
            token=held.token,
            value="dog",
            idempotency_key=str(uuid4()),
        )
    assert late.value.code == "labelled_already"


def test_an_item_whose_time_is_over_goes_to_whoever_answered_it(client, world):
    ann, bob = world.annotators
    held = queue.claim(project=world.project, user=ann)
    WorkItem.objects.filter(pk=held.work_item.pk).update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )
    row = {"item": held.item.pk, "value": "cat", "annotator": bob.username}
    assert back(client, world, [row]).json()["stored"] == 1


def test_each_reason_for_which_an_item_waits_for_nobody_has_its_code(client, world):
    ann, bob = world.annotators
    skipped, done, lost, gone = (task["item"] for task in lines(out(client, world, "hypac"))[:4])
    work = WorkItem.objects.filter(batch=world.project.runs.get().routed_batch)
    Skip.objects.create(work_item=work.get(item=skipped), user=ann, reason=Skip.Reason.UNCLEAR)
    assert back(client, world, [{"item": done, "value": "cat", "annotator": bob.username}]).json()["stored"]
    work.filter(item=lost).update(state=WorkItem.State.UNLABELABLE)
    work.filter(item=gone).update(state=WorkItem.State.WITHDRAWN)
    rows = [{"item": item, "value": "cat", "annotator": ann.username} for item in (skipped, done, lost, gone)]
    refused = back(client, world, rows).json()["refused"]
    assert [one["code"] for one in refused] == [
        *("skipped_by_person", "labelled_by_other"),
        *("cannot_be_labelled", "not_asked_for"),
    ]
    free = lines(out(client, world, "hypac"))[1]["item"]
    Membership.objects.filter(user=ann, project=world.project).update(paused_at=timezone.now())
    refused = back(client, world, [{"item": free, "value": "cat", "annotator": ann.username}]).json()
    assert refused["refused"][0]["code"] == "person_paused"


def test_a_run_that_leaves_people_nothing_gives_out_nothing_and_says_why(client, world):
    run = world.project.runs.get()
    world.finish()
    told = waiting(client, world, "routed")
    assert (told["waiting"], told["conditions"]) == (0, [])
    assert told["note"] == "People have labelled all that run 1 left for them."
    assert lines(out(client, world)) == []
    # As where routing made no batch.
    Run.objects.filter(pk=run.pk).update(routed_batch=None)
    assert waiting(client, world, "routed")["note"] == "Routing left nothing for people in run 1."
    assert lines(out(client, world)) == []


def test_what_was_sent_is_known_once_the_run_is_complete(client, world):
    task = lines(out(client, world, "hypac"))[0]
    row = {"item": task["item"], "value": "cat", "annotator": world.annotators[0].username}
    assert back(client, world, [row]).json()["stored"] == 1
    world.finish()
    assert back(client, world, [row]).json()["known"] == 1


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Run.State.CANCELLED, "Run 1 was cancelled: it asks nobody about its items any more."),
        (Run.State.ANALYSED, "Run 1 is not routed yet, and sends nothing to people before: analysed."),
    ],
)
def test_a_run_that_is_not_routed_says_what_is_true_of_it(client, world, state, says):
    Run.objects.update(state=state)
    refused = waiting(client, world, "routed", status=409)
    assert (refused["code"], refused["detail"]) == ("no_routed_items", says)
