"""Where a problem of a job lies: words for people, line and column for programs."""

from typing import Self

from django.utils.translation import gettext_noop

from annotation.words import Words

LINE = gettext_noop("line %(line)s")
ENTRY = gettext_noop("line %(line)s, entry %(entry)s")
RECORD = gettext_noop("record %(record)s")
ROW = gettext_noop("%(place)srow %(row)s")


class Place(Words):
    """The words, such as "line 3"; `line` is None and `column` "" where there is none."""

    __slots__ = ("column", "line")

    line: int | None
    column: str

    @classmethod
    def of(cls, english: str, template: str, line: int | None = None, /, **named: str) -> Self:
        """With the English words as well: each row of a file has a place, and few places are ever read."""
        place = str.__new__(cls, english)
        place.template, place.named, place.line, place.column = template, dict(named), line, ""
        return place


def place_of_line(number: int) -> Place:
    return Place.of(f"line {number}", LINE, number, line=str(number))


def place_in_line(number: int, entry: int) -> Place:
    return Place.of(f"line {number}, entry {entry}", ENTRY, number, line=str(number), entry=str(entry))


def place_of_record(number: int) -> Place:
    return Place.of(f"record {number}", RECORD, record=str(number))


def place_of_row(number: int | str, place: str = "") -> Place:
    """A row of a table that has no lines; `place` stands before it."""
    return Place.of(f"{place}row {number}", ROW, place=place, row=str(number))


def within(place: str, words: str, *, of_column: str = "", **named: str | int) -> Place:
    """A part of a place: the template `words` says which, and names the place, too."""
    part = Place(words, **named)
    part.line, part.column = line_and_column(place)[0], of_column
    return part


def place_in(file: str, place: str) -> Place:
    """A place of a file that is itself a part of another one: no line of that."""
    return Place.of(f"{file}, {place}", "%(file)s, %(place)s", file=file, place=place)


def line_and_column(place: str) -> tuple[int | None, str]:
    return (place.line, place.column) if isinstance(place, Place) else (None, "")
