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

from annotation.storage import Leftover, StorageError

# One request fetches so much. A small image takes one request, and a job that reads a large file slowly
# keeps no connection open that the store would close.
PIECE = 4 * 1024**2
# An upload is sent in such parts, so many at a time, while as many wait: at most 10,000 parts make a file,
# here 156 GiB, and 2 * SENT * PART bytes of it are in memory.
PART, SENT = 16 * 1024**2, 2
ATTEMPTS = 3
GONE = {"404", "NoSuchKey", "NotFound"}


class ObjectStore(S3Storage):
    """A bucket, or what lies under a prefix of it (`location`). An object is there whole or not at all."""

    def __init__(self, *, path_style: bool = False, **options: Any) -> None:
        # The checksums that boto3 adds by default are not known to every other store; where `endpoint_url`
        # names one, they are left out unless an operation demands them.
        checksums = "when_required" if options.get("endpoint_url") else "when_supported"
        transfers = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=SENT)
        transfers.max_in_memory_upload_chunks = SENT  # that are read ahead; of its own it takes ten
        super().__init__(
            client_config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path" if path_style else "auto"},
                connect_timeout=5,
                read_timeout=60,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                request_checksum_calculation=checksums,
                response_checksum_validation=checksums,
            ),
            transfer_config=transfers,
            # The name is the hash of the content: to write it again is to write the same.
            file_overwrite=True,
            default_acl=None,
            querystring_auth=True,
            **options,
        )

    def url(self, name: str | None, *args: Any, **kwargs: Any) -> str:
        """Refused: an address of the store would go past the check of permissions."""
        raise NotImplementedError("files are handed out by views that check permission")

    def _open(self, name: str, mode: str = "rb") -> Any:
        if mode != "rb":
            with _told():
                return super()._open(name, mode)
        return File(io.BufferedReader(ObjectReader(self, name), PIECE), name=name)

    def _save(self, name: str, content: Any) -> str:
        with _told():
            return str(super()._save(name, content))

    def exists(self, name: str) -> bool:
        with _told():
            return bool(super().exists(name))

    def size(self, name: str) -> int:
        with _told():
            return int(super().size(name))

    def delete(self, name: str) -> None:
        with _told():
            super().delete(name)

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        with _told():
            folders, files = super().listdir(path)
            return folders, files

    def get_modified_time(self, name: str) -> datetime:
        try:
            when: datetime = super().get_modified_time(name)
        except ClientError as error:
            if _code(error) in GONE:
                raise FileNotFoundError(name) from None
            raise StorageError(_reason(error)) from error
        except BotoCoreError as error:
            raise StorageError(_reason(error)) from error
        return when

    def walk(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Names of the objects under a folder, each with when it was written."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket_name, Prefix=self._key(prefix) + "/"
        )
        with _told():
            for page in pages:
                for entry in page.get("Contents", ()):
                    yield self._name(entry["Key"]), entry["LastModified"]

    def leftovers(self, prefix: str) -> Iterator[Leftover]:
        """Uploads in parts that nobody finished: no listing shows them, but the store keeps the parts. None
        where the store does not tell of them."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.bucket_name, Prefix=self._key(prefix) + "/"
        )
        try:
            found = [entry for page in pages for entry in page.get("Uploads", ())]
        except ClientError as error:
            if _code(error) != "NotImplemented":
                raise StorageError(_reason(error)) from error
            found = []
        except BotoCoreError as error:
            raise StorageError(_reason(error)) from error
        for entry in found:
            yield Leftover(f"{entry['UploadId']} {self._name(entry['Key'])}", entry["Initiated"])

    def remove_leftover(self, leftover: Leftover) -> None:
        upload, _, name = leftover.key.partition(" ")
        with _told():
            self._client.abort_multipart_upload(Bucket=self.bucket_name, Key=self._key(name), UploadId=upload)

    def piece(self, name: str, start: int, count: int) -> tuple[bytes, int]:
        """`count` bytes from `start`, fewer at the end; and the size of the object.

        Raises FileNotFoundError, StorageError.
        """
        try:
            content, whole = self._range(name, f"bytes={start}-{start + count - 1}")
        except ClientError as error:
            if _code(error) == "InvalidRange":  # an empty object has no first byte
                return b"", start
            if _code(error) in GONE:
                raise FileNotFoundError(name) from None
            raise StorageError(_reason(error)) from error
        except (BotoCoreError, HTTPError) as error:
            raise StorageError(_reason(error)) from error
        return content, int(whole) if whole.isdigit() else start + len(content)

    def _range(self, name: str, wanted: str) -> tuple[bytes, str]:
        """The content, and the size of the whole as the store says it. A connection that breaks while it is
        read is nothing that boto3 tries again."""
        for left in reversed(range(ATTEMPTS)):
            answer = self._client.get_object(Bucket=self.bucket_name, Key=self._key(name), Range=wanted)
            try:
                with closing(answer["Body"]) as body:
                    return body.read(), answer.get("ContentRange", "").rpartition("/")[2]
            except (BotoCoreError, HTTPError):
                if not left:
                    raise
        raise AssertionError("there is at least one attempt")

    @property
    def _client(self) -> Any:
        return self.connection.meta.client

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


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError, Boto3Error) as error:
        raise StorageError(_reason(error)) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _reason(error: Exception) -> str:
    """What happened, without the address of the store or anything of a key."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "no status")
        return f"the object store answered {status} {_code(error)}".strip()
    return f"the object store could not be asked ({type(error).__name__})"
