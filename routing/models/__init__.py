from routing.models.deliveries import Delivery, DeliveryFile
from routing.models.draws import Certificate, Draw, DrawItem, PilotItem, Route
from routing.models.measurements import MeasuredItem, MeasuredSource, Measurement
from routing.models.predictions import ItemScore, Prediction, SentAnswer, SourceRevision
from routing.models.runs import PoolItem, Run, RunSource
from routing.models.sources import FrozenSource, ModelPrice, PromptVersion, Source, SourceTry
from routing.models.spend import Reservation, Spend

# What pays models for answers, from a budget of its own.
BudgetOwner = Run | Measurement

__all__ = [
    "BudgetOwner",
    "Certificate",
    "Delivery",
    "DeliveryFile",
    "Draw",
    "DrawItem",
    "FrozenSource",
    "ItemScore",
    "MeasuredItem",
    "MeasuredSource",
    "Measurement",
    "ModelPrice",
    "PilotItem",
    "PoolItem",
    "Prediction",
    "PromptVersion",
    "Reservation",
    "Route",
    "Run",
    "RunSource",
    "SentAnswer",
    "Source",
    "SourceRevision",
    "SourceTry",
    "Spend",
]
