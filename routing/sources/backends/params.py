"""How a backend declares its parameters: each says once what it is called, what it may be, and how a form
asks for it.

Parameters that are equal, whatever their bounds and defaults, share one field of the form of a source.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from annotation.errors import InputError
from annotation.outside.net.urls import check_url
from routing.sources.source_context import TaskSpec

CODE = {"spellcheck": "false", "class": "code"}
Words = Any
"""Text for people, mostly translated when it is shown."""


@dataclass(frozen=True)
class Part:
    """A part of the form that can be folded away. It is open from the start where `unfolded`, where one of
    its fields is set, and where the form's field `opened_by` was refused."""

    title: Words
    hint: Words = ""
    unfolded: bool = False
    opened_by: str = ""


@dataclass(frozen=True)
class Param(ABC):
    """One parameter of a backend.

    Attributes
    ----------
    default
        What the backend gets where nothing is given.
    in_form
        Whether pages ask for it; one that they do not ask for is set through the API or a command.
    part, row
        Where in the form it stands; fields that follow each other with the same `row` stand side by side.
    form_name
        Name of the form's field, where that is not the name of the parameter.
    """

    name: str
    label: Words = ""
    help: Words = ""
    required: bool = field(default=False, kw_only=True, compare=False)
    default: Any = field(default=None, kw_only=True, compare=False)
    in_form: bool = field(default=True, kw_only=True, compare=False)
    part: Part | None = field(default=None, kw_only=True)
    row: str = field(default="", kw_only=True)
    form_name: str = field(default="", kw_only=True)

    def value(self, given: Any) -> Any:
        """What the backend gets. Raises InputError naming the parameter."""
        if given is None or given == "":
            if self.required:
                raise self.refused(_("This is needed."))
            return self.default
        return self.read(given)

    def check_kind(self, given: Any) -> None:
        """The same, whatever this installation may reach: for what another one stored."""
        self.value(given)

    def read(self, given: Any) -> Any:
        """The value of what is given, which is neither None nor empty."""
        return given

    def refused(self, sentence: str) -> InputError:
        return InputError(sentence, where=self.name)

    @abstractmethod
    def form_field(self, task: TaskSpec) -> forms.Field:
        """The field that asks for it."""

    def shown(self) -> dict[str, Any]:
        """None is required in a form: `value` says what is needed, of the chosen backend alone."""
        return {"label": self.label, "help_text": self.help, "required": False}


@dataclass(frozen=True)
class Text(Param):
    """Text, of which a form takes `most` characters.

    Where `offers` gives (value, title) for a project, a form lets choose among these, and `nothing` is what
    it calls none of them; `none_yet` is said where there are none. `fills` is what choosing one puts into the
    empty fields of the same part.
    """

    default: Any = field(default="", kw_only=True, compare=False)
    strip: bool = field(default=False, kw_only=True, compare=False)
    most: int = field(default=200, kw_only=True)
    lines: int = field(default=1, kw_only=True)
    offers: Callable[[TaskSpec], Iterable[tuple[str, Words]]] | None = field(default=None, kw_only=True)
    nothing: Words = field(default="", kw_only=True)
    none_yet: Words = field(default="", kw_only=True)
    fills: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, kw_only=True, hash=False)

    def value(self, given: Any) -> str:
        text = given or ""
        if not isinstance(text, str):
            raise self.refused(_("This must be text."))
        if self.required and not text.strip():
            raise self.refused(_("This is needed."))
        return (text.strip() if self.strip else text) or self.default

    def form_field(self, task: TaskSpec) -> forms.Field:
        if self.offers is not None:
            choices = [("", self.nothing), *self.offers(task)]
            return forms.ChoiceField(**self.shown(), choices=choices)
        widget = _line() if self.lines == 1 else forms.Textarea({"rows": self.lines, **CODE})
        return forms.CharField(**self.shown(), max_length=self.most, widget=widget)


@dataclass(frozen=True)
class Address(Text):
    """An http(s) address of a server. One in this server's own network is refused, and a stored key is sent
    to no other than it was entered for.
    """

    strip: bool = field(default=True, kw_only=True, compare=False)
    most: int = field(default=500, kw_only=True)

    def value(self, given: Any) -> str:
        text = super().value(given)
        return check_url(text, where=self.name) if text else text

    def check_kind(self, given: Any) -> None:
        super().value(given)


@dataclass(frozen=True)
class Column(Text):
    """The name of a column of the imported data."""

    offers: Callable[[TaskSpec], Iterable[tuple[str, Words]]] | None = field(
        default=lambda task: ((name, name) for name in task.columns), kw_only=True
    )


@dataclass(frozen=True)
class Number(Param):
    """A number from `low` to `high`."""

    low: float = field(default=-math.inf, kw_only=True, compare=False)
    high: float = field(default=math.inf, kw_only=True, compare=False)

    def read(self, given: Any) -> float:
        try:
            found = math.nan if isinstance(given, bool) else float(given)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if not (math.isfinite(found) and self.low <= found <= self.high):
            raise self.refused(
                _("This must be a number from %(low)s to %(high)s.")
                % {"low": f"{self.low:g}", "high": f"{self.high:g}"}
            )
        return found

    def form_field(self, task: TaskSpec) -> forms.Field:
        return forms.FloatField(**self.shown(), widget=_line("decimal"))


