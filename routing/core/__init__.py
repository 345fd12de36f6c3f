"""The statistics of HyPAC: draws, bounds, chains, certificates.  NumPy and SciPy only; no Django, no
database.

Arrays and small frozen dataclasses come in, small frozen dataclasses go out.  Files are touched only by
``verify``, which recomputes a certificate from its two published files.  docs/experiment.md is for whoever
calls it from a program: its names are those of `__all__`, each read from its module when it is first used, so
that importing one module of this package does not import all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "BASELINES",
    "BOUNDS",
    "LOSSES",
    "RULES",
    "TARGETS",
    "Calibration",
    "CalibrationDraw",
    "CalibrationError",
    "CalibrationRow",
    "Certification",
    "Chain",
    "ChainError",
    "DocumentError",
    "ExpertPlan",
    "PeopleForecast",
    "PilotData",
    "Plan",
    "PlanError",
    "ReferenceCertification",
    "ReferenceChains",
    "Roster",
    "RosterError",
    "annotated_rows",
    "build_chains",
    "build_reference_chains",
    "certificate_document",
    "certificate_files",
    "certify_chains",
    "certify_with_expert",
    "draw_calibration",
    "draw_pilot",
    "expert_certificate",
    "expert_queue",
    "frozen_document",
    "make_salt",
    "new_entropy",
    "read_frozen",
    "settled_certificate",
    "tie_breaks",
    "verify_certificate",
    "with_expert",
]

if TYPE_CHECKING:
    from routing.core.baselines import BASELINES
    from routing.core.bounds import BOUNDS
    from routing.core.calibration import Calibration
    from routing.core.calibration_rows import CalibrationError, CalibrationRow
    from routing.core.certificate import certificate_document, certificate_files
    from routing.core.certify import Certification, certify as certify_chains
    from routing.core.chain import Chain, ChainError, build_chains
    from routing.core.documents import DocumentError
    from routing.core.losses import LOSSES
    from routing.core.pilot import PilotData
    from routing.core.plan import Plan, PlanError
    from routing.core.reference.certify import ReferenceCertification, certify_with_expert
    from routing.core.reference.chain import ReferenceChains, build_reference_chains
    from routing.core.reference.documents import (
        expert_certificate,
        frozen_document,
        read_frozen,
    )
    from routing.core.reference.forecast import PeopleForecast
    from routing.core.reference.plan import ExpertPlan
    from routing.core.reference.roster import Roster, RosterError
    from routing.core.reference.settled import settled_certificate
    from routing.core.reference.table import annotated_rows, expert_queue, with_expert
    from routing.core.rules import RULES
    from routing.core.sampling import (
        CalibrationDraw,
        draw_calibration,
        draw_pilot,
        make_salt,
        new_entropy,
        tie_breaks,
    )
    from routing.core.targets import TARGETS
    from routing.core.verify import verify as verify_certificate

# `certify` and `verify` are modules of this package, so their functions need names of their own here.
_HOME = {
    "BASELINES": "baselines.BASELINES",
    "BOUNDS": "bounds.BOUNDS",
    "Calibration": "calibration.Calibration",
    "CalibrationDraw": "sampling.CalibrationDraw",
    "CalibrationError": "calibration_rows.CalibrationError",
    "CalibrationRow": "calibration_rows.CalibrationRow",
    "Certification": "certify.Certification",
    "Chain": "chain.Chain",
    "ChainError": "chain.ChainError",
    "DocumentError": "documents.DocumentError",
    "ExpertPlan": "reference.plan.ExpertPlan",
    "LOSSES": "losses.LOSSES",
    "PeopleForecast": "reference.forecast.PeopleForecast",
    "PilotData": "pilot.PilotData",
    "Plan": "plan.Plan",
    "PlanError": "plan.PlanError",
    "RULES": "rules.RULES",
    "ReferenceCertification": "reference.certify.ReferenceCertification",
    "ReferenceChains": "reference.chain.ReferenceChains",
    "Roster": "reference.roster.Roster",
    "RosterError": "reference.roster.RosterError",
    "TARGETS": "targets.TARGETS",
    "annotated_rows": "reference.table.annotated_rows",
    "build_chains": "chain.build_chains",
    "build_reference_chains": "reference.chain.build_reference_chains",
    "certificate_document": "certificate.certificate_document",
    "certificate_files": "certificate.certificate_files",
    "certify_chains": "certify.certify",
    "certify_with_expert": "reference.certify.certify_with_expert",
    "draw_calibration": "sampling.draw_calibration",
    "draw_pilot": "sampling.draw_pilot",
    "expert_certificate": "reference.documents.expert_certificate",
    "expert_queue": "reference.table.expert_queue",
    "frozen_document": "reference.documents.frozen_document",
    "make_salt": "sampling.make_salt",
    "new_entropy": "sampling.new_entropy",
    "read_frozen": "reference.documents.read_frozen",
    "settled_certificate": "reference.settled.settled_certificate",
    "tie_breaks": "sampling.tie_breaks",
    "verify_certificate": "verify.verify",
    "with_expert": "reference.table.with_expert",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOME[name].rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
