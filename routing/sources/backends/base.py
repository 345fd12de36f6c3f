"""What a backend is: one small class that says what it needs and can do, and answers for a list of items."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import HypacError
from annotation.models import Item
from routing.sources.backends.params import Address, Param, Secret
from routing.sources.source_context import SourceContext

COST = "cost"
"""In `Backend.most_usage`, beside the names of routing.core.costs: the cost itself, where it is known."""

MOST_REASON = 200
"""Characters of a reason that are stored."""


class BackendError(HypacError):
    """A model cannot answer at all; `permanent` is False where it may later. One bad item is no such
    error."""


@dataclass(frozen=True)
class Answer:
    """What a model said about one item.

    `value` is the answer as it was given, a list for several choices; it becomes canonical where it is
    stored. It is None where there is no usable answer, and `reason` then says why. `raw` is what uncertainty
    scores are computed from; of a language model also its "text" and, kept apart, its "reasoning". `cost` is
    None where the source's way of charging tells.
    """

    value: str | list[str] | None
    reason: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish_reason: str = ""
    # Measurements, and not part of what was answered: from call to answer, ...
    latency_ms: float | None = field(default=None, compare=False)
    # ... and the item's share of the time that the machine was busy: what time on it is charged by.
    busy_ms: float | None = field(default=None, compare=False)
    cost: Decimal | None = None
    served_model: str = ""
    served_revision: str = ""


Answered = tuple[Item, Answer]


class Backend(ABC):
    """One way to run a source, made from the source's params.

    The class declares what pages, services, API and commands have to know of it, so its module imports what
    is heavy only where that is used. The constructor raises InputError, its `where` naming the param, where
    the params cannot be used.

    Attributes
    ----------
    title
        Where the answers come from, as one of the choices of a form.
    note
        What to know before it is chosen.
    params
        Everything that it takes, in the order in which a form asks for it; a `Secret` among them is the key
        of its server.
    told_by
        The params that tell sources apart in a list; all, where none is named.
    prompted
        It is asked with the prompt of the source, which is text: never about images.
    lists_models
        Its server mostly has a list of its models, against which address and name can be checked.
    known_from
        Where its answers are before a run asks: in columns of the imported data, or sent in from outside; ""
        for a model that is asked.
    never_lost
        A worker that dies loses no answer that has to be paid for: whoever asks next gets it.
    in_process
        It holds its model in the worker's own process, which needs a GPU.
    """

    title: ClassVar[Any]
    note: ClassVar[Any] = ""
    params: ClassVar[tuple[Param, ...]] = ()
    told_by: ClassVar[tuple[str, ...]] = ()
    prompted: ClassVar[bool] = False
    lists_models: ClassVar[bool] = False
    known_from: ClassVar[Literal["", "columns", "sent"]] = ""
    never_lost: ClassVar[bool] = False
    in_process: ClassVar[bool] = False

    @classmethod
    def has_key(cls) -> bool:
        """Whether its server may ask for a key."""
        return any(isinstance(param, Secret) for param in cls.params)

    @classmethod
    def addresses(cls) -> tuple[str, ...]:
        """Names of the params that lead to its servers."""
        return tuple(param.name for param in cls.params if isinstance(param, Address))

    @classmethod
    def for_a_try(cls, params: dict[str, Any], context: SourceContext) -> "Backend":
        """What is asked where a source is tried on a few items while somebody waits.

        Raises InputError where there is nothing to ask.
        """
        return cls(params, context)

    @property
    @abstractmethod
    def default_score(self) -> str:
        """Name of the uncertainty score that fits its answers."""

    @property
    @abstractmethod
    def fields(self) -> frozenset[str]:
        """What `Answer.raw` holds that uncertainty scores read; empty where no score can be computed."""

    @property
    @abstractmethod
    def usage(self) -> frozenset[str]:
        """What is known of the use of a call: names of routing.core.costs that a cost function may need."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """The most items that it takes before it has given the answers of earlier ones."""

    @abstractmethod
    def __init__(self, params: dict[str, Any], context: SourceContext) -> None: ...

    def check(self) -> dict[str, Any]:
        """Try out what the params point to, so that a mistake shows before a run rests on it.

        Returns what the server says that it serves (model, revision), to be stored with the source; empty
        where there is nothing to say. Raises InputError, its `where` naming the param. It may take seconds.
        """
        return {}

    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of everything that the answers depend on. Raises BackendError where it cannot be known."""

    def hidden_columns(self) -> frozenset[str]:
        """Columns of the imported data that are model output and must not be seen before the analysis."""
        return frozenset()

    def most_usage(self, item: Item) -> Mapping[str, Decimal]:
        """The most that one item can use of what its cost function charges (names of routing.core.costs);
        without an entry where that is not known. Where what the answer costs is known, COST is that. Money
        for it is set aside before the item is asked for.
        """
        return {}

    @abstractmethod
    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        """Exactly one answer for each of `items`, in groups, in the order in which they come; the same
        whatever other items come along.

        Items are taken one by one, at most `in_flight` before their answers were given. The caller stores a
        group before it asks for the next: until then its items count as in flight. So a process that is
        killed loses no more than `in_flight` calls. Closing the iterator ends it without new calls. An empty
        group says that it waits for long, and may be closed meanwhile.

        Raises BackendError where the model cannot answer at all.
        """


OTHER_NUMBER = failures.register(
    "other_number_of_answers", gettext_noop("The model gave %(count)s answers for %(count_2)s items.")
)


def other_number(answers: int, items: int) -> HypacError:
    """A BackendError: each item has one answer."""
    return OTHER_NUMBER.error(raised_as=BackendError, count=answers, count_2=items)


def predict_all(backend: Backend, items: Sequence[Item]) -> list[Answer]:
    """The answers for `items`, in their order. Raises BackendError where one is missing."""
    found = {id(item): answer for group in backend.predict(items) for item, answer in group}
    if len(found) != len(items):
        raise other_number(len(found), len(items))
    return [found[id(item)] for item in items]


def digest(**parts: Any) -> str:
    """Fingerprint of named JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def shortened(text: str, length: int = MOST_REASON) -> str:
    """`text` with at most so many characters; where some are left out it ends in an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def named(error: object, length: int) -> str:
    """What a library raised, with the name of its kind, in at most so many characters."""
    return f"{type(error).__name__}: {error}"[:length]


def in_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """`items` in lists of at most `size`, taken as they are needed."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
