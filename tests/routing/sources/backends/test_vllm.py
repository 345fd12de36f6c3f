"""The `vllm` backend with an engine that a test scripts. A real one: tests/services/test_real_servers.py."""

import json
import os
import sys
from collections import deque
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from annotation.errors import InputError
from annotation.models import Item
from routing.sources.backends import BackendError, Prompt, SourceContext, TaskSpec, open_backend, predict_all
from routing.sources.backends.vllm import backend as vllm_backend
from routing.sources.backends.vllm.engine import MISSING, NOT_LOADED, QUIET, Finished
from tests.routing.sources.backends.asking import items

END = 3
ANIMALS = TaskSpec("single_choice", (("cat", "Cat"), ("dog", "Dog")))


class Tokenizer:
    """A token for each character."""

    def apply_chat_template(self, chat, **options):
        assert options["add_generation_prompt"] is True
        assert options["return_dict"] is False
        return [ord(letter) for message in chat for letter in message["content"]]

    def encode(self, text, add_special_tokens):
        return [ord(letter) for letter in text]

    def decode(self, ids):
        return "".join(map(chr, ids))


class Engine:
    """Answers each request with `reply(prompt)`, the last one first."""

    max_model_len = 2000
    end_tokens = frozenset({END})
    tokenizer = Tokenizer()

    def __init__(self, reply):
        self.reply, self.added, self.aborted = reply, [], []
        self.waiting = deque()
        self.most_waiting = 0

    def add(self, key, prompt, params):
        self.added.append((self.tokenizer.decode(prompt), params))
        self.waiting.append((key, self.tokenizer.decode(prompt), params))
        self.most_waiting = max(self.most_waiting, len(self.waiting))

    def take(self, timeout=None):
        if not self.waiting:
            return None
        key, prompt, params = self.waiting.pop()
        reply = self.reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Refused):
            return Finished(key, (), str(reply))
        return Finished(key, [output(reply, params) for _ in range(params["n"])])

    def abort(self, keys):
        self.aborted += keys


class Refused(str):
    """What a test's reply is where the engine refuses a prompt."""


def output(reply, params):
    text, finish = reply if isinstance(reply, tuple) else (reply, "stop")
    ids = [ord(letter) for letter in text] + ([END] if finish == "stop" else [])
    logprobs = None
    if params.get("logprobs") or params.get("logprob_token_ids"):
        others = params.get("logprob_token_ids") or []
        logprobs = [
            {id: SimpleNamespace(logprob=-1.5, decoded_token=chr(id)) for id in others}
            | {token: SimpleNamespace(logprob=-0.25, decoded_token=chr(token))}
            for token in ids
        ]
    return SimpleNamespace(text=text, token_ids=ids, finish_reason=finish, logprobs=logprobs)


@pytest.fixture
def models(settings, tmp_path):
    settings.HYPAC_VLLM_MODELS, settings.HYPAC_VLLM_HUB = tmp_path, ["Qwen/*"]
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return tmp_path


@pytest.fixture
def engine(models, monkeypatch):
    made = Engine(lambda prompt: "cat")

    @contextmanager
    def engine_for(settings):
        yield made

    monkeypatch.setattr(vllm_backend, "engine_for", engine_for)
    return made


def open_vllm(task=ANIMALS, prompt="{{ text }}", **params):
    context = SourceContext(task=task, prompt=Prompt(template=prompt))
    return open_backend("vllm", {"model": "tiny", **params}, context)


def test_an_answer_has_what_scores_and_prices_need(engine):
    (answer,) = predict_all(open_vllm(), items(1))
    assert (answer.value, answer.finish_reason, answer.served_model) == ("cat", "stop", "tiny")
    assert answer.tokens_in == len("item 0")
    assert answer.tokens_out == 4  # the token that ends it was generated, too ...
    assert answer.raw["token_logprobs"] == [-0.25] * 3  # ... and is no part of the answer
    assert answer.busy_ms is not None
    assert answer.latency_ms is not None


