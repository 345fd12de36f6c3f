"""Which format a file has: by its content first, by its name where content cannot tell."""

import csv

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.importers.text import UTF8_BOM, UTF16_BOMS, head_of
from annotation.models import StoredFile
from annotation.services.files import open_file

HEAD = 16 * 1024
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
BINARY_MAGIC = (b"%PDF",)  # what may do without a zero byte at its start
IMAGE_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
TABLE_NAMES = (".csv", ".tsv", ".tab")
DELIMITERS = {"\t": "tsv", ",": "csv_comma", ";": "csv_semicolon"}
# Of a text that may be a table, so many rows in a hundred have as many cells as its first.
LEAST_REGULAR = 80
# A first line of one column is its name where it is one of these, else the first item.
HEADERS = frozenset({
    "text", "content", "sentence", "review", "question", "prompt", "comment", "body", "document", "message",
    "abstract", "title", "id",
})  # fmt: skip


def detect(stored: StoredFile) -> str:
    """The importer's name in the registry. Raises InputError for what none of them reads."""
    with open_file(stored) as file:
        raw = file.read(HEAD)
        head = head_of(file, HEAD)
    where = stored.original_name
    text = head.removeprefix(UTF8_BOM).lstrip()
    if not text:
        raise InputError(_("The file is empty."), where=where)
    if raw.startswith(ZIP_MAGIC):
        return "zip_images"
    if where.lower().endswith(".zip"):
        raise InputError(_("Its name ends in .zip, but this is no zip archive."), where=where)
    if b"\0" in head or head.startswith(BINARY_MAGIC):
        if raw.startswith(IMAGE_MAGIC):
            raise InputError(_("This is a single image. Put the images into a zip archive."), where=where)
        raise InputError(
            _(
                "This is neither text nor a zip archive. What can be read: CSV, TSV, JSON, JSON "
                "Lines, plain lines and zip archives of images."
            ),
            where=where,
        )
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        return "json"
    if raw.startswith(UTF16_BOMS) or where.lower().endswith(TABLE_NAMES):
        return _by_header(text, where)
    return _table(text.decode(errors="replace"), whole=len(raw) < HEAD) or "lines"


def _by_header(text: bytes, name: str) -> str:
    header = text.split(b"\n", 1)[0]
    commas, semicolons, tabs = (header.count(mark) for mark in (b",", b";", b"\t"))
    if name.lower().endswith((".tsv", ".tab")) or tabs > commas + semicolons:
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
