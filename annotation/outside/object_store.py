"""Files in an S3-compatible object store, so that several hosts have the same ones (docs/deployment.md).

The bucket is private and stays so: no address of the store is ever given to a browser. What a page hands out
goes through a view that checks permission, and is read here piece by piece.
"""

import io
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage
from urllib3.exceptions import HTTPError

from annotation.common.storage import ANSWERED, NOT_ASKED, Leftover, StorageError
from annotation.failures import Part

# One request fetches so much. A small image takes one request, and a job that reads a large file slowly
# keeps no connection open that the store would close.
PIECE = 4 * 1024**2
# An upload is sent in such parts, so many at a time, while as many wait: at most 10,000 parts make a file,
# here 156 GiB, and 2 * SENT * PART bytes of it are in memory.
PART, SENT = 16 * 1024**2, 2
ATTEMPTS = 3
GONE = {"404", "NoSuchKey", "NotFound"}


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _reason(error: Exception) -> Part:
    """What happened, without the address of the store or anything of a key."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "no status")
        return ANSWERED.part(said=f"{status} {_code(error)}".strip())
    return NOT_ASKED.part(error=type(error).__name__)


@contextmanager
def _told() -> Iterator[None]:
    """Say FileNotFoundError of what is not there, and StorageError of all else that boto3 raises."""
    try:
        yield
    except (ClientError, BotoCoreError, Boto3Error, HTTPError) as error:
        if isinstance(error, ClientError) and _code(error) in GONE:
            raise FileNotFoundError(_code(error)) from None
        raise StorageError(_reason(error)) from error


class ObjectStore(S3Storage):
    """A bucket, or what lies under a prefix of it (`location`). An object is there whole or not at all. One
    of the same name is replaced: names are hashes of the content, so by the same.
    """

    def __init__(self, *, path_style: bool = False, **options: Any) -> None:
        # The checksums that boto3 adds by default are not known to every other store; where `endpoint_url`
        # names one, they are left out unless an operation demands them.
        checksums = "when_required" if options.get("endpoint_url") else "when_supported"
        transfers = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=SENT)
        transfers.max_in_memory_upload_chunks = SENT  # that are read ahead; of its own it takes ten
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if path_style else "auto"},
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
        )
        super().__init__(client_config=config, transfer_config=transfers, **options)

    _save = _told()(S3Storage._save)
    exists = _told()(S3Storage.exists)
    size = _told()(S3Storage.size)
    delete = _told()(S3Storage.delete)
    listdir = _told()(S3Storage.listdir)
    get_modified_time = _told()(S3Storage.get_modified_time)

    def url(self, name: str | None, *args: Any, **kwargs: Any) -> str:
        """Refused: an address of the store would go past the check of permissions."""
        raise NotImplementedError("files are handed out by views that check permission")

    def _open(self, name: str, mode: str = "rb") -> Any:
        """To be read. The file of django-storages would first fetch the whole object: here a page that hands
        out a part, or looks at the first rows, fetches no more than that."""
        return File(io.BufferedReader(ObjectReader(self, name), PIECE), name=name)

    def walk(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Names of the objects under a folder, each with when it was written."""
        with _told():
            for entry in self.bucket.objects.filter(Prefix=self._key(prefix) + "/"):
                yield self._name(entry.key), entry.last_modified

    def leftovers(self, prefix: str) -> Iterator[Leftover]:
        """Uploads in parts that nobody finished: no listing shows them, but the store keeps the parts. None
        where the store does not tell of them."""
        with _told():
            try:
                found = list(self.bucket.multipart_uploads.filter(Prefix=self._key(prefix) + "/"))
            except ClientError as error:
                if _code(error) != "NotImplemented":
                    raise
                return
        for upload in found:
            yield Leftover(f"{upload.id} {self._name(upload.object_key)}", upload.initiated)

    @_told()
    def remove_leftover(self, leftover: Leftover) -> None:
        upload, _, name = leftover.key.partition(" ")
        self.bucket.Object(self._key(name)).MultipartUpload(upload).abort()

    @_told()
    def piece(self, name: str, start: int, count: int) -> tuple[bytes, int]:
        """`count` bytes from `start`, fewer at the end; and the size of the object.

        Raises FileNotFoundError, StorageError.
        """
        try:
            content, whole = self._range(name, f"bytes={start}-{start + count - 1}")
        except ClientError as error:
            if _code(error) != "InvalidRange":
                raise
            return b"", start  # an empty object has no first byte
        return content, int(whole) if whole.isdigit() else start + len(content)

    def _range(self, name: str, wanted: str) -> tuple[bytes, str]:
        """The content, and the size of the whole as the store says it. A connection that breaks while it is
        read is nothing that boto3 tries again."""
        client = self.connection.meta.client  # of this thread, unlike `bucket`
        for left in reversed(range(ATTEMPTS)):
            answer = client.get_object(Bucket=self.bucket_name, Key=self._key(name), Range=wanted)
            try:
                with closing(answer["Body"]) as body:
                    return body.read(), answer.get("ContentRange", "").rpartition("/")[2]
            except (BotoCoreError, HTTPError):
                if not left:
                    raise
        raise AssertionError("there is at least one attempt")

    def _key(self, name: str) -> str:
        return str(self._normalize_name(name))

    def _name(self, key: str) -> str:
        return key.removeprefix(self.location).lstrip("/")


class ObjectReader(io.RawIOBase):
    """An object, read by ranges. The first is fetched at once, so that a lost object is told of here."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        super().__init__()
        self._store, self.name = store, name
        self._first, self._size = store.piece(name, 0, PIECE)
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(base + offset, 0)
        return self._place

    def readall(self) -> bytes:
        # Of its own it asks for 8 KiB at a time.
        return b"".join(iter(lambda: self.read(PIECE), b""))

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._place)
        if wanted <= 0:
            return 0
        if self._place < len(self._first):
            content = self._first[self._place : self._place + wanted]
        else:
            content, _ = self._store.piece(self.name, self._place, wanted)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)
