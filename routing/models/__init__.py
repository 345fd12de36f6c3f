from routing.models.deliveries import Delivery, DeliveryFile
from routing.models.draws import Certificate, Draw, DrawItem, PilotItem
from routing.models.predictions import ItemScore, Prediction
from routing.models.prompts import PromptVersion
from routing.models.routes import Route
from routing.models.runs import PoolItem, Run, RunSource
from routing.models.sent import SentAnswer, SourceRevision
from routing.models.sources import ModelPrice, Source
from routing.models.spend import Reservation, Spend
from routing.models.trial_calls import SourceTry

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
