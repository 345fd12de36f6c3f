"""Addresses under which an image is there for a short time without logging in, for a program that shows it in
a page and can send no token. The signature holds the image, the time and who made it: whether that person may
see the image is asked when it is made, and again each time it is used.
"""

import time
from dataclasses import dataclass

from django.core import signing

SALT = "annotation.items.image_links"
LONGEST = 24 * 3600
USUAL = 600


@dataclass(frozen=True)
class Link:
    """What an address says: project and maker by their numbers, and the seconds that are left."""

    project_id: int
    sha256: str
    maker_id: int
    left: int


def signed_name(*, project_id: int, sha256: str, maker_id: int, seconds: int) -> tuple[str, int]:
    """What stands in the address, and until when it holds, in seconds since 1970."""
    until = int(time.time()) + seconds
    return signing.dumps([project_id, sha256, until, maker_id], salt=SALT), until


def link_of(name: str) -> Link | None:
    """None where nobody signed it, its time is over, or it does not say who made it."""
    try:
        project_id, sha256, until, maker_id = signing.loads(name, salt=SALT)
    except (signing.BadSignature, ValueError):
        return None
    left = until - int(time.time())
    return Link(project_id, sha256, maker_id, left) if left > 0 else None
