"""The certificate as a document: plain JSON, the same bytes for the same labels, checkable by anybody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from routing.core.bins import Bins
from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.certify import Certification, ChainTest, Outcome
from routing.core.chain import Chain
from routing.core.exact import plain
from routing.core.keys import Threshold, Thresholds
from routing.core.plan import Plan
from routing.core.rules import split_fixed_sequence
from routing.core.sampling import make_salt

FORMAT = "hypac-certificate"
VERSION, EVERY_SCORE, REFERENCE, COMMITTED = 3, 4, 5, 6
NEWEST = COMMITTED
"""6 holds the commitments of its run and the ledger of its project (`routing.core.commitment`), whatever its
rule and reference. 5 names its reference, an expert or two people and a decider
(`routing.core.reference.documents`). 4 is of the rule `every_score` alone
(`routing.core.every_score.documents`). 2 did not say what counts as right. 1 counted an answer on a pilot
item twice in the expected costs where people were asked about it, too, and bounded the pool, not the data
set, in `pointwise_upper_bound` beside items that nobody could label."""

Document = dict[str, Any]


def certificate_document(
    plan: Plan,
    calibration: Calibration,
    certification: Certification,
    *,
    provenance: Mapping[str, Any],
    slices: Bins | None = None,
) -> Document:
    """The certificate of one analysis.

    Parameters
    ----------
    slices
        Those that `certify` learnt a chain along, if it did.
    provenance
        ``entropy`` (required): the number all randomness of the run came from. ``pool_hash``: SHA-256 of the
        pool's item ids. ``commitments`` and ``ledger``: of a run that has them, as `routing.core.commitment`
        and `routing.core.ledger` make them. Everything else (run, model fingerprints, the ledger of alpha,
        ...) is kept under "provenance" as it is; it must be JSON and must not hold the time of export.

    Raises
    ------
    ValueError
        The entropy is missing or no whole number.
    """
    document = framed(plan, calibration, provenance=provenance)
    document["chains"] = [
        _chain_document(chain, test)
        for chain, test in zip(certification.chains, certification.tests, strict=True)
    ]
    document["result"] = _result_document(certification)
    if slices is not None:
        document["slices"] = slices_document(slices)
    return document


def framed(
    plan: Plan,
    calibration: Calibration,
    *,
    provenance: Mapping[str, Any],
    version: int = VERSION,
) -> Document:
    """What all certificates hold beside chains and result; parameters as of `certificate_document`."""
    entropy = _entropy(provenance)
    committed = ("commitments", "ledger") if "commitments" in provenance else ()
    apart = {name: provenance[name] for name in committed}
    kept = {key: value for key, value in provenance.items() if key not in {"entropy", "pool_hash", *apart}}
    return {
        "format": FORMAT,
        "version": COMMITTED if apart else version,
        **apart,
        "plan": plan_document(plan),
        "pool": {"size": plan.pool_size, "hash": provenance.get("pool_hash", "")},
        "draw": {
            "entropy": str(entropy),
            "salt": make_salt(entropy),
            "rows": len(calibration.rows),
            "asked": int(calibration.asked.sum()),
            "unanswered": calibration.unanswered,
            "sha256": draw_hash(calibration),
        },
        "provenance": kept,
    }


def _entropy(provenance: Mapping[str, Any]) -> int:
    try:
        return int(str(provenance["entropy"]))
    except KeyError:
        raise ValueError("the provenance of a certificate needs the run's 'entropy'") from None
    except ValueError:
        raise ValueError(f"the entropy {provenance['entropy']!r} is no whole number") from None


def plan_document(plan: Plan) -> Document:
    """The plan; decimals as text, the bound by name even where it is the default, the pilot as a number.

    What only some plans have is left out of the others.
    """
    document = {
        "epsilon": plain(plan.epsilon),
        "alpha": plain(plan.alpha),
        "target": plan.target,
        "m": plan.m,
        "p": plain(plan.p),
        "pool_size": plan.pool_size,
        "costs": [plain(cost) for cost in plan.costs],
        "bound": plan.bound_rule().name,
        "rule": plan.rule,
        "loss": plan.loss,
        "pilot_size": plan.pilot,
    }
    if plan.loss_params:
        document["loss_params"] = dict(plan.loss_params)
    if plan.p_min is not None:
        document["p_min"] = plain(plan.p_min)
    if plan.rule == split_fixed_sequence.RULE.name:
        document["split_share"] = plain(plan.split_share)
    if plan.data_set_size is not None:
        document["data_set_size"] = plan.data_set_size
    if plan.alpha_spent is not None:
        document["alpha_spent"] = plain(plan.alpha_spent)
    return document


def slices_document(slices: Bins) -> Document:
    """What a chain is learnt along: upper ends, sizes and mid-ranks of the slices of the pool."""
    return {
        "ends": [threshold_document(end) for end in slices.ends],
        "sizes": [int(size) for size in slices.sizes],
        "rho": [float(rank) for rank in slices.rho],
    }


def _chain_document(chain: Chain, test: ChainTest) -> Document:
    document: Document = {
        "name": chain.name,
        "level": f"{test.level.numerator}/{test.level.denominator}",
        "limits": dict(test.verdict.limits),
        "prefixes": dict(test.verdict.prefixes),
        "policies": [
            {
                "thresholds": thresholds_document(policy.thresholds),
                "counts": list(policy.counts),
                "model_cost": policy.model_cost,
                "people_cost": policy.people_cost,
                "observed": number(upper),
                "observed_low": number(lower),
                "certified": bool(good),
            }
            for policy, upper, lower, good in zip(
                chain.policies, test.upper, test.lower, test.verdict.eligible, strict=True
            )
        ],
    }
    if test.weighted is not None:
        for policy, total in zip(document["policies"], test.weighted, strict=True):
            policy["weighted"] = float(total)
    if test.taught is not None:
        document["taught_by"] = test.taught.size
        for policy, upper, lower in zip(
            document["policies"], test.taught.upper, test.taught.lower, strict=True
        ):
            policy["observed_first"], policy["observed_first_low"] = number(upper), number(lower)
    return document


def _result_document(certification: Certification) -> Document:
    return {
        "certified": certification.certified,
        "chain": certification.chain,
        "policy": certification.index,
        "thresholds": thresholds_document(certification.thresholds),
        **outcome_document(certification),
    }


def outcome_document(outcome: Outcome) -> Document:
    """What the result of every certificate holds, whatever its rule."""
    return {
        "allowed_errors": outcome.allowed_errors,
        "required_errors": outcome.required_errors,
        "observed_errors": number(outcome.observed_errors),
        "pointwise_upper_bound": outcome.pointwise_upper_bound,
        "expected_net_cost": outcome.expected.net_cost,
        "expected_net_saving": outcome.expected.net_saving,
        "expected_routing_saving": outcome.expected.routing_saving,
        "smallest_n": outcome.smallest_n,
        "reason": outcome.reason,
        "sentence": outcome.sentence,
    }


def number(value: float) -> int | float:
    """A count as a whole number, so that it reads as one."""
    return int(value) if float(value).is_integer() else float(value)


def threshold_document(threshold: Threshold) -> list[float | int] | None:
    """A threshold as [u, v], or null."""
    return None if threshold is None else [float(threshold.u) + 0.0, int(threshold.v)]


def thresholds_document(thresholds: Thresholds) -> list[list[float | int] | None]:
    """One entry per model."""
    return [threshold_document(threshold) for threshold in thresholds]


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """The document in its one spelling: UTF-8, keys sorted, no spaces, shortest exact floats, no NaN, a line
    end.
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def document_hash(document: Mapping[str, Any]) -> str:
    """SHA-256 of the one spelling of a document, without the line end."""
    return hashlib.sha256(canonical_bytes(document)[:-1]).hexdigest()


