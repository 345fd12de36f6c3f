"""Buckets of S3-compatible stores whose addresses people enter: looking, reading by pieces, writing whole
objects.

Requests are signed here (AWS Signature Version 4) and sent by `annotation.outside.net.GuardedClient` alone,
so that no address leads into the server's own network.
"""

import hashlib
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, NamedTuple
from urllib.parse import quote, unquote_plus, urlencode, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import ConflictError, HypacError, InputError
from annotation.outside.net import GuardedClient, NetResponse

# One request carries so much, and no answer is larger.
MOST_BYTES = 32 * 1024**2
# A list of 1,000 keys is smaller by far; as XML it is unpacked to many times its size.
MOST_XML = 8 * 1024**2
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")


@dataclass(frozen=True)
class Place:
    """A bucket and the keys to it. `endpoint` is the address of the store, without a path."""

    endpoint: str
    bucket: str
    region: str
    path_style: bool
    access_key: str = field(repr=False)
    secret: str = field(repr=False)

    def url(self, key: str, query: Mapping[str, str]) -> str:
        parts = urlsplit(self.endpoint)
        host = parts.netloc if self.path_style else f"{self.bucket}.{parts.netloc}"
        path = f"/{self.bucket}/{quote(key, safe='/~')}" if self.path_style else f"/{quote(key, safe='/~')}"
        asked = urlencode(sorted(query.items()), quote_via=quote, safe="~")
        return f"{parts.scheme}://{host}{path}{f'?{asked}' if asked else ''}"


