"""What is done in a bucket: looking, reading by pieces, writing whole objects."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, NamedTuple
from xml.sax.saxutils import escape

from django.utils.translation import gettext as _

from annotation.errors import HypacError
from annotation.outside.buckets.requests import Place, Requests, parsed, unreadable
from annotation.outside.net import NetResponse

PIECE = 8 * 1024**2
"""One request reads so much."""
PART = 16 * 1024**2
"""What is larger is sent in parts of this size: at most 10,000 of them, so 156 GiB."""
SHA256 = "x-amz-meta-sha256"
_PLAIN_MD5 = 32


class Found(NamedTuple):
    """An object. `sha256` is what its writer wrote beside it, "" for nothing."""

    key: str
    size: int
    etag: str
    sha256: str = ""


class Bucket:
    """All methods raise what `Requests.send` raises."""

    def __init__(self, place: Place) -> None:
        self._requests = Requests(place)

    def __enter__(self) -> "Bucket":
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()

    def found(self, prefix: str, *, at_most: int | None = None) -> Iterator[Found]:
        """The objects whose key begins so, in the order of their keys."""
        asked = {"list-type": "2", "prefix": prefix, "max-keys": str(min(at_most or 1000, 1000))}
        count = 0
        while True:
            page = parsed(self._answer("GET", query=asked))
            before = count
            for entry in page.iter("Contents"):
                yield Found(
                    entry.findtext("Key") or "",
                    _size(entry.findtext("Size") or ""),
                    (entry.findtext("ETag") or "").strip('"'),
                )
                count += 1
                if at_most is not None and count >= at_most:
                    return
            token = page.findtext("NextContinuationToken")
            if page.findtext("IsTruncated") != "true" or not token:
                return
            if count == before:  # it would go on for ever
                raise unreadable()
            asked["continuation-token"] = token

    def look(self, key: str) -> Found | None:
        """One object; None where there is none."""
        answer = self._requests.send("HEAD", key, missing_is_none=True)
        if answer is None:
            return None
        size = answer.headers.get("content-length", "")
        etag = answer.headers.get("etag", "").strip('"')
        return Found(key, _size(size or "0"), etag, answer.headers.get(SHA256, ""))

    def pieces(self, found: Found) -> Iterator[bytes]:
        """The content, as it was when it was found: raises ConflictError where it is changed meanwhile."""
        for start in range(0, found.size, PIECE):
            end = min(start + PIECE, found.size)
            headers = {"Range": f"bytes={start}-{end - 1}"}
            if found.etag:
                headers["If-Match"] = f'"{found.etag}"'
            content = self._answer("GET", found.key, headers=headers).content
            if len(content) != end - start:
                raise HypacError(
                    _("The store gave %(got)s bytes of “%(key)s” in place of %(wanted)s.")
                    % {"got": len(content), "key": found.key[:200], "wanted": end - start},
                    where="key",
                    permanent=False,
                )
            yield content

    def put(
        self,
        key: str,
        content: IO[bytes],
        *,
        size: int,
        sha256: str,
        media_type: str,
        overwrite: bool = False,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Write an object: it is there whole, or not at all. `progress` is told of the bytes sent so far, and
        may raise, which leaves nothing.

        Each request carries the checksum of its content, which the store compares, and what the store says of
        the content is compared here. Raises ConflictError where the object is there and may not be
        overwritten.
        """
        headers = {"Content-Type": media_type, SHA256: sha256}
        only_new = {} if overwrite else {"If-None-Match": "*"}
        if size <= PART:
            body = content.read(PART + 1)
            answer = self._answer("PUT", key, headers={**headers, **only_new, **_md5(body)}, content=body)
            _compare(answer, body)
            progress(len(body))
            return
        begun = parsed(self._answer("POST", key, query={"uploads": ""}, headers=headers))
        upload = begun.findtext("UploadId") or ""
        try:
            tags: list[str] = []
            sent = 0
            while body := content.read(PART):
                asked = {"partNumber": str(len(tags) + 1), "uploadId": upload}
                answer = self._answer("PUT", key, query=asked, headers=_md5(body), content=body)
                _compare(answer, body)
                tags.append(answer.headers.get("etag", ""))
                sent += len(body)
                progress(sent)
            parts = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
                for number, tag in enumerate(tags, 1)
            )
            ended = self._answer(
                "POST",
                key,
                query={"uploadId": upload},
                headers=only_new,
                content=f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode(),
            )
            # The store may answer 200 at once and tell of a failure later, in the answer's text.
            if parsed(ended).tag == "Error":
                raise HypacError(
                    _("The store could not put the parts together."), where="connection", permanent=False
                )
        except BaseException:
            with suppress(HypacError):
                self._requests.send("DELETE", key, query={"uploadId": upload})
            raise

    def remove(self, key: str) -> None:
        self._requests.send("DELETE", key, missing_is_none=True)

    def _answer(self, *args: object, **options: object) -> NetResponse:
        answer = self._requests.send(*args, **options)  # type: ignore[arg-type]
        assert answer is not None  # noqa: S101 - None only where it is asked for
        return answer


def _size(text: str) -> int:
    """One below 0 would make room for others in what is taken in at most."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise unreadable()
    return int(text)


def _md5(content: bytes) -> dict[str, str]:
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    return {"Content-MD5": b64encode(digest).decode()}


def _compare(answer: NetResponse, content: bytes) -> None:
    """The tag of what was sent in one piece is its MD5, unless the store encrypts with keys of its own."""
    tag = answer.headers.get("etag", "").strip('"')
    encrypted = answer.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
    if len(tag) != _PLAIN_MD5 or encrypted:
        return
    if tag != hashlib.md5(content, usedforsecurity=False).hexdigest():
        raise HypacError(
            _("The store says that it got other bytes than were sent."), where="connection", permanent=False
        )
