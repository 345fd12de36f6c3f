"""What a model answered, shown with routed items alone, and what each label tells of it."""

from typing import Any

import pytest
from django.urls import reverse

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.labelling.queue import LeasedItem
from annotation.models import Item, Label, ShownSuggestion, User, WorkItem
from routing.models import Prediction, Run
from routing.runs.cancel import cancel_run
from routing.runs.pool import pool_of
from routing.runs.route import route
from testbed.worlds import NUMBERS, World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def routed() -> tuple[World, Run]:
    world = make_world(120)
    return world, world.routed(m=40, suggestions=True)


def claim(world: World, user: User | None = None) -> LeasedItem:
    task = queue.claim(project=world.project, user=user or world.annotators[0])
    assert task is not None
    return task


def submit(world: World, task: LeasedItem, value: Any, key: str = "key") -> Label:
    return queue.submit(
        user=world.annotators[0],
        work_item_id=task.work_item.pk,
        token=task.token,
        value=value,
        idempotency_key=key,
    )


def said_by(run: Run, position: int, item: Item) -> Any:
    source = run.run_sources.get(position=position)
    rows = Prediction.objects.filter(source=source.source_id, fingerprint=source.fingerprint, item=item)
    return rows.values_list("value", flat=True).first()


def test_it_is_the_answer_of_the_last_model_that_the_item_went_through(routed) -> None:
    world, run = routed
    seen = []
    for task in queue.claim_ahead(project=world.project, user=world.annotators[0]):
        slow, fast = said_by(run, 2, task.item), said_by(run, 1, task.item)
        last = ("Model 2", slow) if slow is not None else ("Model 1", fast)
        assert (task.suggestion.source, task.suggestion.value) == last
        seen.append(last)
    assert len(seen) == 3
    # Of an item that the slow model has not seen, or could not answer, it is that of the one before.
    item = WorkItem.objects.filter(batch=run.routed_batch, state="open").first().item
    Prediction.objects.filter(item=item, source__name="Model 2").delete()
    while (task := claim(world)).item != item:
        submit(world, task, "cat", f"key-{task.item.pk}")
    assert (task.suggestion.source, task.suggestion.value) == ("Model 1", said_by(run, 1, item))


def test_an_item_that_no_model_could_answer_has_none() -> None:
    def without(index: int, row: dict[str, str]) -> None:
        if index % 2:
            row["model1"] = row["model2"] = "zebra"

    world = make_world(120, change=without)
    run = world.routed(m=40, suggestions=True, accept_unusable=True)
    shown = {True: 0, False: 0}
    while task := queue.claim(project=world.project, user=world.annotators[0]):
        usable = said_by(run, 1, task.item) is not None or said_by(run, 2, task.item) is not None
        assert (task.suggestion is not None) == usable
        shown[usable] += 1
        label = submit(world, task, "cat", f"key-{task.item.pk}")
        assert bool(label.suggestion) == usable
    assert all(shown.values())


def test_a_label_tells_whether_one_was_shown_and_whether_it_is_the_same(routed) -> None:
    world, _run = routed
    assert set(Label.objects.values_list("suggestion", flat=True)) == {""}  # the calibration set
    task = claim(world)
    same = submit(world, task, task.suggestion.value, "1")
    assert same.suggestion == Label.Suggestion.TAKEN
    other = next(name for name in ("cat", "dog") if name != task.suggestion.value)
    corrected = queue.correct(user=world.annotators[0], label_id=same.pk, value=other, idempotency_key="2")
    assert corrected.suggestion == Label.Suggestion.OTHER
    task = claim(world)
    other = next(name for name in ("cat", "dog") if name != task.suggestion.value)
    assert submit(world, task, other, "3").suggestion == Label.Suggestion.OTHER


def test_nobody_else_has_been_shown_it_and_it_stays_as_it_was_shown(routed) -> None:
    world, run = routed
    task = claim(world)
    assert [(row.work_item_id, row.user) for row in ShownSuggestion.objects.all()] == [
        (task.work_item.pk, world.annotators[0])
    ]
    Prediction.objects.filter(item=task.item).delete()
    other = said_by(run, 1, task.item)
    assert other is None
    # The model's rows are gone: nothing new is shown, and what was shown is known still.
    assert claim(world).suggestion is None
    assert submit(world, task, task.suggestion.value).suggestion == Label.Suggestion.TAKEN


