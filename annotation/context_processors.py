"""What every page may show."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from annotation.models import User
from annotation.projects.queries import work_waits

# Set by static/text_size.js, which knows the same sizes, as tokens.css does.
TEXT_SIZES = ("1", "2", "3", "4", "5")


def text_size(request: HttpRequest) -> dict[str, Any]:
    """How large people want the text of items in this browser, "" where they have chosen nothing."""
    chosen = request.COOKIES.get("text_size", "")
    return {"text_size": chosen if chosen in TEXT_SIZES else ""}


def waiting_work(request: HttpRequest) -> dict[str, Any]:
    """`work_waits`: asked for only where a page shows it, which parts of pages do not."""
    user = getattr(request, "user", None)
    return {"work_waits": SimpleLazyObject(lambda: isinstance(user, User) and work_waits(user))}
