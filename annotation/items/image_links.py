"""Addresses under which an image is there for a short time without logging in, for a program that shows it in
a page and can send no token. The signature holds the image and the time; who may make one is asked when it is
made.
"""

import time

from django.core import signing

SALT = "annotation.items.image_links"
LONGEST = 24 * 3600
USUAL = 600


def signed_name(*, project_id: int, sha256: str, seconds: int) -> tuple[str, int]:
    """What stands in the address, and until when it holds, in seconds since 1970."""
    until = int(time.time()) + seconds
    return signing.dumps([project_id, sha256, until], salt=SALT), until


def image_of(name: str) -> tuple[int, str, int] | None:
    """Project, SHA-256 and the seconds that are left; None where nobody signed it, or its time is over."""
    try:
        project_id, sha256, until = signing.loads(name, salt=SALT)
    except signing.BadSignature:
        return None
    left = until - int(time.time())
    return (project_id, sha256, left) if left > 0 else None
