"""A stored certificate against the rows that it is of: what their analysis gives, computed once more.

For certificates that somebody else has stored, who may have written down anything.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.translation import override

from routing.core.calibration import Calibration
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import draw_line
from routing.core.commitment import commitment_differences
from routing.core.documents import parse_document, parse_draw
from routing.core.drawn import draw_differences, drawn_from
from routing.core.every_score.select import AnswersMissingError
from routing.core.exact import plain
from routing.core.losses import imported_paths
from routing.core.verify import TOLERANCE, document_differences
from routing.models import Certificate, FinalCertificate, Run, RunSource
from routing.runs.analysis import compute_analysis, figures_and_messages
from routing.runs.analysis_result import AnalysisResult
from routing.runs.certificate_columns import certificate_columns
from routing.runs.expert.final import final_columns
from routing.runs.expert.rows import expert_rows
from routing.runs.load_calibration import load_calibration
from routing.runs.plan import plan_of
from routing.runs.verification import DiffersError, recomputing, refuse

Document = dict[str, Any]
FROM_OUTSIDE = 1e-4
"""As `routing.core.verify.TOLERANCE`, where other code or another server computes the losses."""

LONGEST_NAME = 100


@dataclass(frozen=True)
class Shown:
    """What pages show beside a certificate, computed from the rows that are there."""

    figures: dict[str, Any]
    messages: dict[str, Any]


def verify_certificate(certificate: Certificate) -> Shown:
    """Raises DiffersError where the certificate, or a column that repeats its document, is not what the rows
    of its run give. It need not be stored.

    Sums of floats may differ as `routing.core.verify` lets them between machines. Of the provenance, names
    of models, labels and currency, the ledger's later entries and what a final audit spent since may be
    others now.
    """
    with recomputing():
        try:
            return _verified(certificate)
        except AnswersMissingError as error:
            raise DiffersError("its tests need answers that its draw does not have") from error


def _verified(certificate: Certificate) -> Shown:
    run = certificate.run
    document = parse_document(certificate.document.encode())
    rows = parse_draw(certificate.draw_lines.encode())
    run_sources = list(run.run_sources.select_related("source", "run").order_by("position"))
    _name_as_then(run_sources, document)
    calibration, own = (expert_rows if run.by_expert else load_calibration)(run, run_sources)
    refuse(_row_differences(rows, calibration.rows))
    found = compute_analysis(run, run_sources, Calibration.from_rows(rows), own)
    again = _as_then(run, document, found.document)
    refuse(document_differences(document, again, tolerance=_tolerance(run)))
    refuse(_draw_differences(run, document, rows))
    refuse(_column_differences(certificate, document, rows))
    return _shown(certificate, run, found)


def _tolerance(run: Run) -> float:
    """Of sums of floats: a server for embeddings does not give the same ones to the last digits."""
    return FROM_OUTSIDE if imported_paths(run.loss, run.loss_params) else TOLERANCE


def _name_as_then(run_sources: list[RunSource], document: Document) -> None:
    """Models may have got other names, which sentences have."""
    told = document["provenance"]["sources"]
    for run_source, one in zip(run_sources, told, strict=True):
        if not isinstance(one["name"], str) or len(one["name"]) > LONGEST_NAME:
            raise DiffersError("certificate: provenance.sources names no models")
        run_source.source.name = one["name"]


# --- The draw -----------------------------------------------------------------------------------------------


def _row_differences(stated: list[CalibrationRow], now: "tuple[CalibrationRow, ...] | Any") -> Iterator[str]:
    if len(stated) != len(now):
        yield f"draw: it has {len(stated)} lines, and {len(now)} items were drawn"
        return
    for row, today in zip(stated, now, strict=True):
        lines = (json.loads(draw_line(one)) for one in (row, _as_called(row, today)))
        for difference in document_differences(*lines):
            what = difference.removeprefix("certificate: ")
            yield f"draw, place {today.order}, item {today.item_id!r}: {what}"


def _as_called(stated: CalibrationRow, now: CalibrationRow) -> CalibrationRow:
    """The row of now without what models were asked about its item since the analysis."""
    if len(stated.called) != len(now.called):
        return now
    was = stated.called or tuple(True for _answer in now.answers)
    return replace(
        now,
        answers=tuple(answer if one else None for answer, one in zip(now.answers, was, strict=False)),
        own=tuple(key if one else None for key, one in zip(now.own, was[1:], strict=False)),
        called=tuple(called and one for called, one in zip(now.called, was, strict=False)),
        later=tuple(place for place in now.later if was[place - 1]),
    )


def _draw_differences(run: Run, document: Document, rows: list[CalibrationRow]) -> Iterator[str]:
    plan = plan_of(run)
    yield from draw_differences(plan, rows, int(run.entropy), drawn_from(document, int(run.entropy)))
    if "commitments" in document:
        yield from commitment_differences(document, plan, rows)


# --- The document -------------------------------------------------------------------------------------------


def _as_then(run: Run, stated: Document, again: Document) -> Document:
    """The document as it was computed again, with what may have changed since as it was."""
    then, now = stated["provenance"], dict(again["provenance"])
    made = {**again, "provenance": now}
    if _texts(then["choices"]):
        now["choices"] = then["choices"]
    if isinstance(then["currency"], str) and len(then["currency"]) <= LONGEST_NAME:
        now["currency"] = then["currency"]
    for was, source in zip(then["sources"], now["sources"], strict=True):
        if isinstance(was["backend"], str) and len(was["backend"]) <= LONGEST_NAME:
            source["backend"] = was["backend"]
    if then["target_in_words"] in _in_all_languages(run):
        now["target_in_words"] = then["target_in_words"]
    now |= _ledger_then(run, then, now)
    if not run.commitments.exists():  # the short name of then
        now["project"] = then["project"] if _texts([then["project"]]) else now["project"]
    if "ledger" in again and isinstance(stated.get("ledger"), list):
        made["ledger"] = again["ledger"][: len(stated["ledger"])]
    return made


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _in_all_languages(run: Run) -> set[str]:
    found = set()
    for code, _name in settings.LANGUAGES:
        with override(code):
            found.add(str(run.get_target_display()))
    return found


def _ledger_then(run: Run, then: Mapping[str, Any], now: Mapping[str, Any]) -> Document:
    """Before a final audit was drawn its run had spent less."""
    before = {one.number: plain(one.alpha) for one in run.project.runs.filter(alpha__isnull=False)}
    told, known = then["alpha_ledger"], now["alpha_ledger"]
    if [one["run"] for one in told] != [one["run"] for one in known]:
        return {}
    if any(
        one["alpha"] not in (of_now["alpha"], before[of_now["run"]])
        for one, of_now in zip(told, known, strict=True)
    ):
        return {}
    return {
        "alpha_ledger": told,
        "alpha_total": plain(sum((Decimal(one["alpha"]) for one in told), Decimal(0))),
    }


# --- The columns --------------------------------------------------------------------------------------------


def _column_differences(
    certificate: Certificate, document: Document, rows: list[CalibrationRow]
) -> Iterator[str]:
    for name, value in certificate_columns(document, rows).items():
        if not _same(getattr(certificate, name), value):
            yield f"its column {name} is not what its document says"


def _same(stored: Any, value: Any) -> bool:
    return type(stored) is type(value) and bool(stored == value)


def _shown(certificate: Certificate, run: Run, found: AnalysisResult) -> Shown:
    figures, messages = json.loads(json.dumps(figures_and_messages(run, found)))
    for name in ("sentence", "reason"):
        if name in certificate.messages and certificate.messages[name] != messages.get(name):
            raise DiffersError(f"its column messages has another {name} than its document")
    return Shown(figures, messages)


def verify_final_certificate(final: FinalCertificate) -> None:
    """The same of that of a final audit, which is stored, as its run's is."""
    with recomputing():
        columns = final_columns(final.audit.run.certificate, final.audit, final.created_at)
        stated, again = (json.loads(one) for one in (final.document, columns["document"]))
        differing = document_differences(stated, again)
        refuse(line.replace("certificate:", "final audit:", 1) for line in differing)
        for name in ("certified", "messages"):
            if not _same(getattr(final, name), columns[name]):
                raise DiffersError(f"its column {name} is not what its document says")
