"""Answers that were sent in, and the runs that rest on them."""

import io
import re
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.common.files import MODEL_OUTPUT, store_file
from annotation.errors import ConflictError
from annotation.models import Job
from routing.delivery.deliver import deliver
from routing.models import ItemScore, Prediction, SentAnswer, SourceRevision
from routing.runs import start
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.sources.sent_answers import KIND, send_answers, store_answers_file
from testbed.factories import make_items, make_project
from testbed.worlds import World, make_world
from tests.routing.sources.sending import counts, problems, sent, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def world_of_uploaded(size: int = 100, *, missing: frozenset[int] = frozenset()) -> World:
    """A world whose one source is sent in; items of `missing` have no answer."""
    world = make_world(size, costs=("1",), error=(lambda u: u / 2,))
    world.project.sources.all().delete()
    source = uploaded(world.project)
    lines = [
        {
            "external_id": item.external_id,
            "label": item.data["model1"],
            "confidence": item.data["confidence1"],
        }
        for item, data in ((item, item.data) for item in world.project.items.all())
        if item.position not in missing
    ]
    assert sent(source, lines).state == Job.State.DONE
    return world


def test_nobody_learns_by_guessing_what_was_sent_until_all_may_see_it() -> None:
    world = world_of_uploaded()
    source = world.project.sources.get()
    item = world.project.items.first()
    other = next(name for name in ("cat", "dog") if name != item.data["model1"])
    right = {
        "external_id": item.external_id,
        "label": item.data["model1"],
        "confidence": item.data["confidence1"],
    }
    wrong = {**right, "label": other}
    told = [sent(source, [line]) for line in (right, wrong)]
    assert [(job.state, job.error, job.result) for job in told] == [
        (Job.State.DONE, "", {"added": 0, "already_there": 1, "problems": 0, "compared": False})
    ] * 2
    assert not any(problems(job) for job in told)
    world.complete(m=40)
    again = sent(source, [right, wrong])
    assert again.result == {"added": 0, "already_there": 1, "problems": 1, "compared": True}
    assert "new revision" in problems(again)["line 2"]


def test_a_run_rests_on_what_was_sent_and_pays_for_it() -> None:
    world = world_of_uploaded(missing=frozenset({3}))
    run = world.complete(m=40)
    assert Prediction.objects.count() == 100
    missing = Prediction.objects.get(value__isnull=True)
    assert (missing.reason, missing.reason_code) == ("no answer was sent for this item", "no_answer")
    assert ItemScore.objects.get(prediction=missing).reason_code == "no_answer"
    assert ItemScore.objects.filter(name="recorded", reason="").count() == 99
    assert sum(spend.amount for spend in run.spends.filter(stage="pool")) == Decimal("0.5") * 100


def test_what_a_run_passed_on_without_an_answer_stays_so_under_this_revision() -> None:
    world = world_of_uploaded(missing=frozenset({3}))
    world.start(m=40)
    world.do("prepare_run")
    source = world.project.sources.get()
    line = {"external_id": "t3", "label": "cat"}
    job = sent(source, [line])
    assert job.state == Job.State.FAILED
    assert "new revision" in job.error
    assert sent(source, [line], revision="2").result["added"] == 1
    with pytest.raises(ConflictError, match="under way"):
        uploaded(world.project, source=source, revision="2")


def test_it_is_too_late_for_every_item_of_a_pool_once_a_run_has_begun(monkeypatch) -> None:
    """Else the source would say more of the items that were not drawn than of those that stand for them. What
    is said of a line does not tell which those are.
    """
    world = world_of_uploaded(300, missing=frozenset(range(0, 300, 2)))
    source = world.project.sources.get()
    lines = [{"external_id": f"t{n}", "label": "cat", "confidence": 0.5} for n in range(300)]
    monkeypatch.setattr(start, "AT_ONCE", 0)  # a large pool, which the job of the run freezes
    run = world.start(m=60, accept_unusable=True)
    assert not run.pool_items.exists()
    late = [counts(sent(source, lines))]
    world.do("prepare_run")
    while_open = sent(source, lines)
    late.append(counts(while_open))
    said = problems(while_open)
    assert set(said) == {f"line {n + 1}" for n in range(0, 300, 2)}
    assert len({re.sub(r"“t\d+”", "", text) for text in said.values()}) == 1
    world.finish()
    analyse(run=run, user=world.manager)
    world.do("analyse_run")
    late.append(counts(sent(source, lines)))
    assert late == [(0, 150, 150), (0, 150, 150), (0, 0, 300)]  # and then it is said that others were there
    assert SentAnswer.objects.count() == 150
    make_items(world.project, 1)
    assert sent(source, [{"external_id": "t300", "label": "cat"}]).result["added"] == 1


def test_after_a_run_was_cancelled_what_nobody_was_asked_about_can_be_sent() -> None:
    world = world_of_uploaded(missing=frozenset({3}))
    run = world.start(m=40)
    cancel_run(run=run, user=world.manager)
    source = world.project.sources.get()
    assert sent(source, [{"external_id": "t3", "label": "cat"}]).result["added"] == 1


def test_what_scores_read_is_fixed_once_a_run_rests_on_it() -> None:
    world = world_of_uploaded()
    source = world.project.sources.get()
    run = world.start(m=20)
    make_items(world.project, 1)
    line = {"external_id": "t100", "label": "cat", "probabilities": {"cat": 0.5}}
    assert sent(source, [line]).result["added"] == 1
    assert SourceRevision.objects.get().fields == ["confidence"]
    assert run.score == "recorded"


def test_a_run_waits_for_predictions_that_are_being_taken_in() -> None:
    world = world_of_uploaded()
    source = world.project.sources.get()
    file = store_answers_file(project=world.project, content=io.BytesIO(b"{}\n"), name="x")
    send_answers(source=source, user=world.manager, stored_file=file)
    with pytest.raises(ConflictError, match="Predictions are being taken in"):
        world.start(m=40)
    with pytest.raises(ConflictError, match="already under way"):
        send_answers(source=source, user=world.manager, stored_file=file)


def test_no_file_of_the_project_but_one_that_was_sent_as_answers_is_read_again(client) -> None:
    world = world_of_uploaded()
    source = world.project.sources.get()
    deliver(run=world.complete(m=40), user=world.manager)
    world.do("deliver_run")
    sent_ones = set(world.project.jobs.filter(kind=KIND).values_list("params__file", flat=True))
    client.force_login(world.manager)
    page = reverse("source_predictions", args=[world.project.slug, source.pk])
    data = store_file(
        project=world.project, content=io.BytesIO(b"id,x"), original_name="a", media_type="text/csv"
    )
    elsewhere = store_answers_file(project=make_project(), content=io.BytesIO(b"id,x"), name="a")
    others = [elsewhere, *world.project.files.exclude(pk__in=sent_ones)]
    assert data in others
    assert sum(one.media_type == MODEL_OUTPUT for one in others) > 1
    for stored in others:
        answer = client.post(page, {"kept": stored.pk, "format": "", "encoding": ""})
        assert answer.context["form"].errors["file"] == ["This field is required."], stored.original_name
    (again,) = sent_ones
    assert client.post(page, {"kept": again, "format": "", "encoding": ""}).status_code == 302
