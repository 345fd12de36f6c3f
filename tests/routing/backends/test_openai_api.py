"""What is asked for, in which words, and what is known before."""

import pytest

from routing.backends import BackendError, Prompt, TaskSpec
from routing.core.scores import make_score
from routing.core.scores.verbalized import SYSTEM_PROMPT
from testbed.scripted_replies import completion, failure
from testbed.scripted_server import Reply, ScriptedServer
from tests.routing.backends.asking import ANIMALS, NUMBERS, answers, collected, items, open_api

SEVERAL = TaskSpec("multiple_choice", (("cat", "Cat"), ("dog", "Dog")))


def body_of(server: ScriptedServer, **params):
    answers(open_api(server, **params))
    return server.calls[-1].body


# --- What is asked ------------------------------------------------------------------------------------------


def test_the_prompt_is_sent_as_a_chat(server):
    answers(open_api(server, prompt=Prompt("Which animal? {{ text }}", system="Be brief.")))
    assert server.calls[0].path == "/v1/chat/completions"
    assert server.calls[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which animal? item 0"},
    ]


def test_nothing_is_sent_that_nobody_set(server):
    body = body_of(server)
    assert set(body) == {"model", "messages", "max_tokens", "logprobs", "top_logprobs"}
    assert (body["model"], body["max_tokens"], body["top_logprobs"]) == ("scripted", 1024, 5)


def test_sampling_params_are_sent_as_forms_give_them(server):
    sampling = {"temperature": "0.7", "top_p": 0.8, "top_k": "20", "min_p": "0", "presence_penalty": 1.5}
    body = body_of(server, **sampling, max_tokens="64")
    expected = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0, "presence_penalty": 1.5}
    assert {name: body[name] for name in sampling} == expected
    assert body["max_tokens"] == 64


def test_extra_fields_are_merged_into_the_body(server):
    body = body_of(server, extra='{"chat_template_kwargs": {"enable_thinking": false}, "stop": ["\\n"]}')
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["stop"] == ["\n"]


def test_the_limit_of_tokens_may_have_its_newer_name(server):
    backend = open_api(server, extra={"max_completion_tokens": 50})
    answers(backend)
    assert "max_tokens" not in server.calls[0].body
    assert server.calls[0].body["max_completion_tokens"] == 50
    assert backend.most_usage(items(1)[0])["tokens_out"] == 50


def test_without_log_probabilities_none_are_asked_for(server):
    assert "logprobs" not in body_of(server, logprobs=False)


def test_each_item_has_a_seed_of_its_own_that_its_company_does_not_change(server):
    answers(open_api(server, seed=7), 3)
    together = {call.prompt: call.body["seed"] for call in server.calls}
    before = len(server.calls)
    list(open_api(server, seed=7).predict(items(1, start=2)))
    assert server.calls[before].body["seed"] == together["item 2"]
    assert len(set(together.values())) == 3
    assert body_of(server, seed=8)["seed"] not in together.values()


@pytest.mark.parametrize(
    ("task", "structured", "name", "value"),
    [
        (ANIMALS, "choice", "structured_outputs", {"choice": ["cat", "dog"]}),
        (NUMBERS, "regex", "structured_outputs", {"regex": "-?[0-9]+"}),
    ],
)
def test_answers_are_held_to_a_form_as_vllm_does_it(server, task, structured, name, value):
    regex = {"regex": "-?[0-9]+"} if structured == "regex" else {}
    assert body_of(server, task=task, structured=structured, **regex)[name] == value


@pytest.mark.parametrize(
    ("task", "text", "value"),
    [
        (ANIMALS, '{"label": "dog"}', "dog"),
        (SEVERAL, '{"labels": ["dog", "cat"]}', ["cat", "dog"]),
        (NUMBERS, '{"answer": 0.10}', "0.1"),
        (TaskSpec("short_text"), '{"answer": "a \\"b\\""}', 'a "b"'),
    ],
    ids=["choice", "several", "number", "text"],
)
def test_answers_are_held_to_a_json_schema(server, task, text, value):
    server.script(text)
    (answer,) = answers(open_api(server, task=task, structured="json"))
    assert answer.value == value
    sent = server.calls[0].body["response_format"]
    assert sent["type"] == "json_schema"
    (name,) = sent["json_schema"]["schema"]["properties"]
    assert f'"{name}"' in text


