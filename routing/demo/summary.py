"""What the demonstration shows at its end: the promise, and beside it the truth that is known here."""

import csv
import io
import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.models import Label
from annotation.services.files import open_file
from routing.demo.digits import DigitsPool
from routing.models import Delivery, Run
from routing.selectors.runs import RunReport, run_report

LINE = 110  # characters


@dataclass(frozen=True)
class Summary:
    data: dict[str, Any]
    lines: list[str]

    @property
    def kept_its_promise(self) -> bool:
        return bool(self.data["certified"]) and self.data["delivered_error"] <= self.data["epsilon"]


def summarise(
    *, run: Run, delivery: Delivery, pool: DigitsPool, folder: Path, seconds: dict[str, float]
) -> Summary:
    """Compare the delivered labels with the truth; write them and `summary.json` to `folder`."""
    files = _copy_files(delivery, folder / "delivered")
    truth = json.loads(pool.truth_file.read_text())
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].read_text(encoding="utf-8"))))
    wrong = _wrong_labels(run, rows, truth)
    by_source: dict[str, int] = {}
    for row in rows:
        by_source[row["source"]] = by_source.get(row["source"], 0) + 1
    report = run_report(run)
    human_calibration = Label.objects.filter(
        work_item__batch_id=run.calibration_batch_id, supersedes__isnull=True
    ).count()
    data = {
        "epsilon": float(run.epsilon),
        "alpha": float(run.alpha),
        "target": run.target,
        "thresholds": run.certificate.thresholds,
        "certified": run.certificate.certified,
        "allowed_errors": report.allowed_errors,
        "observed_errors": report.observed_errors,
        "delivered_error": wrong / len(rows),
        "routing_saving": float(report.routing_saving or 0),
        "net_saving": float(report.net_saving or 0),
        "labels_by_source": by_source,
        "human_labels_calibration": human_calibration,
        "seconds": seconds,
    }
    path = folder / "summary.json"
    path.write_text(json.dumps(data, indent=2) + "\n")
    files["summary.json"] = path
    return Summary(data, _lines(report, data, pool, wrong, len(rows), files))


def _wrong_labels(run: Run, rows: list[dict[str, str]], truth: dict[str, str]) -> int:
    """Delivered labels that differ from the truth; a blank counts as wrong."""
    images = dict(run.project.items.values_list("external_id", "image__sha256"))
    return sum(row["label"] != truth[images[row["external_id"]]] for row in rows)


def _copy_files(delivery: Delivery, folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for entry in delivery.files.select_related("file"):
        paths[entry.name] = folder / entry.name
        with open_file(entry.file) as content:
            paths[entry.name].write_bytes(content.read())
    return paths


def _lines(
    report: RunReport,
    data: dict[str, Any],
    pool: DigitsPool,
    wrong: int,
    rows: int,
    files: dict[str, Path],
) -> list[str]:
    thresholds = ", ".join(
        f"u{k} = {'none' if threshold is None else format(threshold['u'], '.4f')}"
        for k, threshold in enumerate(data["thresholds"], start=1)
    )
    verdict = (
        "at most epsilon, as promised" if data["delivered_error"] <= data["epsilon"] else "MORE THAN EPSILON"
    )
    sources = ", ".join(f"{name} {count:,}" for name, count in sorted(data["labels_by_source"].items()))
    facts = [
        ("Thresholds on the uncertainty", thresholds),
        ("Certificate", report.sentence),
        (
            "Errors in the calibration set",
            f"{data['observed_errors']} observed, {data['allowed_errors']} allowed "
            f"({data['human_labels_calibration']} labels by people)",
        ),
        (
            "True error of the delivered data",
            f"{wrong} of {rows:,} = {data['delivered_error']:.2%}, epsilon {data['epsilon']:.0%}: {verdict}",
        ),
        (
            "Mistakes of the models alone",
            "; ".join(f"{m.name.lower()} {m.error:.1%}" for m in (pool.fast, pool.slow)),
        ),
        ("Net saving (everything paid)", f"{data['net_saving']:.1%}"),
        ("Routing saving (paper's measure)", f"{data['routing_saving']:.1%}"),
        ("Labels by source", sources),
    ]
    width = max(len(name) for name, _ in facts)
    lines = []
    for name, text in facts:
        first, *more = textwrap.wrap(text, LINE - width - 2)
        lines += [f"{name:<{width}}  {first}", *(" " * (width + 2) + line for line in more)]
    return [*lines, "Files", *(f"  {path}" for path in sorted(files.values()))]
