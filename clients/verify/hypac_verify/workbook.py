"""The rows of a workbook as deliveries write it: one sheet of texts, numbers and truth values."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from hypac_verify.reading import LONGEST_LINE, MOST_ROWS, UnusableError, opened

SHEET = "xl/worksheets/sheet1.xml"
BLOCK = 2**18
PLACE = re.compile("([A-Z]{1,3})[0-9]{1,7}")
ESCAPED = re.compile("_x([0-9a-fA-F]{4})_")
"""A character that XML cannot hold, and what would be read as one."""
MOST_COLUMNS = 16_384
TRUTH = {"0": "false", "1": "true"}


def cells_of(path: Path) -> Iterator[list[str]]:
    """The cells of each row as texts, "" where there is none. Raises UnusableError."""
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive, archive.open(SHEET) as sheet:
            reader = _Sheet(path.name)
            while block := sheet.read(BLOCK):
                yield from reader.rows(block)
            yield from reader.rows(b"", last=True)
    except (
        zipfile.BadZipFile, zlib.error, KeyError, OSError, EOFError, NotImplementedError, RuntimeError,
    ) as error:  # fmt: skip
        raise UnusableError(f"{path.name}: no workbook of a delivery ({str(error)[:200]})") from None
    except expat.ExpatError as error:
        raise UnusableError(f"{path.name}: its sheet is no XML ({error})") from None


class _Sheet:
    """Reads a sheet piece by piece; of a row that is read no more than LONGEST_LINE characters are held."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0
        self._done: list[list[str]] = []
        self._row: dict[int, str] = {}
        self._text: list[str] | None = None
        self._size = self._place = 0
        self._kind = ""
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse  # entities could grow without an end
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def rows(self, block: bytes, *, last: bool = False) -> Iterator[list[str]]:
        """Those that end in this block."""
        self._parser.Parse(block, last)
        done, self._done = self._done, []
        yield from done

    def _refuse(self, *_what: object) -> None:
        raise UnusableError(f"{self._name}: its sheet declares a document type, which no delivery does")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._row, self._size = {}, 0
            self._number += 1
            if self._number > MOST_ROWS:
                raise UnusableError(f"{self._name}: more than {MOST_ROWS:,} rows")
        elif tag == "c":
            self._place, self._kind = self._column(attributes.get("r", "")), attributes.get("t", "n")
        elif tag == "f":
            raise UnusableError(f"{self._name}, row {self._number}: a formula, which no delivery has")
        elif tag in ("t", "v"):
            self._text = []

    def _column(self, reference: str) -> int:
        found = PLACE.fullmatch(reference)
        place = 0
        for letter in found[1] if found else "":
            place = place * 26 + ord(letter) - ord("A") + 1
        if not 1 <= place <= MOST_COLUMNS or place - 1 in self._row:
            raise UnusableError(f"{self._name}, row {self._number}: a cell without a place of its own")
        return place - 1

    def _end(self, tag: str) -> None:
        if tag in ("t", "v") and self._text is not None:
            text, self._text = "".join(self._text), None
            if (tag, self._kind) not in (("t", "inlineStr"), ("v", "n"), ("v", "b")):
                raise UnusableError(f"{self._name}, row {self._number}: a cell of another kind")
            self._row[self._place] = TRUTH.get(text, text) if self._kind == "b" else _plain(text)
        elif tag == "row":
            width = max(self._row, default=-1) + 1
            self._done.append([self._row.get(place, "") for place in range(width)])

    def _characters(self, text: str) -> None:
        if self._text is None:
            return
        self._size += len(text)
        if self._size > LONGEST_LINE:
            raise UnusableError(f"{self._name}, row {self._number}: too long")
        self._text.append(text)


def _plain(text: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
