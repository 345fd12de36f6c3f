"""What the demonstration shows at its end: the promise, and beside it the truth that is known here."""

import csv
import io
import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.common.files import open_file
from annotation.models import Label
from routing.demo.measured import measured_models, spend
from routing.demo.scene import Pool, content_key
from routing.models import Delivery, Run
from routing.runs.queries import RunReport, run_report

LINE = 110  # characters


@dataclass(frozen=True)
class Summary:
    data: dict[str, Any]
    lines: list[str]

    @property
    def kept_its_promise(self) -> bool:
        certified = bool(self.data["certified"]) and bool(self.data["verified"])
        return certified and self.data["delivered_error"] <= self.data["epsilon"]


def summarise(
    *, run: Run, delivery: Delivery, pool: Pool, folder: Path, seconds: dict[str, float]
) -> Summary:
    """Compare the delivered labels with the truth; write them and `summary.json` to `folder`."""
    files = _copy_files(delivery, folder / "delivered")
    truth = json.loads(pool.truth_file.read_text())
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].read_text(encoding="utf-8"))))
    right = _right_labels(run, truth)
    names = dict(run.project.items.values_list("external_id", "pk"))
    # A blank counts as wrong.
    wrong = sum(row["label"] != right[names[row["external_id"]]] for row in rows)
    by_source: dict[str, int] = {}
    for row in rows:
        by_source[row["source"]] = by_source.get(row["source"], 0) + 1
    said, agrees = _verify(files)
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
        "verified": agrees,
        "allowed_errors": report.allowed_errors,
        "observed_errors": report.observed_errors,
        "delivered_error": wrong / len(rows),
        "routing_saving": float(report.routing_saving or 0),
        "net_saving": float(report.net_saving or 0),
        "labels_by_source": by_source,
        "human_labels_calibration": human_calibration,
        "models": measured_models(run, right),
        "spend": spend(run),
        "budget": None if run.budget is None else float(run.budget),
        "seconds": seconds,
    }
    path = folder / "summary.json"
    path.write_text(json.dumps(data, indent=2) + "\n")
    files["summary.json"] = path
    return Summary(data, _lines(report, data, pool, wrong, len(rows), files, said))


def _right_labels(run: Run, truth: dict[str, str]) -> dict[int, str]:
    """By item id; images are known by the hash of their content already."""
    rows = run.project.items.values_list("pk", "text", "image__sha256")
    return {pk: truth[sha256 or content_key(text.encode())] for pk, text, sha256 in rows}


def _copy_files(delivery: Delivery, folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for entry in delivery.files.select_related("file"):
        paths[entry.name] = folder / entry.name
        with open_file(entry.file) as content:
            paths[entry.name].write_bytes(content.read())
    return paths


def _verify(files: dict[str, Path]) -> tuple[str, bool]:
    """Recompute the certificate as anybody can: what the command says, and whether everything agrees."""
    command = [sys.executable, "-m", "routing.core.verify"]
    command += [str(files["certificate.json"]), str(files["draw.jsonl"])]
    outcome = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    return " ".join((outcome.stdout + outcome.stderr).split()), outcome.returncode == 0


def _lines(
    report: RunReport,
    data: dict[str, Any],
    pool: Pool,
    wrong: int,
    rows: int,
    files: dict[str, Path],
    verified: str,
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
        ("Recomputed from its files", verified),
        (
            "Errors in the calibration set",
            f"{data['observed_errors']} observed, {data['allowed_errors']} allowed "
            f"({data['human_labels_calibration']} labels by people)",
        ),
        (
            "True error of the delivered data",
            f"{wrong} of {rows:,} = {data['delivered_error']:.2%}, epsilon {data['epsilon']:.0%}: {verdict}",
        ),
        *([("Mistakes of the models alone", pool.alone)] if pool.alone else []),
        *((entry["name"], _in_words(entry)) for entry in data["models"] if entry["tokens_out"]),
        ("Net saving (everything paid)", f"{data['net_saving']:.1%}"),
        ("Routing saving (paper's measure)", f"{data['routing_saving']:.1%}"),
        ("Labels by source", sources),
        ("Paid", _paid(data["spend"], report.run)),
    ]
    width = max(len(name) for name, _ in facts)
    lines: list[str] = []
    for name, text in facts:
        first, *more = textwrap.wrap(text, LINE - width - 2)
        lines += [f"{name:<{width}}  {first}", *(" " * (width + 2) + line for line in more)]
    return [*lines, "Files", *(f"  {path}" for path in sorted(files.values()))]


def _in_words(model: dict[str, Any]) -> str:
    """What a language model did."""
    words = (
        f"{model['accuracy']:.1%} of {model['asked']:,} answers right; {model['tokens_in']:,} tokens read, "
        f"{model['tokens_out']:,} generated ({model['tokens_out'] / model['asked']:.1f} an answer)"
    )
    if model["auroc"] is None:
        return words
    return f"{words}; score {model['score']}: AUROC {model['auroc']:.3f}, ECE {model['ece']:.3f}"


def _paid(rows: list[dict[str, Any]], run: Run) -> str:
    amounts: dict[str, float] = {}
    for row in rows:
        amounts[row["source"]] = amounts.get(row["source"], 0.0) + row["amount"]
    words = ", ".join(f"{name} {amount:,.0f}" for name, amount in sorted(amounts.items()))
    budget = "" if run.budget is None else f"; budget of the models {run.budget:,.0f}"
    return f"{words} {run.project.currency}{budget}"
