"""Which format a file has: by its content first, by its name where content cannot tell."""

import csv
import json
import zipfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import PurePosixPath
from typing import IO, Any

from django.utils.translation import gettext_noop

from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.imports.allowance import Deadline
from annotation.imports.encodings import ZIP, as_encoded
from annotation.imports.faults import fault
from annotation.imports.formats.archives import (
    content_of,
    file_in,
    is_about,
    is_archive,
    is_text_item,
    open_archive,
    tables_in,
)
from annotation.imports.formats.base import Importer
from annotation.imports.formats.delimited import SAYS_DELIMITER
from annotation.imports.formats.hugging_face import INFO, STATE, holds_images
from annotation.imports.formats.text import (
    UTF8_BOM,
    UTF16_BOMS,
    head_of,
    is_gzipped,
    longest_row,
    outside_quotes,
    unpacked,
)
from annotation.models import StoredFile

HEAD = 16 * 1024
BINARY_MAGIC = (b"%PDF",)  # what may do without a zero byte at its start
IMAGE_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
NO_TEXTS = (".xlsx", ".xlsb", ".xls", ".ods", ".parquet", ".arrow")
"""Endings of what is never read as plain lines."""
TABLE_NAMES = (".csv", ".tsv", ".tab")
DELIMITERS = {"\t": "tsv", ",": "csv_comma", ";": "csv_semicolon"}
# Of a text that may be a table, so many rows in a hundred have as many cells as its first.
LEAST_REGULAR = 80
BARE = {"id", "data"}
"""Names that say little of who wrote an object."""
# A first line of one column is its name where it is one of these, else the first item.
HEADERS = frozenset({
    "text", "content", "sentence", "review", "question", "prompt", "comment", "body", "document", "message",
    "abstract", "title", "id",
})  # fmt: skip


def detect(stored: StoredFile, importers: Collection[Importer], encoding: str = "") -> str:
    """The name of the one of these that reads it, in this encoding. Raises InputError for what none of them
    reads.
    """
    with open_file(stored) as file:
        timed = as_encoded(file, encoding, Deadline.of_a_look(), stored.original_name)
        return detect_in(timed, stored.original_name, importers)


def detect_in(packed: IO[bytes], where: str, importers: Collection[Importer]) -> str:
    """As `detect`, of an open file. `where` is its name."""
    is_packed = is_gzipped(packed)
    file = unpacked(packed)
    raw = file.read(HEAD)
    head = head_of(file, HEAD)
    if raw.startswith(ZIP) and not is_packed:
        return kind_of(file, where, importers)
    if is_packed and raw.startswith((*ZIP, *(start for one in importers for start in one.begins_with))):
        raise fault(gettext_noop("It is compressed twice. Unpack it first."), where=where)
    text = head.removeprefix(UTF8_BOM).lstrip()
    if not text:
        raise fault(gettext_noop("The file is empty."), where=where)
    if name := next((one.name for one in importers if raw.startswith(one.begins_with)), ""):
        return name
    if where.lower().endswith(".zip"):
        raise fault(gettext_noop("Its name ends in .zip, but this is no zip archive."), where=where)
    if b"\0" in head or head.startswith(BINARY_MAGIC):
        if raw.startswith(IMAGE_MAGIC):
            raise fault(
                gettext_noop("This is a single image. Put the images into a zip archive."), where=where
            )
        raise fault(
            gettext_noop(
                "This is neither text nor a zip archive. What can be read: CSV, TSV, JSON, JSON "
                "Lines, plain lines, Excel, Parquet and zip archives of images, of texts or of a data set."
            ),
            where=where,
        )
    if text.startswith((b"{", b"[")):
        first, is_alone = _first_object(packed, text)
        listed = text.startswith(b"[")
        claims = (one.name for one in reversed([*importers]) if one.claims_object(first, listed=listed))
        if (claimed := next(claims, "")) and not first.keys() <= BARE:
            return claimed
        if is_alone and (within := _rows_within(first)):
            words = gettext_noop(
                "This file is one object, whose “%(place)s” is a list of %(count)s objects. If these are the "
                "rows, save that list alone. For one item put [ and ] around the object."
            )
            raise fault(words, where=where, place=within[0], count=within[1])
        if claimed:
            return claimed
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        return "json"
    if said := SAYS_DELIMITER.match(text.decode(errors="replace")):
        return DELIMITERS.get(said[1], "csv")
    name = where.lower().removesuffix(".gz")
    if raw.startswith(UTF16_BOMS) or name.endswith(TABLE_NAMES):
        return _by_header(text, name)
    if table := _table(text.decode(errors="replace"), whole=len(raw) < HEAD):
        return table
    if ending := next((one for one in NO_TEXTS if where.lower().endswith(one)), ""):
        words = gettext_noop(
            "Its name ends in %(ending)s, but it is a text and no such file. Save the table anew in the "
            "program that it comes from; a text of lines, an item each, is called .txt."
        )
        raise fault(words, where=where, ending=ending)
    return "lines"


