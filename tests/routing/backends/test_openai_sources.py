"""The openai_api backend before a run: what params it takes, what it says of itself, its fingerprint."""

from decimal import Decimal

import pytest

from annotation.errors import InputError
from routing.backends import BackendError, Prompt, TaskSpec, open_backend
from testbed.scripted_replies import model_list
from testbed.scripted_server import Reply, ScriptedServer
from tests.routing.backends.asking import NUMBERS, answers, collected, items, open_api

SEVERAL = TaskSpec("multiple_choice", (("cat", "Cat"), ("dog", "Dog")))


def body_of(server: ScriptedServer, **params):
    answers(open_api(server, **params))
    return server.calls[-1].body


# --- Before a run -------------------------------------------------------------------------------------------


def test_check_says_what_is_served(server):
    assert open_api(server).check() == {"model": "scripted", "root": "org/scripted", "owned_by": "vllm"}
    assert server.requests[0].headers["authorization"].startswith("Bearer ")


@pytest.mark.parametrize(
    ("reply", "where", "words"),
    [
        (model_list(["fast", "slow"]), "model", "it lists fast, slow"),
        (Reply(401), "api_key", "refuses the API key"),
        (Reply(403), "api_key", "refuses the API key"),
        (Reply(503), "url", "does not answer now"),
        (Reply(reset=True), "url", "cannot be reached"),
    ],
    ids=["unknown model", "401", "403", "503", "reset"],
)
def test_check_finds_mistakes(server, reply, where, words):
    server.route("GET", "/v1/models", reply)
    with pytest.raises(InputError, match=words) as caught:
        open_api(server).check()
    assert caught.value.where == where


def test_check_notices_a_missing_v1(server):
    with pytest.raises(InputError, match="enter that") as caught:
        open_api(server.url.removesuffix("/v1")).check()
    assert caught.value.where == "url"


def test_a_server_without_a_list_of_models_may_be_used(server):
    server.route("GET", "/v1/models", Reply(404))
    assert open_api(server).check() == {}
    assert len(open_api(server).fingerprint()) == 64


@pytest.mark.parametrize("end", ["/chat/completions/", "/models"])
def test_the_address_may_be_pasted_in_full(server, end):
    assert answers(open_api(f"{server.url}{end}"))[0].value == "cat"


def test_addresses_inside_the_own_network_are_refused(settings):
    settings.HYPAC_PRIVATE_HOSTS = []
    with pytest.raises(InputError) as caught:
        open_api("http://127.0.0.1:8000/v1")
    assert caught.value.where == "url"


@pytest.mark.parametrize(
    "params",
    [
        {"temprature": 1},
        {"url": ""},
        {"url": "http://127.0.0.1/v1?key=x"},
        {"model": ""},
        {"temperature": "hot"},
        {"temperature": 3},
        {"temperature": True},
        {"top_p": float("nan")},
        {"top_k": 1.5},
        {"max_tokens": 0},
        {"samples": 1000},
        {"temperature": 0, "samples": 5},
        {"sample_temperature": 1},
        {"verbalized": -1},
        {"logprobs": "maybe"},
        {"top_logprobs": 21},
        {"structured": "xml"},
        {"regex": "a"},
        {"schema": {}},
        {"structured": "json", "schema": "[1]"},
        {"extra": "{"},
        {"extra": {"stream": True}},
        {"extra": {"messages": []}},
        {"extra": {"best_of": 5}},
        {"extra": {"use_beam_search": True}},
        {"extra": {"max_completion_tokens": "many"}},
        {"concurrency": 0},
        {"requests_per_minute": 0},
        {"tokens_per_minute": -5},
        {"read_timeout": 0},
        {"retries": 99},
        {"preset": 1},
    ],
    ids=lambda params: " ".join(f"{name}={value}" for name, value in params.items()),
)
def test_params_that_cannot_be_used_are_named(server, params):
    with pytest.raises(InputError) as caught:
        open_api(server, **params)
    assert caught.value.where == list(params)[-1]  # the last one given is the wrong one


def test_a_choice_needs_a_single_choice(server):
    with pytest.raises(InputError) as caught:
        open_api(server, task=SEVERAL, structured="choice")
    assert caught.value.where == "structured"


def test_a_regular_expression_is_needed_where_answers_have_to_match_one(server):
    with pytest.raises(InputError) as caught:
        open_api(server, structured="regex")
    assert caught.value.where == "regex"


def test_empty_params_are_as_good_as_none(server):
    empty = dict.fromkeys(["temperature", "top_k", "seed", "extra", "schema", "samples", "concurrency"], "")
    assert body_of(server, **empty) == body_of(server, concurrency=4)