def draw_line(row: CalibrationRow) -> str:
    """One line of ``draw.jsonl``, without the line end; later models' scores, the annotator's label, which
    models answered after the second commitment and losses that were measured elsewhere only where there are
    any.
    """
    line: Document = {
        "order": row.order,
        "item_id": row.item_id,
        "position": int(row.position),
        "asked": bool(row.asked),
        "p": plain(row.p),
        "u": float(row.u) + 0.0,
        "v": int(row.v),
        "label": row.label,
        "answers": list(row.answers),
    }
    if row.own:
        line["own"] = thresholds_document(row.own)
    if row.called:
        line["called"] = list(row.called)
    if row.annotator:
        line["annotator"], line["person"] = row.annotator, row.person
    if row.later:
        line["later"] = list(row.later)
    if row.losses:
        line["losses"] = [None if loss is None else number(loss) for loss in row.losses]
    return json.dumps(
        line,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def draw_hash(calibration: Calibration) -> str:
    """SHA-256 over the lines of ``draw.jsonl`` in draw order, each with its line end."""
    digest = hashlib.sha256()
    for row in calibration.rows:
        digest.update(draw_line(row).encode() + b"\n")
    return digest.hexdigest()


def certificate_files(document: Mapping[str, Any], calibration: Calibration) -> tuple[bytes, bytes]:
    """The two files to publish, ``certificate.json`` and ``draw.jsonl``, that `verify` takes."""
    lines = "".join(draw_line(row) + "\n" for row in calibration.rows)
    return canonical_bytes(document), lines.encode()
