"""Addresses under which an image is there for a short time without logging in, for a program that shows it in
a page and can send no token. The signature holds the image, the time and the membership by which it was made:
whether that still lets somebody see the image is asked when it is made, and again each time it is used.
Whoever leaves a project and comes back has another membership, which brings no old address back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.core import signing

from annotation.models import Membership, Project, User

SALT = "annotation.items.image_links by membership"
LONGEST = 24 * 3600
USUAL = 600


@dataclass(frozen=True)
class Link:
    """What an address says: by which membership it was made, the image, and the seconds left."""

    membership_id: int
    sha256: str
    left: int


def signer(*, project: Project, user: User, seconds: int) -> Callable[[str], tuple[str, int]]:
    """Of the hash of an image that this member may see: what stands in the address, and until when it holds,
    in seconds since 1970.
    """
    membership = Membership.objects.values_list("pk", flat=True).get(project=project, user=user)

    def signed(sha256: str) -> tuple[str, int]:
        until = int(time.time()) + seconds
        return signing.dumps([membership, sha256, until], salt=SALT), until

    return signed


def link_of(name: str) -> Link | None:
    """None where nobody signed it, its time is over, or it is of a kind that is made no longer."""
    try:
        membership_id, sha256, until = signing.loads(name, salt=SALT)
    except (signing.BadSignature, ValueError):
        return None
    left = until - int(time.time())
    return Link(membership_id, sha256, left) if left > 0 else None
