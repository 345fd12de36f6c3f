"""What is delivered of one item and of a page of items, whatever the format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import compress
from typing import Any

from annotation.common.value_reader import Value
from annotation.task_types import DEFAULT, TASK_TYPES, TaskType


@dataclass(frozen=True)
class Row:
    """What is known about one item, in the order of the columns. None where there is nothing to say.

    Attributes
    ----------
    label, label_name
        The label in its stored form (annotation.common.value_reader): the key of the choice, a list of keys,
        or text. Of choices also the name as it is now, or the list of names; of a label that was replaced
        that of the one in its place.
    source
        Name of the model that gave the label, or "person", or "expert".
    annotator
        Who gave it; of several people all who answered, with commas between them.
    settled_by
        Where several people answered: what made one label of their answers, "majority", "adjudicated" (a
        reviewer) or "dawid_skene". "imported" where the label came with the item, and nobody here
        gave, corrected or decided it.
    uncertainty : float
        Score of the first source, in [0, 1].
    p_i : str
        Probability with which people were to be asked about an item of the draw, as a decimal; None outside
        the draw.
    asked : bool
        Whether they were; None in a run without a model, which has no draw.
    run, certificate_id
        The run that the label comes from, and the SHA-256 of the certificate that covers the item.
    reason
        Why there is no label.
    expert_saw
        Where an expert is right: why the item came before her, a name of `ExpertRequest.Why`; None where it
        did not.
    taken_in
        Of an item that came after the pool was frozen: which intake of the run took it in; None for its pool.
    audited
        Of such an item whether its label is one that people gave for the audit of later items: a model labels
        it by the policy. Not before they have: until then nobody may know which items these are.
    suggestion
        Of a label that people gave in the run: whether its annotator was shown what a model answered, and
        gave the same, "none", "taken" or "other".
    """

    external_id: str
    label: Value | None = None
    label_name: Value | None = None
    source: str | None = None
    annotator: str | None = None
    settled_by: str | None = None
    uncertainty: float | None = None
    p_i: str | None = None
    asked: bool | None = False
    run: int | None = None
    certificate_id: str | None = None
    reason: str | None = None
    expert_saw: str | None = None
    taken_in: int | None = None
    audited: bool | None = None
    suggestion: str | None = None


ADDED = tuple(field.name for field in fields(Row))
OF_SOME_RUNS = {"taken_in": "later_size", "audited": "later_size", "suggestion": "suggestions"}
"""Of these the ones that are written for some runs alone, by the field of `Run` that says for which."""


@dataclass(frozen=True)
class Page:
    """Consecutive items, column by column: a million rows would spend their time being made objects.

    Attributes
    ----------
    originals
        The imported columns of each item, all as text.
    typed
        Of each item those of its columns that were no text when they came, with their values as JSON has
        them; None for an item without any, and empty where no item of the page has one.
    columns
        Those of `Row`, by name (all of ADDED): lists with one entry per item.
    texts
        What people see of each item, "" of an image; empty unless a format of the delivery `reads_texts`.
    keys
        Of the items in the database.
    erased
        Of each item whether its content was erased; empty where none of the page was.
    looked_at
        How many items of the project it stands for; more than it has where the delivery is a part of them.
    """

    originals: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Sequence[Any]]
    typed: Sequence[Mapping[str, Any] | None] = ()
    texts: Sequence[str] = ()
    keys: Sequence[int] = ()
    looked_at: int = 0
    erased: Sequence[bool] = ()

    @cached_property
    def values(self) -> Sequence[Mapping[str, Any]]:
        """The imported columns of each item, each value as it came: for formats that know more than text."""
        if not self.typed:
            return self.originals
        pairs = zip(self.originals, self.typed, strict=True)
        return [{**original, **typed} if typed else original for original, typed in pairs]

    def __len__(self) -> int:
        return len(self.originals)

    def part(self, start: int, end: int) -> "Page":
        """The items from `start` to before `end`."""
        part = slice(start, end)
        columns = {name: values[part] for name, values in self.columns.items()}
        return Page(
            self.originals[part], columns, self.typed[part], self.texts[part], erased=self.erased[part]
        )

    def only(self, keep: Sequence[bool]) -> "Page":
        """Of its items those that are to be kept."""
        return Page(
            list(compress(self.originals, keep)),
            {name: list(compress(values, keep)) for name, values in self.columns.items()},
            list(compress(self.typed, keep)),
            list(compress(self.texts, keep)),
            list(compress(self.keys, keep)),
            self.looked_at,
            list(compress(self.erased, keep)),
        )

    def rows(self) -> Iterator[Row]:
        return map(Row, *(self.columns[name] for name in ADDED))

    @classmethod
    def of(cls, rows: Sequence[tuple[Mapping[str, Any], Row]], texts: Sequence[str] = ()) -> "Page":
        """The page of these rows."""
        return cls(
            [original for original, _ in rows],
            {name: [getattr(row, name) for _, row in rows] for name in ADDED},
            texts=texts,
        )


@dataclass(frozen=True)
class DeliveryInfo:
    """What a writer may know before the first row.

    Attributes
    ----------
    columns
        The original ones of all items, in order.
    choices
        Key -> name of each choice as it is now, in their order, and behind them of those that were split, as
        nobody may have chosen anew; empty where labels are no choices.
    sources
        Names of the run's models in the order in which they are asked; `uncertainty` is the first one's.
    name
        Of project and run, made of letters, digits and hyphens: "animals-run1".
    kinds
        Of each column what all its cells are (routing.labels.kinds): text, where it is not named.
    label_config
        A configuration for Label Studio, in which these items and labels are shown.
    added
        Which of our columns there are, of ADDED.
    replaced
        Keys of choices that were merged or split: stored labels may have them.
    """

    columns: Sequence[str]
    task_type: str = DEFAULT
    choices: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[str] = ()
    name: str = "labels"
    kinds: Mapping[str, str] = field(default_factory=dict)
    label_config: str = ""
    added: Sequence[str] = ADDED
    replaced: frozenset[str] = frozenset()

    @property
    def kind(self) -> TaskType:
        return TASK_TYPES[self.task_type]

    def label_now(self, label: Value, name: Value | None) -> Value:
        """The label with the keys of today's choices, for formats that number or list these."""
        if not self.replaced.intersection(label if isinstance(label, list) else [label]):
            return label
        if isinstance(name, list):
            return sorted({self._keys.get(one, one) for one in name})
        return label if name is None else self._keys.get(name, label)

    @cached_property
    def _keys(self) -> dict[str, str]:
        return {name: key for key, name in reversed(list(self.choices.items()))}


def added_names(columns: Sequence[str], added: Sequence[str] = ADDED) -> dict[str, str]:
    """Names of our columns beside the original ones: a name that is taken gets the prefix hypac_, again if
    need be.
    """
    taken, names = set(columns), {}
    for name in added:
        free = name
        while free in taken:
            free = f"hypac_{free}"
        names[name] = free
        taken.add(free)
    return names


def free_names(columns: Iterable[str], reserved: Iterable[str]) -> dict[str, str]:
    """Names of the original columns in a format that has its own use for the `reserved` ones."""
    names: dict[str, str] = {}
    taken = {*columns, *reserved}
    for column in columns:
        free = column
        while free in reserved or (free != column and free in taken):
            free = f"original_{free}"
        names[column] = free
        taken.add(free)
    return names
