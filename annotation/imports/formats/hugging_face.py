"""Data sets of Hugging Face as `save_to_disk` writes them, the folder in a zip archive.

Read with Arrow alone, batch by batch. One image column makes the rows images; the names of classes stand in
place of their numbers, and of several splits each row names its own in a column.
"""

import json
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.allowance import check_time
from annotation.imports.faults import fault, said_by
from annotation.imports.formats.archives import DAMAGED as PART_IS_DAMAGED, content_of, file_in, open_archive
from annotation.imports.formats.argilla import labelled
from annotation.imports.formats.arrow import Features, check_types, features_of, measured, records_of
from annotation.imports.formats.base import Format, Problem, Record, check_columns, check_row_count
from annotation.imports.formats.images import checked_image
from annotation.imports.formats.reserved import RESPONSES
from annotation.imports.limits import (
    MOST_BATCH,
    MOST_DATA_FILES,
    MOST_DESCRIPTION,
    MOST_METADATA,
    MOST_PACKED_BATCH,
    MOST_RATIO_OF_BATCH,
    ImportLimitError,
)
from annotation.words import Words

if TYPE_CHECKING:
    import pyarrow as pa

STATE = "state.json"
INFO = "dataset_info.json"
SPLITS = "dataset_dict.json"
SPLIT = "split"
BLOCK = 1024**2
DAMAGED = (*PART_IS_DAMAGED, OSError, RuntimeError, ValueError)


@dataclass(frozen=True)
class _Split:
    """Some rows of a data set: `files` are paths in the archive, in their order."""

    name: str
    files: list[str]
    features: Features
    image: str = ""
    """The column with images, where there is exactly one and they are read."""


@dataclass(frozen=True)
class HuggingFace(Format):
    name: str
    title: str
    holds_images: bool
    holds_labels: bool = False

    def records(self, file: IO[bytes], file_name: str, *, skip: int = 0) -> Iterator[Record]:
        with open_archive(file) as archive:
            yield from islice(self._records(archive, file_name), skip, None)

    def measure(self, file: IO[bytes], file_name: str) -> Iterator[tuple[int, int]]:
        with open_archive(file) as archive:
            rows = 0
            for split in splits_of(archive, file_name, images=self.holds_images):
                for batch in _batches(archive, split, file_name):
                    rows += len(batch)
                    check_row_count(rows, file_name)
                    yield measured(batch)
        if not rows:
            raise fault(gettext_noop("The data set has no rows."), where=file_name)

    def _records(self, archive: zipfile.ZipFile, file_name: str) -> Iterator[Record]:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        rows = 0
        splits = splits_of(archive, file_name, images=self.holds_images)
        for split in splits:
            place = f"{split.name}, " if split.name else ""
            name = f"{file_name}:{split.name}" if split.name else file_name
            number = 0
            for batch in _batches(archive, split, file_name):
                rows += len(batch)
                check_row_count(rows, file_name)  # before there is anything of them: they may take no room
                images = batch.column(split.image) if split.image else None
                if images is not None:
                    batch = batch.drop_columns([split.image])
                records = records_of(
                    batch,
                    split.features,
                    first=number + 1,
                    name=name,
                    longest=longest,
                    place=place,
                )
                number += len(batch)
                if len(splits) > 1:
                    records = (_with(record, {SPLIT: split.name}) for record in records)
                if any(name.endswith(RESPONSES) for name in batch.schema.names):
                    records = map(_with_labels, records)
                yield from records if images is None else map(_with_image, records, images)
        if not rows:
            raise fault(gettext_noop("The data set has no rows."), where=file_name)


def holds_images(archive: zipfile.ZipFile, file_name: str) -> bool:
    return any(split.image for split in splits_of(archive, file_name, images=True))


def splits_of(archive: zipfile.ZipFile, file_name: str, *, images: bool) -> list[_Split]:
    """Raises InputError where the archive holds no whole data set."""
    paths = content_of(archive)
    folders = [path.removesuffix(STATE) for path in paths if PurePosixPath(path).name == STATE]
    if not folders:
        raise fault(gettext_noop("There is no data set in this zip archive."), where=file_name)
    if listed := next((path for path in paths if PurePosixPath(path).name == SPLITS), ""):
        root = listed.removesuffix(SPLITS)
        splits = _list(described(archive, paths, listed), "splits", listed, most=len(paths))
        folders = [f"{root}{name}/" for name in splits]
        _check_once(folders, listed)
    elif len(folders) > 1:
        raise fault(
            gettext_noop("There are several data sets in this zip archive: %(folders)s. Pack one."),
            where=file_name,
            folders=", ".join(sorted(folders)[:10]),
        )
    found: list[_Split] = []
    for folder in folders:
        check_time(archive.fp)
        state = described(archive, paths, folder + STATE)
        if state.get("_indices_data_files") or state.get("_indices_files"):
            words = gettext_noop(
                "The data set is a selection of another one. Call flatten_indices() before you save it."
            )
            raise fault(words, where=folder + STATE)
        entries = _list(state, "_data_files", folder + STATE, most=min(len(paths), MOST_DATA_FILES))
        files = [f"{folder}{_of(entry).get('filename')}" for entry in entries]
        _check_once(files, folder + STATE)
        for path in files:
            if path not in paths:
                raise fault(gettext_noop("The file %(path)r is missing."), where=file_name, path=path)
        features = features_of(json.dumps(described(archive, paths, folder + INFO)))
        pictures = [name for name, feature in features.items() if _kind(feature) == "Image"]
        image = pictures[0] if images and len(pictures) == 1 else ""
        found.append(_Split(PurePosixPath(folder).name if listed else "", files, features, image))
    return found


