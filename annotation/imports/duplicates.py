"""Whether an import would add items once more that are in the project already, under other names."""

from django.utils.translation import gettext as _, ngettext

from annotation.errors import ConflictError
from annotation.imports.check import Check, check_import
from annotation.imports.mapping import Mapping
from annotation.models import StoredFile

# Where items have no id of their own, so many rows are the least, and one in so many, from which it is asked:
# short texts repeat themselves.
LEAST_ROWS = 2
ONE_IN = 10
FIELD = "add_duplicates"


def doubling(*, stored_file: StoredFile, mapping: Mapping, format_name: str, check: Check) -> str:
    """Why it should be asked first, in a sentence; "" where nothing is doubled, as far as `check` looked."""
    if _named_otherwise(stored_file, mapping, format_name):
        return _(
            "This file was imported before, with another column as the name of the item: all its rows would "
            "be in the project twice."
        )
    if mapping.id_column or check.again < max(LEAST_ROWS, -(-check.rows // ONE_IN)):
        return ""
    words = ngettext(
        "Of %(rows)s row that was looked at %(again)s is in the project already, under another name.",
        "Of %(rows)s rows that were looked at %(again)s are in the project already, under other names.",
        check.rows,
    )
    words += " " + _("Choose a column that names the items, or leave out these rows.")
    return words % {"rows": f"{check.rows:,}", "again": f"{check.again:,}"}


def refuse_doubling(*, stored_file: StoredFile, mapping: Mapping, format_name: str) -> None:
    """Raises ConflictError where the import would double items, as far as a quick look at the file shows."""
    if not stored_file.project.items.exists():
        return
    check = Check()
    if not mapping.id_column:
        check = check_import(stored_file=stored_file, mapping=mapping, format_name=format_name)
    if reason := doubling(stored_file=stored_file, mapping=mapping, format_name=format_name, check=check):
        words = _("To add them all the same, say so (add_duplicates).")
        raise ConflictError(f"{reason} {words}", where=FIELD)


def _named_otherwise(stored: StoredFile, mapping: Mapping, format_name: str) -> bool:
    """Whether items are there of an import of the same bytes that took their names from elsewhere."""
    imports = stored.project.jobs.filter(kind="import", params__file=stored.pk, params__format=format_name)
    return any(
        result.get("positions") and params["id_column"] != mapping.id_column
        for params, result in imports.values_list("params", "result")
    )
