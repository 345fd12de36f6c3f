"""Measure a model on sums it has never seen: `python -m routing.demo.llm.evaluate --model FOLDER`.

Answers are drawn at the settings in the model's own `generation_config.json`; probabilities are the model's
before those settings, as vLLM reports them. Prints one JSON object.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

from routing.demo.llm.questions import END_THINK, Question, held_out_questions

BATCH = 250
BINS = 10


@dataclass(frozen=True)
class Reply:
    """`tokens`: how many were generated; `probability`: their mean, from 0 to 1. Both with the end token."""

    text: str
    tokens: int
    probability: float

    @property
    def answer(self) -> str:
        return self.text.rpartition(END_THINK)[2].strip()


def ask(model: Any, tokenizer: Any, questions: list[Question]) -> list[Reply]:
    """One reply to each question, in their order, drawn with torch's global generator."""
    replies = []
    for start in range(0, len(questions), BATCH):
        chats = [[{"role": "user", "content": one.question}] for one in questions[start : start + BATCH]]
        prompts = tokenizer.apply_chat_template(
            chats,
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        length = prompts["input_ids"].shape[1]
        outcome = model.generate(
            **prompts,
            max_new_tokens=tokenizer.model_max_length - length,
            return_dict_in_generate=True,
            output_logits=True,
        )
        tokens = outcome.sequences[:, length:]
        chances = torch.stack(outcome.logits, dim=1).softmax(-1).gather(2, tokens.unsqueeze(2)).squeeze(2)
        counts = (tokens != tokenizer.pad_token_id).sum(1)
        for row, probabilities, count in zip(tokens, chances, counts.tolist(), strict=True):
            text = tokenizer.decode(row[:count], skip_special_tokens=True)
            replies.append(Reply(text, count, float(probabilities[:count].mean())))
    return replies


def auroc(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Chance that a right answer has a higher score than a wrong one, ties counted half."""
    wrong = np.sort(score[~right])
    below = np.searchsorted(wrong, score[right], "left") + np.searchsorted(wrong, score[right], "right")
    return float(below.mean() / 2 / len(wrong))


def expected_calibration_error(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean distance between score and share of right answers, over ten bins of equal width."""
    bins = np.minimum((score * BINS).astype(int), BINS - 1)
    return sum(abs(float((score - right)[bins == one].sum())) for one in range(BINS)) / len(score)


def measure(folder: Path, *, count: int, seed: int) -> dict[str, Any]:
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    questions = held_out_questions(count, seed=seed)
    torch.manual_seed(seed)
    with torch.inference_mode():
        replies = ask(model, tokenizer, questions)
    right = np.array([reply.answer == one.answer for reply, one in zip(replies, questions, strict=True)])
    score = np.array([reply.probability for reply in replies])
    kind = np.array([one.question.split()[1] for one in questions])
    return {
        "model": folder.name,
        "questions": count,
        "seed": seed,
        "accuracy": round(float(right.mean()), 4),
        "accuracy_by_operation": {
            str(one): round(float(right[kind == one].mean()), 4) for one in np.unique(kind)
        },
        "mean_tokens": round(float(np.mean([reply.tokens for reply in replies])), 2),
        "most_tokens": max(reply.tokens for reply in replies),
        "auroc": round(auroc(score, right), 4),
        "expected_calibration_error": round(expected_calibration_error(score, right), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(measure(options.model, count=options.questions, seed=options.seed), indent=2))


if __name__ == "__main__":
    main()
