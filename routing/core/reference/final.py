"""The final audit of a run with an expert: a certificate of its own, which assumes nothing of how people
label what is routed to them.

Once everything is labelled, n_F of the delivered labels that are an annotator's (a person's, or the one that
she and all models give), and that the expert has not given, are drawn; she labels them, blind.  Models' part
is tested by the calibration at alpha_1 (`select.models_part`), people's by this sample at alpha_2
(`audit.FinalAudit.allowed`).  Where both hold, at most E labels of the file are wrong, but with probability
alpha_1 + alpha_2.  The run's own certificate stands beside it, at its own alpha.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from routing.core.arrays import Ints
from routing.core.calibration import Calibration
from routing.core.certificate import Document
from routing.core.documents import DocumentError
from routing.core.exact import percent, plain
from routing.core.messages import Message, declare, gettext_noop, say, sentences
from routing.core.plan import Plan
from routing.core.reference.certify import ReferenceCertification, certify_with_expert
from routing.core.reference.documents import read_expert_plan, read_frozen, read_score_costs
from routing.core.reference.plan import ExpertPlan, FinalPlan, read_final_plan
from routing.core.reference.select import ModelsPart, models_part
from routing.core.reference.sources import CHECKED, PERSON, AskedLabels, equal, label_table
from routing.core.sampling import draw_calibration

KIND, VERSION = "final_audit", 1


@dataclass(frozen=True)
class SampledLabel:
    """A drawn label: its place among all that could be drawn, and what annotator and expert say of its item;
    ``expert`` is None where she could not label it.
    """

    place: int
    item_id: str
    label: str
    expert: str | None


@dataclass(frozen=True)
class Frame:
    """What was drawn from: ``size`` labels of items with this ``hash`` (`sampling.pool_hash`, in the order of
    the pool), by this ``entropy``.
    """

    size: int
    hash: str
    entropy: int


@dataclass(frozen=True)
class FinalResult:
    """Attributes: both parts, the evidence of people's, and whether all of it is certified.

    ``differ`` are labels that the expert gives otherwise and that are mended by that, at most ``allowed`` of
    them with so many ``unanswered``.
    """

    models: ModelsPart
    differ: int
    unanswered: int
    allowed: int

    @property
    def people_hold(self) -> bool:
        return self.differ <= self.allowed

    @property
    def certified(self) -> bool:
        return self.models.holds and self.people_hold


def drawn_places(size: int, sample: int, entropy: int) -> Ints:
    """Places of the drawn labels among ``size``, in the order of the draw: a simple random sample."""
    return draw_calibration(pool_size=size, m=min(sample, size), p=1, entropy=entropy).positions


def judge_final(
    run: ExpertPlan,
    calibration: Calibration,
    found: ReferenceCertification,
    *,
    final: FinalPlan,
    frame: Frame,
    rows: Sequence[SampledLabel],
) -> FinalResult:
    """Test both parts.

    Raises
    ------
    ValueError
        The policy asks nobody but models and the expert, whose certificate assumes nothing about people.
    """
    chosen, models = found.selection, run.plan.sources - 1
    people = (models + PERSON, models + CHECKED)
    over_slices = None if chosen.by_scores else chosen.tests[chosen.number].chain
    if over_slices is None or not np.isin(over_slices.sources(chosen.index), people).any():
        raise ValueError("no annotator labels anything by this policy: there is nothing to audit")
    audit = final.audit(run.plan.pool_size)
    labels = AskedLabels.of_calibration(run, calibration)
    pairs = label_table([(row.label, row.expert) for row in rows], 2)
    same = equal(pairs[:, 0], pairs[:, 1], run.plan.loss_function())
    unanswered = sum(row.expert is None for row in rows)
    return FinalResult(
        models_part(run, found.selection, labels, audit),
        differ=len(rows) - unanswered - int(same.sum()),
        unanswered=unanswered,
        allowed=audit.allowed(
            size=frame.size, sampled=len(rows), budget=run.plan.budget, unanswered=unanswered
        ),
    )


def final_document(
    run: ExpertPlan,
    result: FinalResult,
    *,
    final: FinalPlan,
    frame: Frame,
    rows: Sequence[SampledLabel],
    certificate: str,
) -> Document:
    """The certificate of a final audit; ``certificate`` is the SHA-256 of the run's own."""
    plan = run.plan
    budget, models = plan.budget, final.audit(plan.pool_size).models_budget
    return {
        "kind": KIND,
        "version": VERSION,
        "certificate": certificate,
        "plan": {**final.document, "epsilon": plain(plan.epsilon), "pool_size": plan.pool_size},
        "frame": {"size": frame.size, "hash": frame.hash, "entropy": str(frame.entropy)},
        "rows": [
            {"place": row.place, "item_id": row.item_id, "label": row.label, "expert": row.expert}
            for row in rows
        ],
        "result": {
            "certified": result.certified,
            "budget": budget,
            "models": {
                "budget": models,
                "observed": result.models.observed,
                "allowed": result.models.allowed,
                "holds": result.models.holds,
            },
            "people": {
                "budget": budget - models,
                "sampled": len(rows),
                "differ": result.differ,
                "unanswered": result.unanswered,
                "allowed": result.allowed,
                "holds": result.people_hold,
            },
            "sentence": sentences(final_says(run, final, result, sampled=len(rows), size=frame.size)),
        },
    }


