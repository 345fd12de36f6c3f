"""What tests beside real model servers ask, and of what: sources, items and sums whose answers are known."""

from math import exp
from typing import Any, Protocol

from annotation.models import Item
from routing.demo.llm.questions import held_out_questions
from routing.sources.backends import Answer, Prompt, SourceContext, TaskSpec, open_backend

QUESTIONS = held_out_questions(60, seed=7)
SUMS = [one.question for one in QUESTIONS]
FAST = {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "max_tokens": 16, "seed": 1}
SLOW = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_tokens": 96, "seed": 1}
GREEDY = {"temperature": 0, "max_tokens": 16}
NUMBER = TaskSpec("number")
KEY = "sk-of-the-slow-model"


class Served(Protocol):
    """A server of one model."""

    model: str

    @property
    def url(self) -> str: ...


def items(texts: list[str]) -> list[Item]:
    return [Item(pk=number, external_id=str(number), text=text) for number, text in enumerate(texts)]


def context(task: TaskSpec = NUMBER, key: str = KEY) -> SourceContext:
    return SourceContext(task, Prompt("{{ text }}"), key)


def open_api(server: Served, task: TaskSpec = NUMBER, key: str = KEY, **params: Any) -> Any:
    params = {"url": server.url, "model": server.model, "concurrency": 16, **params}
    return open_backend("openai_api", params, context(task, key))


def right(answers: list[Answer]) -> float:
    """Share of right answers to QUESTIONS."""
    pairs = zip(answers, QUESTIONS, strict=True)
    return sum(answer.value == one.answer for answer, one in pairs) / len(QUESTIONS)


def mean_probability(answer: Answer) -> float:
    values = [exp(value) for value in answer.raw["token_logprobs"]]
    return sum(values) / len(values)