def test_what_a_call_can_use_at_most(server):
    backend = open_api(server, samples=3, verbalized=2, max_tokens=100, temperature=1)
    found = backend.most_usage(items(1)[0])
    assert found["tokens_out"] == (3 + 2) * 100
    # "item 0" has 6 bytes; three times with what surrounds a message, and twice within the question about it.
    assert found["tokens_in"] >= 3 * (6 + 64) + 2 * (6 + 64 + 100)
    # The template of the model may put a message of its own before these.
    assert found["tokens_in"] >= 5 * 1000
    assert found["seconds"] == Decimal("600.0")
    (answer,) = answers(backend)
    assert answer.tokens_in <= found["tokens_in"]
    assert answer.tokens_out <= found["tokens_out"]


@pytest.mark.parametrize(
    "params",
    [
        {"extra": {"tools": [{"type": "function", "function": {"description": "x" * 5000}}]}},
        {"structured": "json", "schema": {"type": "object", "description": "x" * 5000}},
    ],
    ids=["tools", "schema"],
)
def test_what_servers_write_into_prompts_is_reckoned_with(server, params):
    (item,) = items(1)
    plain = open_api(server).most_usage(item)["tokens_in"]
    assert open_api(server, **params).most_usage(item)["tokens_in"] >= plain + 5000


def test_which_scores_can_be_computed(server):
    assert open_api(server).fields == {"token_logprobs", "label_logprobs"}
    assert open_api(server, task=NUMBERS).fields == {"token_logprobs"}
    assert open_api(server, logprobs="false", samples=2).default_score == "ensemble"
    assert open_api(server, logprobs=False).fields == frozenset()


# --- Fingerprints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"temperature": 0.5},
        {"top_k": 3},
        {"max_tokens": 5},
        {"seed": 1},
        {"samples": 2},
        {"verbalized": 1},
        {"structured": "choice"},
        {"logprobs": False},
        {"extra": {"stop": ["."]}},
        {"prompt": Prompt("Say: {{ text }}")},
        {"task": TaskSpec("single_choice", (("cat", "Cat"), ("dog", "Hound")))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_fingerprint_covers_what_answers_depend_on(server, change):
    server.models = ["scripted", "other"]
    assert open_api(server, **change).fingerprint() != open_api(server).fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 9},
        {"retries": 1},
        {"read_timeout": 9},
        {"requests_per_minute": 100},
        {"preset": "qwen3"},
        {"api_key": "another"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_fingerprint_leaves_out_how_fast_it_is_asked(server, change):
    assert open_api(server, **change).fingerprint() == open_api(server).fingerprint()


def test_fingerprint_leaves_out_the_address():
    with ScriptedServer() as here, ScriptedServer() as there:
        assert open_api(here).fingerprint() == open_api(there).fingerprint()


def test_fingerprint_changes_with_what_the_server_serves(server):
    before = open_api(server).fingerprint()
    listed = model_list(["scripted"])
    listed["data"][0]["root"] = "org/retrained"
    server.route("GET", "/v1/models", listed)
    assert open_api(server).fingerprint() != before


def test_fingerprint_of_a_server_that_is_away_may_be_asked_for_later(server):
    server.stop()
    with pytest.raises(BackendError) as caught:
        open_api(server).fingerprint()
    assert not caught.value.permanent


@pytest.mark.parametrize("reply", [Reply(404), Reply(body=b"<h1>Back soon</h1>")], ids=["404", "a page"])
def test_a_list_of_models_that_is_gone_for_a_while_is_no_other_model(server, reply):
    served = open_api(server).check()
    server.route("GET", "/v1/models", reply)
    with pytest.raises(BackendError, match="no list of models now") as caught:
        open_api(server, served=served).fingerprint()
    assert not caught.value.permanent


def test_fingerprint_of_a_model_that_is_gone_is_none(server):
    server.models = ["another"]
    with pytest.raises(BackendError, match="does not list this model") as caught:
        open_api(server).fingerprint()
    assert caught.value.permanent


def test_it_is_registered():
    with pytest.raises(InputError, match="needed"):
        open_backend("openai_api", {})


def test_nothing_goes_out_of_order_between_items(server):
    server.default = lambda request: "dog" if int(request.prompt[5:]) % 2 else "cat"
    given, error = collected(open_api(server, concurrency=8).predict(items(60)))
    assert error is None
    assert all(answer.value == ("dog" if int(item.external_id) % 2 else "cat") for item, answer in given)
