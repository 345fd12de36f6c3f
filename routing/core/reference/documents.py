"""The certificates that name their reference, version 5: an expert, or two people and a decider.

With the reference `settled` (`routing.core.reference.settled`) it is an ordinary certificate of version 3 or
4 with ``reference`` beside it, and a sentence that says who is right.  With `expert` it holds, beside what
all certificates do:

``reference``
    ``kind``, ``expert`` (her name; where several share the work in its place ``experts``, the shares by
    name, and whose an item is follows from the roster's salt as for annotators), ``expert_cost``,
    ``recheck_share`` r, ``rechecked`` n_B, ``weight`` w, ``replaced`` X, and ``roster``: its ``salt``, and
    ``shares`` of the work by annotator.  Where a final audit is planned, ``final_audit``: its ``sample``,
    ``models_error``, ``models_alpha``, ``people_alpha``.
``slices``
    As of `certificate.slices_document`, with ``models_cost`` and ``people_cost``, what each model was taken
    to cost in each, (K, b) numbers.
``chains[]``
    ``name``, ``level``, ``limits``, ``prefixes``; ``policies``, each with the ``move`` that makes it of the
    one before, [slice, source] from 0 (null of the first: everything to the expert), ``unlike`` and
    ``alike``, K_A+ and K_B+, ``observed`` Q+, ``observed_low`` K-, ``certified``, and ``cost``.
``scores``
    Only where the third chain is on every score: what a certificate of version 4 has about its chains.
``result``
    What was chosen, its counts, people's error and the sentence; of a policy on every score also ``shape``,
    ``models`` (from 1) and ``thresholds``, as of a certificate of version 4.

Of each asked row of the draw ``label`` is the expert's, and there are ``annotator`` and ``person``, whose
item it is and her label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from routing.core.arrays import Floats
from routing.core.bins import Bins
from routing.core.calibration import Calibration
from routing.core.certificate import (
    REFERENCE,
    Document,
    framed,
    number,
    slices_document,
    thresholds_document,
)
from routing.core.documents import DECIMAL, DocumentError, read_slices
from routing.core.every_score.documents import (
    chains_document,
    read_pilot_costs,
    read_score_chains,
    tests_document,
)
from routing.core.every_score.select import PilotCosts
from routing.core.exact import plain
from routing.core.keys import Key
from routing.core.pilot import PilotData
from routing.core.plan import Plan
from routing.core.reference.certify import ReferenceCertification
from routing.core.reference.chain import ReferenceChains, SliceChain
from routing.core.reference.estimate import PeopleEstimate
from routing.core.reference.forecast import SourceCosts, model_costs
from routing.core.reference.plan import ExpertPlan, read_final_plan
from routing.core.reference.roster import ANNOTATOR, Roster
from routing.core.reference.roster_documents import (
    MOST_ANNOTATORS,
    SHARE,
    fraction_text,
    object_of,
    read_shares,
    shares_document,
)
from routing.core.reference.select import ReferenceSelection, SliceTest
from routing.core.reference.words import EXPERT, SETTLED
from routing.core.rules import fixed_sequence
from routing.core.sampling import make_salt

DEAREST = 10.0**40
"""No cost is above it, so that sums of costs stay finite."""


def expert_certificate(
    run: ExpertPlan,
    chains: ReferenceChains,
    calibration: Calibration,
    certification: ReferenceCertification,
    *,
    roster: Roster,
    provenance: Mapping[str, Any],
) -> Document:
    """The certificate of one analysis with the reference `expert`.

    Parameters
    ----------
    provenance
        As of `certificate_document`.

    Raises
    ------
    ValueError
        The entropy is missing, or the roster is not one of its run: another salt, or whose items others
        labelled, or the expert among the annotators.
    """
    if fault := roster_fault(run, roster, calibration, provenance.get("entropy")):
        raise ValueError(fault)
    frame = framed(stated_plan(run), calibration, provenance=provenance, version=REFERENCE)
    frame["draw"]["unanswered"] = certification.unanswered
    selection = certification.selection
    document = {
        **frame,
        "reference": {
            **fixed_reference(run, roster),
            "rechecked": certification.rechecked,
            "replaced": certification.replaced,
        },
        "slices": _slices_document(chains, selection.models_costs),
        "chains": [_chain_document(test, run.level) for test in selection.tests],
        "result": _result_document(run, certification),
    }
    if chains.scores is not None and selection.scores is not None:
        pilot = certification.pilot_costs or PilotCosts(
            0, tuple(np.zeros(chain.size) for chain in chains.scores.chains)
        )
        document["scores"] = tests_document(chains.scores, selection.scores.tests, pilot)
    return document


def stated_plan(run: ExpertPlan) -> Plan:
    """The plan as its certificate states it: the rule of an ordinary one says nothing here, as three chains
    are tested, each in order.
    """
    return replace(run.plan, rule=fixed_sequence.RULE.name, pilot_size=run.plan.pilot)


def fixed_reference(run: ExpertPlan, roster: Roster) -> Document:
    """What a certificate says of its reference that is fixed with the plan."""
    return {
        "kind": EXPERT,
        **_experts_document(run),
        "expert_cost": plain(run.expert_cost),
        "recheck_share": plain(run.recheck_share),
        "weight": run.weight,
        "roster": {"salt": roster.salt, "shares": shares_document(roster.shares)},
        **({"final_audit": run.final.document} if run.final else {}),
    }


def frozen_document(run: ExpertPlan, chains: ReferenceChains, *, pilot: PilotData | None = None) -> Document:
    """What is frozen before the draw as plain JSON, from which `read_frozen` reads enough to certify.

    Parameters
    ----------
    pilot
        As the chains were built from.
    """
    document: Document = {
        "slices": _slices_document(chains, model_costs(run, chains.slices, pilot)),
        "chains": [
            {"name": chain.name, "policies": [{"move": move} for move in _moves(chain)]}
            for chain in chains.chains
        ],
    }
    if chains.scores is not None:
        document["scores"] = chains_document(chains.scores)
    return document


def read_frozen(document: Mapping[str, Any], plan: Plan) -> tuple[ReferenceChains, SourceCosts]:
    """Chains and what models cost, of `frozen_document` or of a certificate.

    Raises
    ------
    DocumentError
        Something is missing or of the wrong kind.
    """
    return _read_chains(document, plan), _read_models_costs(document, plan)


def _slices_document(chains: ReferenceChains, costs: SourceCosts) -> Document:
    return {
        **slices_document(chains.slices),
        "models_cost": costs.models.tolist(),
        "people_cost": costs.people.tolist(),
    }


def _moves(chain: SliceChain) -> list[list[int] | None]:
    """What makes each policy of the one before; of the first None."""
    return [None, *([where, source] for where, source in chain.moves)]


def roster_fault(run: ExpertPlan, roster: Roster, calibration: Calibration, entropy: object) -> str:
    """Why the items of the draw were not given out by ``roster``; '' if they were."""
    if len(roster.shares) > MOST_ANNOTATORS or any(
        not SHARE.fullmatch(fraction_text(share)) for _, share in roster.shares
    ):
        return f"a certificate holds at most {MOST_ANNOTATORS} annotators, and shares of at most 15 digits"
    if roster.duty != ANNOTATOR:
        return "it is a roster of experts, not of annotators"
    if both := sorted(set(run.names) & set(roster.names)):
        return f"{both[0]!r} is the expert and annotates"
    if entropy is not None and roster.salt != make_salt(int(str(entropy))):
        return "the salt of the roster is not that of the draw"
    rows = [row for row in calibration.rows if row.asked]
    for row, name in zip(rows, roster.annotators([row.item_id for row in rows]), strict=True):
        if row.annotator != name:
            return f"item {row.item_id!r} is {name!r}'s by the roster, not {row.annotator!r}'s"
    return ""


def _experts_document(run: ExpertPlan) -> Document:
    return {"experts": shares_document(run.experts)} if run.experts else {"expert": run.expert}


def _chain_document(test: SliceTest, level: Fraction) -> Document:
    return {
        "name": test.chain.name,
        "level": fraction_text(level),
        "limits": dict(test.verdict.limits),
        "prefixes": dict(test.verdict.prefixes),
        "policies": [
            {
                "move": move,
                "unlike": number(test.unlike[j]),
                "alike": number(test.alike[j]),
                "observed": number(test.upper[j]),
                "observed_low": number(test.lower[j]),
                "certified": bool(test.verdict.eligible[j]),
                "cost": float(test.costs[j]),
            }
            for j, move in enumerate(_moves(test.chain))
        ],
    }


def _result_document(run: ExpertPlan, found: ReferenceCertification) -> Document:
    counts = found.counts
    return {
        "certified": found.certified,
        "chain": found.selection.chain if found.certified else "",
        "policy": found.selection.index,
        **_policy_document(found.selection),
        "budget": run.plan.budget,
        "seen": found.seen,
        "unlabelled": found.unlabelled,
        "unlike_errors": counts.unlike,
        "alike_errors": counts.alike,
        "observed_errors": counts.observed,
        "allowed_errors": counts.allowed,
        "seen_errors": counts.seen,
        "required_errors": counts.required,
        "people": _people_document(found.people),
        "expected_net_cost": found.expected_net_cost,
        "expected_net_saving": found.expected_net_saving,
        "smallest_n": found.smallest_n,
        "reason": found.reason,
        "sentence": found.sentence,
    }


def _policy_document(selection: ReferenceSelection) -> Document:
    """What a chosen policy on every score does, as its name alone does not say it."""
    if selection.by_scores is None:
        return {}
    chain = selection.by_scores.chain
    return {
        "shape": chain.shape,
        "models": [model + 1 for model in chain.models],
        "thresholds": thresholds_document(selection.by_scores.thresholds),
    }


def _people_document(people: PeopleEstimate) -> Document:
    error = people.error
    return {
        "wrong": error.observed,
        "asked": error.asked,
        "estimate": float(error.estimate) if isfinite(error.estimate) else None,
        "low": float(error.low),
        "high": float(error.high),
        "caught": people.caught,
        "shared": people.shared,
    }


def read_kind(document: Mapping[str, Any]) -> str:
    """Which reference a certificate names, `EXPERT` or `SETTLED`; '' of versions that name none."""
    if document["version"] < REFERENCE or (document["version"] > REFERENCE and "reference" not in document):
        return ""
    kind = object_of(document, "reference").get("kind")
    if kind not in (EXPERT, SETTLED):
        raise DocumentError(f"certificate: the reference {str(kind)[:60]!r} is unknown here")
    return str(kind)


def read_expert_plan(document: Mapping[str, Any], plan: Plan) -> tuple[ExpertPlan, int]:
    """The plan of a certificate with an expert, and X.

    Raises
    ------
    DocumentError
        Something is missing or of the wrong kind.
    """
    reference = object_of(document, "reference")
    try:
        cost, share = (reference[name] for name in ("expert_cost", "recheck_share"))
        for value in (cost, share):
            if not isinstance(value, str) or not DECIMAL.fullmatch(value):
                raise ValueError(f"{str(value)[:60]!r} is no text of a decimal number")
        whole = [reference[name] for name in ("weight", "replaced")]
        if any(type(value) is not int or not 0 <= value <= plan.pool_size for value in whole):
            raise ValueError("'weight' and 'replaced' are no whole numbers from 0 to the size of the pool")
        if whole[0] < 1:
            raise ValueError("'weight' is below 1")
        final = read_final_plan(object_of(reference, "final_audit")) if "final_audit" in reference else None
        if "experts" in reference:
            experts = read_shares(object_of(reference, "experts"))
            return ExpertPlan(plan, cost, share, whole[0], final=final, experts=experts), whole[1]
        name = reference["expert"]
        if not isinstance(name, str):
            raise ValueError("'expert' is no text")
        return ExpertPlan(plan, cost, share, whole[0], name, final), whole[1]
    except DocumentError:
        raise
    except (KeyError, ValueError) as error:
        raise DocumentError(f"certificate: reference: {type(error).__name__}: {error}") from None


def _read_chains(document: Mapping[str, Any], plan: Plan) -> ReferenceChains:
    """Enough to test along them; the scores of the pool are not part of the document."""
    slices = read_slices(object_of(document, "slices"))
    if sum(slices.sizes.tolist()) != plan.pool_size:
        raise DocumentError("certificate: slices: they do not hold as many items as the pool")
    if not np.all((slices.rho > 0) & (slices.rho < 1)):
        raise DocumentError("certificate: slices: a rank is not between 0 and 1")
    chains = document.get("chains")
    if not isinstance(chains, list):
        raise DocumentError("certificate: 'chains' is no list")
    scores = read_score_chains(object_of(document, "scores")) if "scores" in document else None
    found = tuple(_read_chain(chain, slices.ends, plan.sources - 1) for chain in chains)
    return ReferenceChains(Bins(slices.ends, slices.sizes, slices.rho, np.empty(0)), found, scores)


def _read_chain(chain: object, ends: tuple[Key, ...], models: int) -> SliceChain:
    try:
        if not isinstance(chain, dict) or not isinstance(chain["name"], str):
            raise TypeError("no object with a name")
        moves = [policy["move"] for policy in chain["policies"]]
        if not moves or moves[0] is not None:
            raise ValueError("the first of its policies is not everything at the expert")
        for move in moves[1:]:
            if not isinstance(move, list) or len(move) != 2 or any(type(part) is not int for part in move):
                raise ValueError(f"{str(move)[:60]} is no move of a slice to a source")
        return SliceChain(chain["name"], ends, tuple((where, to) for where, to in moves[1:]), models)
    except (KeyError, TypeError, ValueError) as error:
        raise DocumentError(f"certificate: a chain cannot be read: {type(error).__name__}: {error}") from None


def _read_models_costs(document: Mapping[str, Any], plan: Plan) -> SourceCosts:
    slices = object_of(document, "slices")
    width = len(slices["ends"])
    models, people = (
        _cost_table(slices.get(name), plan.sources - 1, width) for name in ("models_cost", "people_cost")
    )
    return SourceCosts(models, people)


def _cost_table(rows: object, models: int, slices: int) -> Floats:
    if (
        not isinstance(rows, list)
        or len(rows) != models
        or not all(isinstance(row, list) and len(row) == slices and _are_costs(row) for row in rows)
    ):
        raise DocumentError("certificate: slices: what models cost is no cost of each model in each slice")
    return np.array(rows, dtype=np.float64).reshape(models, slices)


def _are_costs(values: Sequence[object]) -> bool:
    return all(type(value) in (int, float) and 0 <= value <= DEAREST for value in values)  # type: ignore[operator]


def read_score_costs(document: Mapping[str, Any]) -> PilotCosts | None:
    """What policies on every score cost on the pilot; None where no chain is on every score."""
    return read_pilot_costs(object_of(document, "scores")) if "scores" in document else None