class Requests:
    """Sends them. May be used by several threads at once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._client = GuardedClient(max_bytes=MOST_BYTES, max_connections=4)
        self._signer = S3SigV4Auth(Credentials(place.access_key, place.secret), "s3", place.region)

    def send(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        missing_is_none: bool = False,
    ) -> NetResponse | None:
        """The answer to a request that went well; None for an object that is not there, where that is
        expected.

        Raises NetError where there is no answer. InputError, ConflictError or a HypacError that is not
        permanent where the store refuses, without a word of what it says.
        """
        url = self._place.url(checked_key(key), query or {})
        request = AWSRequest(method, url, headers=dict(headers or {}), data=content)
        self._signer.add_auth(request)
        # As it is stored, and not compressed on the way, which would hide where a range ends.
        sent = {name: str(value) for name, value in request.headers.items()} | {"Accept-Encoding": "identity"}
        body = content if method in ("PUT", "POST") else None
        answer = self._client.request(method, url, headers=sent, content=body)
        if 200 <= answer.status < 300:
            return answer
        if answer.status == 404 and missing_is_none:
            return None
        raise refusal(answer)

    def close(self) -> None:
        self._client.close()


KEYS_REFUSED = failures.register(
    "store_refused_keys",
    gettext_noop("The store refused this (%(said)s): the keys are wrong, or they may not do it."),
)
NO_SUCH_OBJECT = failures.register(
    "store_lacks_it", gettext_noop("The store has no such bucket or object (%(said)s).")
)
ELSEWHERE = failures.register(
    "bucket_elsewhere",
    gettext_noop("The store says that the bucket is elsewhere (%(said)s): check its address and region."),
)
CHANGED_MEANWHILE = failures.register(
    "object_changed", gettext_noop("The object is there already, or was changed meanwhile.")
)
NOT_NOW = failures.register("store_not_now", gettext_noop("The store could not do this now (%(said)s)."))
REFUSED = failures.register("store_refused", gettext_noop("The store refused this (%(said)s)."))
UNREADABLE = failures.register(
    "store_unreadable",
    gettext_noop(
        "The store gave an answer that cannot be read: is this the address of an S3-compatible store?"
    ),
)
OTHER_BYTES = failures.register(
    "store_other_bytes", gettext_noop("The store gave %(got)s bytes of “%(key)s” in place of %(wanted)s.")
)
LISTS_TOO_SLOWLY = failures.register(
    "store_lists_too_slowly",
    gettext_noop("The store did not list its objects within %(seconds)s seconds. Choose a smaller folder."),
)
NOT_JOINED = failures.register(
    "parts_not_joined", gettext_noop("The store could not put the parts together.")
)
OTHER_BYTES_SENT = failures.register(
    "store_got_other_bytes", gettext_noop("The store says that it got other bytes than were sent.")
)


def deadline(seconds: float) -> Callable[[], None]:
    """What raises a HypacError that is not permanent once so much time has passed since this call."""
    end = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > end:
            raise LISTS_TOO_SLOWLY.error(
                raised_as=HypacError, where="connection", permanent=False, seconds=int(seconds)
            )

    return check


def checked_key(key: str) -> str:
    """Raises InputError for a key that would be read as another one on its way."""
    if len(key.encode()) > 1024 or any(part in (".", "..") for part in key.split("/")) or "\0" in key:
        raise InputError(
            _("A key has at most 1,024 bytes, and none of its parts is “.” or “..”."), where="key"
        )
    return key


def refusal(answer: NetResponse) -> HypacError:
    """What the store meant. Only its code, a single word, is repeated."""
    found = _CODE.search(answer.content[:65536])
    said = f"{answer.status} {found[1].decode()}" if found else str(answer.status)
    if answer.status in (401, 403):
        why = KEYS_REFUSED
    elif answer.status == 404:
        why = NO_SUCH_OBJECT
    elif 300 <= answer.status < 400:
        why = ELSEWHERE
    elif answer.status == 412:
        return CHANGED_MEANWHILE.error(raised_as=ConflictError, where="key")
    elif answer.status in (408, 409, 429) or answer.status >= 500:
        return NOT_NOW.error(raised_as=HypacError, where="connection", permanent=False, said=said)
    else:
        why = REFUSED
    return why.error(raised_as=InputError, where="connection", said=said)


def unreadable() -> HypacError:
    return UNREADABLE.error(raised_as=HypacError, where="connection", permanent=False)


def parsed(answer: NetResponse) -> ElementTree.Element:
    """An answer in XML. Without a document type there are no entities that could be unfolded."""
    try:
        if len(answer.content) > MOST_XML:
            raise ValueError("too long")
        text = answer.content.decode()
        if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
            raise ValueError("a document type")
        root = ElementTree.fromstring(text)  # noqa: S314
    except (ValueError, ElementTree.ParseError):
        raise unreadable() from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


# --- What is done in a bucket ---
PIECE = 8 * 1024**2
"""One request reads so much."""
LIST_SECONDS = 600
"""So long all requests of one listing may take: a page may have a single object."""
PART = 16 * 1024**2
"""What is larger is sent in parts of this size: at most 10,000 of them, so 156 GiB."""
SHA256 = "x-amz-meta-sha256"
_PLAIN_MD5 = 32


class ObjectInfo(NamedTuple):
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

    def list_objects(
        self, prefix: str, *, at_most: int | None = None, seconds: float = LIST_SECONDS
    ) -> Iterator[ObjectInfo]:
        """The objects whose key begins so, in the order of their keys."""
        in_time = deadline(seconds)
        asked = {"list-type": "2", "prefix": prefix, "max-keys": str(min(at_most or 1000, 1000))}
        # A key may have signs that XML cannot hold, and one of them would hide all the others.
        asked["encoding-type"] = "url"
        count = 0
        while True:
            in_time()
            page = parsed(self._answer("GET", query=asked))
            before = count
            is_quoted = page.findtext("EncodingType") == "url"
            for entry in page.iter("Contents"):
                key = entry.findtext("Key") or ""
                yield ObjectInfo(
                    unquote_plus(key) if is_quoted else key,
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

    def head(self, key: str) -> ObjectInfo | None:
        """One object; None where there is none."""
        answer = self._requests.send("HEAD", key, missing_is_none=True)
        if answer is None:
            return None
        size = answer.headers.get("content-length", "")
        etag = answer.headers.get("etag", "").strip('"')
        return ObjectInfo(key, _size(size or "0"), etag, answer.headers.get(SHA256, ""))

    def chunks(self, found: ObjectInfo) -> Iterator[bytes]:
        """The content, as it was when it was found: raises ConflictError where it is changed meanwhile."""
        for start in range(0, found.size, PIECE):
            end = min(start + PIECE, found.size)
            headers = {"Range": f"bytes={start}-{end - 1}"}
            if found.etag:
                headers["If-Match"] = f'"{found.etag}"'
            content = self._answer("GET", found.key, headers=headers).content
            if len(content) != end - start:
                raise OTHER_BYTES.error(
                    raised_as=HypacError,
                    where="key",
                    permanent=False,
                    got=len(content),
                    key=found.key[:200],
                    wanted=end - start,
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
                raise NOT_JOINED.error(raised_as=HypacError, where="connection", permanent=False)
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
        raise OTHER_BYTES_SENT.error(raised_as=HypacError, where="connection", permanent=False)
