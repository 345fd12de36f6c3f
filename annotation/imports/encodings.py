"""In which encoding a text is. UTF-8, and UTF-16 with its mark, say so themselves; of any other what it would
read as is offered, and a person says which it is: nothing is guessed in silence.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, NamedTuple

from django.utils.translation import gettext as _, gettext_noop

from annotation.common.files import open_file
from annotation.errors import InputError
from annotation.imports.allowance import Deadline, DeadlineFile
from annotation.imports.faults import fault
from annotation.imports.formats.archives import content_of, file_in, is_text_item, open_archive, tables_in
from annotation.imports.formats.text import UTF8_BOM, UTF16_BOMS, as_utf8, unpacked
from annotation.imports.likeliness import likeliness
from annotation.imports.limits import ImportLimitError, comes_from
from annotation.jobs.jobs import UNFINISHED
from annotation.models import StoredFile

UTF8 = "utf-8"
# Of a larger file the rest is left to the import, which reads it to its end before it adds anything.
LOOKED_AT = 16 * 1024**2
BLOCK = 256 * 1024
TEXTS_LOOKED_AT = 500
# What is told by: so many lines at most, and so many words of them are shown.
LINES, LINE_BYTES = 200, 2_000
WORDS, WORD_CHARACTERS = 8, 24
OFFERED = 8
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
NO_TEXT = (*ZIP, b"PAR1", b"%PDF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"\xd0\xcf\x11\xe0")


class Known(NamedTuple):
    """`codec` is Python's, which may know more characters than the name promises; `common` are first bytes of
    most characters that are in use, where one has several. `frequent` is added where two are as likely.
    """

    title: str
    codec: str
    common: range = range(0)
    frequent: float = 0.0


ENCODINGS: dict[str, Known] = {
    UTF8: Known(gettext_noop("UTF-8"), "utf-8", frequent=10.0),
    "windows-1252": Known(gettext_noop("Windows-1252, Western European"), "cp1252", frequent=0.35),
    "utf-16-le": Known(gettext_noop("UTF-16 without a mark, little endian"), "utf-16-le"),
    "utf-16-be": Known(gettext_noop("UTF-16 without a mark, big endian"), "utf-16-be"),
    "iso-8859-15": Known(gettext_noop("ISO 8859-15, Western European"), "iso8859-15"),
    "macintosh": Known(gettext_noop("Mac Roman, Western European"), "mac-roman", frequent=-0.1),
    "ibm850": Known(gettext_noop("DOS 850, Western European"), "cp850", frequent=-0.1),
    "windows-1250": Known(gettext_noop("Windows-1250, Central European"), "cp1250"),
    "iso-8859-2": Known(gettext_noop("ISO 8859-2, Central European"), "iso8859-2"),
    "windows-1251": Known(gettext_noop("Windows-1251, Cyrillic"), "cp1251"),
    "koi8-r": Known(gettext_noop("KOI8-R, Cyrillic"), "koi8-r"),
    "windows-1253": Known(gettext_noop("Windows-1253, Greek"), "cp1253"),
    "windows-1254": Known(gettext_noop("Windows-1254, Turkish"), "cp1254"),
    "windows-1255": Known(gettext_noop("Windows-1255, Hebrew"), "cp1255"),
    "windows-1256": Known(gettext_noop("Windows-1256, Arabic"), "cp1256"),
    "windows-1257": Known(gettext_noop("Windows-1257, Baltic"), "cp1257"),
    "shift_jis": Known(gettext_noop("Shift JIS, Japanese"), "cp932", range(0x82, 0x98)),
    "euc-jp": Known(gettext_noop("EUC-JP, Japanese"), "euc-jp", range(0xA4, 0xD0)),
    "gb18030": Known(gettext_noop("GB 18030, simplified Chinese"), "gb18030", range(0xB0, 0xD8)),
    "big5": Known(gettext_noop("Big5, traditional Chinese"), "big5", range(0xA4, 0xC7)),
    "euc-kr": Known(gettext_noop("EUC-KR, Korean"), "cp949", range(0xB0, 0xC9)),
}


def known(name: str) -> Known:
    """Raises InputError where there is no such encoding."""
    try:
        return ENCODINGS[name]
    except KeyError:
        words = gettext_noop("There is no encoding %(name)r; known are %(names)s.")
        raise fault(words, where="encoding", name=name[:40], names=", ".join(ENCODINGS)) from None


@dataclass(frozen=True)
class Offer:
    """An encoding in which a text can be read, and how some of its words with more than ASCII read then."""

    name: str
    words: tuple[str, ...]

    @property
    def title(self) -> str:
        return _(ENCODINGS[self.name].title)


class EncodingNeededError(InputError):
    """A text is neither UTF-8 nor marked as UTF-16. `offers` has the encoding that it seems to be first."""

    offers: list[Offer]


def encoding_of(stored: StoredFile, wanted: str = "") -> str:
    """The name of the encoding to read the file in, "" where it says so itself: `wanted`, else the one that
    it was imported in.

    Raises EncodingNeededError where somebody has to say it, and InputError where `wanted` cannot be it: there
    is no such one, the file is no text, or items are there of an import in another one, where its columns may
    have other names, by which those are hidden that nobody who labels may see.
    """
    if wanted:
        known(wanted)
    imported = set(_imported(stored))
    if imported:
        if wanted and wanted.replace(UTF8, "") not in imported:
            words = gettext_noop(
                "This file was imported in the encoding “%(encoding)s”. Take that import back first to read "
                "it in another one."
            )
            raise fault(words, where="encoding", encoding=min(imported) or UTF8)
        return wanted.replace(UTF8, "") if wanted else min(imported)
    with open_file(stored) as file:
        timed = DeadlineFile(file, Deadline.of_a_look(), stored.original_name)
        if wanted:
            if not _is_text(timed):
                words = gettext_noop("This file is no text, and has no encoding: leave that out.")
                raise fault(words, where="encoding")
            return "" if wanted == UTF8 else wanted
        try:
            sample = _sample(timed, most=LOOKED_AT)
        except ImportLimitError:
            raise
        except InputError:
            sample = None  # whoever reads it says what is wrong
        if sample is None or _reads_as(sample, UTF8) is not None:
            return ""
    raise needed(_offers(sample))


def needed(offers: list[Offer]) -> EncodingNeededError:
    if offers:
        words = gettext_noop(
            "This text is not UTF-8. Say its encoding: it seems to be %(encoding)s, and would then have "
            "words like these: %(shown)s. Others are possible: %(others)s."
        )
        others = ", ".join(offer.name for offer in offers[1:]) or "–"
        shown = ", ".join(offers[0].words)
        error = fault(
            words,
            where="encoding",
            raised_as=EncodingNeededError,
            encoding=offers[0].name,
            shown=shown,
            others=others,
        )
    else:
        words = gettext_noop("This text is in no encoding that is known here. Save the file as UTF-8.")
        error = fault(words, where="encoding", raised_as=EncodingNeededError)
    assert isinstance(error, EncodingNeededError)  # noqa: S101
    error.offers = offers
    return error


def offers_for(stored: StoredFile) -> list[Offer]:
    """Encodings in which the file may be, the likeliest first; none of what is no text, or all ASCII."""
    with open_file(stored) as file:
        sample = _sample(DeadlineFile(file, Deadline.of_a_look(), stored.original_name), most=None)
    return _offers(sample) if sample else []


def _imported(stored: StoredFile) -> Iterator[str]:
    """Encodings of imports of the file of which items are there, or will be."""
    imports = stored.project.jobs.filter(kind="import", params__file=stored.pk)
    for state, params, result in imports.values_list("state", "params", "result"):
        if state in UNFINISHED or (result.get("added") and not result.get("removed")):
            yield str(params.get("encoding", ""))


def as_encoded(file: IO[bytes], encoding: str, deadline: Deadline, where: str) -> DeadlineFile:
    """The file, with a deadline; a text in another encoding as UTF-8. Of an archive what is in it is."""
    file.seek(0)
    if not encoding or file.read(4).startswith(ZIP):
        timed = DeadlineFile(file, deadline, where)
        timed.encoding = encoding
        return timed
    timed = DeadlineFile(as_utf8(unpacked(file), ENCODINGS[encoding].codec), deadline, where)
    comes_from(timed, file)
    return timed


def in_encoding_of(archive: IO[bytes] | None, inner: IO[bytes]) -> IO[bytes]:
    """A file in an archive, from its start, as UTF-8 if somebody said its encoding."""
    encoding = getattr(archive, "encoding", "")
    inner.seek(0)
    is_other = bool(encoding) and not inner.read(16).startswith(NO_TEXT)
    inner.seek(0)
    return as_utf8(inner, ENCODINGS[encoding].codec) if is_other else inner


# --- What is looked at --------------------------------------------------------------------------------------


def _is_text(file: IO[bytes]) -> bool:
    """Whether it may be text: an archive of texts is, too."""
    file.seek(0)
    head = file.read(16)
    return head.startswith(ZIP) or not head.startswith(NO_TEXT)


def _sample(file: IO[bytes], *, most: int | None) -> list[bytes] | None:
    """What its encoding is told by (`_telling`); None of what is no text, or says itself what it is."""
    file.seek(0)
    if not _is_text(file):
        return None
    file.seek(0)
    if file.read(4).startswith(ZIP):
        return _sample_of_archive(file)
    plain = unpacked(file)
    head = plain.read(4096)
    if head.startswith((UTF8_BOM, *UTF16_BOMS, *NO_TEXT)):
        return None
    if b"\0" in head:
        return _of_utf16(head)
    file.seek(0)
    return _telling(_lines(unpacked(file), most))


def _lines(file: IO[bytes], most: int | None) -> Iterator[bytes]:
    """Pieces of lines: of a file that is one line, too, only so much is held."""
    left = most if most is not None else 1 << 62
    while left > 0 and (line := file.readline(min(BLOCK, left))):
        left -= len(line)
        yield line


CONTINUED = bytes(range(0x80, 0xC0))
"""What no character of UTF-8 begins with: a piece of a long line may."""


def _telling(lines: Iterable[bytes]) -> list[bytes]:
    """Pieces of lines with more than ASCII in them: of those that are no UTF-8, else of all."""
    decoder = codecs.getincrementaldecoder(UTF8)()  # a piece may end within a character
    wrong: list[bytes] = []
    right: list[bytes] = []
    for line in lines:
        try:
            decoder.decode(line)
        except UnicodeDecodeError as error:
            decoder.reset()
            word = max(error.object.rfind(mark, 0, error.start) for mark in (b" ", b",", b";", b"\t", b'"'))
            start = word + 1 if error.start - word < LINE_BYTES // 2 else error.start
            wrong.append(error.object[start : start + LINE_BYTES])
            if len(wrong) == LINES:
                break
        else:
            if not line.isascii() and len(right) < LINES:
                right.append(line.lstrip(CONTINUED)[:LINE_BYTES])
    return wrong or right


def _of_utf16(head: bytes) -> list[bytes] | None:
    """The beginning of a text in UTF-16 without its mark: of Latin letters every other byte is zero."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    is_text = max(even, odd) > 3 * min(even, odd) and even + odd > len(head) // 8
    return [head] if is_text else None


