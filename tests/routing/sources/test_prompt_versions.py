"""Prompts of stored sources: fingerprints, runs under way, hidden columns, images; what can be tried."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.models import Item, Job
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import set_choices, update_project
from routing.models import Source
from routing.runs.cancel import cancel_run
from routing.sources.backend_for import backend_for
from routing.sources.backends import Answer, Example, Prompt
from routing.sources.backends.base import Answered
from routing.sources.backends.label_studio_ml import LabelStudioMl
from routing.sources.manage import delete_source, save_prompt, save_source
from routing.sources.prompt_versions import HIDDEN, shown_to_model
from routing.sources.trials import start_try, try_source
from routing.sources.warnings import warnings_of
from testbed.factories import make_image_items, make_items, make_project
from testbed.scripted_server import Reply, ScriptedServer
from testbed.worlds import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings) -> Iterator[ScriptedServer]:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer("cat", models=["tiny"]) as running:
        yield running


def add(project, server, **changes) -> Source:
    fields = {
        "name": "Tiny",
        "backend": "openai_api",
        "params": {"url": server.url, "model": "tiny"},
        "cost_per_label": Decimal(1),
    }
    return save_source(project=project, user=project.created_by, **(fields | changes))


@pytest.fixture
def world() -> World:
    return make_world(60)


def test_another_prompt_is_another_fingerprint(server) -> None:
    project = make_project()
    source = add(project, server)
    prints = {backend_for(source).fingerprint()}
    save_prompt(source=source, user=project.created_by, prompt=Prompt("Cat? {{ text }}"))
    prints.add(backend_for(source).fingerprint())
    save_prompt(
        source=source,
        user=project.created_by,
        prompt=Prompt("Cat? {{ text }}", examples=(Example({"text": "miaow"}, "cat"),)),
    )
    prints.add(backend_for(source).fingerprint())
    assert len(prints) == 3
    first = source.prompt_versions.get(number=1)
    save_prompt(source=source, user=project.created_by, prompt=Prompt(first.template))
    assert backend_for(source).fingerprint() in prints


def test_changed_guidelines_count_only_where_the_prompt_has_them(server) -> None:
    project = make_project(guidelines="Ears.")
    with_them, without = add(project, server), add(project, server, name="Other", prompt=Prompt("{{ text }}"))
    before = [backend_for(source).fingerprint() for source in (with_them, without)]
    project.guidelines = "Tails."
    project.save()
    after = [backend_for(Source.objects.get(pk=source.pk)).fingerprint() for source in (with_them, without)]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_no_prompt_changes_under_a_run(world, server) -> None:
    source = add(world.project, server)
    world.start(m=20)
    with pytest.raises(ConflictError, match="Run 1 is under way"):
        save_prompt(source=source, user=world.manager, prompt=Prompt("{{ text }}"))
    with pytest.raises(ConflictError, match="Run 1 is under way"):
        add(world.project, server, source=source, prompt=Prompt("{{ text }}"))
    assert not source.prompt_versions.exists()
    add(world.project, server, source=source, name="New name", api_key="new")  # is no part of what it answers


def test_under_a_run_nothing_changes_that_a_prompt_holds(world, server) -> None:
    project, user = world.project, world.manager
    project.sources.all().delete()
    add(project, server, prompt=Prompt("{{ guidelines }} {{ label_keys }} {{ text }}"))
    run = world.start(m=20)
    choices = list(project.choices.all())
    turned = [ChoiceSpec(name=one.name, key=one.key) for one in reversed(choices)]
    with pytest.raises(ConflictError, match="run 1 rests on it") as caught:
        update_project(project=project, user=user, guidelines="Ears.")
    assert caught.value.where == "guidelines"
    assert project.guidelines == ""
    with pytest.raises(ConflictError, match="run 1 rests on it"):
        set_choices(project=project, user=user, choices=turned)
    set_choices(project=project, user=user, choices=[replace(one, color="#123456") for one in turned[::-1]])
    update_project(project=project, user=user, name="Another name", guidelines="")
    cancel_run(run=run, user=user)
    update_project(project=project, user=user, guidelines="Ears.")
    set_choices(project=project, user=user, choices=turned)


def test_guidelines_that_no_prompt_holds_may_change_under_a_run(world, server) -> None:
    add(world.project, server, prompt=Prompt("{{ text }}"))
    world.start(m=20)
    update_project(project=world.project, user=world.manager, guidelines="Ears.")
    assert world.project.guidelines == "Ears."


def test_under_a_run_what_the_server_said_first_stays(world, server) -> None:
    source = add(world.project, server)
    served = source.served
    world.start(m=20)
    server.route("GET", "/v1/models", {"data": [{"id": "tiny", "root": "another/tiny"}]})
    add(world.project, server, source=source, name="New name")
    source.refresh_from_db()
    assert (source.name, source.served) == ("New name", served)


def test_columns_of_model_output_are_not_shown_before_the_analysis(world) -> None:
    item = world.project.items.first()
    prompt = Prompt("{{ text }} {{ model1 }}")
    shown = shown_to_model(world.project, prompt, item).user
    assert shown == f"{item.text} {HIDDEN}"


def test_a_first_model_that_tells_no_doubts_is_warned_of(server) -> None:
    project = make_project()
    params = {"url": server.url, "model": "tiny"}
    assert warnings_of(add(project, server, params=params)) == ()
    source = add(project, server, source=project.sources.get(), params=params | {"logprobs": False})
    (warning,) = warnings_of(source)
    assert "says nothing of how unsure it is" in warning


def test_images_are_refused_when_the_source_is_saved(server) -> None:
    project = make_project()
    make_image_items(project, 1)
    with pytest.raises(InputError, match="has images") as caught:
        add(project, server)
    assert caught.value.where == "backend"


def test_a_source_of_recorded_answers_has_nothing_to_try(world) -> None:
    with pytest.raises(InputError, match="came with the data"):
        start_try(source=world.project.sources.first(), user=world.manager)


def test_a_project_without_items_has_nothing_to_try_on(server) -> None:
    project = make_project()
    with pytest.raises(ConflictError, match="import data first"):
        start_try(source=add(project, server), user=project.created_by)


def test_a_run_that_begins_before_the_worker_does_stops_the_try(world, server) -> None:
    source = add(world.project, server)
    job = start_try(source=source, user=world.manager)
    world.start(m=20)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "A run has begun" in job.error
    assert not server.calls


@pytest.mark.parametrize(("retries", "calls"), [({}, 2), ({"retries": 0}, 1)])
def test_a_try_fails_soon_where_a_run_would_wait(server, retries, calls) -> None:
    """Somebody is before the page."""
    project = make_project()
    make_items(project, 1)
    server.default = lambda request: Reply(503)
    source = add(project, server, params={"url": server.url, "model": "tiny", **retries})
    job = start_try(source=source, user=project.created_by)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "503" in job.error
    assert len(server.calls) == calls + 1  # and a harmless question that tells whose fault it is


def test_only_the_newest_try_is_kept(server) -> None:
    project = make_project()
    make_items(project, 2)
    source = add(project, server)
    for _ in range(2):
        jobs.run(start_try(source=source, user=project.created_by).pk)
    (tried,) = source.tries.all()
    assert len(tried.rows) == 2
    assert tried.job == project.jobs.latest("id")


def test_what_tries_cost_is_summed_up_for_the_project(client, server) -> None:
    project = make_project(currency="USD")
    make_items(project, 2)
    source = add(project, server, cost_per_label=Decimal("0.25"))
    client.force_login(project.created_by)
    page = reverse("sources", args=[project.slug])
    assert "Tries have cost" not in client.get(page).content.decode()
    for _ in range(2):
        jobs.run(start_try(source=source, user=project.created_by).pk)
    delete_source(source=source, user=project.created_by)
    assert "Tries have cost 1.00\N{NO-BREAK SPACE}USD so far" in client.get(page).content.decode()


def test_items_are_tried_with_their_images_at_hand(server, monkeypatch) -> None:
    """So that a backend that reads them in threads does not go to the database there."""
    project = make_project()
    make_image_items(project, 1)
    seen: list[bool] = []

    def predict(self: LabelStudioMl, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for item in items:
            seen.append("image" in item._state.fields_cache)
            yield [(item, Answer("cat"))]

    monkeypatch.setattr(LabelStudioMl, "check", lambda self: {})
    monkeypatch.setattr(LabelStudioMl, "predict", predict)
    source = add(project, server, backend="label_studio_ml", params={"url": server.url})
    jobs.run(start_try(source=source, user=project.created_by).pk)
    assert seen == [True]


def test_a_model_in_the_worker_is_tried_by_a_worker_that_has_a_gpu(server) -> None:
    project = make_project()
    make_items(project, 2)
    source = add(project, server)
    job = start_try(source=source, user=project.created_by)
    assert jobs.kind(job.kind).handler is try_source
    assert jobs.kind(job.kind).queue_of(job) == "default"
    Source.objects.filter(pk=source.pk).update(backend="vllm")
    assert jobs.kind(job.kind).queue_of(job) == "gpu"


def test_a_source_of_batch_files_is_tried_live(server) -> None:
    project = make_project()
    make_items(project, 2)
    params = {"url": server.url, "model": "tiny", "batch_size": 10}
    source = add(project, server, backend="openai_batch", params=params)
    jobs.run(start_try(source=source, user=project.created_by).pk)
    assert [row["value"] for row in source.tries.get().rows] == ["cat", "cat"]
    by_hand = add(project, server, name="By hand", backend="openai_batch", params={"model": "tiny"})
    with pytest.raises(InputError, match="carried by hand"):
        start_try(source=by_hand, user=project.created_by)
