"""What an answer costs, and before it is there the most that it can cost, at the prices that a run froze."""

from collections.abc import Mapping
from decimal import ROUND_UP, Decimal

from routing.core.costs import COSTS, SECONDS, TOKENS_IN, TOKENS_OUT, Cost, CostError, read_prices
from routing.models import FrozenSource
from routing.sources.backends import Answer
from routing.sources.backends.base import COST

# What the column of costs holds.
PLACES = Decimal(1).scaleb(-10)
MOST = Decimal(10) ** 8


class Charge:
    """The way in which a run, a measurement or a candidate prompt pays its source."""

    def __init__(self, frozen: FrozenSource) -> None:
        self.per_label = frozen.cost_per_label
        self._charged, self._answers = Decimal(0), 0
        self._function: Cost | None = None
        if frozen.cost_function != "flat":
            self._function = COSTS.get(frozen.cost_function)
            self._prices = read_prices(self._function, frozen.prices)

    def cost(self, answer: Answer) -> tuple[Decimal, str]:
        """What the answer cost, and why that is the price per label where the cost function cannot tell.

        What the backend knows the answer to have cost comes first, then the cost function.
        """
        cost, note = self._cost(answer)
        self._charged, self._answers = self._charged + cost, self._answers + 1
        return cost, note

    @property
    def expected(self) -> Decimal:
        """What is set aside for an answer of which nobody can tell the most: the mean of those charged so
        far, or the price per label, whichever is more.
        """
        if not self._answers:
            return self.per_label
        return max((self._charged / self._answers).quantize(PLACES, ROUND_UP), self.per_label)

    def _cost(self, answer: Answer) -> tuple[Decimal, str]:
        if answer.cost is not None and 0 <= answer.cost < MOST:
            return answer.cost.quantize(PLACES), ""
        if self._function is None:
            return self.per_label, ""
        milliseconds = answer.latency_ms if answer.busy_ms is None else answer.busy_ms
        usage = {
            TOKENS_IN: answer.tokens_in,
            TOKENS_OUT: answer.tokens_out,
            SECONDS: None if milliseconds is None else milliseconds / 1000,
        }
        known = {name: Decimal(str(value)) for name, value in usage.items() if value is not None}
        try:
            cost = self._function(prices=self._prices, usage=known)
        except CostError as error:
            return self.per_label, f"{error}; the price per label was charged"
        if cost >= MOST:
            return self.per_label, f"{cost:.0f} is more than can be stored; the price per label was charged"
        return cost.quantize(PLACES), ""

    def most(self, usage: Mapping[str, Decimal]) -> Decimal | None:
        """The most that an answer can cost that uses at most so much: never less than the price per label,
        which is charged where an answer does not tell what it used. Just what it costs where that is known,
        None where nobody can tell.
        """
        if (known := usage.get(COST)) is not None:
            return known
        if self._function is None:
            return self.per_label
        try:
            cost = self._function(prices=self._prices, usage=usage)
        except CostError:
            return None
        return max(min(cost, MOST).quantize(PLACES, ROUND_UP), self.per_label)
