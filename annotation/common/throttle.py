"""How often one address may ask for a page that is open to everybody."""

from functools import wraps
from typing import Any, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from rest_framework.throttling import SimpleRateThrottle

from annotation.common.access import View
from annotation.common.addresses import network_of


class LinkThrottle(SimpleRateThrottle):
    """By the address that the server sees: a header that the asker writes would be no limit."""

    scope = "link"
    # A class that joins at once may sit behind one address.
    rate = "300/min"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": network_of(request)}


def throttled(view: View) -> View:
    """Answer 429 to an address that asks for such pages too often, whatever it asks for."""

    @wraps(view)
    def checked(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        throttle = LinkThrottle()
        if throttle.allow_request(cast(Any, request), cast(Any, view)):
            return view(request, **kwargs)
        response = render(request, "registration/slow_down.html", status=429)
        response.headers["Retry-After"] = str(int(throttle.wait() or 60))
        return response

    return checked