def _list(description: dict[str, Any], name: str, where: str, *, most: int) -> list[Any]:
    """What a description lists under a name. Raises InputError for more than `most`."""
    found = description.get(name) or []
    if not isinstance(found, list) or len(found) > most:
        words = gettext_noop(
            "“%(name)s” is no list, or one of more than there can be: at most %(most)s are read."
        )
        raise fault(words, where=where, name=name, most=f"{most:,}")
    return found


def _check_once(paths: list[str], where: str) -> None:
    if len(set(paths)) < len(paths):
        twice = next(path for path, count in Counter(paths).items() if count > 1)
        raise fault(gettext_noop("It names %(path)r twice."), where=where, path=twice[:200])


def described(archive: zipfile.ZipFile, paths: dict[str, zipfile.ZipInfo], path: str) -> dict[str, Any]:
    """A JSON file of the archive that holds one object."""
    info = paths.get(path)
    try:
        if info is None or info.file_size > MOST_DESCRIPTION:
            raise ValueError("it is missing, or too large")
        found = json.loads(archive.read(info))
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except (*DAMAGED, RecursionError) as error:
        words = gettext_noop("The data set cannot be read: %(path)s (%(error)s).")
        raise fault(words, where=path, path=path, error=str(error)[:200]) from None
    return found


def _batches(archive: zipfile.ZipFile, split: _Split, file_name: str) -> "Iterator[pa.RecordBatch]":
    for path in split.files:
        taken = min(archive.getinfo(path).compress_size, archive.start_dir)
        most = min(max(MOST_RATIO_OF_BATCH * taken, MOST_PACKED_BATCH), MOST_BATCH)
        with file_in(archive, archive.getinfo(path), path) as file:
            yield from stream_of(file, split, path, most, timed=archive.fp)


def stream_of(
    file: IO[bytes], split: _Split, where: str, most: int, *, timed: Any = None
) -> "Iterator[pa.RecordBatch]":
    """The batches of one Arrow stream, none of more than `most` bytes. Raises InputError where it is damaged,
    or made to fill a memory, and ImportLimitError where there is no time left to read `timed`, the file that
    it is unpacked from.
    """
    import pyarrow as pa

    try:
        checked = _Checked(file, where, most, timed)
        with pa.ipc.open_stream(checked) as reader:
            schema = reader.schema
            _check(schema, split, where)
            for batch in reader:
                batch.validate(full=True)
                yield batch
    except MemoryError:
        raise
    except (pa.ArrowException, *DAMAGED) as error:
        words = gettext_noop("The data set is damaged and cannot be read (%(error)s).")
        raise fault(words, where=where, error=str(error).partition("\n")[0][:300]) from None


def _check(schema: "pa.Schema", split: _Split, where: str) -> None:
    import pyarrow as pa

    names = [name for name in schema.names if name != split.image]
    check_columns(schema.names, where)
    for name, feature in split.features.items():
        if _kind(feature) in ("Audio", "Video", "Image", "Pdf") and name in names:
            words = gettext_noop(
                "The column %(name)r holds %(kind)s. What can be read are texts, and images of one column."
            )
            raise fault(words, where=where, name=name, kind=_kind(feature))
    if split.image:
        kind = schema.field(split.image).type if split.image in schema.names else pa.null()
        if not pa.types.is_struct(kind) or {"bytes": pa.binary()}.items() - {
            (field.name, field.type) for field in kind
        }:
            words = gettext_noop("The column %(name)r holds no images as data sets have them.")
            raise fault(words, where=where, name=split.image)
    if SPLIT in names and split.name:
        words = gettext_noop("There is a column %(name)r already, and several splits. Rename it.")
        raise fault(words, where=where, name=SPLIT)
    check_types(pa.schema([schema.field(name) for name in names]), where)