@dataclass(frozen=True)
class Whole(Number):
    """A whole number from `low` to `high`."""

    def read(self, given: Any) -> int:
        found = super().read(given)
        if found != int(found):
            raise self.refused(
                _("This must be a whole number from %(low)s to %(high)s.")
                % {"low": f"{self.low:,}", "high": f"{self.high:,}"}
            )
        return int(found)

    def form_field(self, task: TaskSpec) -> forms.Field:
        return forms.IntegerField(**self.shown(), widget=_line("numeric"))


@dataclass(frozen=True)
class Flag(Param):
    """True or False, as JSON or as a form gives it."""

    default: Any = field(default=False, kw_only=True, compare=False)

    def read(self, given: Any) -> bool:
        known = {True: ("true", "on", "1", "yes"), False: ("false", "off", "0", "no")}
        for value, words in known.items():
            if str(given).lower() in words:
                return value
        raise self.refused(_("This must be true or false."))

    def form_field(self, task: TaskSpec) -> forms.Field:
        return forms.BooleanField(**self.shown(), initial=self.default)


@dataclass(frozen=True)
class Choice(Param):
    """One of `choices`, (value, title) each; the first where nothing is given."""

    choices: Sequence[tuple[str, Words]] = field(default=(), kw_only=True)

    def value(self, given: Any) -> str:
        known = [value for value, _title in self.choices]
        value = given or known[0]
        if value not in known:
            raise self.refused(_("This must be one of %(names)s.") % {"names": ", ".join(known)})
        return str(value)

    def form_field(self, task: TaskSpec) -> forms.Field:
        first, *others = self.choices
        return forms.ChoiceField(**self.shown(), choices=[("", first[1]), *others])


@dataclass(frozen=True)
class Json(Param):
    """A JSON object, given as such or as text."""

    def read(self, given: Any) -> dict[str, Any]:
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                given = None
        if not isinstance(given, dict):
            raise self.refused(_('This must be a JSON object such as {"stop": ["\\n"]}.'))
        return given

    def form_field(self, task: TaskSpec) -> forms.Field:
        return _JsonField(**self.shown(), widget=forms.Textarea({"rows": 3, **CODE}))


@dataclass(frozen=True)
class Secret(Param):
    """What is stored encrypted beside the parameters, never among them, and is never shown again."""

    most: int = field(default=4_000, kw_only=True)

    def form_field(self, task: TaskSpec) -> forms.Field:
        widget = forms.PasswordInput({"autocomplete": "new-password"})
        return forms.CharField(**self.shown(), max_length=self.most, widget=widget)


def read_values(declared: Sequence[Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each declared parameter by its name, its default where nothing is given.

    Raises InputError that names the first one that cannot be used, and where `given` has something that is
    not declared: a typing error, most likely.
    """
    params = {param.name: param for param in declared if not isinstance(param, Secret)}
    if unknown := sorted(set(given) - set(params)):
        raise InputError(
            _("This is no parameter of the backend; it knows %(names)s.") % {"names": ", ".join(params)},
            where=unknown[0],
        )
    return {name: param.value(given.get(name)) for name, param in params.items()}


class _JsonField(forms.JSONField):
    """JSON as it was typed, and nothing, not "null", where nothing is set."""

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False)


def _line(mode: str = "") -> forms.TextInput:
    attributes = {"inputmode": mode} if mode else {"spellcheck": "false"}
    return forms.TextInput({"autocomplete": "off", **attributes})


# --- Params of every backend that asks a server ---

SPEED = Part(gettext_lazy("Speed, limits and the rest"))

URL = Address(
    "url",
    gettext_lazy("Address of the server"),
    gettext_lazy(
        "For example https://api.openai.com/v1; of a Label Studio ML backend http://ml.example.org:9090."
    ),
    required=True,
)
KEY = Secret(
    "api_key",
    gettext_lazy("Key for the server"),
    gettext_lazy("Stored encrypted, sent to this server only, and never shown again."),
)
CONCURRENCY = Whole(
    "concurrency",
    gettext_lazy("Calls at a time"),
    gettext_lazy("Empty: what suits the kind of source."),
    low=1,
    part=SPEED,
)
BATCH_SIZE = Whole(
    "batch_size",
    gettext_lazy("Items in one request or file"),
    gettext_lazy("Empty: 16 in a request, 5,000 in a file."),
    low=1,
    part=SPEED,
)
CONNECT_TIMEOUT = Number(
    "connect_timeout",
    gettext_lazy("Seconds to connect"),
    gettext_lazy("Empty: 5."),
    low=0.1,
    default=5.0,
    part=SPEED,
    row="times",
)
READ_TIMEOUT = Number(
    "read_timeout",
    gettext_lazy("Seconds without a sign of life"),
    gettext_lazy("Empty: what suits the kind of source."),
    part=SPEED,
    row="times",
)
TOTAL_TIMEOUT = Number(
    "total_timeout",
    gettext_lazy("Seconds for an answer in all"),
    gettext_lazy("Its repetitions included. Empty: what suits the kind of source."),
    part=SPEED,
    row="times",
)
