"""What the tests of the client for entered addresses share."""

import traceback

import pytest

from annotation.outside.net import NetError

SHORT = 0.4
"""Seconds: the deadline of requests to servers that would never end."""


def url_of(server, path="/", scheme="http"):
    return f"{scheme}://127.0.0.1:{server.port}{path}"


def refusal(client, server, *, scheme="http", **options):
    """Kind and permanence of the NetError of a request, whose words hold nothing sent or received."""
    with pytest.raises(NetError) as caught:
        client.request("GET", url_of(server, "/?q=asked", scheme), **options)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    return caught.value.kind, caught.value.permanent
