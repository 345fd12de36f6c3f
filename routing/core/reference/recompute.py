"""A certificate with the reference `expert` anew, from what it froze and its draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import Document
from routing.core.documents import DocumentError
from routing.core.plan import Plan
from routing.core.reference.certify import certify_with_expert
from routing.core.reference.documents import (
    expert_certificate,
    read_expert_plan,
    read_frozen,
    read_score_costs,
)
from routing.core.reference.plan import ExpertPlan
from routing.core.reference.recheck import default_weight
from routing.core.reference.roster_documents import read_roster
from routing.core.reference.table import expert_sees


def refuse_other_rows(document: Mapping[str, Any], rows: Sequence[CalibrationRow]) -> None:
    """Raise `DocumentError` where the rows are not those of a run with an expert."""
    for row in rows:
        where = f"draw: item {row.item_id!r}"
        if row.asked and not row.annotator:
            raise DocumentError(f"{where} was asked about, and its line does not say whose it is")
        if not row.asked and row.annotator:
            raise DocumentError(f"{where} has an annotator, and nobody was asked about it")
        if row.called:
            raise DocumentError(f"{where} says which models were called ('called'): all are, where asked")
        if row.own and "scores" not in document:
            raise DocumentError(f"{where} has scores of later models, and no chain looks at them")


def again_with_expert(
    document: Mapping[str, Any], plan: Plan, calibration: Calibration, provenance: Mapping[str, Any]
) -> tuple[Document, list[str]]:
    """The certificate anew, and what is odd about the draw beside.

    Raises
    ------
    DocumentError
        A part of the certificate is missing or malformed.
    CalibrationError, ValueError
        The draw does not fit the plan, or nothing can be tested.
    """
    run, replaced = read_expert_plan(document, plan)
    roster, (chains, models_costs) = read_roster(document), read_frozen(document, plan)
    found = certify_with_expert(
        run,
        chains,
        calibration,
        pilot_costs=read_score_costs(document),
        models_costs=models_costs,
        replaced=replaced,
    )
    again = expert_certificate(run, chains, calibration, found, roster=roster, provenance=provenance)
    return again, [*_chosen_weight(run), *_labelled_in_vain(run, calibration)]


def _chosen_weight(run: ExpertPlan) -> Iterator[str]:
    """A weight of its own may have been fixed with the plan, or chosen after the labels: no file can tell."""
    if not run.all_rechecked and run.weight != (usual := default_weight(run.recheck_share)):
        yield (
            f"certificate: reference.weight is {run.weight}, and {usual} is what follows from the share "
            f"{run.recheck_share}: this proves nothing unless it was fixed before the labels"
        )


def _labelled_in_vain(run: ExpertPlan, calibration: Calibration) -> Iterator[str]:
    """Labels of the expert on items that she was not to label: nothing reads them."""
    asked = [row for row in calibration.rows if row.asked]
    for row, seen in zip(asked, expert_sees(run, asked).tolist(), strict=True):
        if row.label is not None and not seen:
            yield (
                f"draw, place {row.order}, item {row.item_id!r}: it has a label of the expert, who was not "
                "to label it"
            )
