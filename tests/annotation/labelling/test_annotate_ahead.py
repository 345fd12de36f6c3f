"""What the page on which people label asks for by itself: items ahead, outcomes, leases, flags."""

import gzip
import re

import pytest
from django.conf import settings
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import AuditEvent, Comment, Label, Skip, WorkItem
from annotation.ports import routing_port
from testbed.factories import add_member, make_image_items, make_items, make_project
from tests.annotation.labelling.test_annotate import PART, fields

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


@pytest.fixture
def url(waiting):
    return lambda name: reverse(name, args=[waiting.slug])


def open_page(client, url) -> tuple[dict[str, str], list[dict]]:
    """The form of the item that is shown, and the cards of those held behind it."""
    form = fields(client.get(url("annotate")).content.decode())
    answer = client.post(url("annotate_ahead"), {"holding": form["work_item"]}).json()
    return form, answer["ahead"]


def test_the_page_gets_what_is_next_and_how_far_the_person_is(annotator, url) -> None:
    form, cards = open_page(annotator, url)
    assert len(cards) == queue.MAX_AHEAD
    assert form["work_item"] not in {str(card["work_item"]) for card in cards}
    assert set(cards[0]) == {"work_item", "token", "html", "name", "flagged", "given", "note"}
    holding = ",".join([form["work_item"], *(str(card["work_item"]) for card in cards)])
    again = annotator.post(url("annotate_ahead"), {"holding": holding}).json()
    assert (again["ahead"], again["counts"]["today"], again["counts"]["waiting"]) == ([], 0, 3)


def test_the_page_is_told_that_another_window_was_quicker(annotator, url) -> None:
    form, _cards = open_page(annotator, url)
    shown = {"work_item": form["work_item"], "token": form["token"], "holding": form["work_item"]}
    assert annotator.post(url("annotate_ahead"), shown).json()["lost"] is False
    annotator.post(url("annotate_submit"), {**form, "value": "cat"})
    assert annotator.post(url("annotate_ahead"), shown).json()["lost"] is True


def test_a_correction_that_comes_twice_is_told_as_stored(annotator, url) -> None:
    """The first time its answer was lost on the way."""
    form, _cards = open_page(annotator, url)
    annotator.post(url("annotate_submit"), {**form, "value": "cat"})
    label = Label.objects.get()
    sent = {"label": label.pk, "value": "dog", "idempotency_key": "k" * 32, "holding": ""}
    told = [annotator.post(url("annotate_correct"), sent, headers=PART).json() for _ in range(2)]
    assert [(one["outcome"], one["said"]["text"]) for one in told] == [("stored", "Corrected: dog")] * 2
    assert Label.objects.count() == 2
    again = annotator.post(
        url("annotate_correct"), sent | {"idempotency_key": "m" * 32, "value": "cat"}, headers=PART
    )
    assert again.json()["outcome"] == "gone", "of a version that another one has replaced"


def test_a_window_that_has_stopped_gets_no_more_items(annotator, url) -> None:
    form, _cards = open_page(annotator, url)
    leased = WorkItem.objects.filter(state="leased")
    before = leased.count()
    sent = {**form, "value": "cat", "holding": "", "more": "no"}
    answer = annotator.post(url("annotate_submit"), sent, headers=PART).json()
    assert (answer["outcome"], answer["ahead"]) == ("stored", [])
    assert leased.count() == before - 1


def test_an_answer_brings_its_outcome_and_one_more_item(annotator, url, waiting) -> None:
    more = make_items(waiting, 3)
    queue.create_batch(
        project=waiting, item_ids=[item.pk for item in more], blind=True, priority=2, entropy=5
    )
    form, cards = open_page(annotator, url)
    held = ",".join(str(card["work_item"]) for card in cards)
    answer = annotator.post(
        url("annotate_submit"), {**form, "value": "cat", "holding": held, "counts": "yes"}, headers=PART
    ).json()
    assert (answer["outcome"], answer["said"]) == ("stored", {"text": "Saved: cat", "trouble": False})
    assert len(answer["ahead"]) == 1
    assert answer["counts"]["today"] == 1


def test_an_item_that_is_refused_comes_back_though_another_one_is_shown(annotator, url) -> None:
    form, cards = open_page(annotator, url)
    data = {**form, "value": "horse", "comment": "odd", "holding": str(cards[0]["work_item"])}
    body = annotator.post(url("annotate_submit"), data, headers=PART).content.decode()
    assert fields(body)["work_item"] == form["work_item"]
    assert "not one of this project" in body
    assert "odd</textarea>" in body


