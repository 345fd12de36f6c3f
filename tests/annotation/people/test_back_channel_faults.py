"""Nothing that somebody sends as a logout token is an error of the server."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from annotation.people import back_channel
from tests.annotation.people.test_back_channel import KNOWN, encoded, part

__all__ = ["KNOWN"]
pytestmark = pytest.mark.django_db
VALUES = (None, 1, -1, 1.5, True, [], {}, "", "x", ["RS256"], {"a": 1}, "\0", "é", "none", "dir", "b64")
HEADERS = ("alg", "kid", "typ", "crit", "b64", "jwk", "jku", "x5c", "x5u", "zip", "enc", "cty", "x5t")


def broken(good: str) -> Iterator[str]:
    """Whatever somebody might send who has seen a good one."""
    header, claims, signature = good.split(".")
    for value in VALUES:
        yield f"{encoded(value)}.{claims}.{signature}"
        yield f"{header}.{encoded(value)}.{signature}"
        for name in HEADERS:
            yield f"{encoded({**part(good, 0), name: value})}.{claims}."
            yield f"{encoded({**part(good, 0), name: value})}.{claims}.{signature}A"
    yield from (".".join([header] * count) for count in range(1, 7))
    yield from (f"{good}.", f".{good}", good.replace(".", ".."), good[:-9], f"{good[:40]}é{good[40:]}")
    random = Random(7)
    for _ in range(300):
        signs = list(good)
        signs[random.randrange(len(signature) + 1)] = random.choice("aZ0._-+/ \n\0é")
        yield "".join(signs)


def test_nothing_that_is_sent_breaks_the_server(provider) -> None:
    good = provider.logout_token()
    for token in broken(good):
        if token != good:
            with pytest.raises(back_channel.RefusedError):
                back_channel.log_out(token)
    for name in ("iss", "aud", "iat", "exp", "nbf", "events", "jti", "sub", "sid"):
        for value in VALUES[1:]:
            with suppress(back_channel.RefusedError):
                back_channel.log_out(provider.logout_token(**{name: value}))
