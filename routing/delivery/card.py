"""The data card of a delivery: what is in it, what is promised, and what is not.

No time, so that it stays the same.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

from routing.delivery.base import Row
from routing.models import Run


@dataclass
class Counts:
    """Rows written so far."""

    rows: int = 0
    by_source: Counter[str] = field(default_factory=Counter)
    by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def blanks(self) -> int:
        return self.by_reason.total()

    def add(self, row: Row) -> None:
        self.rows += 1
        if row.label is None:
            self.by_reason[row.reason or ""] += 1
        else:
            self.by_source[row.source or ""] += 1


def card(run: Run, counts: Counts) -> str:
    """Markdown. Names that people typed stand in code spans, so that they are text and nothing else."""
    result = json.loads(run.certificate.document)["result"]
    lines = [f"# {_code(run.project.name)}, run {run.number}", ""]
    if run.invalid_reason:
        lines += ["**This run is marked invalid; its certificate no longer holds:**", ""]
        lines += [*(f"- {_code(reason)}" for reason in run.invalid_reason.split("\n")), ""]
    if counts.by_reason["it waits for a person"]:
        lines += ["**This delivery is partial: people have not labelled everything yet.**", ""]
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
        "`labels.csv` puts an apostrophe before cells that a spreadsheet would take for a formula: those "
        "that start with =, +, -, @, a tab or a carriage return, plain negative numbers apart. "
        "`labels.jsonl` holds every value as it is.",
        "",
        "To recompute the certificate, in a checkout of HyPAC: "
        "`.venv/bin/python -m routing.core.verify CERTIFICATE DRAW`, with the paths of this delivery's "
        "`certificate.json` and `draw.jsonl`. A downloaded file has run and delivery before its name.",
    ]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """A code span whose content cannot end it."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