def final_says(
    run: ExpertPlan, final: FinalPlan, result: FinalResult, *, sampled: int, size: int
) -> tuple[Message, ...]:
    """What is certified, or that nothing is and why."""
    plan, models = run.plan, final.audit(run.plan.pool_size).models_budget
    seen = say(
        "final.seen",
        expert=run.who,
        sampled=f"{sampled:,}",
        size=f"{size:,}",
        differ=result.differ,
        unanswered=result.unanswered,
    )
    if result.certified:
        promise = say(
            "final.certified",
            expert=run.who,
            share=percent(plan.epsilon),
            items=f"{plan.pool_size:,}",
            odds=percent(1 - final.alpha),
            alpha=plain(final.alpha),
        )
        return promise, say("final.no_assumption"), seen
    said = [say("final.failed", share=percent(plan.epsilon)), seen]
    if not result.models.holds:
        said.append(say("final.models", budget=f"{models:,}"))
    if not result.people_hold:
        said.append(say("final.people", budget=f"{plan.budget - models:,}", allowed=max(result.allowed, 0)))
    return (*said, say("final.stands"))


def recomputed(
    stated: Document, certificate: Document, plan: Plan, calibration: Calibration, *, sha256: str
) -> tuple[Document, list[str]]:
    """The certificate of a final audit anew from what it states was drawn and labelled, and what is odd about
    the draw.

    Parameters
    ----------
    certificate, calibration
        The run's own, and the rows of its draw; ``sha256`` is that of the certificate's file.

    Raises
    ------
    DocumentError, ValueError
        Something is missing or malformed, or nothing can be tested.
    """
    if stated.get("kind") != KIND or stated.get("version") != VERSION:
        raise DocumentError("final audit: this is no certificate of a final audit that is known here")
    parts = [stated.get("plan"), stated.get("frame")]
    if not all(isinstance(part, dict) for part in parts) or not isinstance(stated.get("rows"), list):
        raise DocumentError("final audit: 'plan', 'frame' or 'rows' is missing")
    final, frame, rows = (
        read_final_plan(stated["plan"]),
        _frame(stated["frame"], plan.pool_size),
        _rows(stated["rows"]),
    )
    if fault := final.audit(plan.pool_size).fault(plan.budget, plan.exact_alpha):
        raise DocumentError(f"final audit: its plan cannot be carried out: {fault}")
    odd = []
    if read_expert_plan(certificate, plan)[0].final != final:
        odd.append("final audit: its plan is not the one that the run's certificate names")
    places = drawn_places(frame.size, final.sample, frame.entropy).tolist()
    if [row.place for row in rows] != places:
        odd.append("final audit: its rows are not those that the entropy draws, in the order of the draw")
    if len({row.item_id for row in rows}) != len(rows):
        odd.append("final audit: an item is drawn twice")
    again = audited(certificate, plan, calibration, sha256=sha256, final=final, frame=frame, rows=rows)
    return again.document, odd


