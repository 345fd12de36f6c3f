"""Changes to many items from the table of items: asked for, confirmed, made, taken back."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.jobs import jobs
from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import AuditEvent, Comment, Item, Job, Label, WorkBatch, WorkItem
from routing.items.changes import CHANGES
from testbed.factories import make_items, make_project
from testbed.worlds import make_world
from tests.routing.items.test_items_pages import client_as, main_of, names, routed, table

__all__ = ["routed"]
pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


def change(client: Client, project, query: str = "", **data):
    return client.post(f"{reverse('items_change', args=[project.slug])}?{query}", data)


def test_nothing_happens_before_the_count_was_confirmed_and_flags_are_taken_back(project, owner) -> None:
    items = make_items(project, 5)
    ticked = [str(item.pk) for item in items[:2]]
    page = main_of(change(owner, project, change="flag", which="ticked", item=ticked))
    assert "This concerns <strong>2 items</strong>" in page
    assert not Comment.objects.exists()
    answer = change(owner, project, change="flag", item=ticked, sure="yes", text="odd")
    assert answer.status_code == 302
    told = main_of(owner.get(answer.url))
    assert "Done: 2 items." in told
    assert sorted(Comment.objects.values_list("item__external_id", flat=True)) == ["t0", "t1"]
    assert names(table(owner, project, flag="open")) == ["t0", "t1"]
    event = AuditEvent.objects.get(action="items.changed")
    assert event.data == {"change": "flag", "items": 2}
    # An earlier flag with the same words is not one of this change's.
    later = add_comment(item=items[4], author=project.created_by, text="odd", is_flag=True)
    back = re.search(r'<a href="([^"]*/items/changes/\d+/)">Take it back</a>', told)[1]
    assert "Take it back" in main_of(owner.get(back))
    assert owner.post(f"{back}undo/").status_code == 302
    assert list(Comment.objects.filter(resolved_at__isnull=True)) == [later]
    assert AuditEvent.objects.filter(action="items.change_undone").exists()


def test_all_that_match_are_changed_in_chunks_by_a_job(project, owner, monkeypatch) -> None:
    monkeypatch.setattr("routing.items.changes.CHUNK", 7)
    make_items(project, [f"{'red' if n % 2 else 'blue'} {n}" for n in range(40)])
    page = main_of(change(owner, project, "q=red", change="comment", which="all"))
    assert "<strong>20 items</strong>" in page
    assert "Search in names and texts: <bdi>red</bdi>" in page
    refused = change(owner, project, "q=red", change="comment", which="all", sure="yes", text=" ")
    assert "Write something" in main_of(owner.get(refused.url))
    answer = change(owner, project, "q=red", change="comment", which="all", sure="yes", text="seen")
    job = project.jobs.get(kind="change_items")
    assert (job.state, job.total) == (Job.State.QUEUED, 20)
    assert "0 items of 20 done" in main_of(owner.get(answer.url))
    assert jobs.run(job.pk)
    assert set(Comment.objects.values_list("item__text", flat=True)) == {f"red {n}" for n in range(1, 40, 2)}
    assert Comment.objects.count() == 20
    assert "20 items of 20 done" in main_of(owner.get(answer.url))
    assert "Take it back" not in main_of(owner.get(answer.url))  # comments stay


def test_a_change_that_died_goes_on_behind_its_last_chunk(project, owner, monkeypatch) -> None:
    monkeypatch.setattr("routing.items.changes.CHUNK", 4)
    make_items(project, 10)
    change(owner, project, change="comment", which="all", sure="yes", text="seen")
    job = project.jobs.get(kind="change_items")
    kept, comment = CHANGES["comment"].make, []

    def dies(permission, actor, items, text, outcome):
        if len(comment) == 1:
            raise RuntimeError("power")
        comment.append(1)
        kept(permission, actor, items, text, outcome)

    monkeypatch.setitem(
        CHANGES, "comment", type(CHANGES["comment"])(**{**vars(CHANGES["comment"]), "make": dies})
    )
    jobs.run(job.pk)
    assert Comment.objects.count() == 4
    monkeypatch.undo()
    job.refresh_from_db()
    jobs.retry(job=job)
    assert jobs.run(job.pk)
    assert Comment.objects.count() == 10


def test_without_a_filter_that_was_refused_nothing_is_changed(project, owner) -> None:
    make_items(project, 5)
    answer = change(owner, project, "u_from=0.9", change="flag", which="all", sure="yes")
    assert "A filter cannot be used now" in main_of(owner.get(answer.url))
    nothing = change(owner, project, change="flag", which="ticked")
    assert "Tick the items first" in main_of(owner.get(nothing.url))
    assert not Comment.objects.exists()
    assert not project.jobs.exists()


def test_items_of_another_project_are_not_touched(project, owner) -> None:
    other = make_items(make_project(), 1)[0]
    make_items(project, 1)
    answer = change(owner, project, change="flag", item=[str(other.pk)], sure="yes")
    assert "None of these items" in main_of(owner.get(answer.url))
    assert not Comment.objects.exists()


def test_what_everybody_skipped_is_asked_again_or_given_up(waiting, owner) -> None:
    user = waiting.created_by
    while task := queue.claim(project=waiting, user=user):
        queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    first, *_rest = waiting.items.order_by("position")
    page = main_of(change(owner, waiting, change="ask_again", which="all"))
    assert "<strong>3 items</strong>" in page
    change(owner, waiting, change="ask_again", item=[str(first.pk)], sure="yes")
    assert queue.stuck_items(waiting).count() == 2
    assert "Of 3 chosen items this concerns <strong>2</strong>" in main_of(
        change(owner, waiting, change="give_up", which="all")
    )
    change(owner, waiting, "stage=stuck", change="give_up", which="all", sure="yes")
    assert jobs.run(waiting.jobs.latest("pk").pk)
    assert WorkItem.objects.filter(state="unlabelable").count() == 2
    assert AuditEvent.objects.filter(action="work.given_up").count() == 2


def test_reviewers_flag_but_decide_nothing_about_work(waiting) -> None:
    client = client_as(waiting, "reviewer")
    assert set(re.findall(r'<option value="(\w+)">', table(client, waiting))) >= {
        "flag",
        "comment",
        "resolve",
    }
    assert 'value="give_up"' not in table(client, waiting)
    for name in ("give_up", "ask_again", "ask_people"):
        answer = change(client, waiting, change=name, which="all", sure="yes")
        assert "Choose what to do" in main_of(client.get(answer.url))
    assert not waiting.jobs.exists()


def test_people_are_asked_in_place_of_the_models_and_their_labels_are_delivered(routed) -> None:
    client = Client()
    client.force_login(routed.manager)
    project = routed.project
    routed.finish()
    rows = table(client, project, by="1")
    chosen = Item.objects.filter(external_id__in=names(rows)[:3])
    page = main_of(change(client, project, change="ask_people", item=[str(item.pk) for item in chosen]))
    assert "can only fall" in page
    labelled = Label.objects.first().item
    before = WorkBatch.objects.count()
    ticked = [str(item.pk) for item in (*chosen, labelled)]
    assert "Of 4 chosen items this concerns <strong>3</strong>" in main_of(
        change(client, project, change="ask_people", item=ticked)
    )
    answer = change(client, project, change="ask_people", item=ticked, sure="yes")
    told = main_of(client.get(answer.url))
    assert "Done: 3 items." in told
    assert WorkBatch.objects.count() == before + 1
    # Whoever is asked already is not asked a second time.
    again = change(client, project, change="ask_people", item=ticked, sure="yes")
    assert "None of these items" in main_of(client.get(again.url))
    assert routed.label(limit=1) == 1
    newest = Label.objects.latest("pk")
    assert newest.item in chosen
    assert newest.item.external_id in names(table(client, project, by="person"))
    undo = re.search(r'<a href="([^"]*/items/changes/\d+/)">', told)[1]
    client.post(f"{undo}undo/")
    assert not WorkItem.objects.filter(batch=newest.work_item.batch, state="open").exists()
    assert Label.objects.filter(pk=newest.pk).exists()


def test_two_who_ask_people_at_once_do_not_ask_twice(routed) -> None:
    routed.finish()
    client = Client()
    client.force_login(routed.manager)
    first = change(client, routed.project, "by=1", change="ask_people", which="all", sure="yes")
    assert routed.project.jobs.get(kind="change_items").state == Job.State.QUEUED
    change(client, routed.project, "by=1", change="ask_people", which="all", sure="yes")
    assert routed.project.jobs.filter(kind="change_items").count() == 1, first.url


def test_people_cannot_be_asked_for_chosen_items_while_a_run_is_open(routed) -> None:
    routed.finish()
    make_items(routed.project, ["new"] * 80)
    routed.start(m=40)
    client = Client()
    client.force_login(routed.manager)
    item = str(routed.project.items.first().pk)
    answer = change(client, routed.project, change="ask_people", item=[item], sure="yes")
    assert "Choose what to do" in main_of(client.get(answer.url))
    assert not routed.project.jobs.filter(kind="change_items").exists()


def test_a_change_that_waits_for_a_worker_ends_where_a_run_was_opened_meanwhile(routed, monkeypatch) -> None:
    monkeypatch.setattr("routing.items.changes.CHUNK", 2)
    routed.finish()
    client = Client()
    client.force_login(routed.manager)
    change(client, routed.project, "by=1", change="ask_people", which="all", sure="yes")
    job = routed.project.jobs.get(kind="change_items")
    make_items(routed.project, ["new"] * 80)
    routed.start(m=40)
    before = WorkItem.objects.count()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "run_not_routed")
    assert WorkItem.objects.count() == before


def test_changes_say_nothing_of_the_hidden_batch() -> None:
    world = make_world(60)
    world.start(m=40)
    world.do("prepare_run")
    for user in (*world.annotators, world.manager):
        while task := queue.claim(project=world.project, user=user):
            queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    assert queue.stuck_items(world.project).exists()
    work = queue.stuck_items(world.project)[0]
    add_comment(item=work.item, author=world.annotators[0], text="odd", is_flag=True, work_item=work)
    client = Client()
    client.force_login(world.manager)
    for name in ("ask_again", "give_up", "resolve"):
        page = main_of(change(client, world.project, change=name, which="all"))
        assert "Of 60 chosen items this concerns <strong>0</strong>" in page
