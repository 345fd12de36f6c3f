"""Which requests programs make, not people at a browser."""

from django.http import HttpRequest

# Below these, programs ask: they are told problems, and nothing on the way keeps what they are told.
PREFIXES = ("/api/", "/label-studio/", "/metrics")


def asks_a_program(request: HttpRequest) -> bool:
    """Judged without where the site is mounted."""
    return request.path_info.startswith(PREFIXES)
