"""The tables of errors in docs/, made from the registry: `python -m tests.error_table` writes them."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import django

DOCS = Path(__file__).resolve().parent.parent / "docs"
ERRORS, FIELD_ERRORS = DOCS / "errors.csv", DOCS / "field-errors.csv"


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def written() -> dict[Path, str]:
    """The files as they have to be."""
    from annotation.error_codes import FAULT_CODES, codes_by_status

    known = [known for codes in codes_by_status().values() for known in codes]
    errors = [(one.code, one.status, one.title, one.remedy) for one in known]
    return {
        ERRORS: as_csv([("code", "status", "what it means", "what to do"), *errors]),
        FIELD_ERRORS: as_csv([("code", "what it means"), *FAULT_CODES.items()]),
    }


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
    django.setup()
    for file, text in written().items():
        file.write_text(text)
