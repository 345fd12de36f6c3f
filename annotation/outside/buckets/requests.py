"""Signed requests (AWS Signature Version 4) to one bucket, and what its refusals mean."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.utils.translation import gettext as _

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
        words = _("The store refused this (%(said)s): the keys are wrong, or they may not do it.")
    elif answer.status == 404:
        words = _("The store has no such bucket or object (%(said)s).")
    elif 300 <= answer.status < 400:
        words = _("The store says that the bucket is elsewhere (%(said)s): check its address and region.")
    elif answer.status == 412:
        return ConflictError(_("The object is there already, or was changed meanwhile."), where="key")
    elif answer.status in (408, 409, 429) or answer.status >= 500:
        words = _("The store could not do this now (%(said)s).")
        return HypacError(words % {"said": said}, where="connection", permanent=False)
    else:
        words = _("The store refused this (%(said)s).")
    return InputError(words % {"said": said}, where="connection")


def unreadable() -> HypacError:
    return HypacError(
        _("The store gave an answer that cannot be read: is this the address of an S3-compatible store?"),
        where="connection",
        permanent=False,
    )


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
