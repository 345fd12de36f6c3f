"""Merkle tree hashes against their definition (RFC 9162, 2.1.1)."""

import hashlib

import pytest

from routing.core.merkle import merkle_root


def by_definition(lines: list[bytes]) -> bytes:
    if len(lines) < 2:
        return hashlib.sha256(b"\0" + lines[0] if lines else b"").digest()
    split = 1
    while 2 * split < len(lines):
        split *= 2
    return hashlib.sha256(b"\1" + by_definition(lines[:split]) + by_definition(lines[split:])).digest()


@pytest.mark.parametrize("count", [*range(20), 63, 64, 65, 1000])
def test_the_root_is_that_of_the_definition(count: int) -> None:
    lines = [b"line %d" % number for number in range(count)]
    assert merkle_root(lines) == by_definition(lines).hex()


def test_a_leaf_is_no_node() -> None:
    """Else two lines could be shown as one that holds their hashes."""
    leaves = b"".join(hashlib.sha256(b"\0" + line).digest() for line in (b"a", b"b"))
    assert merkle_root([b"a", b"b"]) != merkle_root([leaves])
