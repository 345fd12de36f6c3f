"""The statistics of HyPAC: draws, bounds, chains, certificates.  NumPy and SciPy only; no Django, no
database.

Arrays and small frozen dataclasses come in, small frozen dataclasses go out.  Files are touched only by
``verify``, which recomputes a certificate from its two published files.  docs/library.md is for whoever calls
it from a program: its names are those of `__all__`, each read from its module when it is first used, so that
importing one module of this package does not import all of them.
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
    "PilotData",
    "Plan",
    "PlanError",
    "build_chains",
    "certify_chains",
    "draw_calibration",
    "draw_pilot",
    "make_salt",
    "new_entropy",
    "tie_breaks",
    "verify_certificate",
]

if TYPE_CHECKING:
    from routing.core.baselines import BASELINES
    from routing.core.bounds import BOUNDS
    from routing.core.calibration import Calibration
    from routing.core.calibration_rows import CalibrationError, CalibrationRow
    from routing.core.certify import Certification, certify as certify_chains
    from routing.core.chain import Chain, ChainError, build_chains
    from routing.core.losses import LOSSES
    from routing.core.pilot import PilotData
    from routing.core.plan import Plan, PlanError
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
    "LOSSES": "losses.LOSSES",
    "PilotData": "pilot.PilotData",
    "Plan": "plan.Plan",
    "PlanError": "plan.PlanError",
    "RULES": "rules.RULES",
    "TARGETS": "targets.TARGETS",
    "build_chains": "chain.build_chains",
    "certify_chains": "certify.certify",
    "draw_calibration": "sampling.draw_calibration",
    "draw_pilot": "sampling.draw_pilot",
    "make_salt": "sampling.make_salt",
    "new_entropy": "sampling.new_entropy",
    "tie_breaks": "sampling.tie_breaks",
    "verify_certificate": "verify.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name].split(".")
    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
