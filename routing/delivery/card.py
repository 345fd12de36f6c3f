"""The data card of a delivery: what is in it, what is promised, and what is not.

No time, so that it stays the same.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from routing.delivery.base import Page
from routing.models import Run

ESCAPED = ("labels.csv", "labels.tsv")
"""Files for spreadsheets, in which cells that would start a formula are not exact."""


@dataclass
class Counts:
    """Rows written so far."""

    rows: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def blanks(self) -> int:
        return self.by_reason.total()

    def add(self, page: Page) -> None:
        self.rows += len(page)
        labels, reasons, sources = (page.columns[name] for name in ("label", "reason", "source"))
        rows = zip(labels, reasons, sources, strict=True)
        blank, given = [], []
        for label, reason, source in rows:
            if label is None:
                blank.append(reason or "")
            else:
                given.append(source or "")
        self.by_reason.update(blank)
        self.by_source.update(given)


def card(run: Run, counts: Counts, names: Sequence[str]) -> str:
    """Markdown. Names that people typed stand in code spans, so that they are text and nothing else. `names`
    are those of the files with the rows.
    """
    result = json.loads(run.certificate.document)["result"]
    lines = [f"# {_code(run.project.name)}, run {run.number}", ""]
    if run.invalid_reason:
        lines += ["**This run is marked invalid; its certificate no longer holds:**", ""]
        lines += [*(f"- {_code(reason)}" for reason in run.invalid_reason.split("\n")), ""]
    if counts.by_reason["it waits for a person"]:
        lines += ["**This delivery is partial: people have not labelled everything yet.**", ""]
        if result["certified"]:
            lines += [
                "What is certified is a share of the whole, once people have labelled the rest. Of the "
                "labels that are here so far, a larger share may be wrong: those by people, which count as "
                "right, are still to come.",
                "",
            ]
    lines += [
        str(result["sentence"]),
        "",
        f"- Certificate: {run.certificate.sha256}",
        f"- Rows: {counts.rows}",
        f"- Without a label: {counts.blanks}",
        *(f"  - {_code(reason)}: {number}" for reason, number in sorted(counts.by_reason.items())),
        "- Labels by source:",
        *(f"  - {_code(source)}: {number}" for source, number in sorted(counts.by_source.items())),
        "",
        *_on_formulas(names),
        "All rows are as they were at one moment, whatever people did while the files were written.",
        "",
        "To recompute the certificate, in a checkout of HyPAC: "
        "`.venv/bin/python -m routing.core.verify CERTIFICATE DRAW`, with the paths of this delivery's "
        "`certificate.json` and `draw.jsonl`. A downloaded file has run and delivery before its name.",
    ]
    return "\n".join(lines) + "\n"


def _on_formulas(names: Sequence[str]) -> list[str]:
    """What stands in the files for spreadsheets that is not exact."""
    escaped = [f"`{name}`" for name in names if name in ESCAPED]
    exact = [f"`{name}`" for name in names if name not in ESCAPED]
    lines = []
    if escaped:
        verb = "puts" if len(escaped) == 1 else "put"
        lines.append(
            f"{' and '.join(escaped)} {verb} an apostrophe before cells that a spreadsheet would take for a "
            "formula: those that start with =, +, -, @, a tab or a carriage return, plain negative numbers "
            "apart. "
        )
    if exact:
        verb = "holds" if len(exact) == 1 else "hold"
        lines.append(f"{' and '.join(exact)} {verb} every value as it is.")
    return ["".join(lines).strip(), ""]


def _code(text: str) -> str:
    """A code span whose content cannot end it."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
