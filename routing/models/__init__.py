from routing.models.candidates import PromptCandidate
from routing.models.commitments import Commitment, LedgerEntry
from routing.models.deliveries import Delivery, DeliveryFile
from routing.models.draws import Certificate, Draw, DrawItem, PilotItem, Route
from routing.models.final_audits import FinalAudit, FinalCertificate, FinalSample
from routing.models.losses import ComputedLoss, GivenLosses, WantedLosses
from routing.models.measurements import MeasuredItem, MeasuredSource, Measurement
from routing.models.pools import Intake, PoolItem, RunSource
from routing.models.predictions import (
    ERASED_REASON,
    REMOVED,
    ItemScore,
    Prediction,
    SentAnswer,
    SourceRevision,
)
from routing.models.roster import AuditedItem, ExpertRequest, RosterEntry
from routing.models.rounds import GuidelineRound, RoundItem, RoundNote
from routing.models.runs import Run
from routing.models.saved_views import SavedView
from routing.models.sources import FrozenSource, MendVersion, ModelPrice, PromptVersion, Source, SourceTry
from routing.models.spend import Reservation, Spend

# What pays models for answers, from a budget of its own.
BudgetOwner = Run | Measurement | PromptCandidate

__all__ = [
    "ERASED_REASON",
    "REMOVED",
    "AuditedItem",
    "BudgetOwner",
    "Certificate",
    "Commitment",
    "ComputedLoss",
    "Delivery",
    "DeliveryFile",
    "Draw",
    "DrawItem",
    "ExpertRequest",
    "FinalAudit",
    "FinalCertificate",
    "FinalSample",
    "FrozenSource",
    "GivenLosses",
    "GuidelineRound",
    "Intake",
    "ItemScore",
    "LedgerEntry",
    "MeasuredItem",
    "MeasuredSource",
    "Measurement",
    "MendVersion",
    "ModelPrice",
    "PilotItem",
    "PoolItem",
    "Prediction",
    "PromptCandidate",
    "PromptVersion",
    "Reservation",
    "RosterEntry",
    "RoundItem",
    "RoundNote",
    "Route",
    "Run",
    "RunSource",
    "SavedView",
    "SentAnswer",
    "Source",
    "SourceRevision",
    "SourceTry",
    "Spend",
    "WantedLosses",
]