def test_a_run_without_them_shows_nothing() -> None:
    world = make_world(120)
    world.routed(m=40)
    assert claim(world).suggestion is None
    assert submit(world, claim(world), "cat").suggestion == ""
    assert not ShownSuggestion.objects.exists()


def test_one_that_comes_back_has_it_still(routed, client) -> None:
    world, _run = routed
    annotator = world.annotators[0]
    task = claim(world)
    queue.skip(user=annotator, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    back = queue.undo(project=world.project, user=annotator)
    assert (back.work_item, back.suggestion) == (task.work_item, task.suggestion)
    submit(world, back, "cat")
    again = queue.undo(project=world.project, user=annotator)
    assert (again.correcting.value, again.suggestion) == ("cat", task.suggestion)


def test_a_label_given_elsewhere_was_given_without(routed) -> None:
    world, run = routed
    work = WorkItem.objects.filter(batch=run.routed_batch).first()
    label, _new = queue.store_given(
        batch=run.routed_batch, user=world.annotators[0], item_id=work.item_id, value="cat"
    )
    assert label.suggestion == ""


def test_while_another_run_is_open_nothing_is_shown_of_an_earlier_one(routed) -> None:
    world, run = routed
    annotator = world.annotators[0]
    task = claim(world)
    label = submit(world, task, "cat")
    queue.release_all(project=world.project, user=annotator)
    world.finish()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert queue.to_correct(label).suggestion == task.suggestion
    others = Label.objects.filter(work_item__batch=run.routed_batch).exclude(pk=label.pk)
    assert all(
        queue.to_correct(other).suggestion is None for other in others
    )  # given without, so kept without
    world.arrive(60)
    second = world.calibrating(m=30, suggestions=True)
    assert queue.to_correct(label).suggestion is None
    assert claim(world).work_item.batch == second.calibration_batch
    assert claim(world).suggestion is None
    assert set(ShownSuggestion.objects.values_list("work_item", flat=True)) == {task.work_item.pk}


def test_what_was_shown_and_not_labelled_is_in_no_later_pool(routed) -> None:
    world, run = routed
    shown = {task.item.pk for task in queue.claim_ahead(project=world.project, user=world.annotators[0])}
    left = set(WorkItem.objects.filter(batch=run.routed_batch).values_list("item", flat=True))
    cancel_run(run=run, user=world.manager)
    pool = set(pool_of(world.project, "dataset").values_list("pk", flat=True))
    assert not shown & pool
    assert left - shown <= pool
    by_people = set(pool_of(world.project, "dataset", of_rounds=True).values_list("pk", flat=True))
    assert by_people == pool  # nor do people compare their answers about them
    second = world.start(m=20)
    world.do("prepare_run")
    assert not second.pool_items.filter(item__in=shown).exists()


@pytest.mark.parametrize("shows_first", [True, False])
def test_two_runs_over_the_same_items_are_not_routed_beside_each_other(shows_first: bool) -> None:
    """One of them shows what a model answered, and in the other people label blind."""
    world = make_world(120)
    runs = {True: world.analysed(m=20, suggestions=True), False: world.analysed(m=20)}
    if shows_first:
        with pytest.raises(ConflictError, match="Finish or cancel run 2 first") as refused:
            route(run=runs[True], user=world.manager)
        assert refused.value.code == "suggestions_beside"
        cancel_run(run=runs[False], user=world.manager)
        route(run=runs[True], user=world.manager)
        return
    route(run=runs[False], user=world.manager)
    world.do("route_run")
    with pytest.raises(ConflictError, match="Finish or cancel run 2 first"):
        route(run=runs[True], user=world.manager)


def test_what_was_shown_is_labelled_blind_in_no_run_that_waited_meanwhile() -> None:
    world = make_world(120)
    first, second = world.analysed(m=20, suggestions=True), world.analysed(m=20)
    Run.objects.filter(pk=second.pk).update(state=Run.State.CANCELLED)  # as if it had been planned later
    world.project.refresh_from_db()
    route(run=first, user=world.manager)
    world.do("route_run")
    assert queue.claim_ahead(project=world.project, user=world.annotators[0])
    Run.objects.filter(pk=second.pk).update(state=Run.State.ANALYSED)
    with pytest.raises(ConflictError, match="Cancel run 2 and plan another one"):
        route(run=second, user=world.manager)


def test_the_api_gives_it_to_the_same_people_with_the_task(routed, client) -> None:
    world, _run = routed
    client.force_login(world.annotators[0])
    slug = world.project.slug

    def post(name: str, **body: Any) -> Any:
        answer = client.post(reverse(name, args=[slug]), body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return answer.json()

    task = post("api_queue_claim")["task"]
    shown = ShownSuggestion.objects.get()
    assert task["suggestion"] == {"value": shown.value, "source": shown.source}
    ahead = post("api_queue_ahead")["tasks"]
    assert all(one["suggestion"] for one in ahead)
    stored = post(
        "api_queue_submit",
        work_item=task["work_item"],
        token=task["token"],
        value=task["suggestion"]["value"],
        idempotency_key="1",
    )
    assert stored["task"]["suggestion"] == ahead[1]["suggestion"]
    assert Label.objects.latest("pk").suggestion == "taken"


def test_numbers_are_compared_as_they_are_stored() -> None:
    world = make_world(80, answers=NUMBERS)
    world.routed(m=30, suggestions=True)
    task = claim(world)
    assert submit(world, task, f" {task.suggestion.value}.0 ").suggestion == Label.Suggestion.TAKEN


def test_the_page_shows_it_apart_and_takes_it_without_a_script(routed, client) -> None:
    world, _run = routed
    client.force_login(world.annotators[0])
    slug = world.project.slug
    page = client.get(reverse("annotate", args=[slug])).content.decode()
    shown = ShownSuggestion.objects.get()
    panel = page.split('<div id="offer">')[1].split("<form")[0]
    assert f"Suggested by <bdi>{shown.source}</bdi>" in panel
    assert shown.value in panel
    assert "aria-pressed" not in page.split('<fieldset class="choices')[1]  # no choice is marked
    assert "Accept what a model suggests" in page
    sent = {"work_item": shown.work_item_id, "token": shown.work_item.lease_token, "take": "yes"}
    client.post(reverse("annotate_submit", args=[slug]), sent | {"idempotency_key": "1"})
    label = Label.objects.latest("pk")
    assert (label.value, label.suggestion) == (shown.value, "taken")


def test_nothing_is_taken_where_nothing_was_shown(client) -> None:
    world = make_world(120)
    world.routed(m=40)
    client.force_login(world.annotators[0])
    task, before = claim(world), Label.objects.count()
    sent = {"work_item": task.work_item.pk, "token": task.token, "take": "yes", "idempotency_key": "1"}
    page = client.post(reverse("annotate_submit", args=[world.project.slug]), sent)
    assert "There is no answer yet" in page.content.decode()
    assert Label.objects.count() == before


def test_what_is_held_ahead_brings_it_along(routed, client) -> None:
    world, _run = routed
    client.force_login(world.annotators[0])
    held = client.post(reverse("annotate_ahead", args=[world.project.slug]), {"holding": ""}).json()["ahead"]
    assert len(held) == 3
    for card in held:
        shown = ShownSuggestion.objects.get(work_item=card["work_item"])
        assert f"<bdi>{shown.source}</bdi>" in card["suggestion"]
        assert shown.value in card["suggestion"]


def test_the_letter_gives_way_to_the_key_of_a_label(routed, client) -> None:
    world, _run = routed
    client.force_login(world.annotators[0])
    address = reverse("annotate", args=[world.project.slug])
    assert 'aria-keyshortcuts="a Control+Shift+Enter"' in client.get(address).content.decode()
    world.project.choices.filter(key="cat").update(hotkey="A")
    page = client.get(address).content.decode()
    assert 'aria-keyshortcuts="Control+Shift+Enter"' in page
    assert "<kbd>a</kbd>" not in page
