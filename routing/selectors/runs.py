"""Everything that a run page shows."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from annotation import queue
from annotation.queue import BatchProgress
from routing.core.exact import percent, plain
from routing.models import Certificate, Run
from routing.selectors.counts import SourceCount, blanks, labels_by_source
from routing.selectors.ledger import LedgerEntry, ledger
from routing.selectors.money import Paid, Savings, paid_by, savings


@dataclass(frozen=True)
class Threshold:
    """Where the band of a model ends; `u` and `v` are None where nothing goes to it."""

    position: int
    name: str
    u: float | None
    v: int | None


@dataclass(frozen=True)
class Comparison:
    """What a rule of the paper would choose on the same labels. It does not hold its stated level."""

    rule: str
    bound: str
    thresholds: list[Threshold]
    routing_saving: float
    observed_errors: float
    upper_bound: float
    holds_level: bool
    sentence: str


@dataclass(frozen=True)
class PolicyRow:
    """One step of the chosen chain.

    `counts` are items per source, people last; `estimate` is a share of the pool.
    """

    index: int
    thresholds: list[Threshold]
    counts: list[int]
    expected_cost: float
    observed_errors: float
    estimate: float
    upper_bound: float
    certified: bool
    chosen: bool


@dataclass(frozen=True)
class Region:
    """Pairs (u1[i], u2[j]) that would pass if each were the only one looked at: shown, not certified.

    -1 stands for "nothing goes here"; `errors` and `cost` are None below the diagonal.
    """

    u1: list[float]
    u2: list[float]
    feasible: list[list[bool]]
    errors: list[list[float | None]]
    cost: list[list[float | None]]


@dataclass(frozen=True)
class RunReport:
    """A run in numbers and words. What the analysis found is None, or empty, until it is done.

    Attributes
    ----------
    plan : pairs of a term and what it says
    allowed_errors, required_errors, observed_errors
        Most errors with which the chosen policy would have passed, the least it had to show, and what it
        showed.
    pointwise_upper_bound
        Upper bound of the chosen policy as if it were the only one looked at: shown, not certified.
    routing_saving, net_saving
        Shares; None before the run is routed. `savings` says whether they are final.
    expected_routing_saving, expected_net_saving
        What the analysis expected of them.
    blanks
        Items that stay without a label because nobody could label them.
    """

    run: Run
    plan: list[tuple[str, str]]
    progress: BatchProgress | None
    routed_progress: BatchProgress | None
    savings: Savings
    paid: list[Paid]
    ledger: list[LedgerEntry]
    invalid_reasons: list[str]
    certificate: Certificate | None = None
    certified: bool | None = None
    sentence: str = ""
    reason: str = ""
    thresholds: list[Threshold] = field(default_factory=list)
    allowed_errors: int | None = None
    required_errors: int | None = None
    observed_errors: float | None = None
    pointwise_upper_bound: float | None = None
    asked: int | None = None
    unanswered: int | None = None
    smallest_n: int | None = None
    expected_routing_saving: float | None = None
    expected_net_saving: float | None = None
    counts: list[SourceCount] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    region: Region | None = None
    chain_name: str = ""
    chain: list[PolicyRow] = field(default_factory=list)
    blanks: int = 0

    @property
    def routing_saving(self) -> Decimal | None:
        return self.savings.routing

    @property
    def net_saving(self) -> Decimal | None:
        return self.savings.net

    @property
    def alpha_total(self) -> Decimal:
        """Bounds the probability that any certificate of the ledger is false."""
        return sum((entry.alpha for entry in self.ledger), Decimal(0))


def run_report(run: Run) -> RunReport:
    certificate = Certificate.objects.filter(run=run).first()
    paid = paid_by(run)
    base: dict[str, Any] = {
        "run": run,
        "plan": _plan_in_words(run),
        "progress": queue.batch_progress(run.calibration_batch) if run.calibration_batch else None,
        "routed_progress": queue.batch_progress(run.routed_batch) if run.routed_batch else None,
        "savings": savings(run, paid),
        "paid": paid,
        "ledger": ledger(run),
        "invalid_reasons": [reason for reason in run.invalid_reason.split("\n") if reason],
    }
    if certificate is None:
        return RunReport(**base)
    document = json.loads(certificate.document)
    result, figures = document["result"], certificate.figures
    names = list(run.run_sources.order_by("position").values_list("source__name", flat=True))
    region, chain = figures["region"], figures["chain"]
    return RunReport(
        **base,
        certificate=certificate,
        certified=certificate.certified,
        sentence=result["sentence"],
        reason=result["reason"],
        thresholds=_thresholds(names, certificate.thresholds),
        allowed_errors=result["allowed_errors"],
        required_errors=result["required_errors"],
        observed_errors=result["observed_errors"],
        pointwise_upper_bound=result["pointwise_upper_bound"],
        asked=document["draw"]["asked"],
        unanswered=document["draw"]["unanswered"],
        smallest_n=result["smallest_n"],
        expected_routing_saving=result["expected_routing_saving"],
        expected_net_saving=result["expected_net_saving"],
        counts=labels_by_source(run),
        comparisons=[
            Comparison(**{**row, "thresholds": _thresholds(names, row["thresholds"])})
            for row in figures["comparisons"]
        ],
        region=Region(**region) if region else None,
        chain_name=chain["name"],
        chain=[
            PolicyRow(
                **{**row, "thresholds": _thresholds(names, row["thresholds"])},
                chosen=certificate.certified and row["index"] == chain["chosen"],
            )
            for row in chain["policies"]
        ],
        blanks=blanks(run),
    )


def _thresholds(names: list[str], values: list[dict[str, Any] | None]) -> list[Threshold]:
    return [
        Threshold(position, name, value["u"] if value else None, value["v"] if value else None)
        for position, (name, value) in enumerate(zip(names, values, strict=True), start=1)
    ]


def _plan_in_words(run: Run) -> list[tuple[str, str]]:
    return [
        ("At most so many labels may be wrong (epsilon)", percent(run.epsilon)),
        ("How often that may be missed (alpha)", percent(run.alpha)),
        ("What it is promised of (target)", run.get_target_display()),
        ("Items (N)", f"{run.pool_size:,}"),
        ("Calibration set (m)", f"{run.m:,}"),
        ("People are asked with probability (p)", plain(run.p)),
        ("Bound", run.bound),
        ("Uncertainty score", run.score),
        ("Price of a label by a person", f"{plain(run.human_cost)} {run.project.currency}"),
    ]
