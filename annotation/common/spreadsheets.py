"""Cells of tables that a spreadsheet opens: a formula in one can send data away, and is made text."""

import re

# What begins a formula, in every width that spreadsheets read as one.
_SIGNS = "=+@＝＋＠﹦﹢﹫\\-－﹣"
# What some programs cut off before they look: blanks of all kinds, controls, marks without a width.
_BLANK = r"\s\x00-\x1f\x7f\x85\xa0\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
# Also behind apostrophes, so that one can be told that was put there.
_FORMULA = re.compile(rf"'*+(?:[\t\r\n]|[{_BLANK}]*+[{_SIGNS}])")
_NUMBER = re.compile(r" *+-[0-9]+(?:\.[0-9]+)?")
# Only of a cell that begins with one of these `escape_formula` makes another.
FIRST = frozenset(filter(re.compile(f"['{_BLANK}{_SIGNS}]").match, map(chr, range(0x10000))))


def escape_formula(cell: str) -> str:
    """The cell, with an apostrophe in front where a spreadsheet would take it for a formula. A plain negative
    number is none.
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unescape_formula(cell: str) -> str:
    """The cell of which `escape_formula` made this one."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
