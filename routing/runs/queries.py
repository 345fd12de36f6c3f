"""Everything that a run page shows."""

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from annotation.labelling import queue
from annotation.labelling.queue import BatchProgress
from annotation.models import Job, Project
from routing.common.figures import Reliability
from routing.core.correctness import left_open_by
from routing.core.every_score.chain import CASCADE, FIRST_SCORE
from routing.core.every_score.items import EVERYTHING
from routing.core.savings import expected_routing_saving
from routing.core_language import stored_in_words
from routing.models import Certificate, Run
from routing.runs.absent_people import OpenWork, open_work_of
from routing.runs.chains import limits_of
from routing.runs.expert.analyse import SLICES
from routing.runs.expert.measured import measured_in_words
from routing.runs.expert.report import ExpertReport, expert_report
from routing.runs.given_losses import losses_in_words
from routing.runs.label_counts import SourceCount, count_unlabelled, labels_by_source
from routing.runs.labelled_elsewhere import elsewhere_in_words
from routing.runs.labelling_pace import routed_progress
from routing.runs.later.report import LaterReport, later_report
from routing.runs.ledger import SpentAlpha, ledger
from routing.runs.losses_to_measure import LossesSoFar, losses_so_far
from routing.runs.people_agreement import agreement_in_words, nothing_certified, people_agreement
from routing.runs.personal_data import with_names_of_today
from routing.runs.plan_in_words import plan_in_words
from routing.runs.spending import Paid, Savings, paid_by, savings
from routing.runs.suggestion_counts import suggestions_in_words
from routing.runs.titles import chain_title, rule_titles, score_chain_title
from routing.runs.two_people import sentences_of


@dataclass(frozen=True)
class Threshold:
    """Up to which key a model's answers are kept, on its own score where `own`, else on that of the first
    model; `u` and `v` are None where none are. `everything`: it takes whatever is left.
    """

    position: int
    name: str
    u: float | None
    v: int | None
    own: bool = False
    everything: bool = False


@dataclass(frozen=True)
class Comparison:
    """What another rule would choose on the same labels; `refusal` says why there is nothing to show, and
    `own_scores` whether a later model is limited on its own score.
    """

    rule: str
    title: str
    bound: str
    thresholds: list[Threshold]
    routing_saving: float
    observed_errors: float
    upper_bound: float | None
    holds_level: bool
    sentence: str
    own_scores: bool = False
    refusal: str = ""


@dataclass(frozen=True)
class PolicyRow:
    """One step of the chosen chain.

    `counts` are items per source, people last; `estimate` is a share of the pool. `expected_cost` orders the
    steps: what is still paid per item once source 1 is. `routing_saving` is what the page calls expected.
    """

    index: int
    thresholds: list[Threshold]
    counts: list[int]
    expected_cost: float
    observed_errors: float
    estimate: float
    upper_bound: float
    certified: bool
    routing_saving: float
    chosen: bool


