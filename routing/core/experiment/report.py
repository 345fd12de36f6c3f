"""The rows of an experiment as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from routing.core.experiment.summary import Row


def as_json(rows: Sequence[Row]) -> str:
    """A JSON list, one object per row."""
    return json.dumps([asdict(row) for row in rows], indent=1, allow_nan=False) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """The same columns as CSV."""
    file = io.StringIO()
    writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return file.getvalue()


def as_markdown(rows: Sequence[Row]) -> str:
    """A table in per cent, as the paper prints it: mean (standard deviation).

    Columns of settings that are the same in all rows stand above the table.
    """
    settings = {
        "table": [row.table for row in rows],
        "target": [row.target for row in rows],
        "epsilon": [f"{row.epsilon:g}" for row in rows],
        "m": [str(row.m) for row in rows],
        "severity": ["" if row.severity is None else f"{row.severity:g}" for row in rows],
    }
    constant = {name: values[0] for name, values in settings.items() if len(set(values)) == 1}
    above = [f"{name} {value}" for name, value in constant.items() if value]
    if rows and rows[0].severity is not None:
        above.append(f"drift {rows[0].drift:g}")
    if rows:
        above += [f"N {rows[0].items:,}", f"alpha {rows[0].alpha:g}", f"p {rows[0].p:.4g}"]
        above += [f"{rows[0].repeats} repeats", f"seed {rows[0].seed}"]
    varying = [name for name in settings if name not in constant]
    header = [
        *varying,
        "rule",
        "bound",
        "error %",
        "95 % quantile",
        "test error %",
        "P(error > epsilon) [95 %]",
        "routing saving %",
        "net saving %",
        "labels",
    ]
    lines = [", ".join(above), "", _line(header), _line(["---"] * len(header))]
    for index, row in enumerate(rows):
        lines.append(
            _line(
                [
                    *(settings[name][index] for name in varying),
                    row.rule if row.holds_level else f"{row.rule} *",
                    row.bound or "none",
                    _pair(row.error_mean, row.error_sd),
                    f"{100 * row.error_q95:.2f}",
                    _pair(row.test_error_mean, row.test_error_sd),
                    f"{row.violation_rate:.2f} [{row.violation_low:.2f}, {row.violation_high:.2f}]",
                    _pair(row.routing_saving_mean, row.routing_saving_sd),
                    _pair(row.net_saving_mean, row.net_saving_sd),
                    f"{row.human_labels_mean:,.0f}",
                ]
            )
        )
    covered = [row for row in rows if not row.severity and row.alpha < 0.5]
    if covered:
        lines += ["", _finite(covered)]
    if any(not row.holds_level for row in rows):
        lines += ["", "\\* does not promise to keep P(error > epsilon) at most alpha."]
    if any(row.severity for row in rows):
        lines += [
            "",
            "No certificate covers a shifted deployment: at a severity above 0 every row has a star.",
        ]
    return "\n".join(lines) + "\n"


def _finite(rows: Sequence[Row]) -> str:
    """The paper's theorem on finite test sets in words, for every epsilon and m; no shift is covered."""
    bounds = {(row.epsilon, row.m): row.test_bound for row in rows}
    listed = ", ".join(f"{100 * bound:.2f} (ε = {e:g}, m = {m:,})" for (e, m), bound in bounds.items())
    return (
        f"ε + t of the paper's theorem on finite test sets, in per cent: {listed}. The test error of a rule "
        f"that holds its level for the population stays below with probability {1 - 2 * rows[0].alpha:g}."
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _pair(mean: float, deviation: float) -> str:
    return f"{100 * mean:.2f} ({100 * deviation:.2f})"
