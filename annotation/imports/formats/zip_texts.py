"""A zip archive of text files: each file is an item; folders, which may be classes, stand in a column."""

import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.encodings import ENCODINGS
from annotation.imports.faults import fault, said_by
from annotation.imports.formats.archives import content_of, file_in, is_text_item, open_archive
from annotation.imports.formats.base import Format, Problem, Record, row_or_problem
from annotation.imports.formats.text import UTF8_BOM, UTF16_BOMS
from annotation.imports.limits import ImportLimitError

FOLDER = "folder"


class ZipTexts(Format):
    """In the order of the archive. A path is the item's id and is shown; it never becomes a path of ours."""

    name = "zip_texts"
    title = gettext_noop("Text files in a zip archive")
    holds_images = False
    holds_labels = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        encoding = getattr(file, "encoding", "")
        codec = ENCODINGS[encoding].codec if encoding else ""
        with open_archive(file) as archive:
            infos = {path: info for path, info in content_of(archive).items() if is_text_item(path)}
            folders = {path: str(PurePosixPath(path).parent) for path in infos}
            several = len(set(folders.values())) > 1
            for path, info in islice(infos.items(), skip, None):
                try:
                    text = _read(archive, info, longest, codec)
                except ImportLimitError:
                    raise  # not for this text alone
                except InputError as error:
                    yield Problem(path, said_by(error))
                    continue
                columns = {"file_name": path, "text": text}
                if several:
                    columns[FOLDER] = PurePosixPath(folders[path]).name
                yield row_or_problem(path, path, columns, longest)

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        with open_archive(file) as archive:
            yield from ((1, len(path)) for path in content_of(archive) if is_text_item(path))


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, longest: int, codec: str) -> str:
    with file_in(archive, info, info.filename) as file:
        raw = file.read(4 * longest + 4)
        if file.read(1):
            words = gettext_noop(
                "The text is longer than %(longest)s characters (HYPAC_MAX_CELL_CHARACTERS)."
            )
            raise fault(words, longest=longest)
    try:
        if raw.startswith(UTF16_BOMS):
            return raw.decode("utf-16")
        return raw.decode(codec) if codec else raw.removeprefix(UTF8_BOM).decode()
    except UnicodeDecodeError:
        if codec:
            raise fault(
                gettext_noop("This is not %(encoding)s, unlike the other texts."), encoding=codec
            ) from None
        words = gettext_noop("This is not UTF-8. Import the archive again and say its encoding.")
        raise fault(words) from None
