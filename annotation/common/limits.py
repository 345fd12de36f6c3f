"""How much people may store in a project, and how much of it one page or answer shows: no page's work grows
without limit with what somebody else stored.

What an answer may hold each task type says (annotation.task_types), what a file may produce
annotation.imports.limits.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Length

from annotation.errors import ConflictError

# --- Stored: refused beyond ---------------------------------------------------------------------------------

GUIDELINES = 50_000
"""Characters."""
AUDITED, AUDITED_BEGINNING = GUIDELINES, 2_000
"""Characters of one text in the audit trail; of a longer one so many, its length and its SHA-256 are kept."""
ITEM_FIELDS = 30
"""Columns of an item that people read: more than these nobody reads on one screen. Of all of them together so
many characters are shown as one cell may have (HYPAC_MAX_CELL_CHARACTERS)."""
MEMBERS = 2_000
SOURCES = 50
PRICES = 200
RUNS = 1_000
"""Each of a project; webhooks, connections and tokens have theirs where they are made."""
COMMENTS = 500
"""Of an item, flags among them."""


def refuse_more(rows: QuerySet[Any], most: int, words: str, *, code: str) -> None:
    """Raise ConflictError with `code` and `words`, which may name `most`, where there are so many rows.
    Call it with what they belong to locked, so that two at once do not make one too many.
    """
    if rows.order_by()[:most].count() >= most:
        raise ConflictError(words % {"most": f"{most:,}"}, code=code)


# --- Shown: the rest is said to be there --------------------------------------------------------------------

MARKDOWN = 20_000
"""Characters of an item that are shown as Markdown; a longer one is shown as plain text."""
NAME = 200
"""Characters of a column's name."""
CELL = 400
"""Characters of an imported column of an item, or of a cell of the first rows of a file."""
LISTED = 100
"""Rows of a list that stands among others on a page: the newest."""
RUNS_LISTED = 20
"""Runs, or deliveries, of one page or of an item: the newest."""
LONG_TEXT = 20_000
"""Characters of one answer of a model, or of what it was asked."""
OPTIONS = 1_000
"""Entries of a menu."""
PAGE_CHARACTERS = 10_000_000
"""Texts of the items or answers on one page of the API, or of those that are read together: a page that would
have more ends earlier."""


def characters_of(columns: Sequence[str]) -> Combinable:
    """How many characters these columns, by their paths, have together."""
    return sum((Coalesce(Length(Cast(name, TextField())), 0) for name in columns), Value(0))
