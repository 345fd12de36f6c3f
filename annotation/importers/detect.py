"""Which format a file has: by its content first, by its name where content cannot tell."""

from annotation.errors import InputError
from annotation.importers.text import UTF8_BOM, UTF16_BOMS
from annotation.models import StoredFile
from annotation.services.files import open_file

HEAD = 4096
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
BINARY_MAGIC = (b"%PDF",)  # what may do without a zero byte at its start
IMAGE_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")


def detect(stored: StoredFile) -> str:
    """The importer's name in the registry. Raises InputError for what none of them reads."""
    with open_file(stored) as file:
        head = file.read(HEAD)
    where = stored.original_name
    text = head.removeprefix(UTF8_BOM).lstrip()
    if not text:
        raise InputError("The file is empty.", where=where)
    if head.startswith(ZIP_MAGIC):
        return "zip_images"
    if head.startswith(UTF16_BOMS):
        raise InputError("The file is UTF-16. Save it as UTF-8 and import it again.", where=where)
    if stored.original_name.lower().endswith(".zip"):
        raise InputError("Its name ends in .zip, but this is no zip archive.", where=where)
    if b"\0" in head or head.startswith(BINARY_MAGIC):
        if head.startswith(IMAGE_MAGIC):
            raise InputError("This is a single image. Put the images into a zip archive.", where=where)
        raise InputError(
            "This is neither text nor a zip archive. What can be read: CSV, TSV, JSON Lines and zip archives "
            "of images.",
            where=where,
        )
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        raise InputError(
            "This is one JSON list. Save it as JSON Lines: one object a line, without the brackets around.",
            where=where,
        )
    header = text.split(b"\n", 1)[0]
    named_tsv = stored.original_name.lower().endswith((".tsv", ".tab"))
    return "tsv" if named_tsv or header.count(b"\t") > header.count(b",") + header.count(b";") else "csv"