@dataclass(frozen=True)
class Region:
    """Pairs (u1[i], u2[j]) that would pass if each were the only one looked at: shown, not certified.
    Of `own` scores u2 is on the second model's; what is None there nobody knows, as it was not asked.

    -1 stands for "nothing goes here"; `errors` and `cost` are None below the diagonal.
    """

    u1: list[float]
    u2: list[float]
    feasible: list[list[bool]]
    errors: list[list[float | None]]
    cost: list[list[float | None]]
    own: bool = False


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
    expert_progress: BatchProgress | None
    savings: Savings
    paid: list[Paid]
    ledger: list[SpentAlpha]
    invalid_reasons: list[str]
    certificate: Certificate | None = None
    certified: bool | None = None
    sentence: str = ""
    reason: str = ""
    # The same in the language of the reader, and what the sentence leaves open, in English.
    sentence_in_words: str = ""
    reason_in_words: str = ""
    beside: str = ""
    # How often people differ, or err, in the language of the reader, sentence by sentence.
    two_people: list[str] = field(default_factory=list)
    how_labelled: list[str] = field(default_factory=list)
    thresholds: list[Threshold] = field(default_factory=list)
    own_scores: bool = False
    # Of a cascade up to which uncertainty of the first model the last one is asked; None for everything else.
    asked_up_to: float | None = None
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
    saving_by_epsilon: dict[str, Any] = field(default_factory=dict)
    reliability: list[Reliability] = field(default_factory=list)
    rule_titles: dict[str, str] = field(default_factory=dict)
    blanks: int = 0
    binary: bool = True
    expert: ExpertReport | None = None
    # What came after the pool was frozen; None for another target than the population, or before the routing.
    later: LaterReport | None = None
    # How far losses are that the team's own program measures, while that goes on.
    losses: LossesSoFar | None = None
    # Who on the roster has open items.
    open_work: list[OpenWork] = field(default_factory=list)

    @property
    def labelled_in_calibration(self) -> int:
        """Items that people labelled before anything was certified; 0 where an expert's word is the last."""
        return 0 if self.run.by_expert else (self.asked or 0) - (self.unanswered or 0)

    @property
    def unlabelled(self) -> int:
        """Items that the run covers and that wait for a label, or stay without one."""
        return self.run.covered_size - sum(row.items for row in self.counts)

    @property
    def unlabelled_share(self) -> float:
        return self.unlabelled / self.run.covered_size

    @property
    def rule_title(self) -> str:
        return self.rule_titles.get(self.run.rule, self.run.rule)

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


def _base(run: Run, *, with_routing: bool) -> dict[str, Any]:
    paid = paid_by(run)
    return {
        "run": run,
        "plan": plan_in_words(run),
        "progress": queue.batch_progress(run.calibration_batch) if run.calibration_batch else None,
        "routed_progress": routed_progress(run),
        "expert_progress": _expert_progress(run),
        "open_work": open_work_of(run),
        "losses": losses_so_far(run) if run.state == Run.State.LOSSES else None,
        "savings": savings(run, paid, with_routing=with_routing),
        "paid": paid,
        "ledger": [] if run.by_people else ledger(run),
        "invalid_reasons": run.broken_by,
    }


def _expert_progress(run: Run) -> BatchProgress | None:
    """Of what the expert labels now, or labelled last."""
    batch = run.expert_routed_batch or run.expert_batch
    return queue.batch_progress(batch) if batch else None


def run_progress(run: Run) -> RunReport:
    """The report without anything that the analysis found: what a page asks for again and again."""
    return RunReport(**_base(run, with_routing=False))


def run_report(run: Run) -> RunReport:
    certificate: Certificate | None = getattr(run, "certificate", None)
    base = _base(run, with_routing=True)
    if run.by_people and run.routed_batch_id is not None:
        said = [nothing_certified(), *agreement_in_words(people_agreement(run))]
        return RunReport(**base, two_people=said)
    if certificate is None:
        return RunReport(**base)
    document = json.loads(certificate.document)
    result, figures = document["result"], certificate.figures
    messages = with_names_of_today(run, certificate.messages)
    # As they were called then: the certificate's sentence names them.
    names = [row["name"] for row in document["provenance"]["sources"]]
    costs = run.run_sources.order_by("position").values_list("cost_per_label", flat=True)
    prices = [*map(float, costs), float(run.cost_per_item)]
    # An analysis of an earlier version stored fewer figures.
    region, chain = figures.get("region"), figures.get("chain") or {"name": "", "policies": []}
    shape, positions = chain.get("shape", FIRST_SCORE), chain.get("models", [])
    titles = rule_titles()
    return RunReport(
        **base,
        certificate=certificate,
        certified=certificate.certified,
        sentence=result["sentence"],
        reason=result["reason"],
        sentence_in_words=stored_in_words(messages.get("sentence", []), result["sentence"]),
        reason_in_words=stored_in_words(messages.get("reason", []), result["reason"]),
        beside=left_open_by(document),
        two_people=[*sentences_of(run, figures), *measured_in_words(run)],
        how_labelled=[*suggestions_in_words(run), *elsewhere_in_words(run), *losses_in_words(run)],
        thresholds=[]
        if certificate.shape == SLICES
        else _kept(names, certificate.shape, certificate.model_positions, certificate.thresholds),
        own_scores=certificate.shape not in (FIRST_SCORE, SLICES),
        asked_up_to=_asked_up_to(certificate.shape, certificate.thresholds),
        expert=expert_report(run, certificate, names, document) if run.by_expert else None,
        later=later_report(run),
        allowed_errors=result["allowed_errors"],
        required_errors=result["required_errors"],
        observed_errors=result["observed_errors"],
        pointwise_upper_bound=result.get("pointwise_upper_bound"),
        asked=document["draw"]["asked"],
        unanswered=document["draw"]["unanswered"],
        smallest_n=result["smallest_n"],
        expected_routing_saving=result.get("expected_routing_saving"),
        expected_net_saving=result["expected_net_saving"],
        counts=[
            replace(row, name=names[row.position - 1]) if row.position <= len(names) else row
            for row in labels_by_source(run)
        ],
        comparisons=_comparisons(names, titles, figures, messages),
        region=Region(**region) if region else None,
        chain_name=score_chain_title(shape, names, positions) or chain_title(chain["name"]),
        chain=[
            PolicyRow(
                **{**row, "thresholds": _kept(names, shape, positions, row["thresholds"])},
                routing_saving=expected_routing_saving(prices, row["counts"]),
                chosen=certificate.certified and row["index"] == chain["chosen"],
            )
            for row in chain["policies"]
        ],
        saving_by_epsilon=figures.get("savings") or {},
        reliability=[
            Reliability(names[row["position"] - 1], row["ece"], row["bins"])
            for row in figures.get("reliability", [])
        ],
        rule_titles=titles,
        blanks=count_unlabelled(run),
        binary=figures.get("binary", True),
    )


