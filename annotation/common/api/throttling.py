"""How often the API may be asked: by a person, and by an address of somebody unknown. HYPAC_API_RATE and its
neighbours say how often; the shared cache counts.
"""

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
        if request.user and request.user.is_authenticated:
            return self.hits(getattr(view, "limit", "user"), request.user.pk)
        return self.hits("anonymous", network_of(request))


class WrongTokens(_Limit):
    def count(self, request: Request) -> float | None:
        """Count a wrong token; the seconds to wait where its address has sent too many, else None."""
        return None if self.hits("wrong_tokens", network_of(request)) else self.wait() or 60
