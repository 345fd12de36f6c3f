"""Names of columns that importers give, and that hold what models and people of another program said."""

from collections.abc import Iterable

LABEL_STUDIO = "label_studio"
"""All of a Label Studio task but its data."""
PREDICTED = (".label", ".score")
"""Endings of the columns with what one version of a model predicted."""
# Behind the name of a question in Argilla: what a model suggested, and what people answered.
SUGGESTION = ".suggestion"
RESPONSES = ".responses"
SCORE, AGENT, USERS, STATUS = ".score", ".agent", ".users", ".status"
# With Label Studio's own lists, as a file has them that was read as something else.
RESERVED = frozenset({LABEL_STUDIO, "annotations", "completions", "predictions"})


def model_output(columns: Iterable[str]) -> frozenset[str]:
    """Those of a project's, or of a file's, columns that nobody who labels may see."""
    names = set(columns)
    found = names & RESERVED
    if LABEL_STUDIO in names:
        found |= {name for name in names if name.endswith(PREDICTED)}
    for name in names:
        if name.endswith(SUGGESTION) and name + SCORE in names:
            found |= names & {name, name + SCORE, name + AGENT}
        if name.endswith(RESPONSES) and name + USERS in names:
            found |= names & {name, name + USERS, name + STATUS}
    return frozenset(found)
