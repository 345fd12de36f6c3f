"""The one way out: every address that a person entered is asked through `GuardedClient`, and only so."""

from annotation.outside.net.client import GuardedClient, NetResponse
from annotation.outside.net.urls import NetError, check_url

__all__ = ["GuardedClient", "NetError", "NetResponse", "check_url"]
