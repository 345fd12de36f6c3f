"""Labelling without JavaScript, and the parts that htmx asks for."""

import re

import pytest
from django.urls import reverse

from annotation.labelling import queue
from annotation.models import Draft, Label, Skip, WorkItem
from testbed.factories import add_member

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PART = {"HX-Request": "true"}


def fields(html: str) -> dict[str, str]:
    form = html[html.index('id="label-form"') :]
    return dict(
        re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    )


@pytest.fixture
def url(waiting):
    return lambda name: reverse(name, args=[waiting.slug])


def test_a_label_is_stored_and_the_next_item_comes(annotator, url) -> None:
    page = annotator.get(url("annotate")).content.decode()
    data = {**fields(page), "value": "cat", "lead_time_ms": "1234"}
    answer = annotator.post(url("annotate_submit"), data)
    assert answer.url == url("annotate")
    following = annotator.get(answer.url).content.decode()
    assert "Saved: cat" in following
    assert 'Labelled today: <b data-count="today">1</b>' in following
    assert fields(following)["work_item"] != data["work_item"]
    label = Label.objects.get()
    assert (label.value, label.lead_time_ms) == ("cat", 1234)


def test_htmx_gets_the_next_item_in_the_same_answer(annotator, url) -> None:
    page = annotator.get(url("annotate")).content.decode()
    answer = annotator.post(url("annotate_submit"), {**fields(page), "value": "cat"}, headers=PART)
    body = answer.content.decode()
    assert "<html" not in body
    assert 'id="task"' in body
    assert "Saved: cat" in body
    assert fields(body)["work_item"] != fields(page)["work_item"]


def test_the_same_form_sent_twice_makes_one_label(annotator, url) -> None:
    data = {**fields(annotator.get(url("annotate")).content.decode()), "value": "cat"}
    for _ in range(2):
        assert "Saved: cat" in annotator.post(url("annotate_submit"), data, headers=PART).content.decode()
    assert Label.objects.count() == 1


def test_a_reload_brings_the_same_item_with_a_key_of_its_own(annotator, url) -> None:
    first, second = (fields(annotator.get(url("annotate")).content.decode()) for _ in range(2))
    assert first["work_item"] == second["work_item"]
    assert first["idempotency_key"] != second["idempotency_key"]


def test_a_label_that_is_none_keeps_the_item_and_says_so(annotator, url) -> None:
    data = {**fields(annotator.get(url("annotate")).content.decode()), "value": "horse"}
    body = annotator.post(url("annotate_submit"), data, headers=PART).content.decode()
    assert "not one of this project" in body
    assert fields(body)["work_item"] == data["work_item"]
    assert not Label.objects.exists()


@pytest.mark.parametrize("lead_time", ["", "-5", "abc", "9" * 40, "1e3"])
def test_a_senseless_time_refuses_no_label(annotator, url, lead_time: str) -> None:
    data = {**fields(annotator.get(url("annotate")).content.decode()), "value": "cat"}
    annotator.post(url("annotate_submit"), {**data, "lead_time_ms": lead_time})
    assert Label.objects.get().lead_time_ms is None


def test_a_late_answer_is_kept_as_a_draft_and_shown_when_the_item_returns(
    annotator, url, waiting, client_of
) -> None:
    data = {**fields(annotator.get(url("annotate")).content.decode()), "value": "dog"}
    WorkItem.objects.filter(pk=data["work_item"]).update(
        state="open", leased_to=None, lease_token="", lease_expires_at=None
    )
    body = annotator.post(url("annotate_submit"), data, headers=PART).content.decode()
    assert "kept as a draft" in body
    assert Draft.objects.get().value == "dog"
    again = annotator.get(url("annotate")).content.decode()
    assert "came too late to count" in again


def test_skip_needs_a_known_reason(annotator, url) -> None:
    data = fields(annotator.get(url("annotate")).content.decode())
    body = annotator.post(url("annotate_skip"), {**data, "reason": "lazy"}, headers=PART).content.decode()
    assert "There is no reason" in body
    annotator.post(url("annotate_skip"), {**data, "reason": "broken", "comment": "black"})
    assert (Skip.objects.get().reason, Skip.objects.get().comment) == ("broken", "black")


def test_a_skip_says_who_looks_at_the_item_next(annotator, url, client_of, waiting) -> None:
    def skips(client) -> str:
        data = fields(client.get(url("annotate")).content.decode())
        answer = client.post(url("annotate_skip"), {**data, "reason": "unclear"}, headers=PART)
        return answer.content.decode()

    assert "Skipped. Somebody else will look at it." in skips(annotator)
    assert "Skipped. Nobody else is left to label it: a manager decides about it." in skips(
        client_of(waiting.created_by)
    )


def test_undo_and_correct(annotator, url) -> None:
    data = {**fields(annotator.get(url("annotate")).content.decode()), "value": "cat"}
    annotator.post(url("annotate_submit"), data)
    answer = annotator.post(url("annotate_undo"))
    page = annotator.get(answer.url).content.decode()
    assert "You are correcting your answer" in page
    assert (
        "Corrected: dog"
        in annotator.post(
            url("annotate_correct"), {**fields(page), "value": "dog"}, headers=PART
        ).content.decode()
    )
    assert list(Label.objects.order_by("version").values_list("value", flat=True)) == ["cat", "dog"]


def test_nobody_corrects_the_label_of_somebody_else(annotator, url, waiting, client_of) -> None:
    annotator.post(
        url("annotate_submit"), {**fields(annotator.get(url("annotate")).content.decode()), "value": "cat"}
    )
    label = Label.objects.get()
    other = client_of(add_member(waiting, "annotator"))
    data = {"label": str(label.pk), "value": "dog", "idempotency_key": "k"}
    assert other.post(url("annotate_correct"), data).status_code == 404
    assert other.get(url("annotate"), {"correct": str(label.pk)}).status_code == 404


def test_a_label_that_has_been_counted_is_changed_only_after_a_yes(annotator, url, waiting) -> None:
    for _ in range(3):
        page = annotator.get(url("annotate")).content.decode()
        annotator.post(url("annotate_submit"), {**fields(page), "value": "cat"})
    queue.lock_batch(batch=waiting.work_batches.get())
    page = annotator.post(url("annotate_undo"), headers=PART).content.decode()
    assert "already been counted" in page
    data = {**fields(page), "value": "dog"}
    assert (
        "Tick the box first" in annotator.post(url("annotate_correct"), data, headers=PART).content.decode()
    )
    assert Label.objects.filter(value="dog").count() == 0
    annotator.post(url("annotate_correct"), {**data, "confirm": "yes"}, headers=PART)
    assert Label.objects.filter(value="dog").count() == 1


def test_heartbeat_says_whether_the_item_is_still_theirs(annotator, url) -> None:
    data = fields(annotator.get(url("annotate")).content.decode())
    assert "expires_at" in annotator.post(url("annotate_heartbeat"), data).json()
    answer = annotator.post(url("annotate_heartbeat"), {**data, "token": "old"})
    assert answer.status_code == 409


def test_stopping_gives_the_item_back(annotator, url) -> None:
    annotator.get(url("annotate"))
    assert WorkItem.objects.filter(state="leased").count() == 1
    assert annotator.post(url("annotate_release")).url == url("overview")
    assert WorkItem.objects.filter(state="leased").count() == 0


def test_the_empty_page_polls(annotator, project) -> None:
    page = annotator.get(reverse("annotate", args=[project.slug])).content.decode()
    assert "Nothing to label yet" in page
    assert 'hx-trigger="every 5s"' in page
