"""Damage: of bytes, of JSON that stays JSON, of the files in a zip archive that stays one."""

import gzip
import io
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

LARGEST = 128 * 1024
"""Bytes of an input; what a reader does with large files is measured elsewhere."""

NUMBERS = (
    b"0",
    b"-1",
    b"255",
    b"65536",
    b"2147483648",
    b"9223372036854775808",
    b"1e999",
    b"-0.0",
    b"NaN",
    b"Infinity",
    b"9" * 400,
    b"9" * 5000,
    b"0." + b"0" * 400 + b"1",
)
TEXTS = (
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
    "\u202e\u0301\u2028".encode(),
    "\U0001f469\u200d\U0001f52c".encode(),
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b"'",
    b",",
    b";",
    b"<",
    b"&",
    b"\\u0000",
    b"\\ud800",
    b"[" * 3000,
    b"{" * 2000,
    b'{"a":' * 1500,
    b"<a>" * 2000,
    b"$",
    b"%",
    b"..",
    b"/",
    b"\\",
)
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    0.5,
    2**31,
    2**63,
    10**400,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "\0",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
    [None],
    {"": None},
    "\u0301" * 50,
    "2024-13-45T99:99:99",
    ["a", "a"],
    {"a": {"a": {}}},
)
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


def mutated(rng: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Something like `data`, perhaps with a part of one of `others` in it, which are never empty."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data[:2] == b"PK" and rng.random() < 0.7:
            data = with_other_files(rng, data, others, words)
        elif data[:2] == b"\x1f\x8b" and rng.random() < 0.7:
            data = _gzipped(rng, data, others, words)
        elif rng.random() < 0.35 and (found := _with_other_json(rng, data)) is not None:
            data = found
        else:
            data = rng.choice(_OF_BYTES)(
                rng, data, rng.choice((rng.choice(others), rng.choice([*TEXTS, *words])))
            )
    return data[:LARGEST]


# --- Bytes ---

Change = Callable[[Random, bytes, bytes], bytes]


def _place(rng: Random, data: bytes) -> int:
    """Beginnings and ends of files hold what describes the rest."""
    size = len(data)
    chosen = rng.choice(
        (rng.randint(0, size), rng.randint(0, min(size, 64)), size - rng.randint(0, min(size, 64)))
    )
    return max(0, min(chosen, size))


def _length(rng: Random, most: int) -> int:
    return rng.randint(0, min(most, rng.choice((4, 4, 32, 256, 4096))))


def _flip(rng: Random, data: bytes, _other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 8))):
        if changed:
            changed[min(_place(rng, data), len(data) - 1)] ^= rng.choice((1, 2, 4, 8, 16, 32, 64, 128, 255))
    return bytes(changed)


def _cut(rng: Random, data: bytes, _other: bytes) -> bytes:
    start = _place(rng, data)
    return data[:start] if rng.random() < 0.2 else data[:start] + data[start + _length(rng, len(data)) :]


def _repeat(rng: Random, data: bytes, _other: bytes) -> bytes:
    start = _place(rng, data)
    end = start + _length(rng, len(data))
    return data[:end] + data[start:end] * rng.choice((1, 2, 20, 500)) + data[end:]


def _splice(rng: Random, data: bytes, other: bytes) -> bytes:
    start, from_ = _place(rng, data), _place(rng, other)
    piece = (
        other[from_ : from_ + _length(rng, len(other))] if len(other) > 64 and rng.random() < 0.8 else other
    )
    return data[:start] + piece + data[start + rng.choice((0, 0, len(piece))) :]


def _boundary(rng: Random, data: bytes, _other: bytes) -> bytes:
    """Another length where one may stand."""
    width = rng.choice((1, 2, 4, 8))
    number = rng.choice(
        (0, 1, 0x7F, 0x80, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), len(data), rng.getrandbits(8))
    )
    start = _place(rng, data)
    piece = (number % 2 ** (8 * width)).to_bytes(width, rng.choice(("little", "big")))
    return data[:start] + piece + data[start + width :]


def _number(rng: Random, data: bytes, _other: bytes) -> bytes:
    """Another number in place of one that is written in digits."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS) + data[match.end() :]


def _lines(rng: Random, data: bytes, _other: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
    if len(lines) > 2:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


_OF_BYTES: tuple[Change, ...] = (_flip, _flip, _cut, _repeat, _splice, _splice, _boundary, _number, _lines)


# --- JSON ---


def _with_other_json(rng: Random, data: bytes) -> bytes | None:
    """The document, or one of its lines, with another value somewhere; None where it is no JSON."""
    whole = [data] if rng.random() < 0.5 else data.splitlines()
    if not whole or len(data) > LARGEST:
        return None
    place = rng.randrange(len(whole))
    try:
        document = json.loads(whole[place])
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict | list):
        return None
    with suppress(RecursionError):
        _change(rng, document)
        whole[place] = json.dumps(document, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")
    return b"\n".join(whole)


def _change(rng: Random, document: Any) -> None:
    """Walk to a random place, and change what is there."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = document[key]
        if not (isinstance(inner, dict | list) and inner and rng.random() < 0.75):
            break
        document = inner
    what = rng.random()
    if what < 0.15:
        del document[key]
    elif what < 0.3:
        document[key] = [inner]
    elif what < 0.45 and isinstance(document, dict):
        document[rng.choice((f"{key}x", "", "\0", str(rng.choice(keys))))] = document.pop(key)
    elif what < 0.6:
        document[key] = document[rng.choice(keys)]
    else:
        document[key] = rng.choice(ODD_VALUES)


# --- What is packed ---


def with_other_files(rng: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """The archive with a file that is damaged, gone, called otherwise or there twice."""
    files = files_in(data)
    if not files:
        return _flip(rng, data, b"")
    name = rng.choice(sorted(files))
    what = rng.random()
    if what < 0.6:
        inner = [*files.values()] if rng.random() < 0.5 else others
        files[name] = mutated(rng, files[name], inner, words)
    elif what < 0.75:
        content = files.pop(name)
        if rng.random() < 0.7:
            files[rng.choice(("", "../", "a/", "__MACOSX/")) + name + rng.choice(("", "x", ".csv", "/"))] = (
                content
            )
    elif what < 0.9:
        files[rng.choice(("inner.zip", name, "data.csv", "a.txt"))] = rng.choice((data, rng.choice(others)))
    else:
        files[name] = bytes(10**5)
    return zipped(files, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def files_in(data: bytes) -> dict[str, bytes]:
    """None where it is no archive."""
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[:50]:
                with archive.open(info) as file:
                    found[info.filename] = file.read(LARGEST)
    except Exception:  # damaged in any way: that it was before
        return {}
    return found


def zipped(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # a name that is there twice is wanted
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, compression)
    return buffer.getvalue()


def _gzipped(rng: Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    try:
        plain = zlib.decompressobj(31).decompress(data, LARGEST)
    except zlib.error:
        return _flip(rng, data, b"")
    return gzip.compress(mutated(rng, plain, others, words), mtime=0)
