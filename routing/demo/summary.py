"""What the demonstration shows at its end: the promise, and beside it the truth that is known here."""

import csv
import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Sum
from sklearn.metrics import roc_auc_score

from annotation.common.files import open_file
from annotation.common.value_reader import as_text
from annotation.models import Label
from routing.core.experiment.reliability import reliability
from routing.core.rules import RULES
from routing.demo.scene import Pool, content_key
from routing.models import Delivery, ItemScore, Prediction, Run, RunSource, Spend
from routing.runs.queries import Comparison, RunReport, Threshold, run_report
from routing.runs.score import score_of

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
    *, run: Run, delivery: Delivery, pool: Pool, folder: Path, seconds: dict[str, float], beside: str = ""
) -> Summary:
    """Compare the delivered labels with the truth; write them and `summary.json` to `folder`. `beside` is
    what the same draw would have come to without the expert.
    """
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
        "rule": run.rule,
        "thresholds": [None if kept.u is None else {"u": kept.u, "v": kept.v} for kept in report.thresholds],
        "own_scores": report.own_scores,
        "same_labels": [
            {"rule": row.rule, "routing_saving": row.routing_saving, "sentence": row.sentence}
            for row in _beside(report)
        ],
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
        **({"without_expert": beside} if beside else {}),
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
    verdict = (
        "at most epsilon, as promised" if data["delivered_error"] <= data["epsilon"] else "MORE THAN EPSILON"
    )
    sources = ", ".join(f"{name} {count:,}" for name, count in sorted(data["labels_by_source"].items()))
    facts = [
        *_how(report),
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
        *([("Had people's word been right", data["without_expert"])] if "without_expert" in data else []),
        *([("Mistakes of the models alone", pool.alone)] if pool.alone else []),
        *((entry["name"], _in_words(entry)) for entry in data["models"] if entry["tokens_out"]),
        (
            "Net saving (everything paid)",
            f"{data['net_saving']:.1%} against {_who_else(report)} labelling every item; "
            f"{report.expected_net_saving or 0:.1%} was expected",
        ),
        *(
            [("Routing saving (paper's measure)", f"{data['routing_saving']:.1%}")]
            if report.routing_saving is not None
            else []
        ),
        *(
            (f"Rule '{row.title}', same labels", f"{_in_numbers(row.thresholds, own=False)}. {row.sentence}")
            for row in _beside(report)
        ),
        ("Labels by source", sources),
        ("Paid", _paid(data["spend"], report.run)),
    ]
    width = max(len(name) for name, _ in facts)
    lines: list[str] = []
    for name, text in facts:
        first, *more = textwrap.wrap(text, LINE - width - 2)
        lines += [f"{name:<{width}}  {first}", *(" " * (width + 2) + line for line in more)]
    return [*lines, "Files", *(f"  {path}" for path in sorted(files.values()))]


def _who_else(report: RunReport) -> str:
    return "the expert" if report.run.by_expert else "people"


def _how(report: RunReport) -> list[tuple[str, str]]:
    """Who labels what, and of people how often they differ from the expert."""
    if report.expert is None or report.expert.everybody is None:
        return [
            ("Rule", report.rule_title),
            ("Thresholds on the uncertainty", _in_numbers(report.thresholds, own=report.own_scores)),
        ]
    stretches = [
        f"{row.who} {'the rest' if row.up_to is None else f'up to {row.up_to:.4f}'}"
        for row in report.expert.stretches
    ]
    people = report.expert.everybody
    return [
        ("By uncertainty", "; ".join(stretches) or _in_numbers(report.thresholds, own=report.own_scores)),
        (
            "People against the expert",
            f"differ on {people.differ} of {people.asked} asked items: {people.low:.1%} to {people.high:.1%} "
            f"of all; {people.shared} of these shared with the slow model",
        ),
    ]


def _beside(report: RunReport) -> list[Comparison]:
    """What other rules that certify would have come to."""
    certify = {rule.name for rule in RULES if rule.holds_level}
    return [row for row in report.comparisons if row.rule in certify and not row.refusal]


def _in_numbers(thresholds: Sequence[Threshold], *, own: bool) -> str:
    """The thresholds, and whose score each is on where each is on the model's `own`."""
    said = []
    for kept in thresholds:
        value = "everything" if kept.everything else "none" if kept.u is None else f"{kept.u:.4f}"
        said.append(f"u{kept.position} = {value}" + (f" ({kept.name}'s own score)" if own else ""))
    return ", ".join(said)


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


PEOPLE, EXPERT = "People", "Expert"


def measured_models(run: Run, truth: Mapping[int, str]) -> list[dict[str, Any]]:
    """Of each model, in their order: answers, accuracy, tokens in and out, and AUROC and expected calibration
    error (ten bins of equal width) of 1 - uncertainty. `truth` is the right label by item id.

    A later model is asked about the pilot, the asked items of the draw and its own band: harder items than
    the first one, which is asked about all.
    """
    return [
        _measured(run, entry, truth)
        for entry in run.run_sources.select_related("source").order_by("position")
    ]


def spend(run: Run) -> list[dict[str, Any]]:
    """The ledger by source and stage."""
    rows = (
        Spend.objects.filter(run=run)
        .values("source", "source__name", "by_expert", "stage")
        .order_by("source", "by_expert", "stage")
    )
    return [
        {
            "source": row["source__name"] or (EXPERT if row["by_expert"] else PEOPLE),
            "stage": row["stage"],
            "labels": row["labels"],
            "amount": float(row["total"]),
        }
        for row in rows.annotate(labels=Sum("quantity"), total=Sum("amount"))
    ]


def _measured(run: Run, entry: RunSource, truth: Mapping[int, str]) -> dict[str, Any]:
    answers = Prediction.objects.filter(source=entry.source_id, fingerprint=entry.fingerprint)
    score = score_of(run, entry)
    scores = dict(
        ItemScore.objects.filter(prediction__in=answers, name=score.key).values_list("prediction", "value")
    )
    rows = list(answers.order_by("item").values_list("pk", "item_id", "value", "tokens_in", "tokens_out"))
    right = np.array(
        [value is not None and as_text(value) == truth[item] for _, item, value, _, _ in rows], dtype=bool
    )
    uncertainty = np.array([scores.get(pk, 1.0) for pk, *_ in rows])
    both = bool(right.any()) and not bool(right.all())
    return {
        "name": entry.source.name,
        "asked": len(rows),
        "usable": sum(value is not None for _, _, value, _, _ in rows),
        "accuracy": float(right.mean()) if rows else None,
        "tokens_in": _total(row[3] for row in rows),
        "tokens_out": _total(row[4] for row in rows),
        "score": score.name,
        "auroc": float(roc_auc_score(right, 1 - uncertainty)) if both else None,
        "ece": reliability(uncertainty, 1.0 - right).ece if rows else None,
    }


def _total(numbers: Any) -> int | None:
    """None where the backend does not count tokens."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
