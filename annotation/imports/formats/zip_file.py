"""A zip archive that holds one table, or one list of items: read as that file is."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.allowance import in_time_of
from annotation.imports.encodings import in_encoding_of
from annotation.imports.faults import fault
from annotation.imports.formats.archives import content_of, file_in, open_archive, tables_in
from annotation.imports.formats.base import Format, Importer, Record
from annotation.imports.formats.detect import detect_in
from annotation.imports.limits import comes_from


class ZipFile(Format):
    """`known` has the importers of what may lie in the archive, by their names."""

    name = "zip_file"
    title = gettext_noop("Data file in a zip archive")
    holds_images = False
    holds_labels = False

    def __init__(self, known: Callable[[], Mapping[str, Importer]]) -> None:
        self.known = known

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        with _inside(file, file_name, self.known()) as (importer, inner, name):
            yield from importer.records(inner, name, skip=skip)

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        with _inside(file, file_name, self.known()) as (importer, inner, name):
            yield from importer.measure(inner, name)


@contextmanager
def _inside(
    file: IO[bytes], file_name: str, known: Mapping[str, Importer]
) -> Iterator[tuple[Importer, IO[bytes], str]]:
    """The file in the archive, what reads it, and its name."""
    with open_archive(file) as archive:
        found = tables_in(archive)
        if len(found) != 1:
            raise fault(gettext_noop("There is not one data file in this zip archive."), where=file_name)
        (path,) = found
        info = content_of(archive)[path]
        with file_in(archive, info, path) as inner:
            if inner.read(2) in (b"\x1f\x8b", b"PK") and not path.lower().endswith(
                (".xlsx", ".xlsb", ".ods")
            ):
                raise fault(gettext_noop("It is compressed twice. Unpack it first."), where=path)
            text = in_encoding_of(file, inner)
            importer = known[detect_in(text, path, known.values())]
            text.seek(0)
            if importer.is_streamed:
                yield importer, text, path
                return
            inner.seek(0)
            if importer.holds_images or importer.name == ZipFile.name:
                raise fault(gettext_noop("It is compressed twice. Unpack it first."), where=path)
            if info.file_size > settings.HYPAC_MAX_UPLOAD_BYTES:
                words = gettext_noop(
                    "The file in the archive is larger than this server accepts. Unpack and split it."
                )
                raise fault(words, where=path)
            with tempfile.TemporaryFile() as unpacked:
                shutil.copyfileobj(inner, unpacked)
                copy = in_time_of(file, unpacked)
                comes_from(copy, file)
                copy.seek(0)
                yield importer, copy, path
