from routing.models.deliveries import Delivery, DeliveryFile
from routing.models.draws import Certificate, Draw, DrawItem, PilotItem
from routing.models.predictions import ItemScore, Prediction
from routing.models.routes import Route
from routing.models.runs import PoolItem, Run, RunSource
from routing.models.sources import Source
from routing.models.spend import Spend

__all__ = [
    "Certificate",
    "Delivery",
    "DeliveryFile",
    "Draw",
    "DrawItem",
    "ItemScore",
    "PilotItem",
    "PoolItem",
    "Prediction",
    "Route",
    "Run",
    "RunSource",
    "Source",
    "Spend",
]