@dataclass(frozen=True)
class Audited:
    """The outcome of a final audit: its certificate, and what that says."""

    document: Document
    result: FinalResult
    said: tuple[Message, ...]


def audited(
    certificate: Document,
    plan: Plan,
    calibration: Calibration,
    *,
    sha256: str,
    final: FinalPlan,
    frame: Frame,
    rows: Sequence[SampledLabel],
) -> Audited:
    """Test both parts, from the run's own certificate and the rows of its draw. Errors as of `recomputed`."""
    run, replaced = read_expert_plan(certificate, plan)
    chains, costs = read_frozen(certificate, plan)
    found = certify_with_expert(
        run,
        chains,
        calibration,
        pilot_costs=read_score_costs(certificate),
        models_costs=costs,
        replaced=replaced,
    )
    result = judge_final(run, calibration, found, final=final, frame=frame, rows=rows)
    document = final_document(run, result, final=final, frame=frame, rows=rows, certificate=sha256)
    said = final_says(run, final, result, sampled=len(rows), size=frame.size)
    return Audited(document, result, said)


def read_final(data: bytes) -> Document:
    """The certificate of a final audit from the bytes of its file. Raises DocumentError."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"final audit: no JSON in UTF-8 ({error})") from None
    if not isinstance(document, dict):
        raise DocumentError("final audit: no JSON object")
    return document


def _frame(document: Mapping[str, Any], pool_size: int) -> Frame:
    size, digest, entropy = (document.get(name) for name in ("size", "hash", "entropy"))
    if type(size) is not int or not 1 <= size <= pool_size:
        raise DocumentError("final audit: frame.size is no whole number from 1 to the size of the pool")
    if not isinstance(digest, str):
        raise DocumentError("final audit: frame.hash is no text")
    if not isinstance(entropy, str) or not entropy.isdecimal() or len(entropy) > 1000:
        raise DocumentError("final audit: frame.entropy is no whole number in text")
    return Frame(size, digest, int(entropy))


def _rows(stated: Sequence[object]) -> list[SampledLabel]:
    rows = []
    for row in stated:
        if (
            not isinstance(row, dict)
            or type(row.get("place")) is not int
            or not isinstance(row.get("item_id"), str)
            or not isinstance(row.get("label"), str)
            or not isinstance(row.get("expert"), str | None)
        ):
            raise DocumentError("final audit: a row is no drawn label")
        rows.append(SampledLabel(row["place"], row["item_id"], row["label"], row["expert"]))
    return rows


SAYS = {
    "final.certified": gettext_noop(
        "At most %(share)s of the delivered labels of the run's %(items)s items differ from what %(expert)s "
        "would give, blind, with probability at least %(odds)s over the random draws (alpha = %(alpha)s)."
    ),
    "final.no_assumption": gettext_noop(
        "This holds however often people err on the items that were routed to them: labels of theirs were "
        "drawn once all of them were given."
    ),
    "final.seen": gettext_noop(
        "Of %(size)s delivered labels by people that %(expert)s had not given, %(sampled)s were drawn: "
        "%(differ)s differ from hers, and %(unanswered)s she could not tell, which count as wrong."
    ),
    "final.failed": gettext_noop(
        "That at most %(share)s of the labels are wrong could not be certified without the assumption that "
        "people label later items as they labelled the calibration set."
    ),
    "final.models": gettext_noop(
        "The calibration set does not show that models get at most %(budget)s items wrong."
    ),
    "final.people": gettext_noop(
        "The sample does not show that people leave at most %(budget)s items wrong: at most %(allowed)s "
        "labels might have differed."
    ),
    "final.stands": gettext_noop("The run's own certificate stands as it is."),
}
declare(SAYS)
