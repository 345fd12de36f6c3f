"""Places of problems are words for people, and a line and a column for programs."""

import copy

from annotation.imports.rows import at_column
from annotation.jobs.places import Place, line_and_column, place_of_line, within


def test_parts_of_a_place_keep_its_line() -> None:
    line = place_of_line(7)
    assert (line, line_and_column(line)) == ("line 7", (7, ""))
    assert line_and_column(at_column(line, "text")) == (7, "text")
    assert line_and_column(within(line, "%(where)s, label %(number)s", where=line, number=2)) == (7, "")
    assert line_and_column("line 7") == (None, "")
    assert line_and_column(within("sheet “A”, row 7", "B", of_column="text")) == (None, "text")


def test_a_copy_of_a_place_is_whole() -> None:
    place = copy.copy(at_column(place_of_line(3), "a"))
    assert (place, line_and_column(place)) == ("line 3, column “a”", (3, "a"))
    assert isinstance(place, Place)
    assert place.params == at_column(place_of_line(3), "a").params