def test_a_json_schema_of_one_s_own_is_sent(server):
    schema = {"type": "object", "properties": {"label": {"type": "string"}, "why": {"type": "string"}}}
    server.script('{"label": "dog", "why": "it barks"}')
    (answer,) = answers(open_api(server, structured="json", schema=schema))
    assert server.calls[0].body["response_format"]["json_schema"]["schema"] == schema
    assert answer.value == "dog"


def test_a_form_in_extra_goes_in_place_of_ours_and_holds_no_stated_confidence(server):
    form = {"type": "json_object", "schema": {"type": "object"}}
    server.script('{"label": "dog"}', "0.9")
    extra = {"response_format": form, "repeat_penalty": 1.0}
    (answer,) = answers(open_api(server, structured="json", verbalized=1, extra=extra))
    assert (answer.value, answer.raw["verbalized"]) == ("dog", ["0.9"])
    asked, sure = (call.body for call in server.calls)
    assert (asked["response_format"], sure.get("response_format")) == (form, None)
    assert asked["repeat_penalty"] == sure["repeat_penalty"] == 1.0


# --- Samples and stated confidences -------------------------------------------------------------------------


def test_samples_are_drawn_in_one_call(server):
    server.script(lambda request: completion(texts=["cat", "dog", "cat", "a unicorn"], asked=request.body))
    backend = open_api(server, samples=4, temperature=1)
    (answer,) = answers(backend)
    assert server.calls[0].body["n"] == 4
    assert answer.value == "cat"
    assert answer.raw["samples"] == ["cat", "dog", "cat", ""]
    assert make_score("ensemble")({**answer.raw, "label": "cat"}).u == 0.5
    assert "samples" in backend.fields


def test_a_server_that_gives_one_text_at_a_time_is_asked_for_each(server):
    server.default = lambda request: completion(texts=["cat"], asked=request.body)
    (answer,) = answers(open_api(server, samples=3, seed=1))
    assert answer.raw["samples"] == ["cat"] * 3
    assert answer.tokens_in == 30
    assert len({call.body["seed"] for call in server.calls}) == 3


def test_samples_may_have_a_temperature_of_their_own(server):
    server.script("cat", lambda request: completion(texts=["cat", "dog"], asked=request.body))
    (answer,) = answers(open_api(server, samples=2, temperature=0, sample_temperature=1))
    first, second = (call.body for call in server.calls)
    assert (first["temperature"], first.get("n")) == (0, None)
    assert (second["temperature"], second["n"], "logprobs" in second) == (1, 2, False)
    assert answer.value == "cat"
    assert answer.raw["samples"] == ["cat", "dog"]
    assert answer.tokens_in == 20


def test_the_model_is_asked_how_sure_it_is(server):
    server.script("It is a cat.", lambda request: completion(texts=["0.9", "80%"], asked=request.body))
    backend = open_api(server, verbalized=2, logprobs=False)
    (answer,) = answers(backend)
    asked = server.calls[1].body
    assert asked["messages"][0]["content"] == SYSTEM_PROMPT
    assert "Question: item 0\nAnswer: It is a cat.\n" in asked["messages"][1]["content"]
    assert asked["n"] == 2
    assert answer.raw["verbalized"] == ["0.9", "80%"]
    assert backend.default_score == "verbalized"
    assert make_score("verbalized")({**answer.raw, "label": "cat"}).u == pytest.approx(0.15)


def test_of_an_unusable_answer_nobody_asks_how_sure_it_is(server):
    server.script("A unicorn.")
    (answer,) = answers(open_api(server, verbalized=10))
    assert answer.value is None
    assert len(server.calls) == 1


@pytest.mark.parametrize("params", [{"verbalized": 2}, {"samples": 2, "sample_temperature": 1}])
def test_an_answer_that_is_paid_stays_where_a_second_call_fails(server, params):
    server.default = lambda request: "cat" if request.body.get("n") is None else Reply(400, failure("no n"))
    (answer,) = answers(open_api(server, **params))
    assert answer.value == "cat"
    assert answer.tokens_in == 10
    assert "no n" in answer.raw["note"]


