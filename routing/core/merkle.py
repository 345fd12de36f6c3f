"""Merkle tree hashes over lines, as certificate logs make them (RFC 9162, 2.1.1), with SHA-256.

Whoever noted the root of a file can later be shown that a line was in it, without the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

LEAF, NODE = b"\0", b"\1"


def merkle_root(lines: Iterable[bytes]) -> str:
    """The root in hexadecimal digits; lines without their ends.  Memory grows with the logarithm of their
    number.
    """
    # One subtree a set bit of the count so far, the largest first: their sizes are those powers of two.
    trees: list[bytes] = []
    for size, line in enumerate(lines, start=1):
        trees.append(hashlib.sha256(LEAF + line).digest())
        while size % 2 == 0:
            right = trees.pop()
            trees[-1] = _node(trees[-1], right)
            size //= 2
    if not trees:
        return hashlib.sha256(b"").hexdigest()
    root = trees.pop()
    while trees:
        root = _node(trees.pop(), root)
    return root.hex()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(NODE + left + right).digest()
