"""A backend that asks a scripted server, and items to ask it about."""

from collections.abc import Iterator
from typing import Any

from annotation.models import Item
from routing.backends import Answer, Backend, Prompt, SourceContext, TaskSpec, open_backend
from testbed.scripted_server import ScriptedServer

ANIMALS = TaskSpec("single_choice", (("cat", "Cat"), ("dog", "Dog")))
NUMBERS = TaskSpec("number")
PLAIN = Prompt("{{ text }}")
KEY = "sk-secret-0123456789"


def items(count: int, start: int = 0) -> list[Item]:
    return [Item(pk=n + 1, external_id=str(n), text=f"item {n}") for n in range(start, start + count)]


def open_api(
    server: ScriptedServer | str,
    *,
    task: TaskSpec = ANIMALS,
    served: dict[str, Any] | None = None,
    prompt: Prompt | None = PLAIN,
    api_key: str = KEY,
    **params: Any,
) -> Backend:
    url = server if isinstance(server, str) else server.url
    context = SourceContext(task, prompt, api_key, served or {})
    return open_backend("openai_api", {"url": url, "model": "scripted", "concurrency": 4, **params}, context)


def answers(backend: Backend, count: int = 1) -> list[Answer]:
    """The answers for so many items, in the order of the items."""
    asked = items(count)
    found = {item.pk: answer for group in backend.predict(asked) for item, answer in group}
    assert sorted(found) == [item.pk for item in asked]
    return [found[item.pk] for item in asked]


def collected(groups: Iterator[Any]) -> tuple[list[tuple[Item, Answer]], Exception | None]:
    """What was given before it ended, and the exception with which it did."""
    given: list[tuple[Item, Answer]] = []
    try:
        for group in groups:
            given += group
    except Exception as error:
        return given, error
    return given, None