def test_the_probabilities_of_all_labels_are_asked_for_exactly(engine):
    (answer,) = predict_all(open_vllm(), items(1))
    assert engine.added[0][1]["logprob_token_ids"] == sorted({ord(letter) for letter in "cCdD"})
    # Both spellings of a label count: log(2) more than one of them.
    assert answer.raw["label_logprobs"]["dog"] == pytest.approx(-1.5 + 0.693147, abs=1e-5)


def test_labels_that_begin_alike_are_left_to_the_likeliest_tokens(engine):
    task = TaskSpec("single_choice", (("cat", "Cat"), ("cow", "Cow")))
    predict_all(open_vllm(task), items(1))
    assert "logprob_token_ids" not in engine.added[0][1]
    assert engine.added[0][1]["logprobs"] == 5


def test_several_samples_are_one_request(engine):
    (answer,) = predict_all(open_vllm(samples=4), items(1))
    assert [params["n"] for _, params in engine.added] == [4]
    assert answer.raw["samples"] == ["cat"] * 4
    assert (answer.tokens_in, answer.tokens_out) == (6, 16)


def test_samples_with_a_temperature_of_their_own_are_drawn_apart(engine):
    (answer,) = predict_all(open_vllm(temperature=0, samples=4, sample_temperature=1), items(1))
    assert [(params["n"], params["temperature"]) for _, params in engine.added] == [(1, 0), (4, 1)]
    assert answer.raw["samples"] == ["cat"] * 4
    assert answer.raw["token_logprobs"]


def test_the_model_is_asked_how_sure_it_is_of_its_answer(engine):
    engine.reply = lambda prompt: "0.9" if "Provide a probability" in prompt else "dog"
    (answer,) = predict_all(open_vllm(verbalized=3), items(1))
    assert "Question: item 0\nAnswer: dog" in engine.added[1][0]
    assert answer.raw["verbalized"] == ["0.9"] * 3


def test_thinking_is_kept_apart_and_counted(engine):
    engine.reply = lambda prompt: "<think>It barks.</think>\ndog"
    (answer,) = predict_all(open_vllm(), items(1))
    assert (answer.value, answer.raw["reasoning"], answer.raw["text"]) == ("dog", "It barks.", "dog")
    assert answer.tokens_out == len("<think>It barks.</think>\ndog") + 1


def test_an_answer_that_was_cut_off_is_not_used(engine):
    engine.reply = lambda prompt: ("<think>It ba", "length")
    (answer,) = predict_all(open_vllm(), items(1))
    assert answer.value is None
    assert "cut off inside its thinking" in answer.reason


def test_a_prompt_that_is_too_long_is_not_sent(engine):
    long = Item(text="x" * 5000)
    short, answer = predict_all(open_vllm(), [*items(1), long])
    assert short.value == "cat"
    assert "5,000 tokens, and the model reads 2,000" in answer.reason
    assert len(engine.added) == 1


def test_a_refused_prompt_is_an_answer_with_its_reason(engine):
    engine.reply = lambda prompt: Refused("no such character") if prompt == "item 1" else "cat"
    answers = predict_all(open_vllm(), items(3))
    assert [answer.value for answer in answers] == ["cat", None, "cat"]
    assert "no such character" in answers[1].reason


def test_no_more_items_are_taken_than_said_and_the_longest_go_first(engine):
    backend = open_vllm(concurrency=4)
    given = [Item(text="x" * (n + 1)) for n in range(12)]
    taken, done = [], 0
    for group in backend.predict(taken.append(item) or item for item in given):
        assert len(taken) - done <= backend.in_flight == 5
        done += len(group)
    assert done == 12
    assert [len(prompt) for prompt, _ in engine.added[:5]] == [5, 4, 3, 2, 1]


def test_order_and_neighbours_do_not_change_what_is_asked_for_an_item(engine):
    predict_all(open_vllm(), items(3))
    first = {prompt: json.dumps(params) for prompt, params in engine.added}
    engine.added.clear()
    predict_all(open_vllm(concurrency=1), items(3)[::-1])
    assert {prompt: json.dumps(params) for prompt, params in engine.added} == first
    seeds = {params["seed"] for _, params in engine.added}
    assert len(seeds) == 3