class _Checked:
    """A file for Arrow's reader that looks at each message before its content is read: one that is
    compressed, or longer than any that a library writes, could become more than any memory holds.
    """

    closed = False

    def __init__(self, file: IO[bytes], where: str, most: int, timed: Any) -> None:
        self._file = file
        self._timed = timed
        self._where = where
        self._most = most
        self._left = 0  # of the message that is being read
        self._ready = b""

    def read(self, size: int = -1) -> bytes | bytearray:
        if not self._ready and not self._left:
            self._next()
        if self._ready:
            head, self._ready = self._ready[:size], self._ready[size:]
            return head
        found = bytearray(min(size, self._left) if size >= 0 else self._left)
        done = 0
        while done < len(found) and (block := self._file.read(min(BLOCK, len(found) - done))):
            found[done : done + len(block)] = block  # what is read at once is in memory twice
            done += len(block)
        del found[done:]
        self._left -= done
        return found

    def _next(self) -> None:
        """Read the head of the next message, of which a few bytes may unpack to any number."""
        check_time(self._timed)
        head = self._file.read(8)
        if len(head) == 8 and head[:4] == b"\xff\xff\xff\xff":
            (size,) = struct.unpack_from("<i", head, 4)
            if not 0 <= size <= MOST_METADATA:
                raise self._refusal()
            metadata = self._file.read(size)
            body, compressed = _message(metadata) if size else (0, False)
            if compressed:
                words = gettext_noop(
                    "The data set's files are compressed. Save it again with `save_to_disk`."
                )
                raise fault(words, where=self._where)
            if not 0 <= body <= self._most:
                raise self._refusal()
            self._ready, self._left = head + metadata, body
        elif head:
            words = gettext_noop("This is no Arrow stream as `save_to_disk` writes it.")
            raise fault(words, where=self._where)

    def _refusal(self) -> InputError:
        words = gettext_noop(
            "A batch of rows takes more than %(most)s bytes. Save the data set in smaller batches."
        )
        return fault(words, where=self._where, most=f"{self._most:,}")

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """The file is closed by whoever opened it."""


def _message(metadata: bytes) -> tuple[int, bool]:
    """Length of the body, and whether it is compressed, of a Message of Arrow's IPC format: a table of
    flatbuffers, whose fields are found by offsets. Raises ValueError where it is none.
    """
    try:
        message = struct.unpack_from("<I", metadata, 0)[0]
        body = _field(metadata, message, 3)
        length = struct.unpack_from("<q", metadata, body)[0] if body else 0
        kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
        which = metadata[kind] if kind else 0
        if not header or which not in (2, 3):  # a DictionaryBatch, which has a RecordBatch inside, or that
            return length, False
        table = header + struct.unpack_from("<I", metadata, header)[0]
        if which == 2:
            inner = _field(metadata, table, 1)
            table = inner + struct.unpack_from("<I", metadata, inner)[0]
        return length, bool(_field(metadata, table, 3))
    except (struct.error, IndexError):
        raise ValueError("a message has no readable head") from None


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a field of a table stands, 0 where it is left out."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    if vtable < 0:
        raise IndexError
    size = struct.unpack_from("<H", metadata, vtable)[0]
    place = 4 + 2 * number
    if place + 2 > size:
        return 0
    offset = struct.unpack_from("<H", metadata, vtable + place)[0]
    return table + offset if offset else 0


def _kind(feature: Any) -> str:
    return str(_of(feature).get("_type", ""))


def _of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _with(record: Record, columns: dict[str, str]) -> Record:
    return record if isinstance(record, Problem) else record._replace(columns={**record.columns, **columns})


def _with_labels(record: Record) -> Record:
    """Of a data set that Argilla's `records.to_datasets` made."""
    if isinstance(record, Problem) or not record.typed:
        return record
    return labelled(record, record.typed)


def _with_image(record: Record, cell: Any) -> Record:
    """The row with its image, which has its bytes with it; a path of the computer it was on is none."""
    if isinstance(record, Problem):
        return record
    value = cell.as_py() or {}
    content = value.get("bytes") if isinstance(value, dict) else None
    path = str(value.get("path") or "") if isinstance(value, dict) else ""
    if not content:
        words = gettext_noop("The image is not in the data set (%(path)s). Save it with its images embedded.")
        return Problem(record.where, Words(words, path=path or "-"))
    try:
        image = checked_image(content[: settings.HYPAC_MAX_IMAGE_BYTES + 1])
    except ImportLimitError:
        raise  # not for this image alone
    except InputError as error:
        return Problem(record.where, said_by(error))
    name = PurePosixPath(path.replace("\\", "/")).name
    columns = {**record.columns, "file_name": name} if name and "file_name" not in record.columns else None
    return record._replace(columns=columns or record.columns, image=image)
