"""Public beacons: values that nobody can know, or choose, before their time, and that everybody can look up
after it. A run names the one that its draw is to come from before that one exists.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.outside.net.client import GuardedClient
from annotation.outside.net.urls import NetError
from routing.models import Run

LEAD = timedelta(seconds=30)
"""From the commitment to the value that it names: clocks differ a little, and nothing may be known before."""
LARGEST_ANSWER = 2**16
LONGEST_NONCE, SHORTEST_NONCE = 200, 8


class Beacon(ABC):
    """Something that gives values in time."""

    digits: int
    """Of a value, hexadecimal."""

    @abstractmethod
    def named_at(self, now: datetime) -> dict[str, Any]:
        """The first value that comes long enough after `now`, as a commitment names it; ``time`` is when it
        is there.
        """

    @abstractmethod
    def address(self, named: Mapping[str, Any]) -> str:
        """Where it can be looked up."""

    @abstractmethod
    def value_in(self, answer: Any, named: Mapping[str, Any]) -> str:
        """The value that an answer of this address holds. Raises ValueError, KeyError or TypeError where it
        is no such answer, or is about another value.
        """

    def checked(self, value: str) -> str:
        """A value in its one spelling. Raises ValueError."""
        value = value.strip().lower()
        if not re.fullmatch(rf"[0-9a-f]{{{self.digits}}}", value):
            raise ValueError(value)
        return value


@dataclass(frozen=True)
class Drand(Beacon):
    """The network quicknet of drand (https://drand.love): a round each three seconds."""

    chain: str = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
    genesis: int = 1_692_803_367
    period: int = 3
    digits = 64

    def named_at(self, now: datetime) -> dict[str, Any]:
        after = (now + LEAD).timestamp() - self.genesis
        number = int(after // self.period) + 2  # round 1 is at the genesis
        at = datetime.fromtimestamp(self.genesis + (number - 1) * self.period, UTC)
        return {"chain": self.chain, "round": number, "time": _utc(at)}

    def address(self, named: Mapping[str, Any]) -> str:
        return f"{settings.HYPAC_DRAND_URL}/{named['chain']}/public/{named['round']}"

    def value_in(self, answer: Any, named: Mapping[str, Any]) -> str:
        if answer["round"] != named["round"]:
            raise ValueError("another round")
        return self.checked(answer["randomness"])


@dataclass(frozen=True)
class Nist(Beacon):
    """NIST's beacon, version 2.0 (https://csrc.nist.gov/projects/interoperable-randomness-beacons): a pulse
    each minute.
    """

    digits = 128

    def named_at(self, now: datetime) -> dict[str, Any]:
        at = (now + LEAD).replace(second=0, microsecond=0) + timedelta(minutes=1)
        return {"time": _utc(at)}

    def address(self, named: Mapping[str, Any]) -> str:
        return f"{settings.HYPAC_NIST_BEACON_URL}/pulse/time/{int(moment(named).timestamp() * 1000)}"

    def value_in(self, answer: Any, named: Mapping[str, Any]) -> str:
        pulse = answer["pulse"]
        if datetime.fromisoformat(pulse["timeStamp"]) != moment(named):
            raise ValueError("another pulse")
        return self.checked(pulse["outputValue"])


BEACONS: dict[str, Beacon] = {Run.DrawFrom.DRAND: Drand(), Run.DrawFrom.NIST: Nist()}


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(named: Mapping[str, Any]) -> datetime:
    """When a value that a commitment names is there."""
    return datetime.fromisoformat(named["time"])


def draw_from_of(kind: str, now: datetime) -> dict[str, Any]:
    """Where a draw is to come from, as the first commitment says it."""
    return {"kind": kind, **(BEACONS[kind].named_at(now) if kind in BEACONS else {})}


def fetched(named: Mapping[str, Any]) -> str | None:
    """The named value of a beacon; None where it cannot be asked for it now, or does not have it."""
    beacon = BEACONS[named["kind"]]
    client = GuardedClient(read_timeout=10, total_timeout=20, max_bytes=LARGEST_ANSWER, max_connections=1)
    try:
        answer = client.request("GET", beacon.address(named))
        return beacon.value_in(answer.json(), named) if answer.status == 200 else None
    except (NetError, KeyError, TypeError, ValueError):
        return None
    finally:
        client.close()


def checked_value(kind: str, value: str) -> str:
    """What somebody gives in place of a beacon that cannot be asked, or as a text of their own.

    Raises InputError, whose `where` is "value".
    """
    if kind in BEACONS:
        try:
            return BEACONS[kind].checked(value)
        except ValueError:
            raise InputError(
                _("The value of this beacon has %(digits)s hexadecimal digits.")
                % {"digits": BEACONS[kind].digits},
                where="value",
            ) from None
    value = value.strip()
    if not SHORTEST_NONCE <= len(value) <= LONGEST_NONCE or not value.isprintable():
        raise InputError(
            _("Write a text of %(least)s to %(most)s characters, in one line.")
            % {"least": SHORTEST_NONCE, "most": LONGEST_NONCE},
            where="value",
        )
    return value
