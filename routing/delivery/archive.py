"""All files of a delivery as one zip archive, made while it is sent: nothing is stored or held in memory."""

import zipfile
from collections.abc import Iterator, Sequence

from annotation.common.files import BLOCK, open_file
from routing.models import DeliveryFile

# Nothing in a delivery tells when it was made, so that the same files give the same archive.
FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
READ_BY_ALL = 0o644 << 16
DENSE = {"application/vnd.apache.parquet", "image/jpeg", "image/png"}
"""Compressed already."""
LARGE = 2 * 1024**3


class _Pipe:
    """What the archive writes into and the answer takes out of; it cannot go back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def flush(self) -> None:
        """There is nothing behind it."""

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def zipped(files: Sequence[DeliveryFile], folder: str) -> Iterator[bytes]:
    """Parts of the archive; the files lie in `folder`. Raises InputError where the storage has lost one."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for entry in files:
            info = zipfile.ZipInfo(f"{folder}/{entry.name}", FIRST_MOMENT)
            dense = entry.media_type in DENSE
            info.compress_type = zipfile.ZIP_STORED if dense else zipfile.ZIP_DEFLATED
            info.external_attr = READ_BY_ALL
            with (
                open_file(entry.file) as content,
                archive.open(info, "w", force_zip64=entry.file.size > LARGE) as out,
            ):
                while block := content.read(BLOCK):
                    out.write(block)
                    yield pipe.take()
    yield pipe.take()
