"""The sums that the two tiny language models are taught and asked, and the files that engines load."""

import json
import random
import re
from pathlib import Path

import pytest

from routing.demo import llm
from routing.demo.llm.questions import Sum, draw_sum, fast_solution, held_out_questions, slow_solution

MODELS = Path(llm.__file__).parent / "models"


def test_the_same_seed_gives_the_same_questions_and_another_seed_others() -> None:
    first = held_out_questions(200, seed=3)
    assert first == held_out_questions(200, seed=3)
    assert first != held_out_questions(200, seed=4)


def test_questions_differ_are_right_and_were_held_out() -> None:
    questions = held_out_questions(500, seed=1)
    assert len({one.question for one in questions}) == len({one.id for one in questions}) == 500
    for one in questions:
        a, operation, b = one.question.split()
        assert Sum(int(a), operation, int(b)).held_out
        calculate = {"+": int.__add__, "-": int.__sub__, "x": int.__mul__}[operation]
        assert int(one.answer) == calculate(int(a), int(b)) >= 0


def test_a_tenth_is_held_out_in_both_orders_of_its_numbers() -> None:
    rng = random.Random(5)
    sums = [draw_sum(rng) for _ in range(4000)]
    assert all(one.held_out == Sum(one.b, one.operation, one.a).held_out for one in sums)
    assert 300 < sum(one.held_out for one in sums) < 500


@pytest.mark.parametrize("count", [0, 50_001])
def test_a_number_of_questions_that_there_are_not_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=r"from 1 to 50,000, not"):
        held_out_questions(count, seed=1)


def test_the_fast_model_is_taught_the_answer_alone() -> None:
    assert fast_solution(Sum(103, "-", 7)) == "96"


@pytest.mark.parametrize(
    ("one", "solution"),
    [
        (Sum(47, "+", 86), "<think>3131</think>133"),
        (Sum(103, "-", 7), "<think>619100</think>96"),
        (Sum(7, "x", 468), "<think>657423</think>3276"),
        (Sum(468, "x", 7), "<think>657423</think>3276"),
        (Sum(0, "+", 0), "<think>00</think>0"),
    ],
)
def test_the_slow_model_is_taught_the_working_before_the_answer(one: Sum, solution: str) -> None:
    assert slow_solution(one) == solution


def test_the_working_holds_the_answer_and_the_last_carry() -> None:
    rng = random.Random(6)
    for one in [draw_sum(rng) for _ in range(500)]:
        found = re.fullmatch(r"<think>((?:\d\d)+)</think>(\d+)", slow_solution(one))
        assert found is not None
        pairs = found[1]
        assert int(pairs[-1] + pairs[::2][::-1]) == int(found[2]) == one.answer, one.question


@pytest.mark.parametrize("name", ["fast", "slow"])
def test_a_model_folder_has_what_an_engine_loads_and_stays_small(name: str) -> None:
    folder = MODELS / name
    config = json.loads((folder / "config.json").read_text())
    tokens = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert len(tokens) == config["vocab_size"]
    assert tokens["<|end|>"] == config["eos_token_id"]
    assert json.loads((folder / "generation_config.json").read_text())["top_k"] == 20
    assert (folder / "chat_template.jinja").exists()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2_000_000


def test_both_models_read_the_same_prompt() -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (MODELS / "fast" / name).read_bytes() == (MODELS / "slow" / name).read_bytes(), name
