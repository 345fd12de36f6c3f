"""Sources that are language models, on the pages: form, key, prompt, preview, versions, and a try."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.jobs import jobs
from annotation.models import AuditEvent, Job
from annotation.projects.choices import ChoiceSpec
from routing.models import ModelPrice, RunSource, Source
from routing.sources.backends import BACKENDS, SourceContext, backend_class
from routing.sources.backends.params import Secret
from routing.sources.forms import SourceFields
from testbed.factories import make_items, make_project
from testbed.scripted_server import Reply, ScriptedServer
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server(settings) -> Iterator[ScriptedServer]:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with ScriptedServer("cat", models=["tiny"]) as running:
        yield running


@pytest.fixture
def project(db):
    project = make_project(choices=("cat", "dog"), guidelines="Look at the <b>ears</b>.")
    make_items(project, 8)
    project.columns = ["text"]
    project.save()
    return project


@pytest.fixture
def client(project, client_of):
    return client_of(project.created_by)


def fields(server: ScriptedServer, **changes: str) -> dict[str, str]:
    return {
        "name": "Tiny",
        "backend": "openai_api",
        "url": server.url,
        "served_name": "tiny",
        "logprobs": "on",
        "cost_per_label": "0.5",
        "cost_function": "flat",
        **changes,
    }


def add(client, project, server, **changes: str) -> Source:
    answer = client.post(reverse("source_new", args=[project.slug]), fields(server, **changes))
    assert answer.status_code == 302, answer.content.decode()
    return project.sources.get()


def url_of(name: str, source: Source) -> str:
    return reverse(name, args=[source.project.slug, source.pk])


def page(client, name: str, source: Source, **query: str) -> str:
    answer = client.get(url_of(name, source), query)
    assert answer.status_code == 200
    return answer.content.decode()


def do(source: Source) -> Job:
    job = source.project.jobs.filter(kind="try_source").latest("id")
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def test_a_server_of_models_is_added_and_its_prompt_comes_next(client, project, server) -> None:
    answer = client.post(
        reverse("source_new", args=[project.slug]),
        fields(server, temperature="0", max_tokens="16", samples="", extra='{"stop": ["x"]}', api_key=KEY),
    )
    source = project.sources.get()
    assert answer.url == url_of("source_prompt", source)
    assert source.params == {
        "url": server.url,
        "model": "tiny",
        "temperature": 0.0,
        "max_tokens": 16,
        "extra": {"stop": ["x"]},
    }
    assert source.served["model"] == "tiny"
    assert KEY not in source.api_key


def test_an_address_that_could_not_be_checked_is_saved_with_a_warning(client, project, server) -> None:
    address = reverse("source_new", args=[project.slug])
    answer = client.post(address, fields(server), follow=True)
    assert "no list of models" not in answer.content.decode()
    server.route("GET", "/v1/models", Reply(404))
    answer = client.post(address, fields(server, name="Other"), follow=True)
    assert "this address has no list of models" in answer.content.decode()


def test_a_refusal_stands_beside_the_field_of_the_chosen_backend(client, project, server) -> None:
    answer = client.post(reverse("source_new", args=[project.slug]), fields(server, served_name=""))
    form = answer.context["form"]
    assert "served_name" in form.errors
    answer = client.post(reverse("source_new", args=[project.slug]), fields(server, url="ftp://x"))
    assert "url" in answer.context["form"].errors
    assert not project.sources.exists()


def test_the_key_is_never_shown_and_kept_until_it_is_removed(client, project, server) -> None:
    source = add(client, project, server, api_key=KEY)
    form = page(client, "source_edit", source)
    assert KEY not in form
    assert source.api_key not in form
    assert "A key is stored" in form
    client.post(url_of("source_edit", source), fields(server, name="Other"))
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    client.post(url_of("source_edit", source), fields(server, remove_key="on"))
    source.refresh_from_db()
    assert source.api_key == ""
    assert KEY not in str(list(AuditEvent.objects.values_list("data", flat=True)))


def test_a_key_that_was_typed_is_asked_for_again_where_the_form_is_shown_again(
    client, project, server
) -> None:
    address = reverse("source_new", args=[project.slug])
    for changes in ({"served_name": "other"}, {"use_preset": "1", "preset": "greedy"}):
        shown = client.post(address, fields(server, **changes)).content.decode()
        assert "enter it once more" not in shown
        shown = client.post(address, fields(server, api_key=KEY, **changes)).content.decode()
        assert "enter it once more" in shown
        assert KEY not in shown


def test_a_stored_key_is_sent_to_no_other_server(client, project, server) -> None:
    source = add(client, project, server, api_key=KEY)
    with ScriptedServer("cat", models=["tiny"]) as other:
        answer = client.post(url_of("source_edit", source), fields(other))
        assert "api_key" in answer.context["form"].errors
        assert not other.requests
        assert client.post(url_of("source_edit", source), fields(other, api_key="new")).status_code == 302
        assert {request.headers["authorization"] for request in other.requests} == {"Bearer new"}


@pytest.mark.parametrize("name", BACKENDS)
def test_the_form_has_a_field_for_each_param(name: str, client, project) -> None:
    backend = backend_class(name)
    with pytest.raises(InputError, match="it knows") as caught:
        backend({"no such param": 1}, SourceContext())
    known = set(caught.value.message.split("it knows ")[1].rstrip(".").split(", "))
    shown = client.get(reverse("source_new", args=[project.slug])).context["form"]
    fields = SourceFields(taken=())
    for param in backend.params:
        assert (fields.name_of(name, param.name) in shown.fields) or not param.in_form
        assert (param.name in known) != isinstance(param, Secret)


def test_a_preset_fills_the_form_and_what_is_empty(client, project, server) -> None:
    url = reverse("source_new", args=[project.slug])
    shown = client.post(url, fields(server, preset="qwen3-instruct-2507", temperature="1.5", use_preset="1"))
    form = shown.context["form"]
    assert not form.is_bound
    assert (form["temperature"].value(), form["top_k"].value()) == (0.7, 20)
    assert not project.sources.exists()
    client.post(url, fields(server, preset="qwen3-instruct-2507", temperature="1.5", max_tokens="64"))
    params = project.sources.get().params
    assert (params["temperature"], params["top_p"], params["max_tokens"]) == (1.5, 0.8, 64)


def test_a_line_of_the_price_list_says_how_labels_are_charged(client, project, server) -> None:
    line = ModelPrice.objects.create(
        project=project, name="tiny", cost_function="tokens", prices={"per_token": "0.25"}
    )
    source = add(client, project, server, price=str(line.pk))
    assert (source.price, source.cost_function, source.prices) == (line, "tokens", {"per_token": "0.25"})
    assert "its way of charging and its prices count" in page(client, "source_edit", source)


def test_the_prompt_is_shown_filled_in_before_it_is_saved(client, project, server) -> None:
    source = add(client, project, server)
    first = page(client, "source_prompt", source)
    assert "text 0" in first
    assert "Look at the &lt;b&gt;ears&lt;/b&gt;." in first
    sent = {
        "system": "Be brief.",
        "template": "Which? {{ label_keys }}\n{{ text }}",
        "item": "t3",
        "examples-TOTAL_FORMS": "1",
        "examples-INITIAL_FORMS": "0",
        "examples-0-content": "miaow",
        "examples-0-answer": "cat",
    }
    answer = client.post(url_of("source_prompt", source), sent | {"show": "1"})
    assert [message["content"] for message in answer.context["preview"]] == [
        "Be brief.",
        "Which? cat, dog\nmiaow",
        "cat",
        "Which? cat, dog\ntext 3",
    ]
    assert not source.prompt_versions.exists()
    assert client.post(url_of("source_prompt", source), sent).status_code == 302
    (version,) = source.prompt_versions.all()
    assert (version.number, version.system) == (1, "Be brief.")
    assert version.examples == [{"fields": {"text": "miaow"}, "answer": "cat"}]
    client.post(url_of("source_prompt", source), sent)  # the same again is no new version
    assert source.prompt_versions.count() == 1


def test_examples_that_were_typed_stay_in_sight(client, project, server) -> None:
    source = add(client, project, server)
    sent = {"template": "{{ text }}", "examples-TOTAL_FORMS": "1", "examples-INITIAL_FORMS": "0", "show": "1"}
    opened = '<details class="part" open>'
    assert opened not in client.post(url_of("source_prompt", source), sent).content.decode()
    sent |= {"examples-0-content": "long ears", "examples-0-answer": "cow"}
    shown = client.post(url_of("source_prompt", source), sent).content.decode()
    assert opened in shown
    assert "would not be read as one" in shown


def test_a_prompt_that_a_run_rests_on_says_so_before_it_is_edited(client_of, server) -> None:
    world = make_world(60)
    client = client_of(world.manager)
    client.post(reverse("source_new", args=[world.project.slug]), fields(server))
    source = world.project.sources.get(name="Tiny")
    before = page(client, "source_prompt", source)
    assert "cannot be changed now" not in before
    assert '<button type="submit">Save' in before
    run = world.start(m=40)
    RunSource.objects.get_or_create(
        run=run, source=source, defaults={"position": 9, "cost_per_label": Decimal(1)}
    )
    opened = page(client, "source_prompt", source)
    assert f"Run {run.number} is under way and rests on this prompt" in opened
    assert '<button type="submit" disabled>Save' in opened


def test_an_old_version_can_be_opened_and_saved_again(client, project, server) -> None:
    source = add(client, project, server)
    rows = {"examples-TOTAL_FORMS": "0", "examples-INITIAL_FORMS": "0"}
    for template in ("one {{ text }}", "two {{ text }}"):
        client.post(url_of("source_prompt", source), {"template": template, **rows})
    opened = page(client, "source_prompt", source, version="1")
    assert "one {{ text }}" in opened
    client.post(url_of("source_prompt", source), {"template": "one {{ text }}", **rows})
    assert list(source.prompt_versions.values_list("number", "template")) == [
        (1, "one {{ text }}"),
        (2, "two {{ text }}"),
        (3, "one {{ text }}"),
    ]


def test_a_wrong_placeholder_is_refused_in_words(client, project, server) -> None:
    source = add(client, project, server)
    rows = {"examples-TOTAL_FORMS": "0", "examples-INITIAL_FORMS": "0"}
    answer = client.post(url_of("source_prompt", source), {"template": "{{ txt }}", **rows})
    assert "no placeholder &#x27;txt&#x27;; there are text" in answer.content.decode()
    assert 'id="preview"' not in answer.content.decode()  # the browser stays where the error stands
    assert not source.prompt_versions.exists()


def test_a_source_is_tried_on_five_items_in_the_background(client, project, server) -> None:
    source = add(client, project, server, cost_function="tokens", per_token="0.25", api_key=KEY)
    server.script("cat", "<think>ears?</think>dog", "cow", "**cat**")
    assert client.post(url_of("source_try", source)).status_code == 302
    assert not server.calls  # no model is called inside a request
    waiting = page(client, "source_try", source)
    assert 'hx-trigger="every 2s"' in waiting
    job = do(source)
    assert job.state == Job.State.DONE, job.error
    assert job.result == {
        "items": 5,
        "usable": 4,
        "cost": "2.5000000000",
    }  # of which nothing tells what a model said
    assert len(server.calls) == 5
    shown = page(client, "source_try", source)
    assert "every 2s" not in shown
    assert "unknown label &#x27;cow&#x27;" in shown
    assert shown.count('kept-lines" dir="auto">text ') == 5  # what was asked about, in the open
    assert "ears?" in shown
    assert "Choose the one label" in shown
    assert KEY not in shown
    polled = client.get(url_of("source_try", source), headers={"HX-Request": "true"})
    assert polled.status_code == 286


def test_a_try_calls_labels_by_their_names(client_of, server) -> None:
    project = make_project(
        task_type="multiple_choice", choices=(ChoiceSpec("Cat", key="c"), ChoiceSpec("Dog", key="d"))
    )
    make_items(project, 5)
    client = client_of(project.created_by)
    source = add(client, project, server)
    server.default = '["d", "c"]'
    client.post(url_of("source_try", source))
    do(source)
    assert page(client, "source_try", source).count('dir="auto">Cat, Dog</strong>') == 5


def test_the_mean_cost_becomes_the_price_per_label(client, project, server) -> None:
    source = add(client, project, server, cost_function="tokens", per_token="0.25")
    client.post(url_of("source_try", source))
    do(source)
    (tried,) = source.tries.all()
    mean = sum(Decimal(row["cost"]) for row in tried.rows) / 5
    assert mean > 0
    client.post(url_of("source_try_price", source))
    source.refresh_from_db()
    assert source.cost_per_label == mean


def test_a_try_that_fails_says_why(client, project, server) -> None:
    source = add(client, project, server)
    client.post(url_of("source_try", source))
    server.stop()
    job = do(source)
    assert job.error
    assert job.error[:30] in page(client, "source_try", source)


def test_content_is_escaped(client, project, server) -> None:
    project.items.update(text="<script>alert(1)</script>")
    source = add(client, project, server)
    server.default = "<img src=x onerror=alert(1)>"
    client.post(url_of("source_try", source))
    do(source)
    shown = page(client, "source_try", source)
    assert "<script>alert" not in shown
    assert "<img src=x" not in shown
    assert "&lt;img src=x" in shown


def test_nothing_is_shown_of_items_of_a_run_that_is_not_analysed(client_of, server) -> None:
    world = make_world(60)
    client = client_of(world.manager)
    client.post(reverse("source_new", args=[world.project.slug]), fields(server))
    source = world.project.sources.get(name="Tiny")
    client.post(url_of("source_try", source))
    do(source)
    assert "try-row" in page(client, "source_try", source)
    world.start(m=40)
    after = page(client, "source_try", source)
    assert "try-row" not in after
    assert "shown again after its analysis" in after
    answer = client.post(url_of("source_try", source), follow=True)
    assert "nobody may see what a model says of them" in answer.content.decode()


def test_items_with_labels_are_taken_first(client_of, server) -> None:
    world = make_world(60)
    client = client_of(world.manager)
    client.post(reverse("source_new", args=[world.project.slug]), fields(server))
    source = world.project.sources.get(name="Tiny")
    world.project.sources.filter(name="Tiny").update(position=9)
    run = world.analysed(m=20)
    client.post(url_of("source_try", source))
    do(source)
    asked = set(run.draw.items.filter(asked=True).values_list("item_id", flat=True))
    assert {row["item"] for row in source.tries.get().rows} <= asked


@pytest.mark.parametrize(("costs", "told"), [(("2", "1"), True), (("1", "2"), False)])
def test_the_list_says_in_which_order_a_plan_takes_models(costs, told: bool, client_of) -> None:
    world = make_world(20, costs=costs)
    page = client_of(world.manager).get(reverse("sources", args=[world.project.slug])).content.decode()
    words = "in the order of their prices: <bdi>Model 2</bdi>, <bdi>Model 1</bdi>"
    assert (words in page) is told
