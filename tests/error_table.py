"""The table of errors in docs/api.md, made from the registry: `python -m tests.error_table` writes it."""

from pathlib import Path

import django

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "api.md"
BEGIN, END = "<!-- made by `python -m tests.error_table` -->\n", "<!-- end -->\n"


def table() -> str:
    from annotation.error_codes import FAULT_CODES, codes_by_status

    rows = ["| code | status | what it means | what to do |", "|---|---|---|---|"]
    for status, codes in codes_by_status().items():
        rows += [f"| `{known.code}` | {status} | {known.title} | {known.remedy} |" for known in codes]
    rows += ["", "#### Codes of fields", "", "| code | what it means |", "|---|---|"]
    rows += [f"| `{code}` | {words} |" for code, words in FAULT_CODES.items()]
    return "\n".join(rows) + "\n"


def written() -> str:
    """The document with the table as it has to be."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
    django.setup()
    DOCUMENT.write_text(written())
