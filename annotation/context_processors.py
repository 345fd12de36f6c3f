"""What every page may show."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from annotation.models import User
from annotation.projects.queries import work_waits


def waiting_work(request: HttpRequest) -> dict[str, Any]:
    """`work_waits`: asked for only where a page shows it, which parts of pages do not."""
    user = getattr(request, "user", None)
    return {"work_waits": SimpleLazyObject(lambda: isinstance(user, User) and work_waits(user))}