def test_an_engine_that_ends_gives_what_it_had_finished(engine):
    def reply(prompt):
        return BackendError("The engine ended.", permanent=False) if prompt == "item 0" else "cat"

    engine.reply = reply
    groups = open_vllm().predict(iter(items(3)))
    assert len(next(groups)) == 2
    with pytest.raises(BackendError, match="The engine ended"):
        next(groups)


def test_a_pass_that_is_closed_takes_its_requests_back(engine, monkeypatch):
    monkeypatch.setattr(vllm_backend, "GATHER_SECONDS", 0)
    groups = open_vllm(concurrency=4).predict(iter(items(9)))
    assert len(next(groups)) == 1
    groups.close()
    assert len(engine.added) == 5
    assert sorted(engine.aborted) == sorted(key for key, _, _ in engine.waiting)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"structured": "choice"}, {"choice": ["cat", "dog"]}),
        ({"structured": "regex", "regex": "cat|dog"}, {"regex": "cat|dog"}),
        ({"structured": "json", "schema": {"type": "object"}}, {"json": {"type": "object"}}),
    ],
)
def test_answers_can_be_held_to_a_form(engine, params, expected):
    predict_all(open_vllm(**params), items(1))
    assert engine.added[0][1]["structured_outputs"] == expected


def test_without_vllm_it_says_what_to_install(models):
    with pytest.raises(BackendError) as caught:
        predict_all(open_vllm(), items(1))
    assert caught.value.code == MISSING.code
    assert "requirements-gpu.txt" in caught.value.message


def test_an_engine_tells_its_makers_nothing_of_itself(models, monkeypatch):
    told = {}

    def load(**_options):
        told.update(os.environ)
        raise RuntimeError("no memory")

    module = ModuleType("vllm")
    module.__spec__, module.LLM = ModuleSpec("vllm", None), load
    monkeypatch.setitem(sys.modules, "vllm", module)
    for name in QUIET:
        monkeypatch.setenv(name, "")  # so that it is as it was afterwards
        monkeypatch.delenv(name)
    with pytest.raises(BackendError) as caught:
        predict_all(open_vllm(), items(1))
    assert caught.value.code == NOT_LOADED.code
    assert told["VLLM_NO_USAGE_STATS"] == told["HF_HUB_DISABLE_TELEMETRY"] == "1"


# --- Which model --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../tiny", "tiny/..", "/etc", ".", "nothing", "Other/model", "Qwen/../x"])
def test_only_models_of_the_folder_and_the_allowed_ones_of_the_hub(models, name):
    with pytest.raises(InputError) as caught:
        open_vllm(model=name)
    assert caught.value.where == "model"


def test_a_model_of_the_hub_is_named_by_its_commit(models):
    with pytest.raises(InputError) as caught:
        open_vllm(model="Qwen/Qwen3-4B-Instruct-2507", revision="main")
    assert caught.value.where == "revision"
    one, other = "0" * 40, "1" * 40
    opened = [open_vllm(model="Qwen/Qwen3-4B-Instruct-2507", revision=commit) for commit in (one, other)]
    assert opened[0].check() == {"model": "Qwen/Qwen3-4B-Instruct-2507", "revision": one}
    assert opened[0].fingerprint() != opened[1].fingerprint()


def test_an_unknown_param_is_named(models):
    with pytest.raises(InputError) as caught:
        open_vllm(temprature=1)
    assert caught.value.where == "temprature"


def test_the_fingerprint_covers_what_answers_depend_on(models):
    def now(**changed):
        return open_vllm(**changed).fingerprint()

    same = now()
    assert now(concurrency=7, gpu_memory_utilization=0.5, preset="x") == same
    changes = [
        {"temperature": 0.5},
        {"seed": 7},
        {"dtype": "float32"},
        {"max_model_len": 64},
        {"prompt": "? {{ text }}"},
    ]
    assert len({same, *(now(**change) for change in changes)}) == 1 + len(changes)
    (models / "tiny" / "README.md").write_text("about")
    assert now() == same
    (models / "tiny" / "model.safetensors").write_bytes(b"other weights")
    assert now() != same
