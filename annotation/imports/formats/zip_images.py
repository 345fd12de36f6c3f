"""A zip archive of images, with a metadata.csv if there is more to say about them.

The table is that of Hugging Face's ImageFolder: a column `file_name`, relative to the folder in which
metadata.csv lies, and any further columns.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.encodings import in_encoding_of
from annotation.imports.faults import fault, said_by
from annotation.imports.formats.archives import file_in, is_archive, is_no_content, open_archive, path_of
from annotation.imports.formats.base import Format, Problem, Record, Row
from annotation.imports.formats.delimited import Delimited
from annotation.imports.formats.images import checked_image
from annotation.imports.limits import ImportLimitError
from annotation.jobs.places import place_in
from annotation.words import Words

FILE_NAME = "file_name"
METADATA = "metadata.csv"


@dataclass(frozen=True)
class _Entry:
    """An image to be read: where it lies in the archive, and what metadata.csv says of it."""

    path: str
    info: zipfile.ZipInfo
    columns: dict[str, str]


class ZipImages(Format):
    """Images in the order of metadata.csv, then those it does not name, in the order of the archive.

    A path in the archive is the item's id and is shown; it never becomes a path of ours.
    """

    name = "zip_images"
    endings = (".zip",)
    title = gettext_noop("Images in a zip archive")
    holds_images = True
    holds_labels = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        with open_archive(file) as archive:
            for planned in islice(_plan(archive, file_name), skip, None):
                yield planned if isinstance(planned, Problem) else _read(archive, planned)

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        with open_archive(file) as archive:
            yield from ((1, 0) for _entry in _plan(archive, file_name))


def _plan(archive: zipfile.ZipFile, file_name: str) -> Iterator[_Entry | Problem]:
    images: dict[str, zipfile.ZipInfo] = {}
    twice: list[str] = []
    tables: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        path = path_of(info)
        parts = PurePosixPath(path).parts
        if info.is_dir() or not parts or any(map(is_no_content, parts)):
            continue
        if parts[-1] == METADATA:
            tables[path] = info
        elif path in images:
            twice.append(path)
        else:
            images[path] = info
    if not images:
        raise fault(gettext_noop("There are no images and no texts in this zip archive."), where=file_name)
    named: set[str] = set()
    if tables:
        # One table speaks for the whole archive: the one nearest to its root.
        table = min(tables, key=lambda path: (path.count("/"), path))
        yield from _listed(archive, tables.pop(table), table, images, named)
    for path in tables:
        yield Problem(
            path,
            Words(
                gettext_noop("Only one %(metadata)s is read, the one nearest to the archive's root."),
                metadata=METADATA,
            ),
        )
    for path in twice:
        yield Problem(path, Words(gettext_noop("The archive holds this path twice; the first one is read.")))
    for path, info in images.items():
        if path not in named:
            yield _Entry(path, info, {FILE_NAME: path})


def _listed(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    table: str,
    images: dict[str, zipfile.ZipInfo],
    named: set[str],
) -> Iterator[_Entry | Problem]:
    """The rows of metadata.csv; paths of images that they name are added to `named`."""
    folder = table.rpartition("/")[0]
    with file_in(archive, info, table) as file:
        text = in_encoding_of(archive.fp, file)
        for record in Delimited("csv", "CSV", ",;").records(text, METADATA):
            where = place_in(table, record.where)
            if isinstance(record, Problem):
                yield Problem(where, record.message)
                continue
            if FILE_NAME not in record.columns:
                raise fault(
                    gettext_noop("There is no column %(file_name)r, which names the image."),
                    where=table,
                    file_name=FILE_NAME,
                )
            path = f"{folder}/{record.columns[FILE_NAME]}".removeprefix("/")
            if path in named:
                yield Problem(where, Words(gettext_noop("The image %(path)r was named before."), path=path))
            elif path not in images:
                yield Problem(
                    where, Words(gettext_noop("There is no image %(path)r in the archive."), path=path)
                )
            else:
                named.add(path)
                yield _Entry(path, images[path], record.columns)


def _read(archive: zipfile.ZipFile, entry: _Entry) -> Record:
    if is_archive(entry.path):
        return Problem(
            entry.path, Words(gettext_noop("This is another archive, which is not opened. Unpack it first."))
        )
    try:
        with file_in(archive, entry.info, entry.path) as file:
            # One byte more than allowed tells that there is more.
            content = file.read(settings.HYPAC_MAX_IMAGE_BYTES + 1)
        return Row(entry.path, entry.path, entry.columns, checked_image(content))
    except ImportLimitError:
        raise  # not for this image alone
    except InputError as error:
        return Problem(entry.path, said_by(error))
