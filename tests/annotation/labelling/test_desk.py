"""What the page on which people label says of the item, of the task and of what is left."""

import pytest
from django.urls import reverse

from annotation.labelling import queue
from annotation.labelling.own_labels import own_labels
from annotation.labelling.page import columns_class
from annotation.labelling.queries import waiting_for
from annotation.models import Item, Label, WorkBatch
from annotation.projects.manage import update_project
from testbed.factories import add_member, make_items, make_project

pytestmark = [pytest.mark.django_db]


def test_what_waits_is_what_the_queue_would_give() -> None:
    """An item that somebody else has before them for another batch is given to nobody."""
    project = make_project()
    ann, bob = add_member(project), add_member(project)
    item = make_items(project, 1)[0]
    for entropy in (1, 2):
        queue.create_batch(project=project, item_ids=[item.pk], blind=False, priority=10, entropy=entropy)
    held = queue.claim(project=project, user=ann)
    assert held is not None
    assert waiting_for(project, ann) == 1
    assert queue.claim(project=project, user=bob) is None
    assert waiting_for(project, bob) == 0
    queue.skip(user=ann, work_item_id=held.work_item.pk, token=held.token, reason="unclear")
    assert waiting_for(project, ann) == 1
    assert waiting_for(project, bob) == 2


def test_what_somebody_skipped_and_another_has_left_open_waits_for_neither() -> None:
    project = make_project(lease_seconds=30)
    ann, bob = add_member(project), add_member(project)
    batch = queue.create_batch(
        project=project, item_ids=[make_items(project, 1)[0].pk], blind=False, priority=10, entropy=1
    )
    held = queue.claim(project=project, user=ann)
    assert held is not None
    queue.skip(user=ann, work_item_id=held.work_item.pk, token=held.token, reason="unclear")
    assert queue.claim(project=project, user=bob) is not None
    batch.work_items.update(lease_expires_at="2020-01-01T00:00Z")
    assert queue.claim(project=project, user=ann) is None
    assert waiting_for(project, ann) == 0
    assert waiting_for(project, bob) == 1


def test_the_page_has_the_question_and_the_name_without_its_folder(client) -> None:
    project = make_project()
    ann = add_member(project)
    item = make_items(project, 1)[0]
    Item.objects.filter(pk=item.pk).update(external_id="cats/0001.txt")
    queue.create_batch(project=project, item_ids=[item.pk], blind=False, priority=10, entropy=1)
    client.force_login(ann)
    address = reverse("annotate", args=[project.slug])
    assert "Which label?</h1>" in client.get(address).content.decode()
    update_project(project=project, user=project.created_by, question=" Which <animal>? ")
    page = client.get(address).content.decode()
    assert "Which &lt;animal&gt;?</h1>" in page
    assert ">0001.txt</span>" in page
    assert "cats/" not in page


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["cat", "dog"], "columns-3 narrow-2"),
        (["Complaint", "Cancellation"], "columns-3"),
        (["Delivery was late", "other"], "columns-2"),
        (["Kraftfahrzeughaftpflicht", "other"], "columns-1"),
        (["This label is so long that it takes a whole line of its own", "other"], "columns-1"),
        (["配送が遅れました"], "columns-2"),
    ],
)
def test_labels_lie_in_columns_by_their_length(names, columns) -> None:
    assert columns_class(names) == columns


def test_who_has_answered_on_another_device_is_told_so_and_not_that_others_have_it(client) -> None:
    project = make_project()
    ann = add_member(project)
    ids = [item.pk for item in make_items(project, 2)]
    queue.create_batch(project=project, item_ids=ids, blind=False, priority=10, entropy=1)
    task = queue.claim(project=project, user=ann)
    assert task is not None
    client.force_login(ann)
    sent = {"work_item": task.work_item.pk, "token": task.token}
    queue.release(user=ann, work_item_id=task.work_item.pk, token=task.token)
    again = queue.claim(project=project, user=ann)
    assert again is not None
    body = client.post(reverse("annotate_heartbeat", args=[project.slug]), sent).json()
    assert body["message"] == "You have this item before you in another window, or on another device."
    assert body["own"] is False
    queue.submit(
        user=ann,
        work_item_id=again.work_item.pk,
        token=again.token,
        value=project.choices.first().key,
        idempotency_key="k",
    )
    body = client.post(reverse("annotate_heartbeat", args=[project.slug]), sent).json()
    assert body["own"] is True
    assert body["message"] == "You have labelled this item already."


def labelled(project, user, values) -> list[int]:
    """Ids of labels of new items, the text of each its number."""
    ids = [item.pk for item in make_items(project, [f"text {n}" for n in range(len(values))])]
    queue.create_batch(project=project, item_ids=ids, blind=True, priority=10, entropy=1)
    given = []
    for number, value in enumerate(values):
        task = queue.claim(project=project, user=user)
        assert task is not None
        label = queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=value,
            idempotency_key=f"k{number}",
            comment="odd" if number == 0 else "",
        )
        given.append(label.pk)
    return given


def test_ones_own_answers_are_listed_found_and_corrected(client) -> None:
    project = make_project()
    ann, bob = add_member(project), add_member(project)
    first, second, third = labelled(project, ann, ["cat", "dog", "cat"])
    queue.correct(user=ann, label_id=second, value="cat", idempotency_key="again")
    client.force_login(ann)
    address = reverse("annotate_mine", args=[project.slug])
    page = client.get(address).content.decode()
    assert f"?correct={first}" in page
    assert f"?correct={second}" not in page
    assert page.count("?correct=") == 3
    assert f"?correct={first}" in client.get(address, {"q": "ODD"}).content.decode()
    assert client.get(address, {"q": "odd"}).content.decode().count("?correct=") == 1
    assert client.get(address, {"q": "cat"}).content.decode().count("?correct=") == 3
    text = Label.objects.get(pk=third).item.text
    assert client.get(address, {"q": text}).content.decode().count("?correct=") == 1
    assert "Nothing found" in client.get(address, {"q": "dog"}).content.decode()
    client.force_login(bob)
    assert "?correct=" not in client.get(address).content.decode()


def test_a_name_is_not_found_by_its_folder(client) -> None:
    project = make_project(task_type="short_text", choices=())
    ann = add_member(project)
    label = Label.objects.get(pk=labelled(project, ann, ["Île"])[0])
    Item.objects.filter(pk=label.item_id).update(external_id="cats/0001.txt")
    assert own_labels(project, ann, search="cats").count() == 0
    assert own_labels(project, ann, search="cats/0001").count() == 0
    assert own_labels(project, ann, search="0001.txt").count() == 1
    assert own_labels(project, ann, search="Île").count() == 1


def test_programs_list_their_persons_answers(client) -> None:
    project = make_project()
    ann = add_member(project)
    first, second = labelled(project, ann, ["cat", "dog"])
    queue.lock_batch(batch=WorkBatch.objects.get())
    client.force_login(ann)
    address = reverse("api_queue_mine", args=[project.slug])
    rows = client.get(address).json()["results"]
    assert [row["id"] for row in rows] == [second, first]
    assert rows[0]["counted"] is True
    assert [row["id"] for row in client.get(address, {"q": "dog"}).json()["results"]] == [second]
