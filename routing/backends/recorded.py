"""Predictions that came with the import, read from its columns."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from annotation.errors import InputError
from annotation.models import Item
from routing.backends.base import Answer, digest, refuse_unknown, text_param

PARAMS = ("label_column", "confidence_column", "uncertainty_column", "cost_column")


class Recorded:
    """`label_column` holds the label; `confidence_column` or `uncertainty_column` a number in [0, 1], where
    there is one; `cost_column` what the answer cost."""

    default_score: ClassVar[str] = "recorded"

    def __init__(self, params: dict[str, Any]) -> None:
        refuse_unknown(params, PARAMS)
        self.label = text_param(params, "label_column", required=True)
        self.confidence = text_param(params, "confidence_column")
        self.uncertainty = text_param(params, "uncertainty_column")
        self.cost = text_param(params, "cost_column")
        if self.confidence and self.uncertainty:
            raise InputError(
                "Name a column of confidences or one of uncertainties, not both.", where="uncertainty_column"
            )

    def check(self) -> None:
        """Nothing beside the items is read."""

    def fingerprint(self) -> str:
        return digest(
            backend="recorded",
            label=self.label,
            confidence=self.confidence,
            uncertainty=self.uncertainty,
            cost=self.cost,
        )

    def hidden_columns(self) -> frozenset[str]:
        return frozenset(filter(None, (self.label, self.confidence, self.uncertainty, self.cost)))

    def predict(self, items: Sequence[Item]) -> list[Answer]:
        return [self._answer(item) for item in items]

    def _answer(self, item: Item) -> Answer:
        raw = {}
        if self.confidence:
            raw["confidence"] = item.data.get(self.confidence, "")
        if self.uncertainty:
            raw["uncertainty"] = item.data.get(self.uncertainty, "")
        value = item.data.get(self.label)
        cost = self._cost(item)
        if value is None or value == "":
            return Answer(None, f"no label in the column {self.label}"[:200], raw, cost=cost)
        return Answer(str(value), raw=raw, cost=cost)

    def _cost(self, item: Item) -> Decimal | None:
        """The recorded cost; a cell that holds no cost counts at the source's price."""
        try:
            cost = Decimal(str(item.data.get(self.cost, ""))) if self.cost else None
        except InvalidOperation:
            return None
        if cost is None or not cost.is_finite() or not 0 <= cost < 10**8:
            return None
        return cost.quantize(Decimal("0.000001"))
