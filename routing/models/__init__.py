from routing.models.deliveries import Delivery, DeliveryFile
from routing.models.draws import Certificate, Draw, DrawItem, PilotItem, Route
from routing.models.predictions import ItemScore, Prediction, SentAnswer, SourceRevision
from routing.models.runs import PoolItem, Run, RunSource
from routing.models.sources import ModelPrice, PromptVersion, Source, SourceTry
from routing.models.spend import Reservation, Spend

__all__ = [
    "Certificate",
    "Delivery",
    "DeliveryFile",
    "Draw",
    "DrawItem",
    "ItemScore",
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
