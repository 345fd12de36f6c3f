"""What a zip archive holds, told by the names in it."""

import zipfile
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import IO

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.imports.formats.archives import content_of, is_about, is_archive, open_archive, tables_in
from annotation.imports.formats.base import Importer
from annotation.imports.formats.hugging_face import INFO, STATE, holds_images
from annotation.imports.formats.zip_texts import is_item

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
            raise InputError(_("This is an office document. Save a table as CSV in UTF-8."), where=file_name)
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
            words = _(
                "There are %(count)d data files in this zip archive (%(names)s). Import one after the other."
            )
            names = ", ".join(tables[:5])
            raise InputError(words % {"count": len(tables), "names": names}, where=file_name)
        return "zip_file"
    packed = [path for path in others if is_archive(path)]
    if packed and len(packed) == len(others):
        words = _(
            "This zip archive holds another archive (%(name)s), which is not opened. Unpack it first, and "
            "import what is in it."
        )
        raise InputError(words % {"name": packed[0]}, where=file_name)
    return "zip_texts" if others and all(map(is_item, others)) else "zip_images"


def _mime_type(archive: zipfile.ZipFile) -> bytes:
    """What archives of OpenDocument begin with."""
    first = next(iter(archive.infolist()), None)
    if first is None or first.filename != "mimetype" or first.file_size > 100:
        return b""
    try:
        return archive.read(first).strip()
    except (zipfile.BadZipFile, OSError, EOFError):
        return b""
