"""What a task type is: one kind of value, with all that the rest of the program asks about it."""

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _

# --- Why a value cannot be used -----------------------------------------------------------------------------


class ValueReason(str):
    """In words; `code` names the kind of reason, and `quotes` is what was given, where they repeat it."""

    __slots__ = ("code", "quotes")

    code: str
    quotes: str

    def __new__(cls, words: str, code: str = "", quotes: str = "") -> "ValueReason":
        reason = super().__new__(cls, words)
        reason.code, reason.quotes = code, quotes
        return reason


OF_FORM = "form"
"""Code of a reason that repeats nothing of what was answered."""
MISSING = ValueReason("no answer", "no_answer")


def unknown_label(shown: str, given: str) -> ValueReason:
    return ValueReason(_("unknown label %(shown)s") % {"shown": shown}, "unknown_label", given)


# --- The choices of a project, as what people, models and columns write may name them -----------------------

Choices = tuple[tuple[str, str], ...]
"""(key, name) in their order."""

SEPARATORS = re.compile(r"[;,|\n]")
# Repetitions and white space in a list of labels, which may be there beside every spelling of each.
SPARE_CHARACTERS, SPARE_LABELS = 1_000, 20
# Of a character of JSON outside ASCII, and the marks around an entry: "\\u00e4", ...
_ESCAPED, _AROUND = 6, 4


@dataclass(frozen=True)
class Labels:
    """`keys` has every spelling of a choice with its key, and is empty where there are no choices."""

    keys: Mapping[str, str] = field(default_factory=dict)

    def key(self, text: str) -> str | None:
        return self.keys.get(text) or self.keys.get(text.strip())

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """Of the labels with separators in them: up to each of these, included."""
        return frozenset(
            spelling[: match.end()].lstrip()
            for spelling in self.keys
            for match in SEPARATORS.finditer(spelling)
        )

    @cached_property
    def longest(self) -> int:
        """Characters of a list of all spellings, however it is written."""
        return SPARE_CHARACTERS + sum(_ESCAPED * len(spelling) + _AROUND for spelling in self.keys)

    @property
    def most_labels(self) -> int:
        return SPARE_LABELS + 2 * len(self.keys)


# --- Task types ---------------------------------------------------------------------------------------------

Value = str | list[str]
Read = tuple[Value | None, str]
Lazy = str | Promise

_SHOWN = 60


@dataclass(frozen=True)
class Reading:
    """What was read from a model's answer: None where it cannot be used, and `reason` then says why in a few
    words.
    """

    value: Value | None
    reason: str = ""


