"""What is wrong with columns that read like the answers of a model, in a sentence each that says what to do.

Nothing is repeated of the cells while a run is open: whoever labels in it could read there what a model said.
"""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _

from routing.sources.backends.cells import decimal_cell
from routing.sources.usability import EXAMPLES, SHOWN


def no_labels(unknown: Sequence[str], given: int, *, show: bool, mendable: bool) -> str:
    """Of its answers: some are no labels of the project."""
    said = _("%(unknown)s of %(count)s answers looked at are no labels of this project%(examples)s.") % {
        "unknown": len(unknown),
        "count": given,
        "examples": _examples(unknown, show),
    }
    if mendable:
        what = _(
            "Use it, and say on the next page which labels they mean; or take the import back on its page, "
            "correct the file and import it again."
        )
        return f"{said} {what}"
    return f"{said} {_in_the_file()}"


def no_shares(column: str, cells: Iterable[object], *, used: bool, show: bool) -> str:
    """Of what says how sure it is: some are no shares; "" where all are. `used` is whether it is read."""
    given = [text for cell in cells if cell is not None and (text := str(cell).strip())]
    wrong = [text for text in given if not is_share(text)]
    if not wrong:
        return ""
    values = {
        "column": column,
        "unknown": len(wrong),
        "count": len(given),
        "examples": _examples(wrong, show),
    }
    if used:
        said = _(
            "%(unknown)s of %(count)s values of “%(column)s” are no numbers from 0 to 1%(examples)s: these "
            "answers cannot be used, the others can."
        )
    else:
        said = _(
            "“%(column)s” is left out: %(unknown)s of %(count)s of its values are no numbers from 0 to "
            "1%(examples)s. How sure a model is stands there as 0.87, say."
        )
    return f"{said % values} {_in_the_file()}"


def no_answers(column: str) -> str:
    """A column says how sure somebody is, and none says of what."""
    return _(
        "“%(column)s” seems to say how sure a model was, but no column holds its answers. Where they were "
        "forgotten, take the import back on its page, add them to the file as a column “%(missing)s”, say, "
        "and import it again."
    ) % {"column": column, "missing": "model_label"}


def is_share(text: str) -> bool:
    value = decimal_cell(text)
    return value is not None and 0 <= value <= 1


def _in_the_file() -> str:
    return _("To mend it, take the import back on its page, correct the file and import it again.")


def _examples(cells: Iterable[str], show: bool) -> str:
    if not show:
        return ""
    return " (" + ", ".join(f"“{cell[:SHOWN]}”" for cell in list(dict.fromkeys(cells))[:EXAMPLES]) + ")"
