"""What a format of deliveries is, and the files that it writes."""

from collections.abc import Callable
from typing import IO, Any, ClassVar, NamedTuple, Protocol

from routing.labels.page import DeliveryInfo, Page


class Limit(NamedTuple):
    """Something that a format cannot carry as it is: `kind` for programs, `words` (lazy) for people.

    `counted`: the writer says how many cells of a delivery it concerns; otherwise it holds for all of them.
    """

    kind: str
    words: Any
    counted: bool = False


class File(NamedTuple):
    """A file of a delivery. `name` may lie in a folder: "dataset/state.json"."""

    name: str
    content: IO[bytes]
    media_type: str


class Files:
    """The files of a delivery while they are written. `make` makes a new, empty one, of which nothing is left
    where the process dies.
    """

    def __init__(self, make: Callable[[], IO[bytes]]) -> None:
        self._make = make
        self.made: list[File] = []

    def open(self, name: str, media_type: str) -> IO[bytes]:
        """A file that is written from its start; it stays open."""
        return self.add(name, self.unnamed(), media_type)

    def unnamed(self) -> IO[bytes]:
        """One whose name is known only when it is written: `add` gives it."""
        return self._make()

    def add(self, name: str, content: IO[bytes], media_type: str) -> IO[bytes]:
        assert name not in {file.name for file in self.made}, name  # noqa: S101 - a writer's mistake
        self.made.append(File(name, content, media_type))
        return content


class Writer(Protocol):
    """Writes the rows in one format, page by page, in constant memory; the same rows give the same bytes,
    however they come in pages.

    Attributes
    ----------
    file_name
        Of the one file, or of the folder with a slash at its end: what people choose.
    summary
        What people are told of it, in a lazy sentence.
    limits
        What the format cannot carry. A cell that it cannot hold is refused (InputError) or counted, never
        cut.
    reads_texts, reads_kinds
        Whether it needs `Page.texts` and `DeliveryInfo.kinds`, which cost time.
    counts
        Once closed: of each counted limit the number of cells.
    headers
        Once closed: files that are the data card with something before it, by their names.
    """

    file_name: ClassVar[str]
    summary: ClassVar[Any]
    media_type: ClassVar[str]
    limits: ClassVar[tuple[Limit, ...]]
    reads_texts: ClassVar[bool]
    reads_kinds: ClassVar[bool]
    counts: dict[str, int]
    headers: dict[str, str]

    def __init__(self, files: Files, info: DeliveryInfo) -> None: ...

    def write(self, page: Page) -> None: ...

    def close(self) -> None:
        """Write what is still to be written; the files stay open."""


class RowWriter:
    """What most writers have in common."""

    limits: ClassVar[tuple[Limit, ...]] = ()
    reads_texts: ClassVar[bool] = False
    reads_kinds: ClassVar[bool] = False

    def __init__(self) -> None:
        self.counts: dict[str, int] = {limit.kind: 0 for limit in self.limits if limit.counted}
        self.headers: dict[str, str] = {}