# --- Where servers differ -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["vllm", "llama.cpp", "openai"])
def test_servers_agree_on_the_tokens_of_an_answer(server, flavour):
    server.script(lambda request: completion("cat", asked=request.body, flavour=flavour))
    (answer,) = answers(open_api(server, top_logprobs=1))
    assert answer.raw["token_logprobs"] == [-0.1]


@pytest.mark.parametrize(
    "reply",
    [
        completion("cat", reasoning="It purrs."),
        completion("cat", reasoning="It purrs.", reasoning_field="reasoning_content"),
        completion("<think>It purrs.</think>\ncat"),
        completion("It purrs.</think>\n\ncat"),
        completion([{"type": "thinking", "thinking": [{"type": "text", "text": "It purrs."}]},
                    {"type": "text", "text": "cat"}], tokens=[("cat", -0.1)], usage=None),
    ],
    ids=["reasoning", "reasoning_content", "tags", "closing tag", "parts"],
)  # fmt: skip
def test_thinking_is_kept_apart(server, reply):
    server.script(reply)
    (answer,) = answers(open_api(server))
    assert (answer.value, answer.raw["text"], answer.raw["reasoning"]) == ("cat", "cat", "It purrs.")


def test_tokens_of_the_thinking_are_generated_tokens(server):
    tokens = [("<think>", -0.5), ("hm", -0.5), ("</think>", 0.0), ("\n", 0.0), ("cat", -0.1)]
    top = [{}, {}, {}, {}, {"cat": -0.1, "dog": -2.5, "d": -4.0}]
    text = "<think>hm</think>\ncat"
    server.script(lambda request: completion(text, asked=request.body, tokens=tokens, top=top))
    (answer,) = answers(open_api(server))
    assert answer.raw["token_logprobs"] == [-0.5, -0.5, 0, 0, -0.1]
    # The labels are told apart at the first token of the answer, wherever the thinking ends.
    assert answer.raw["label_logprobs"] == {"cat": -0.1, "dog": pytest.approx(-2.298587)}


def test_what_the_server_calls_itself_is_kept(server):
    server.script(completion("cat", model="scripted-2026-01-31") | {"system_fingerprint": "fp_1"})
    (answer,) = answers(open_api(server))
    assert (answer.served_model, answer.served_revision) == ("scripted-2026-01-31", "fp_1")


@pytest.mark.parametrize(
    ("model", "answers_as"),
    [
        ("gpt-x", "gpt-x-2026-01-31"),
        ("org/m", "org/m@main"),
        ("m.gguf", "/models/m.gguf"),
        ("fast", "org/fast"),
        ("Org/M", "org/m"),
        ("large-latest", "large-2411"),
        ("small", "small:latest"),
    ],
)
def test_names_of_the_same_model(server, model, answers_as):
    server.default = completion("cat", model=answers_as)
    assert answers(open_api(server, model=model), 2)[1].value == "cat"


@pytest.mark.parametrize("answers_as", ["qwen-4b-thinking", "qwen-4b-4x", "qwen", "other/qwen-4"])
def test_names_that_only_begin_alike(server, answers_as):
    server.default = completion("cat", model=answers_as)
    _, error = collected(open_api(server, model="org/qwen-4b").predict(items(2)))
    assert isinstance(error, BackendError)


def test_a_name_of_one_s_own_can_be_told(server):
    server.default = completion("cat", model="gpt-x-2026-01-31")
    assert answers(open_api(server, model="deployed", answers_as="gpt-x"))[0].value == "cat"
    _, error = collected(open_api(server, model="gpt-x", answers_as="gpt-y").predict(items(1)))
    assert isinstance(error, BackendError)


def test_a_name_that_the_list_of_models_gave_is_its_own_too(server):
    server.default = completion("cat", model="org/trained")
    assert answers(open_api(server, served={"model": "scripted", "root": "org/trained"}))[0].value == "cat"