class TaskType:
    """A task type has no state: one object of each is in TASK_TYPES.

    A value is canonical JSON, a text or a sorted list of texts: two answers that mean the same are stored
    alike. What is set here holds for a type whose values are texts; each type says what it has otherwise.
    """

    # --- What it is -----------------------------------------------------------------------------------------

    name: ClassVar[str]
    """Stored with each project, so never changed."""
    title: ClassVar[Lazy]
    help: ClassVar[Lazy]
    """A sentence for whoever makes a project."""
    has_choices: ClassVar[bool] = False
    """Whether a value is made of the project's choices, by their keys."""
    several: ClassVar[bool] = False
    """Whether a value is a list; the empty one is an answer, "none of them"."""
    labels_within: ClassVar[bool] = False
    """Whether values are texts in which the project's choices stand, by their keys: in JSON, as "label" of
    each object.
    """
    none_within: ClassVar[bool] = False
    """Whether an empty list is an answer although a value is a text."""
    any_json: ClassVar[bool] = False
    """Whether JSON of any form is an answer; its value is a text."""
    on_images: ClassVar[bool] = False
    """Whether it can be asked about images alone; items may be the addresses of some elsewhere."""
    max_characters: ClassVar[int | None] = None
    """The most that a value may have; None where choices bound it."""

    # --- What is right --------------------------------------------------------------------------------------

    losses: ClassVar[tuple[str, ...]] = ()
    """Names of the losses that suit its values, the default first; a loss can name further types itself."""
    losses_of_numbers: ClassVar[tuple[str, ...]] = ()
    """Those that suit them, too, in a project whose choices all have a number for a key."""
    measure: ClassVar[Literal["nominal", "interval"]] = "nominal"
    """What agreement means: equal or not, or also how far apart, by `position`."""
    equal_means: ClassVar[Lazy] = ""
    """A sentence for the page on agreement: when two answers count as equal."""
    compared_by_loss: ClassVar[bool] = False
    """Whether two answers are the same where the project's loss between them is 0: no two people give quite
    the same value.
    """

    # --- How people answer ----------------------------------------------------------------------------------

    template: ClassVar[str] = "annotation/task_types/text.html"
    """The controls of the form, on the page on which people label and on that of reviewers. It gets
    `task_type`, `choices`, `given` (the value that stands there at first) and `reviewing`, which is true
    where a reviewer decides. Its fields are called `value`; the pages have the buttons.
    """
    question: ClassVar[Lazy] = ""
    hint: ClassVar[Lazy] = ""
    rows: ClassVar[int] = 1
    """Lines of the field; in one with more of them Enter alone begins a new line."""
    monospaced: ClassVar[bool] = False
    digits: ClassVar[bool] = False
    """Whether a telephone shows its keys for numbers."""
    surely_read: ClassVar[str] = ""
    """What of a typed answer the server reads for sure, as a regular expression for browsers; an answer of
    another form waits for the server's word before the next item is shown. Empty: all answers.
    """

    # --- How models are asked -------------------------------------------------------------------------------

    prompt_question: ClassVar[str]
    """The question in the default prompt. With `prompt_ending` these are texts for models, in English."""
    prompt_ending: ClassVar[str]
    """How the answer is to be written. {label} and {labels} stand for what names one choice, or several."""
    schema_name: ClassVar[str] = "answer"
    """The property of a structured answer that holds the value."""

    # --- Label Studio ---------------------------------------------------------------------------------------

    controls: ClassVar[tuple[str, ...]] = ("TextArea",)
    """The control tags that give such values; the first is the one that is written."""
    control_attributes: ClassVar[Mapping[str, str]] = {"rows": "1", "maxSubmissions": "1", "editable": "true"}

    @property
    def has_labels(self) -> bool:
        """Whether a project has choices, which its values are or have within them."""
        return self.has_choices or self.labels_within

    @property
    def empty_is_answer(self) -> bool:
        """Whether the empty list is an answer."""
        return self.several or self.none_within

    @property
    def one_choice(self) -> bool:
        """Whether a value is exactly one choice: pressing it is the answer, and its first token tells it."""
        return self.has_choices and not self.several

    def read(self, raw: Any, labels: Labels) -> Read:
        """The canonical value of what a person, a model or a column gave and "", or None and the reason in a
        few words. `raw` is text, a number or a list; anything may come, nothing raises.
        """
        if raw is None:
            return None, MISSING
        if (text := text_of(raw)) is None:
            return None, f"a {kind_of(raw)} in place of one answer"
        if not text.strip():
            return None, MISSING
        return self.read_text(text, labels)

    has_size: ClassVar[bool] = False
    """Whether a value belongs to an image of one size."""

    def size_of(self, value: object) -> tuple[int, int] | None:
        """Height and width in pixels of the image that a stored value belongs to; None where it fits any."""
        return None

    def read_text(self, text: str, labels: Labels) -> Read:
        """`read` for a text with something in it."""
        raise NotImplementedError

    def parse(self, text: str, choices: Choices) -> Reading:
        """The value in what a model wrote, without its thinking and not empty; nothing raises. `choices` are
        (key, name) in their order.
        """
        raise NotImplementedError

    def from_form(self, data: QueryDict) -> Any:
        """What a person typed or ticked, as it was sent: `read` makes a value of it."""
        return data.get("value", "")

    def form_problem(self, data: QueryDict) -> str:
        """Why the form contradicts itself, in a sentence; "" where it does not."""
        return ""

    def typed_problem(self, raw: Any) -> str:
        """Why people may not write the answer in this way although it can be read; "" where they may."""
        return ""

    def refusal(self, raw: Any, reason: str) -> str:
        """In a sentence, for people: their answer cannot be read, for `reason`."""
        return _("The answer cannot be stored: %(reason)s.") % {"reason": reason}

    def schema(self, choices: Choices) -> dict[str, Any]:
        """The JSON schema of one answer of a model."""
        return {"type": "string"}

    def from_text(self, text: str) -> Value:
        """The value behind what `as_text` made of it."""
        return text

    def comparable(self, value: Value) -> Hashable:
        """What of an answer counts when two are compared for agreement."""
        return value if isinstance(value, str) else tuple(value)

    def position(self, value: str) -> float:
        """The value's place on a line, where `measure` is an interval."""
        raise NotImplementedError

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether a control tag of Label Studio asks for such a value: one type at most says so."""
        return False


def as_text(value: Value) -> str:
    """A canonical value as one text, which losses and files take: of several choices a JSON list."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(raw: Any) -> str | None:
    """What was given as text; None where it is none."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool):
        return json.dumps(raw)
    if isinstance(raw, float | Decimal):
        return str(raw) if Decimal(raw).is_finite() else None
    # Python refuses to write out whole numbers of thousands of digits.
    return str(raw) if isinstance(raw, int) and abs(raw) < 10**200 else None


def kind_of(raw: Any) -> str:
    return "list" if isinstance(raw, list | tuple) else "value of another kind"


def short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def quoted(raw: Any) -> str:
    """What a person sent, for a message to them."""
    return repr(raw) if len(repr(raw)) <= 100 else repr(raw)[:100] + "..."
