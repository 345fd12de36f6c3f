"""What is sent again, and when."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

RETRIED = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Retries:
    """How often and how patiently a request is sent again. Pauses double, with some chance in them. A server
    that asks for more than `longest_wait` seconds is not waited for: that is told at once.
    """

    attempts: int = 6
    first_pause: float = 0.5
    longest_pause: float = 30.0
    longest_wait: float = 120.0

    def pause(self, attempt: int) -> float:
        """Seconds before the attempt after `attempt`, which counts from 1."""
        pause = min(self.longest_pause, self.first_pause * 2.0 ** (attempt - 1))
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients, hides nothing


def may_be_retried(response: httpx.Response) -> bool:
    """Too busy, or somebody in between could not reach the server."""
    return response.status_code in RETRIED


def is_at_work(response: httpx.Response) -> bool:
    """Whether the first request with this key is still being worked on: of conflicts this one passes."""
    return response.status_code == 409 and "Retry-After" in response.headers


def retry_after(response: httpx.Response) -> float:
    """Seconds that the server asks to wait, 0 where it asks for none."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:  # "-0000" says that it is UTC, of an unknown place
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
