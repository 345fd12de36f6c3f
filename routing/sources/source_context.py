"""What prompts and backends know of a source beside its params."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotation.task_types import DEFAULT, TASK_TYPES, TaskType


@dataclass(frozen=True)
class TaskSpec:
    """What is to be answered for each item, as the project says it.

    `choices` are (key, name) in their order, empty where the answer is no choice; `columns` the names of the
    imported columns.
    """

    task_type: str
    choices: tuple[tuple[str, str], ...] = ()
    guidelines: str = ""
    columns: tuple[str, ...] = ()

    @property
    def kind(self) -> TaskType:
        return TASK_TYPES[self.task_type]


@dataclass(frozen=True)
class Example:
    """A solved example of a prompt: the fields of an item, and the answer that is right."""

    fields: Mapping[str, str]
    answer: str


@dataclass(frozen=True)
class Prompt:
    """How a language model is asked: a system message ("" for none), a template of the user message with
    placeholders, and solved examples. `number` is that of the stored version, 0 where none is stored.
    """

    template: str
    system: str = ""
    examples: tuple[Example, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class SourceContext:
    """`prompt` is None for a source that has none stored: the default of its task type is then used.
    `served` is what `Backend.check` returned when the source was saved, `source` the key of the source, None
    before it is stored.
    """

    task: TaskSpec = field(default_factory=lambda: TaskSpec(DEFAULT))
    prompt: Prompt | None = None
    api_key: str = field(default="", repr=False)
    served: Mapping[str, Any] = field(default_factory=dict)
    source: int | None = None