def _sample_of_archive(file: IO[bytes]) -> list[bytes] | None:
    """Of a table, or of texts, in a zip archive; what else is in it is none, or says itself what it is."""
    try:
        with open_archive(file) as archive:
            content = content_of(archive)
            tables = tables_in(archive)
            texts = [path for path in content if is_text_item(path)] if not tables else []
            if len(tables) > 1:
                return None
            lines: list[bytes] = []
            left = LOOKED_AT
            for path in islice((*tables, *texts), TEXTS_LOOKED_AT):
                with file_in(archive, content[path], path) as inner:
                    read = inner.read(left if tables else min(left, BLOCK))
                left -= len(read)
                if not read.startswith((UTF8_BOM, *UTF16_BOMS, *NO_TEXT)) and b"\0" not in read:
                    lines += read.splitlines(keepends=True)
            return _telling(lines)
    except InputError:
        return None  # whoever reads it says what is wrong


# --- What it seems to be ------------------------------------------------------------------------------------

_BETWEEN = re.compile(r"[\s,;\t\"{}\[\]():|<>]+")


def _offers(sample: list[bytes]) -> list[Offer]:
    """Those in which the sample can be read. Of several that give the same words the first stands for all."""
    found: dict[tuple[str, ...], tuple[float, str]] = {}
    for name, one in ENCODINGS.items():
        text = _reads_as(sample, name)
        if text is None:
            continue
        words = [word for word in _BETWEEN.split(text) if word]
        if _told_by_all(name):
            words = [word for word in words if not word.isascii()]
        shown = tuple(dict.fromkeys(word[:WORD_CHARACTERS] for word in words))[:WORDS]
        likely = likeliness(words, one.codec, one.common) + one.frequent
        if shown and (shown not in found or likely > found[shown][0] + 0.2):
            found[shown] = (likely, name)
    ranked = sorted(found.items(), key=lambda entry: -entry[1][0])
    return [Offer(name, shown) for shown, (_likely, name) in ranked[:OFFERED]]


def _told_by_all(name: str) -> bool:
    """Whether ASCII is the same in it: then words of nothing else tell nothing."""
    return not name.startswith("utf-16")


def _reads_as(sample: list[bytes], name: str) -> str | None:
    if any(b"\0" in piece for piece in sample) == _told_by_all(name):
        return None
    codec = codecs.getincrementaldecoder(known(name).codec)
    try:
        text = "\n".join(codec().decode(piece) for piece in sample)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text  # no text has it, and none with it is read
