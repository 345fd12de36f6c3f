"""Where a problem of a job lies: words for people, line and column for programs."""


class Place(str):
    """The words, such as "line 3"; `line` is None and `column` "" where there is none."""

    __slots__ = ("column", "line")

    line: int | None
    column: str

    def __new__(cls, words: str, line: int | None = None, column: str = "") -> "Place":
        place = super().__new__(cls, words)
        place.line, place.column = line, column
        return place


def place_of_line(number: int) -> Place:
    return Place(f"line {number}", number)


def within(place: str, words: str, column: str = "") -> Place:
    """A part of a place: `words` say which."""
    return Place(words, line_and_column(place)[0], column)


def line_and_column(place: str) -> tuple[int | None, str]:
    return (place.line, place.column) if isinstance(place, Place) else (None, "")
