"""What a delivery gave out of each item, kept beside its files: a later one can then hold only what is new.

Records of 24 bytes in the order of import: the item's key, and a digest of its label, its source and its
certificate. Whatever formats either of them has, equal digests mean that nothing of that has changed. The key
is given once, unlike the position, which a later item gets where an import was taken back.
"""

import hashlib
import json
from collections.abc import Iterator
from struct import Struct
from typing import IO, Any

from django.utils.translation import gettext_noop

from annotation import failures
from routing.labels.row import Page

TOLD = ("label", "source", "certificate_id")
RECORD = Struct(">Q16s")
READ = RECORD.size * 50_000
KIND = b"by key"
"""Part of each digest: records of another kind, such as those that began with the position, equal none."""


class _Digests(dict[tuple[Any, ...], bytes]):
    """Most labels are one of a few: each is looked at once for a page."""

    def __missing__(self, told: tuple[Any, ...]) -> bytes:
        text = json.dumps(told, separators=(",", ":"))
        digest = self[told] = hashlib.blake2b(text.encode(), digest_size=16, person=KIND).digest()
        return digest


def digests_of(page: Page) -> list[bytes]:
    """Of what a delivery tells of each item."""
    known = _Digests()
    labels, sources, certificates = (page.columns[name] for name in TOLD)
    # A list cannot be looked up; as JSON a tuple is the same.
    labels = [tuple(label) if type(label) is list else label for label in labels]
    return [known[told] for told in zip(labels, sources, certificates, strict=True)]


def records(page: Page, digests: list[bytes]) -> bytes:
    return b"".join(map(RECORD.pack, page.keys, digests))


RECORD_DAMAGED = failures.register(
    "delivery_record_damaged",
    gettext_noop(
        "What is kept of the other delivery, to tell what is new since then, is damaged. Make a whole "
        "delivery."
    ),
)


class Base:
    """What another delivery gave out, read once along with the items: it takes no memory, however much it is.
    That keys rise with the order of import is needed for that alone: where they did not, more would count as
    new, never less. `gone`: how many of its items no longer were there, known once all of it is read.

    Raises JobFailedError where the record is no longer what was written.
    """

    def __init__(self, content: IO[bytes], *, sha256: str) -> None:
        self._sha256 = sha256
        self._records = self._read(content)
        self._next = next(self._records, None)
        self.gone = 0

    def differs(self, page: Page, digests: list[bytes]) -> list[bool]:
        """Of each item whether it was not given out like this, or not at all; pages come in their order."""
        found = []
        for key, digest in zip(page.keys, digests, strict=True):
            while self._next is not None and self._next[0] < key:
                self.gone += 1
                self._next = next(self._records, None)
            found.append(self._next != (key, digest))
            if self._next is not None and self._next[0] == key:
                self._next = next(self._records, None)
        return found

    def check(self) -> None:
        """Read to the end, behind the last item: only then the whole of it is known to be right."""
        self.gone += self._next is not None
        self.gone += sum(1 for _record in self._records)

    def _read(self, content: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        sha256, rest = hashlib.sha256(), b""
        while block := content.read(READ):
            sha256.update(block)
            block = rest + block
            whole = len(block) - len(block) % RECORD.size
            rest = block[whole:]
            yield from RECORD.iter_unpack(block[:whole])
        if sha256.hexdigest() != self._sha256:
            raise RECORD_DAMAGED.error()
