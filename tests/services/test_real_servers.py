"""The backends of language models against a real engine: vLLM on the processor, with the two tiny models.

`make test-llm`. Half a minute goes by before a server is up; all tests share two of them, and the last one
kills one.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from annotation.errors import InputError
from routing.sources.backends import BackendError, TaskSpec, open_backend, predict_all
from routing.sources.backends.openai_batch.lines import request_line
from routing.sources.backends.openai_batch.store import ResultStore
from tests.llm import ENVIRONMENT, MODELS, VllmServer, engine_arguments, llm_python
from tests.llm_sources import (
    FAST,
    GREEDY,
    KEY,
    QUESTIONS,
    SLOW,
    SUMS,
    context,
    items,
    mean_probability,
    open_api,
    right,
)
from tests.support import missing

pytestmark = [pytest.mark.llm, pytest.mark.xdist_group("llm")]


@pytest.fixture(scope="session")
def python() -> Path:
    found = llm_python()
    if found is None:
        missing("llm", "There is no .venv-llm; `make setup-llm` makes it.")
    if not (MODELS / "fast" / "config.json").exists():
        missing("llm", f"There are no models in {MODELS}.")
    return found


@pytest.fixture(scope="session")
def servers(python: Path) -> Iterator[dict[str, VllmServer]]:
    wanted = {
        "fast": VllmServer(python, "fast"),
        "slow": VllmServer(python, "slow", "--reasoning-parser", "qwen3", "--api-key", KEY),
    }
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        # Side by side: most of it is importing.
        for server in pool.map(VllmServer.__enter__, wanted.values()):
            stack.callback(server.close)
        yield wanted


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]


# --- Through openai_api -------------------------------------------------------------------------------------


def test_answers_tokens_and_probabilities_of_the_fast_model(servers):
    backend = open_api(servers["fast"], **FAST)
    assert backend.check()["model"] == "fast"
    answers = predict_all(backend, items(SUMS))
    assert right(answers) > 0.6
    for answer, question in zip(answers, QUESTIONS, strict=True):
        assert answer.served_model == "fast"
        assert answer.tokens_in == len(question.question) + 3
        # The token that ends an answer is generated and paid, and is no part of it.
        assert answer.tokens_out == len(answer.raw["token_logprobs"]) + 1 == len(answer.raw["text"]) + 1
        assert 0 < mean_probability(answer) <= 1


def test_thinking_comes_apart_from_the_answer_and_is_counted(servers):
    answers = predict_all(open_api(servers["slow"], **SLOW), items(SUMS))
    assert right(answers) > 0.8
    thought = [answer for answer in answers if answer.raw.get("reasoning")]
    assert len(thought) > 0.9 * len(answers)
    for answer in thought:
        assert len(answer.raw["token_logprobs"]) > len(answer.raw["text"]) + len(answer.raw["reasoning"])
        assert "<think>" not in answer.raw["text"]


def test_thinking_that_is_cut_off_is_no_answer(servers):
    answers = predict_all(open_api(servers["slow"], **{**SLOW, "max_tokens": 3}), items(SUMS[:8]))
    assert {answer.value for answer in answers} == {None}
    assert {answer.finish_reason for answer in answers} == {"length"}
    assert "cut off inside its thinking" in answers[0].reason


def test_an_answer_that_is_cut_off_is_not_used(servers):
    answers = predict_all(open_api(servers["fast"], **{**FAST, "max_tokens": 1}), items(SUMS[:8]))
    assert {(answer.value, answer.finish_reason) for answer in answers} == {(None, "length")}


def test_an_answer_that_is_no_label_is_not_used(servers):
    animals = TaskSpec("single_choice", (("cat", "Cat"), ("dog", "Dog")))
    answers = predict_all(open_api(servers["fast"], animals, **GREEDY), items(SUMS[:4]))
    assert {answer.value for answer in answers} == {None}
    assert all(answer.reason and answer.tokens_out for answer in answers)


def test_several_samples_in_one_call(servers):
    answers = predict_all(open_api(servers["fast"], **{**FAST, "samples": 5}), items(SUMS[:8]))
    assert {len(answer.raw["samples"]) for answer in answers} == {5}
    assert all(answer.raw["samples"][0] == (answer.value or "") for answer in answers)


def test_an_answer_can_be_held_to_the_labels_and_tells_their_probabilities(servers):
    digits = TaskSpec("single_choice", tuple((str(digit), str(digit)) for digit in range(10)))
    backend = open_api(
        servers["fast"], digits, temperature=0, structured="choice", max_tokens=4, top_logprobs=10
    )
    answers = predict_all(backend, items(SUMS[:16]))
    assert {answer.value for answer in answers} <= set("0123456789")
    for answer in answers:
        assert answer.value in answer.raw["label_logprobs"]


def test_an_answer_can_be_held_to_a_schema_and_to_an_expression(servers):
    held = {"temperature": 0, "max_tokens": 60}
    as_json = open_api(servers["fast"], structured="json", **held)
    for answer in predict_all(as_json, items(SUMS[:4])):
        assert answer.raw["text"].lstrip().startswith("{")
    expression = open_api(servers["fast"], structured="regex", regex="[1-9][0-9]{2}", **held)
    for answer in predict_all(expression, items(SUMS[:4])):
        assert answer.value is not None
        assert 100 <= int(str(answer.value)) <= 999


def test_a_server_that_is_not_asked_for_probabilities_gives_none(servers):
    (answer,) = predict_all(open_api(servers["fast"], logprobs=False, **GREEDY), items(SUMS[:1]))
    assert "token_logprobs" not in answer.raw


def test_what_is_too_long_for_the_model_is_refused_for_that_item_alone(servers):
    texts = [SUMS[0], "1" * 300, SUMS[1]]
    first, long, last = predict_all(open_api(servers["fast"], **GREEDY), items(texts))
    assert "the server refused it (400)" in long.reason
    assert first.value is not None
    assert last.value is not None


def test_an_unknown_model_is_found_when_the_source_is_saved_and_when_it_is_asked(servers):
    backend = open_api(servers["fast"], **{**GREEDY, "model": "slow"})
    with pytest.raises(InputError) as caught:
        backend.check()
    assert (caught.value.where, "it lists fast" in caught.value.message) == ("model", True)
    with pytest.raises(BackendError) as stopped:
        predict_all(backend, items(SUMS[:2]))
    assert stopped.value.permanent is True


def test_a_key_that_the_server_refuses_is_told_and_in_no_message(servers):
    backend = open_api(servers["slow"], key="sk-another-key", **SLOW)
    with pytest.raises(InputError) as caught:
        backend.check()
    assert caught.value.where == "api_key"
    with pytest.raises(BackendError) as stopped:
        predict_all(backend, items(SUMS[:2]))
    assert stopped.value.permanent is True
    assert "sk-another-key" not in stopped.value.message


def test_more_tokens_than_the_model_has_room_for_stop_the_source(servers):
    with pytest.raises(BackendError, match="refuses every call"):
        predict_all(open_api(servers["fast"], temperature=0, max_tokens=500), items(SUMS[:3]))


def test_an_address_without_v1_is_told(servers):
    backend = open_api(servers["fast"], url=servers["fast"].url.removesuffix("/v1"), **GREEDY)
    with pytest.raises(InputError, match="enter that"):
        backend.check()


def test_fingerprints_tell_the_models_apart(servers):
    prints = [open_api(servers[name], **GREEDY).fingerprint() for name in ("fast", "slow", "fast")]
    assert prints[0] == prints[2] != prints[1]


# --- Batch files --------------------------------------------------------------------------------------------


def test_a_batch_file_is_answered_by_vllm_without_a_server(python, tmp_path, settings):
    settings.VAR_DIR = tmp_path
    backend = open_backend("openai_batch", {"model": "fast", **GREEDY}, context())
    asked = items(SUMS[:20])
    calls, results = tmp_path / "calls.jsonl", tmp_path / "results.jsonl"
    calls.write_bytes(b"".join(request_line(*backend.request(item)) for item in asked))
    module = ["-m", "vllm.entrypoints.openai.run_batch"]
    run([str(python), *module, "-i", str(calls), "-o", str(results), *engine_arguments("fast")])
    with results.open("rb") as lines:
        assert ResultStore(backend.key).add(lines) == (20, 0)
    answers = predict_all(backend, asked)
    assert all(answer.value is not None and answer.raw["token_logprobs"] for answer in answers)


# --- In the worker's own process ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_process(python: Path) -> list[dict[str, Any]]:
    """Several passes of one engine."""
    engine = {"model": "fast", "dtype": "float32", "max_model_len": 128, "concurrency": 16}
    digits = {**engine, "temperature": 0, "max_tokens": 1, "structured": "regex", "regex": "[0-9]"}
    passes = [
        {"params": {**engine, **GREEDY}, "questions": [*SUMS, "1" * 300]},
        {"params": {**engine, **FAST, "samples": 3}, "questions": SUMS},
        {"params": {**engine, **FAST, "samples": 3}, "questions": SUMS[::-1]},
        {"params": digits, "questions": SUMS[:4]},
        {"params": {**engine, **SLOW, "model": "slow"}, "questions": SUMS},
    ]
    sent = json.dumps({"models": str(MODELS), "passes": passes})
    script = Path(__file__).with_name("engine_in_process.py")
    root = Path(__file__).resolve().parents[2]
    said = run([str(python), str(script)], input=sent, cwd=root, env_extra={"PYTHONPATH": str(root)})
    found: list[dict[str, Any]] = json.loads(said)
    return found


def test_the_engine_in_process_gives_what_a_server_gives(servers, in_process):
    asked = predict_all(open_api(servers["fast"], **GREEDY), items(SUMS))
    own = in_process[0]["answers"][: len(SUMS)]
    same = sum(mine["value"] == theirs.value for mine, theirs in zip(own, asked, strict=True))
    assert same >= 0.95 * len(SUMS)  # another order of additions may turn a close decision
    mine, theirs = own[0], asked[0]
    assert mine["raw"]["token_logprobs"] == pytest.approx(theirs.raw["token_logprobs"], abs=1e-3)
    assert (mine["tokens_in"], mine["tokens_out"]) == (theirs.tokens_in, theirs.tokens_out)


def test_no_more_than_said_is_in_flight_and_answers_come_in_groups(in_process):
    first = in_process[0]
    assert first["most_in_flight"] <= 16 + 4
    assert first["groups"] > 1
    assert "and the model reads 128" in first["answers"][-1]["reason"]


def test_samples_of_an_item_do_not_depend_on_its_neighbours(in_process):
    there, back = (one["answers"] for one in in_process[1:3])
    same = [
        mine["raw"]["samples"] == theirs["raw"]["samples"]
        for mine, theirs in zip(there, back[::-1], strict=True)
    ]
    assert sum(same) >= 0.95 * len(SUMS)
    assert {len(one["raw"]["samples"]) for one in there} == {3}


def test_the_engine_in_process_holds_answers_to_a_form(in_process):
    assert all(one["raw"]["text"] in "0123456789" for one in in_process[3]["answers"])


def test_another_model_takes_the_place_of_the_first(in_process):
    answers = in_process[4]["answers"]
    assert sum(one["value"] == q.answer for one, q in zip(answers, QUESTIONS, strict=True)) > 0.8 * len(SUMS)
    assert answers[0]["raw"]["reasoning"]
    assert answers[0]["served_model"] == "slow"


def test_a_model_that_is_closed_leaves_its_memory_to_the_next(in_process):
    assert in_process[-1]["bytes_left"] == 0


# --- Last, because it ends a server -------------------------------------------------------------------------


def test_a_server_that_is_killed_stops_the_source_and_loses_no_answer(servers):
    backend = open_api(servers["fast"], retries=1, **FAST)
    asked = items([f"{n} + {n % 7}" for n in range(400)])
    given: list[int] = []

    def ask_and_kill() -> None:
        for group in backend.predict(iter(asked)):
            given.extend(item.pk for item, _ in group)
            if len(given) >= 50:
                servers["fast"].kill()

    with pytest.raises(BackendError) as stopped:
        ask_and_kill()
    assert stopped.value.permanent is False
    assert 50 <= len(given) == len(set(given)) < 400
    with pytest.raises(BackendError) as away:
        predict_all(open_api(servers["fast"], retries=1, **FAST), asked[:2])
    assert away.value.permanent is False


def run(
    command: list[str],
    *,
    input: str | None = None,
    cwd: Path | None = None,
    env_extra: dict[str, str] | None = None,
) -> str:
    outcome = subprocess.run(
        command,
        input=input,
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, **(env_extra or {})},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if outcome.returncode != 0:
        pytest.fail(f"{command[:3]} failed:\n{outcome.stdout[-2000:]}{outcome.stderr[-4000:]}", pytrace=False)
    return outcome.stdout