def _comparisons(
    names: list[str], titles: dict[str, str], figures: dict[str, Any], messages: dict[str, Any]
) -> list[Comparison]:
    rows: list[dict[str, Any]] = figures.get("comparisons", [])
    said: list[dict[str, Any]] = messages.get("comparisons") or [{}] * len(rows)
    return [_comparison(names, titles, row, words) for row, words in zip(rows, said, strict=True)]


def _comparison(
    names: list[str], titles: dict[str, str], row: dict[str, Any], said: dict[str, Any]
) -> Comparison:
    shown = dict(row)
    takes_rest = shown.pop("everything", None)
    thresholds = _thresholds(
        names, row["thresholds"] or [None] * len(names), own=row.get("own_scores", False)
    )
    return Comparison(
        **{
            **shown,
            "thresholds": [
                replace(one, everything=True) if one.position == takes_rest else one for one in thresholds
            ],
            "title": titles.get(row["rule"], row["rule"]),
            "sentence": stored_in_words(said.get("sentence", []), row["sentence"]),
            "refusal": stored_in_words(said.get("refusal", []), row.get("refusal", "")),
        }
    )


def _kept(
    names: list[str], shape: str, positions: list[int], thresholds: list[dict[str, Any] | None]
) -> list[Threshold]:
    limits = limits_of(shape, positions, thresholds, len(names))
    return _thresholds(names, limits, own=shape != FIRST_SCORE)


def _asked_up_to(shape: str, thresholds: list[dict[str, Any] | None]) -> float | None:
    limit = thresholds[1] if shape == CASCADE else None
    return None if limit is None or (limit["u"], limit["v"]) == EVERYTHING else limit["u"]


def _thresholds(
    names: list[str], values: list[dict[str, Any] | None], *, own: bool = False
) -> list[Threshold]:
    return [
        Threshold(position, name, value["u"], value["v"], own, (value["u"], value["v"]) == EVERYTHING)
        if value
        else Threshold(position, name, None, None, own)
        for position, (name, value) in enumerate(zip(names, values, strict=True), start=1)
    ]


def failed_job_of(project: Project, run: Run | None) -> Job | None:
    """The newest job, if it failed or was stopped and what it was for still waits for it."""
    job = project.jobs.order_by("-id").first()
    if job is None or job.state not in (Job.State.FAILED, Job.State.CANCELLED):
        return None
    if "run" in job.params and (run is None or job.params["run"] != run.pk):
        return None
    return job if job.state == Job.State.FAILED or "run" in job.params else None
