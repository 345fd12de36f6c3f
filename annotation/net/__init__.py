"""The one way out: every address that a person entered is asked through `GuardedClient`, and only so."""

from annotation.net.client import GuardedClient, NetResponse
from annotation.net.errors import NetError
from annotation.net.urls import check_url

__all__ = ["GuardedClient", "NetError", "NetResponse", "check_url"]
