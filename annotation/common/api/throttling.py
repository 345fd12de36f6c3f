"""How often the API may be asked: by a person, and by an address of somebody unknown. HYPAC_API_RATE and its
neighbours say how often; the shared cache counts.
"""

from math import ceil
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from annotation.common.addresses import network_of


class _Limit(SimpleRateThrottle):
    def get_rate(self) -> str | None:
        """Only known with the request: see `hits`."""
        return None

    def hits(self, scope: str, who: Any) -> bool:
        """Whether `who` may ask once more; counts it as one."""
        rate = settings.HYPAC_API_RATES[scope]
        if not rate:
            return True
        most, seconds = self.parse_rate(rate)
        self.num_requests, self.duration = most or 0, seconds or 0
        self.key = f"api-rate:{scope}:{who}"
        self.history = self.cache.get(self.key, [])
        self.now = self.timer()
        while self.history and self.history[-1] <= self.now - self.duration:
            self.history.pop()
        if len(self.history) >= self.num_requests:
            return False
        self.throttle_success()
        return True


class ApiLimit(_Limit):
    """Labelling has a limit of its own: whoever labels quickly asks often."""

    def allow_request(self, request: Request, view: Any) -> bool:
        scope, who = "anonymous", network_of(request)
        if request.user and request.user.is_authenticated:
            scope, who = getattr(view, "limit", "user"), str(request.user.pk)
        allowed = self.hits(scope, who)
        view.rate_headers = self.headers(scope)
        return allowed

    def headers(self, scope: str) -> dict[str, str]:
        """What is left of a limit, and when it is whole again (draft-ietf-httpapi-ratelimit-headers-10)."""
        if not settings.HYPAC_API_RATES[scope]:
            return {}
        left = self.num_requests - len(self.history)
        oldest = self.history[-1] if self.history else self.now
        whole = ceil(max(0.0, oldest + self.duration - self.now))
        return {
            "RateLimit-Policy": f'"{scope}";q={self.num_requests};w={self.duration}',
            "RateLimit": f'"{scope}";r={max(0, left)};t={whole}',
        }


class WrongTokens(_Limit):
    def count(self, request: Request) -> float | None:
        """Count a wrong token; the seconds to wait where its address has sent too many, else None."""
        return None if self.hits("wrong_tokens", network_of(request)) else self.wait() or 60
