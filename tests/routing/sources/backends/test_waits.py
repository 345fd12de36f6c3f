"""How long a server asks to be left alone."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from routing.sources.backends.openai_api import verdicts
from routing.sources.backends.openai_api.verdicts import asked_wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ratelimit-reset-requests": "12ms"}, 0.012),
        ({"x-ratelimit-reset-requests": "1m30s"}, 90),
        ({"x-ratelimit-reset-requests": "1h0m2.5s"}, 3602.5),
        ({"x-ratelimit-reset-tokens": "20"}, 20),
        ({"x-ratelimit-reset-tokens": "6 minutes"}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6s"}, 6),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "500",
                "x-ratelimit-reset-tokens": "6s",
            },
            1,
        ),
        ({"retry-after": "2", "x-ratelimit-reset-requests": "60s"}, 2),
    ],
)
def test_what_headers_ask_for(headers, seconds):
    assert asked_wait(headers) == seconds


def test_a_date_says_until_when():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    earlier = format_datetime(datetime.now(UTC) - timedelta(seconds=100), usegmt=True)
    assert 95 < asked_wait({"retry-after": later}) <= 100
    assert asked_wait({"retry-after": earlier}) == 0


HOSTILE = ["1" * 100_000, "1." * 50_000, "1m" * 50_000, "9" * 5_000, "Mon, " * 20_000, " " * 100_000 + "1"]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "x-ratelimit-reset-requests"])
def test_a_value_longer_than_any_time_is_read_no_further(name, value, monkeypatch):
    """With 100 kB, what a server may send at most, it took 16 s of processor time."""
    read = []
    for reader in ("_number", "_until", "_duration"):
        monkeypatch.setattr(verdicts, reader, lambda text: read.append(text))
    assert asked_wait({name: value}) is None
    assert max(map(len, read), default=0) <= verdicts.MOST_CHARACTERS
