"""The draw: which items form the calibration set, which of them people are asked about, and how ties are
split.

Everything follows from one number, the entropy, through three separate random streams and two hashes.  Only
the raw 64-bit output of PCG64 is used, which NumPy keeps unchanged for ever, so that anyone can recompute a
draw:

* ``SeedSequence(entropy).spawn(3)`` seeds the streams of the pilot, the draw and the salt, in this order.
* The draw gives each of the N items, in pool order, one raw number; the m items with the smallest, in
  increasing order, are the calibration set in draw order: a simple random sample without replacement.
* The next m raw numbers r decide, in draw order, who is asked: exactly where floor(r / 2**11) < p * 2**53,
  with the p of the item where the items have probabilities of their own.
* The salt is the first two raw numbers of its stream as 32 hexadecimal digits; the tie-break V of an item is
  the first 53 bits of SHA-256(salt, a zero byte, item id), all in UTF-8; that of a later model's score
  has the model's number, in decimal and with a zero byte after it, before the item id.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from routing.core.arrays import Bools, Ints
from routing.core.exact import Number, to_fraction
from routing.core.keys import V_BITS

PILOT, DRAW, SALT = range(3)


@dataclass(frozen=True)
class CalibrationDraw:
    """A calibration set in draw order: pool positions (m,) and whether people are asked, Z (m,)."""

    positions: Ints
    asked: Bools


def new_entropy() -> int:
    """128 fresh bits from the operating system."""
    return secrets.randbits(128)


def _raw(entropy: int, stream: int, count: int) -> NDArray[np.uint64]:
    """The first ``count`` raw 64-bit numbers of one of the three streams."""
    if entropy < 0:
        raise ValueError("the entropy of a draw must not be negative")
    seed = np.random.SeedSequence(entropy).spawn(3)[stream]
    return np.atleast_1d(np.asarray(np.random.PCG64(seed).random_raw(count), dtype=np.uint64))


def draw_calibration(
    *, pool_size: int, m: int, p: Number | Sequence[Number], entropy: int
) -> CalibrationDraw:
    """Draw m of ``pool_size`` items and, for each, whether people are asked, exactly with its probability.

    Which items are drawn does not depend on the probabilities, which may have been chosen with regard to the
    items.

    Parameters
    ----------
    p
        One probability for all, or one for each of the N items in pool order.

    Raises
    ------
    ValueError
        m is not in 1 .. pool_size, a probability is not in (0, 1] or not one per item, or the entropy is
        negative.
    """
    if not 1 <= m <= pool_size:
        raise ValueError(f"m = {m} items cannot be drawn from a pool of {pool_size}")
    raw = _raw(entropy, DRAW, pool_size + m)
    positions = np.argsort(raw[:pool_size], kind="stable")[:m].astype(np.int64)
    if isinstance(p, Sequence) and not isinstance(p, str):
        if len(p) != pool_size:
            raise ValueError(f"{len(p)} probabilities of asking came for a pool of {pool_size} items")
        limits = np.array([_limit(p[place], f"pool position {place}: ") for place in positions.tolist()])
    else:
        limits = np.full(m, _limit(p))
    asked = (raw[pool_size:] >> np.uint64(64 - V_BITS)) < limits
    return CalibrationDraw(positions=positions, asked=asked)


def _limit(p: Number, where: str = "") -> np.uint64:
    """Below which whole numbers of 53 bits people are asked.

    For an integer k, k < p * 2**53 is k < ceil(p * 2**53): exact also where p is no binary fraction.
    """
    share = to_fraction(p)
    if not 0 < share <= 1:
        raise ValueError(f"{where}p = {p} is not a probability in (0, 1]")
    return np.uint64(ceil(share * 2**V_BITS))


def draw_pilot(
    *, pool_size: int, size: int, entropy: int, exclude: NDArray[np.integer] | None = None
) -> Ints:
    """Draw the pilot: ``size`` pool positions in draw order, independent of the calibration draw.

    Parameters
    ----------
    exclude : positions, optional
        Items that the pilot must not hold (for the target "population": the calibration set).

    Raises
    ------
    ValueError
        Fewer than ``size`` items are left, or a number is negative.
    """
    if size < 0 or pool_size < 0:
        raise ValueError("the size of a pilot must not be negative")
    order = (
        np.argsort(_raw(entropy, PILOT, pool_size), kind="stable").astype(np.int64)
        if pool_size
        else np.empty(0, np.int64)
    )
    if exclude is not None and len(exclude):
        out = np.zeros(pool_size, dtype=np.bool_)
        out[np.asarray(exclude, dtype=np.int64)] = True
        order = order[~out[order]]
    if size > len(order):
        raise ValueError(f"a pilot of {size} items cannot be drawn: only {len(order)} are left in the pool")
    return order[:size]


def make_salt(entropy: int) -> str:
    """The salt of the tie-breaks: 32 hexadecimal digits."""
    high, low = (int(number) for number in _raw(entropy, SALT, 2))
    return f"{high:016x}{low:016x}"


def tie_breaks(salt: str, item_ids: Sequence[str], *, model: int = 1) -> Ints:
    """V of each item (n,), integers in [0, 2**53): exact in JSON, in a database and in a float64.

    ``model``, counted from 1, is the one whose scores they break the ties of.
    """
    prefix = hashlib.sha256(salt.encode() + b"\0" + (b"" if model == 1 else b"%d\0" % model))
    result = np.empty(len(item_ids), dtype=np.int64)
    for index, item_id in enumerate(item_ids):
        digest = prefix.copy()
        digest.update(item_id.encode())
        result[index] = int.from_bytes(digest.digest()[:8], "big") >> (64 - V_BITS)
    return result


def pool_hash(item_ids: Iterable[str]) -> str:
    """SHA-256 over the item ids in pool order.

    Each id enters as its length in bytes (decimal), a colon, its UTF-8 bytes and a comma, so that no two
    different lists of ids have the same encoding.
    """
    digest = hashlib.sha256()
    for item_id in item_ids:
        data = item_id.encode()
        digest.update(b"%d:%b," % (len(data), data))
    return digest.hexdigest()