def test_what_came_too_late_is_told_as_that(annotator, url) -> None:
    form, cards = open_page(annotator, url)
    WorkItem.objects.filter(pk=form["work_item"]).update(
        state="withdrawn", leased_to=None, lease_token="", lease_expires_at=None
    )
    held = {"holding": str(cards[0]["work_item"])}
    answer = annotator.post(url("annotate_submit"), {**form, "value": "cat", **held}, headers=PART).json()
    assert answer["outcome"] == "gone"
    assert answer["said"]["trouble"]
    bad = annotator.post(url("annotate_submit"), {**form, "value": "horse", **held}, headers=PART).json()
    assert bad["outcome"] == "refused"


def test_an_answer_changed_before_it_was_known_to_have_arrived_is_a_correction(annotator, url) -> None:
    form, _cards = open_page(annotator, url)
    annotator.post(url("annotate_submit"), {**form, "value": "cat"})
    changed = {**form, "value": "dog", "amend": "yes", "idempotency_key": "other", "holding": ""}
    answer = annotator.post(url("annotate_submit"), changed, headers=PART).json()
    assert answer["said"]["text"] == "Corrected: dog"
    assert list(Label.objects.order_by("pk").values_list("value", "version")) == [("cat", 1), ("dog", 2)]


def test_nobody_sends_the_answers_of_somebody_else(annotator, url) -> None:
    form, _cards = open_page(annotator, url)
    data = {**form, "value": "cat", "person": "0", "holding": ""}
    for name in ("annotate_submit", "annotate_skip", "annotate_flag", "annotate_correct"):
        assert annotator.post(url(name), data, headers=PART).json() == {"outcome": "other_person"}
    assert not Label.objects.exists()


def test_what_the_page_asks_for_is_for_its_person_alone(annotator, url) -> None:
    """Whoever has logged in meanwhile is given no items, and takes nothing back, by the page of another."""
    form, _cards = open_page(annotator, url)
    annotator.post(url("annotate_skip"), {**form, "reason": "unclear"})
    queue.release_all(project=WorkItem.objects.first().batch.project, user=Skip.objects.get().user)
    for name in ("annotate_ahead", "annotate_undo"):
        answer = annotator.post(url(name), {"person": "0", "holding": ""}, headers=PART)
        assert answer.json() == {"outcome": "other_person"}
    answer = annotator.get(url("annotate"), {"person": "0"}, headers=PART)
    assert answer.json() == {"outcome": "other_person"}
    assert answer.headers["HX-Refresh"] == "true"
    assert not WorkItem.objects.filter(state="leased").exists()
    assert Skip.objects.get().cleared_at is None
    # The address of that request is where logging in leads, when the session had ended: to the page.
    assert 'id="task-area"' in annotator.get(url("annotate"), {"person": "0"}).content.decode()


def test_a_refusal_because_of_blindness_is_told_in_words(annotator, url, monkeypatch) -> None:
    form, _cards = open_page(annotator, url)
    monkeypatch.setattr(routing_port(), "blind_objection", lambda **_: "You have seen predictions.")
    data = {**form, "value": "cat", "holding": form["work_item"]}
    answer = annotator.post(url("annotate_submit"), data, headers=PART).json()
    assert (answer["outcome"], answer["said"]["text"]) == ("refused", "You have seen predictions.")
    assert annotator.post(url("annotate_submit"), data).status_code == 403


def test_a_heartbeat_renews_what_is_held_ahead_and_names_what_is_gone(annotator, url) -> None:
    form, cards = open_page(annotator, url)
    held = ",".join(f"{card['work_item']}:{card['token']}" for card in cards)
    shown = {"work_item": form["work_item"], "token": form["token"]}
    before = WorkItem.objects.get(pk=cards[0]["work_item"]).lease_expires_at
    answer = annotator.post(url("annotate_heartbeat"), {**shown, "ahead": held})
    assert (answer.status_code, answer.json()["gone"]) == (200, [])
    assert WorkItem.objects.get(pk=cards[0]["work_item"]).lease_expires_at > before
    broken = held.replace(cards[1]["token"], "old")
    assert annotator.post(url("annotate_heartbeat"), {**shown, "ahead": broken}).json()["gone"] == [
        cards[1]["work_item"]
    ]