def _first_object(packed: IO[bytes], head: bytes) -> tuple[Any, bool]:
    """The first object of a JSON file, however long it is; None where there is none. And whether the file is
    this object and nothing else.
    """
    decoder = json.JSONDecoder()
    for size in (HEAD, longest_row()):
        if size > HEAD:
            head = head_of(unpacked(packed), size).removeprefix(UTF8_BOM).lstrip()
        text = head.decode(errors="replace").removeprefix("[").lstrip()
        with suppress(ValueError, RecursionError):
            found, end = decoder.raw_decode(text)
            is_alone = head.startswith(b"{") and not text[end:].strip()
            return found, is_alone and len(head_of(unpacked(packed), size + 1)) <= size
        if len(head) < HEAD // 2:
            break  # the file is no longer than what was read
    return None, False


def _rows_within(found: Any) -> tuple[str, int] | None:
    """Of an object that seems to be a wrapping: where its list of objects is, and how many it has."""
    if not isinstance(found, dict) or any(
        name.lower() in HEADERS and not isinstance(value, list | dict) for name, value in found.items()
    ):
        return None  # with a text or a name of its own it is an item
    inner = [
        (f"{name}.{key}", value)
        for name, part in found.items()
        if isinstance(part, dict)
        for key, value in part.items()
    ]
    lists = [
        (place, len(value))
        for place, value in (*found.items(), *inner)
        if isinstance(value, list) and len(value) > 1 and all(isinstance(entry, dict) for entry in value)
    ]
    return lists[0] if len(lists) == 1 else None


def _by_header(text: bytes, name: str) -> str:
    header = outside_quotes(text.split(b"\n", 1)[0].decode(errors="replace"))
    commas, semicolons, tabs = (header.count(mark) for mark in ",;\t")
    if name.endswith((".tsv", ".tab")) or tabs > commas + semicolons:
        return "tsv"
    return "csv_semicolon" if semicolons > commas else "csv_comma"


def _table(text: str, *, whole: bool) -> str:
    """The format of a text whose name says nothing; "" where its lines are no table with a header."""
    lines = text.splitlines()
    if not whole and len(lines) > 1:
        lines.pop()  # it is cut off
    if lines[0].strip().strip('"').lower() in HEADERS:
        return "csv_comma"
    best = ""
    most = 1
    for delimiter, name in DELIMITERS.items():
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        header = [cell.strip() for cell in rows[0]]
        regular = 100 * sum(len(row) == len(header) for row in rows) // len(rows)
        names = len(set(header)) == len(header) and all(header) and (len(rows) > 1 or not whole)
        if names and len(header) > most and regular >= LEAST_REGULAR:
            best, most = name, len(header)
    return best


OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.spreadsheet"
ARROW = ".arrow"
WORKBOOKS = ("xl/workbook.xml", "xl/workbook.bin")


def kind_of(file: IO[bytes], file_name: str, importers: Collection[Importer]) -> str:
    """The name of the one of these that reads it."""
    with open_archive(file) as archive:
        names = set(archive.namelist())
        if not names.isdisjoint(WORKBOOKS) or _mime_type(archive) == OPEN_DOCUMENT:
            return "excel"
        if any(name.startswith(("word/", "ppt/", "xl/")) for name in names):
            raise fault(
                gettext_noop("This is an office document. Save a table as CSV in UTF-8."), where=file_name
            )
        claimed = next((one.name for one in importers if one.claims_archive(archive)), "")
        return claimed or _content(archive, file_name)


def _content(archive: zipfile.ZipFile, file_name: str) -> str:
    paths = list(content_of(archive))
    file_names = {PurePosixPath(path).name for path in paths}
    # One without rows may have no file for them.
    if STATE in file_names and (INFO in file_names or any(path.endswith(ARROW) for path in paths)):
        return "hf_images" if holds_images(archive, file_name) else "hf_dataset"
    others = [path for path in paths if not is_about(path)]
    tables = tables_in(archive)
    if tables and len(tables) == len(others):
        if len(tables) > 1:
            words = gettext_noop(
                "There are %(count)s data files in this zip archive (%(names)s). Import one after the other."
            )
            names = ", ".join(tables[:5])
            raise fault(words, where=file_name, count=len(tables), names=names)
        return "zip_file"
    packed = [path for path in others if is_archive(path)]
    if packed and len(packed) == len(others):
        words = gettext_noop(
            "This zip archive holds another archive (%(name)s), which is not opened. Unpack it first, and "
            "import what is in it."
        )
        raise fault(words, where=file_name, name=packed[0])
    return "zip_texts" if others and all(map(is_text_item, others)) else "zip_images"


def _mime_type(archive: zipfile.ZipFile) -> bytes:
    """What archives of OpenDocument begin with."""
    first = next(iter(archive.infolist()), None)
    if first is None or first.filename != "mimetype" or first.file_size > 100:
        return b""
    try:
        with file_in(archive, first, first.filename) as file:
            return file.read().strip()
    except InputError:
        return b""
