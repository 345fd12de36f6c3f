"""A certificate and its draw: what each version holds, what can be tested, and what alpha was spent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log2
from pathlib import Path

from hypac_verify import every_score, expert, first_score, words
from hypac_verify.bets import BETTING, MOST_STEPS
from hypac_verify.commitments import (
    COMMITTED,
    Commitments,
    check_commitments,
    check_ledger,
    drawn_number,
    read_commitments,
)
from hypac_verify.draw import check_draw, entropy_of, nobody_compares, same_by
from hypac_verify.expert_labels import LARGEST_EFFORT, read_run
from hypac_verify.reading import (
    Document,
    Plan,
    Report,
    Row,
    UnusableError,
    canonical,
    decimal,
    lines_of,
    object_of,
    parse,
    part,
    read_plan,
    threshold,
    whole_file,
)
from hypac_verify.room import has_room
from hypac_verify.rows import draw_row
from hypac_verify.tails import TooCloseError

FORMAT, NEWEST, REFERENCE = "hypac-certificate", COMMITTED, 5
MOST_DRAWN = 10**6
SOON = 30
"""Seconds: of what takes longer it is said beforehand."""
LARGEST_BITS = 4 * 10**6
"""Of the numbers in an exact tail: with more it takes minutes."""
KEYS = {"format", "version", "plan", "pool", "draw", "provenance", "chains", "result"}
NO_BOUNDS = {"clt", "betting"}
"""Reproductions of the paper, which hold no level."""
LOSSES = {
    "zero_one", "exact_match", "numeric", "set_equal", "math_equivalence", "jaccard", "cosine_distance",
    "token_f1", "box_f1", "boxes_right", "mask_dice", "masks_right", "measured_elsewhere",
}  # fmt: skip
EXACT = {"population": "binomial", "dataset": "hypergeometric", "pool": "hypergeometric"}
LONGEST_MEASURE = 200
COMPARISONS = {"pointwise_argmin", "lexicographic"}


@dataclass(frozen=True)
class Checked:
    """A certificate that was read.

    Attributes
    ----------
    rows
        In draw order.
    policy
        The chosen one; None where that is not known.
    outcome
        What was found again where an expert is the reference.
    tested
        Whether its tests were made again, and all of it followed from them.
    made
        Its commitments; None of a version before there were any.
    """

    document: Document
    plan: Plan
    rows: list[Row]
    certificate_id: str
    policy: first_score.Policy | None
    outcome: expert.Outcome | None
    tested: bool
    made: Commitments | None

    @property
    def run(self) -> object:
        """The number of the run, where the certificate says it."""
        return self.document["provenance"].get("run")

    @property
    def by_expert(self) -> bool:
        return bool(self.document.get("reference", {}).get("kind") == "expert")

    @property
    def names(self) -> list[str] | None:
        """Of the models; None where the certificate does not say them."""
        found = every_score.names_of(self.document, self.plan)
        return found if self.document["provenance"].get("sources") else None


def check_certificate(files: Mapping[str, Path], report: Report, *, part_of: bool) -> Checked:
    """Everything that certificate and draw say. ``part_of``: the other files hold a part of the items.

    Raises
    ------
    UnusableError
        A file is none of these.
    """
    data = whole_file(files["certificate.json"])
    document = _read(data)
    plan, written = read_plan(document), canonical(document) + b"\n"
    if written != data:
        report.notes.append(
            "certificate.json is not in its one spelling; its id is that of the one spelling."
        )
    _check_frame(document, plan, report)
    rows, digest = _rows(files["draw.jsonl"], plan, report)
    if document["version"] < COMMITTED and any(row.later for row in rows):
        report.fault("draw.jsonl: a line says who answered later, and there are no commitments")
    made = read_commitments(document) if document["version"] == COMMITTED else None
    certificate_id = hashlib.sha256(written).hexdigest()
    if not has_room(plan, files, report, part_of=part_of):
        return Checked(document, plan, rows, certificate_id, None, None, tested=False, made=made)
    check_draw(document, plan, rows, digest, drawn_number(entropy_of(document), made), report)
    _check_ledger(document, plan, report)
    if made is not None:
        check_commitments(document, made, plan, rows, report)
        check_ledger(document, made, plan, report)
    before = len(report.checked)
    policy, outcome = _check_tests(document, plan, rows, report)
    tested = len(report.checked) > before
    return Checked(document, plan, rows, certificate_id, policy, outcome, tested, made)


def _read(data: bytes) -> Document:
    document = parse(data, "certificate.json")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UnusableError("certificate.json: no certificate of HyPAC")
    version = part(document, "version", int, "certificate.json")
    if not 1 <= version <= NEWEST:
        raise UnusableError(f"certificate.json: version {version} is unknown here; 1 to {NEWEST} are known")
    for name in ("pool", "draw", "provenance", "result"):
        part(document, name, dict, "certificate.json")
    for name, keys in (
        ("pool", {"size", "hash"}),
        ("draw", {"entropy", "salt", "rows", "asked", "unanswered", "sha256"}),
    ):
        if document[name].keys() != keys:
            raise UnusableError(f"certificate.json, {name}: entries are missing, or there are others")
    return document


def _check_frame(document: Document, plan: Plan, report: Report) -> None:
    """The entries are those of version and rule."""
    version, kind = document["version"], document.get("reference", {})
    keys = KEYS | ({"commitments", "ledger"} if version == COMMITTED else set())
    if version == REFERENCE or (version == COMMITTED and "reference" in document):
        kind = part(document, "reference", dict, "certificate.json").get("kind")
        keys |= {"reference"} | ({"slices"} if kind == "expert" else set())
        if kind not in ("settled", "expert") or (
            kind == "settled" and document["reference"] != {"kind": "settled"}
        ):
            raise UnusableError("certificate.json, reference: unknown here")
    if kind == "expert":
        keys |= {"scores"} & document.keys()
    elif plan.rule == "every_score":
        keys |= {"scored", "lazy", "pilot"}
    elif plan.rule == "split_fixed_sequence":
        keys |= {"slices"}
    if document.keys() != keys:
        report.fault(
            f"certificate.json: entries are missing or of another kind: {sorted(document.keys() ^ keys)}"
        )
    if version < REFERENCE and (version == 4) != (plan.rule == "every_score"):
        report.fault(f"certificate.json: the rule {plan.rule!r} has no certificate of version {version}")
    if (plan.alpha_spent is None) != (version < COMMITTED):
        report.fault("certificate.json, plan.alpha_spent: it belongs to version 6, and to no other")
    if document["pool"]["size"] != plan.pool_size or type(document["pool"]["size"]) is not int:
        report.fault("certificate.json: pool.size is not that of the plan")


def _rows(draw: Path, plan: Plan, report: Report) -> tuple[list[Row], str]:
    """The rows of the draw, at most one more than the plan has, and SHA-256 of the file."""
    if plan.m > MOST_DRAWN:
        raise UnusableError(f"certificate.json: a draw of more than {MOST_DRAWN:,} items")
    rows, digest = list[Row](), hashlib.sha256()
    for number, line in lines_of(draw):
        if number > plan.m:
            report.fault(f"draw.jsonl: it has more than the {plan.m} rows of the plan")
            break
        digest.update(line)
        rows.append(draw_row(line, number))
    if not rows:
        raise UnusableError("draw.jsonl: it is empty")
    return rows, digest.hexdigest()


def _tell_measured(plan: Plan, provenance: Document, report: Report) -> None:
    """What measured the losses, which is one line that says nothing else here, and what came anew."""
    given = plan.loss_params
    measure, binary = given.get("measure"), given.get("binary", False)
    one_line = isinstance(measure, str) and 0 < len(measure) <= LONGEST_MEASURE and measure.isprintable()
    if not one_line or type(binary) is not bool or given.keys() - {"measure", "binary"}:
        report.fault("certificate.json, plan.loss_params: they are not those of measured losses")
        return
    report.notes.append(
        f"The losses were measured by a program of the team's, after the labels were given: {measure}. They "
        "stand in the draw; whether they are right is not looked into here."
    )
    if type(again := provenance.get("losses_given_anew")) is int and again > 0:
        report.notes.append(
            f"Items whose losses were sent again with other values before the analysis: {again}."
        )


def _check_ledger(document: Document, plan: Plan, report: Report) -> None:
    """What earlier runs had spent of alpha, as far as the document holds it."""
    provenance, where = document["provenance"], "certificate.json, provenance"
    if provenance.get("suggestions_shown") is True:
        report.notes.append(
            "By its plan people see what a model answered when they label what the thresholds leave to them: "
            "these labels are not blind, and count as right."
        )
    if provenance.get("calibration_elsewhere"):
        report.notes.append(
            "Labels of the calibration set were given in another program. The certificate rests on it that "
            "they were given blind there, which nothing here can show."
        )
    if plan.measured:
        _tell_measured(plan, provenance, report)
    if "alpha_ledger" not in provenance and "alpha_total" not in provenance:
        report.unchecked.append("the ledger of alpha: the certificate holds none")
        return
    entries, run = part(provenance, "alpha_ledger", list, where), part(provenance, "run", int, where)
    spent = [decimal(object_of(entry, where), "alpha", where) for entry in entries]
    numbers = [part(entry, "run", int, where) for entry in entries]
    if any(entry.keys() != {"run", "alpha"} for entry in entries):
        report.fault(f"{where}: an entry of the ledger holds something else")
    if not numbers or numbers[-1] != run or sorted(set(numbers)) != numbers or numbers[0] < 1:
        report.fault(
            f"{where}: the ledger of alpha has not one entry for each run up to this one, which is its last"
        )
    elif spent[-1] != plan.alpha:
        report.fault(f"{where}: the ledger charges this run with another alpha than its plan's")
    if decimal(provenance, "alpha_total", where) != sum(spent, Fraction(0)):
        report.fault(f"{where}: the entries of the ledger do not add up to alpha_total")
    elif len(numbers) > 1 and document["version"] < COMMITTED:
        report.notes.append(
            f"{len(numbers) - 1} earlier runs on these items spent alpha, too: that any of the "
            "certificates is false "
            f"has at most probability {provenance['alpha_total']}."
        )
    report.checked.append("the ledger of alpha: its entries add up, and charge this run with its alpha")


def _untestable(plan: Plan, asked: int) -> str:
    """Why the tests cannot be made again here; '' if they can."""
    if plan.rule == "split_fixed_sequence":
        return "the chain is learnt from labels by regressions, which are not part of this program"
    if plan.varying:
        return "probabilities of asking that vary have no exact test"
    if plan.bound not in (*EXACT.values(), BETTING):
        return f"the bound {plan.bound!r} is none of those that are known here"
    if same_by(plan) is None and not plan.measured:
        return f"the loss {plan.loss!r} is none of the 0-1 losses that are known here"
    if plan.bound == BETTING:
        return "the bets would take hours at this size" if asked > MOST_STEPS else ""
    asked = max(asked, min(floor(plan.m * plan.p), plan.pool_size))  # which chains there are follows from it
    least = min(asked, plan.pool_size - asked, plan.budget + asked + 1)
    bits = least * log2(plan.pool_size + 1)
    if plan.target == "population":
        bits = asked * log2(plan.epsilon.denominator)
    if bits > LARGEST_BITS or plan.pool_size > 10**7:
        return "the exact tails would take hours at this size"
    return ""


def _check_tests(
    document: Document, plan: Plan, rows: list[Row], report: Report
) -> tuple[first_score.Policy | None, expert.Outcome | None]:
    """Chains, result and sentence anew; the chosen policy."""
    if plan.rule in COMPARISONS or plan.rule not in (
        "fixed_sequence", "multi_chain", "every_score", "split_fixed_sequence",
    ):  # fmt: skip
        report.fault(
            f"certificate.json: the rule {plan.rule!r} does not hold its level, and certifies nothing"
        )
        return None, None
    exact = EXACT.get(plan.target, "hypergeometric")
    if plan.bound in {*EXACT.values(), *NO_BOUNDS} - {exact}:
        report.fault(f"certificate.json: the bound {plan.bound!r} certifies nothing for {plan.target!r}")
        return None, None
    if plan.loss not in LOSSES and ":" not in plan.loss:
        report.fault(f"certificate.json: there is no loss {plan.loss!r}")
        return None, None
    if plan.bound == exact and not plan.zero_one:
        report.fault(
            f"certificate.json: the bound {plan.bound!r} counts errors, and a loss may be a part of one"
        )
        return None, None
    is_expert = document.get("reference", {}).get("kind") == "expert"
    if "reference" in document and (
        plan.target != "dataset" or plan.bound != exact or plan.data_set_size is not None
    ):
        report.fault(
            "certificate.json: this reference is for one delivered data set and the exact count alone"
        )
        return None, None
    asked = sum(row.asked for row in rows)
    if why := _untestable(plan, asked):
        report.unchecked.append(f"the tests, the choice and the sentence: {why}")
        report.unchecked.append("the expected costs and savings")
        return _stated_policy(document, plan), None
    if any(row.asked and len(row.answers) != plan.models for row in rows) or not asked:
        report.fault("draw.jsonl: nothing can be tested with these rows")
        return None, None
    _say_beforehand(document, plan, asked, report, is_expert=is_expert)
    same, before, outcome = same_by(plan) or nobody_compares, len(report.faults), None
    try:
        if is_expert:
            outcome = expert.check(document, plan, rows, same, report)
        elif any(row.annotator for row in rows):
            report.fault("draw.jsonl: a line names an annotator, and no expert is the reference")
        elif plan.rule == "every_score":
            every_score.check(document, plan, rows, same, report)
        else:
            if any(row.own or row.called for row in rows):
                report.fault("draw.jsonl: scores or calls of later models, at which this rule does not look")
            first_score.check(document, plan, rows, same, report)
    except TooCloseError:
        report.unchecked.append("the tests: a chance and its level are too close to tell them apart")
        return None, None
    except ValueError as error:
        report.fault(f"draw.jsonl: it cannot be tested: {str(error)[:200]}")
        return None, None
    if len(report.faults) == before and (outcome or not is_expert):
        chains = len(document["chains"]) + len(document.get("scores", {}).get("chains", []))
        report.checked.append(
            f"the tests: {chains} chain{'s' * (chains > 1)} with the shares of alpha = "
            f"{plan.words['alpha']}, errors "
            f"counted anew from {asked} items, limits, choice, thresholds and sentence"
        )
        if document["version"] == 1:
            report.unchecked.append(
                "the expected costs and savings, which are as the certificate states them, and by them the "
                "choice among certified policies"
            )
        if document["version"] == 1 and document["draw"]["unanswered"]:
            report.unchecked.append("result.pointwise_upper_bound, which version 1 computed in another way")
    if outcome is not None:
        return outcome.policy, outcome
    return (None if is_expert else _stated_policy(document, plan)), None


def _say_beforehand(document: Document, plan: Plan, asked: int, report: Report, *, is_expert: bool) -> None:
    """How long the tests will take, where that is long."""
    effort = read_run(document, plan).effort(asked) if is_expert else 0
    scored = plan.rule == "every_score" or "scores" in document
    # Chains on every score have 201 policies each, of which there are three at most.
    seconds = 3e-7 * min(effort, LARGEST_EFFORT) + (2e-3 * asked if scored else 0)
    if seconds > SOON:
        report.say(f"The tests take about {ceil(seconds / 60)} minutes.")


def _stated_policy(document: Document, plan: Plan) -> first_score.Policy | None:
    """The policy that the result names; None where that cannot be read."""
    result, where = document["result"], "certificate.json, result"
    limits = tuple(threshold(entry, where) for entry in part(result, "thresholds", list, where))
    shape, models = result.get("shape", "first_score"), result.get("models", [])
    if shape not in ("first_score", "own", "cascade") or not isinstance(models, list):
        return None
    widths = {"own": (1, 1), "cascade": (3, 2)}.get(shape, (plan.models, len(models)))
    if (len(limits), len(models)) != widths or not all(
        type(m) is int and 1 <= m <= plan.models for m in models
    ):
        return None
    return first_score.Policy(shape, tuple(model - 1 for model in models), limits)


def sentence(document: Document) -> str:
    """What the certificate says."""
    return str(document["result"].get("sentence", ""))


__all__ = ["Checked", "check_certificate", "entropy_of", "sentence", "words"]
