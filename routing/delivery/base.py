"""What a delivery holds, whatever its format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any, ClassVar, Protocol

from annotation.values import Value


@dataclass(frozen=True)
class Row:
    """What is known about one item, in the order of the columns. None where there is nothing to say.

    Attributes
    ----------
    label, label_name
        The label in its stored form (annotation.values): the key of the choice, a list of keys, or text.
        Of choices also the name as it is now, or the list of names.
    source
        Name of the model that gave the label, or "person".
    annotator
        Who gave it; of several people all who answered, with commas between them.
    settled_by
        Where several people answered: what made one label of their answers, "majority", "adjudicated" (a
        reviewer) or "dawid_skene".
    uncertainty : float
        Score of the first source, in [0, 1].
    p_i : str
        Probability with which people were to be asked about an item of the draw, as a decimal; None outside
        the draw.
    asked : bool
        Whether they were.
    run, certificate_id
        The run that the label comes from, and the SHA-256 of the certificate that covers the item.
    reason
        Why there is no label.
    """

    external_id: str
    label: Value | None = None
    label_name: Value | None = None
    source: str | None = None
    annotator: str | None = None
    settled_by: str | None = None
    uncertainty: float | None = None
    p_i: str | None = None
    asked: bool = False
    run: int | None = None
    certificate_id: str | None = None
    reason: str | None = None


ADDED = tuple(field.name for field in fields(Row))


@dataclass(frozen=True)
class Page:
    """Consecutive items, column by column: a million rows would spend their time being made objects.

    Attributes
    ----------
    originals
        The imported columns of each item.
    columns
        Those of `Row`, by name (all of ADDED): lists with one entry per item.
    """

    originals: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.originals)

    def rows(self) -> Iterator[Row]:
        return map(Row, *(self.columns[name] for name in ADDED))

    @classmethod
    def of(cls, rows: Sequence[tuple[Mapping[str, Any], Row]]) -> "Page":
        """The page of these rows."""
        return cls(
            [original for original, _ in rows],
            {name: [getattr(row, name) for _, row in rows] for name in ADDED},
        )


def added_names(columns: Sequence[str]) -> dict[str, str]:
    """Names of our columns beside the original ones: a name that is taken gets the prefix hypac_, again if
    need be.
    """
    taken, names = set(columns), {}
    for name in ADDED:
        free = name
        while free in taken:
            free = f"hypac_{free}"
        names[name] = free
        taken.add(free)
    return names


class Writer(Protocol):
    """Writes one file, page by page, in constant memory; the same pages give the same bytes."""

    file_name: ClassVar[str]
    media_type: ClassVar[str]

    def __init__(self, out: IO[bytes], columns: Sequence[str], *, several: bool = False) -> None:
        """`columns` are the original ones of all items, in order; `several`: a label is a list of choices."""

    def write(self, page: Page) -> None: ...

    def close(self) -> None:
        """Write what is still to be written; `out` stays open."""
