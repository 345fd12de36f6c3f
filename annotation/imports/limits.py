"""What one input may produce, all in one place: bytes, rows, cells, characters, seconds and memory, whatever
its format, archives within archives included.

What an operator may change are settings (docs/configuration.md, "What an import may produce"); the rest are
numbers below. `annotation.imports.allowance` counts what comes out while it flows, for every format alike;
each reader has here what it may hold at once before anything comes out.
"""

from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.faults import fault

# --- What it is in proportion to the file that was uploaded -------------------------------------------------

# Text becomes some ten times smaller by compression, tables that repeat themselves a hundred times; deflate
# reaches a thousand, and a column of a Parquet file any number. That of each is HYPAC_MAX_INPUT_RATIO.
ALWAYS_UNPACKED_BYTES = 10 * 1024**2
# Characters in the database that any file may bring.
ALWAYS_STORED = 32 * 1024**2
# What a row takes in the database beside its cells (keys, hash, indexes), and a cell beside its text.
ROW, CELL = 256, 8

# --- Rows and columns ---------------------------------------------------------------------------------------

MAX_COLUMNS = 500
MAX_NAME_CHARACTERS = 1_000
# Lists and objects in each other; a database reads no more than some hundreds.
MAX_DEPTH = 100
# Names that rows of JSON may have in all, where all of them are looked at before anything is shown.
MOST_NAMES = 100_000

# --- Archives -----------------------------------------------------------------------------------------------

# Each takes half a kilobyte of memory, and may take 50 bytes of the archive.
MOST_FILES = 300_000

# --- Tables of Arrow: Parquet files, data sets saved to disk ------------------------------------------------

# Bytes of text that are unpacked together.
MOST_BYTES = 32 * 1024**2
# Values in the lists of a few rows, and of one group of rows of Parquet, where one row may have them all: a
# row is unpacked at once. A group may hold more, up to the last number, if they take a byte each in the file:
# what they fill is then in proportion to what was uploaded.
MOST_VALUES = MOST_LISTED = 20_000_000
MOST_LISTED_OF_LARGE = 200_000_000
# A page of Parquet is unpacked at once, and of a column whose texts share their beginnings a text may be as
# long as all pages of its group of rows together.
MOST_PAGE_BYTES = MOST_SHARING_BYTES = 512 * 1024**2
# What a stream of Arrow may hold between two ends of a batch: much where it is as large itself, as images
# are.
MOST_BATCH = 512 * 1024**2
MOST_PACKED_BATCH = 128 * 1024**2
MOST_RATIO_OF_BATCH = 4
MOST_METADATA = 16 * 1024**2
# A description of a data set is read whole, and takes some twenty times its size then.
MOST_DESCRIPTION = 4 * 1024**2
# Files with the rows of one split: libraries write one for some hundred megabytes.
MOST_DATA_FILES = 10_000
# Groups of rows of a Parquet file, which programs write of a thousand rows or more.
MOST_GROUPS = 100_000

# --- Workbooks, which are read in a process of their own ----------------------------------------------------

WORKBOOK_MEGABYTES = 2048
WORKBOOK_SECONDS = 900

# --- Looks at a file while somebody waits -------------------------------------------------------------------

REQUEST_SECONDS = 60
# Characters of the rows that are held together to learn what a file is.
SAMPLE_CHARACTERS = 16_000_000


class ImportLimitError(InputError):
    """A file holds more than it may produce. Nothing that looks at files passes over it."""


def uploaded_bytes(file: IO[bytes]) -> int:
    """Size of the file that somebody sent: of one that lay in an archive that of the archive."""
    if (size := getattr(file, "_uploaded_bytes", None)) is not None:
        return int(size)
    place = file.tell()
    size = file.seek(0, 2)
    file.seek(place)
    return size


def comes_from(file: IO[bytes], archive: IO[bytes]) -> None:
    """Remember of a file that was unpacked how large its archive is: limits are those of what was sent."""
    file._uploaded_bytes = uploaded_bytes(archive)  # type: ignore[attr-defined]


def most_unpacked(uploaded: int) -> int:
    """Bytes that a compressed file or an archive of so many bytes may unpack to."""
    most = max(settings.HYPAC_MAX_INPUT_RATIO * uploaded, ALWAYS_UNPACKED_BYTES)
    return int(min(most, settings.HYPAC_MAX_UNPACKED_BYTES))


def most_stored(uploaded: int) -> int:
    """Characters that a file of so many bytes may bring into the database."""
    most = ALWAYS_STORED + settings.HYPAC_MAX_INPUT_RATIO * uploaded
    return int(min(most, settings.HYPAC_MAX_IMPORT_CHARACTERS))


def unpacks_to_too_much(uploaded: int, unpacked: int, where: str) -> InputError:
    words = gettext_noop(
        "The file of %(size)s bytes unpacks to %(unpacked)s bytes or more; at most %(most)s are read of it, "
        "which is %(ratio)s times its size or HYPAC_MAX_UNPACKED_BYTES. Unpack and split it."
    )
    return fault(
        words,
        where=where,
        raised_as=ImportLimitError,
        size=f"{uploaded:,}",
        unpacked=f"{unpacked:,}",
        most=f"{most_unpacked(uploaded):,}",
        ratio=settings.HYPAC_MAX_INPUT_RATIO,
    )