def test_leaving_the_page_gives_back_what_was_held_ahead_and_nothing_else(annotator, url) -> None:
    form, cards = open_page(annotator, url)
    held = ",".join(f"{card['work_item']}:{card['token']}" for card in cards)
    assert annotator.post(url("annotate_release"), {"ahead": held}).status_code == 204
    assert [str(pk) for pk in WorkItem.objects.filter(state="leased").values_list("pk", flat=True)] == [
        form["work_item"]
    ]


@pytest.mark.parametrize("name", ["annotate_ahead", "annotate_heartbeat", "annotate_release"])
def test_senseless_lists_are_not_found(annotator, url, name) -> None:
    bad = {"holding": "x,1", "ahead": "x:1"}
    assert annotator.post(url(name), bad).status_code == 404


class TestFlags:
    def test_a_flag_is_stored_once_and_audited_without_the_item(self, annotator, url) -> None:
        form, _cards = open_page(annotator, url)
        for _ in range(2):
            answer = annotator.post(url("annotate_flag"), {**form, "text": "Two cats?"})
            assert answer.url == url("annotate")
        flag = Comment.objects.get()
        assert (flag.text, flag.is_flag, str(flag.work_item_id)) == ("Two cats?", True, form["work_item"])
        assert AuditEvent.objects.get(action="item.flagged").target == f"comment:{flag.pk}"

    def test_nobody_flags_what_they_have_not_seen(self, annotator, url, waiting, client_of) -> None:
        form, _cards = open_page(annotator, url)
        other = client_of(add_member(waiting, "annotator"))
        other.post(url("annotate_flag"), {**form, "text": "mine"})
        assert not Comment.objects.exists()


def test_a_comment_goes_with_the_answer_and_comes_back_with_it(annotator, url) -> None:
    form, _cards = open_page(annotator, url)
    annotator.post(url("annotate_submit"), {**form, "value": "cat", "comment": "half hidden"})
    label = Label.objects.get()
    assert label.comment == "half hidden"
    assert "half hidden</textarea>" in annotator.get(url("annotate"), {"correct": label.pk}).content.decode()


def test_single_keys_can_be_switched_off_and_on(annotator, url) -> None:
    assert 'data-single-keys="yes"' in annotator.get(url("annotate")).content.decode()
    annotator.post(url("annotate_shortcuts"), {"on": "no"})
    assert 'data-single-keys="no"' in annotator.get(url("annotate")).content.decode()
    annotator.post(url("annotate_shortcuts"), {"on": "yes"})
    assert 'data-single-keys="yes"' in annotator.get(url("annotate")).content.decode()


def test_only_where_labels_are_chosen_may_none_fit(client_of) -> None:
    for task_type, offered in (("single_choice", True), ("number", False)):
        project = make_project(task_type=task_type, choices=("cat", "dog") if offered else ())
        items = make_items(project, 1)
        queue.create_batch(project=project, item_ids=[items[0].pk], blind=True, priority=1, entropy=5)
        page = client_of(project.created_by).get(reverse("annotate", args=[project.slug]))
        assert ("No label fits" in page.content.decode()) == offered


def test_hostile_content_is_text_in_what_is_held_ahead(annotator, url, waiting) -> None:
    waiting.items.update(text="<script>alert(1)</script><b hx-get='/logout/'>")
    _form, cards = open_page(annotator, url)
    for card in cards:
        assert "<script" not in card["html"]
        assert "<b" not in card["html"]


def test_an_image_ahead_is_named_so_that_it_can_be_loaded(client_of) -> None:
    project = make_project()
    items = make_image_items(project, 2)
    queue.create_batch(
        project=project, item_ids=[item.pk for item in items], blind=True, priority=1, entropy=5
    )
    client = client_of(add_member(project))
    _form, (card,) = open_page(client, lambda name: reverse(name, args=[project.slug]))
    assert re.search(r'<img id="item-image" src="[^"]+/images/[0-9a-f]{64}/"', card["html"])


def test_the_page_keeps_to_its_budget(annotator, url) -> None:
    """At most 100 kB compressed at first, and 5 kB for each item after it."""
    page = annotator.get(url("annotate")).content.decode()
    names = re.findall(r'(?:href|src)="/static/([^"#]+)', page)
    assert any(name.endswith("annotate.js") for name in names)
    parts = [(settings.BASE_DIR / "static" / name).read_bytes() for name in set(names)]
    assert sum(len(gzip.compress(part)) for part in [*parts, page.encode()]) <= 100_000
    form, cards = open_page(annotator, url)
    data = {**form, "value": "cat", "holding": str(cards[0]["work_item"]), "counts": "yes"}
    assert len(annotator.post(url("annotate_submit"), data, headers=PART).content) <= 5_000
