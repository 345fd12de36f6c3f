"""Places in lists, as answers give them out: sealed, for the same list with the same filters alone."""

from typing import Any

from django.core import signing
from django.utils.translation import gettext as _
from rest_framework.request import Request

from annotation.errors import InputError

# Parameters that say which part of a list is wanted, not of what.
OF_PARTS = frozenset({"cursor", "after", "before", "page_size"})


def make_cursor(request: Request, place: Any) -> str:
    """A place, of JSON, in the list that the request asks for."""
    return _signer(request).sign_object(place)


def read_cursor(request: Request, name: str) -> Any:
    """The place that the parameter `name` holds; None without one. Raises InputError for every text that no
    answer about this list gave out.
    """
    if (sent := request.query_params.get(name)) is None:
        return None
    try:
        return _signer(request).unsign_object(sent)
    except signing.BadSignature:
        words = _(
            "This is no place in this list. Take an address that an answer gave as “next” or “previous”, "
            "with the same filters, or leave the parameter out for the first page."
        )
        raise InputError(words, where=name) from None


def _signer(request: Request) -> signing.Signer:
    asked = sorted((name, request.query_params.getlist(name)) for name in request.query_params)
    filters = [entry for entry in asked if entry[0] not in OF_PARTS]
    return signing.Signer(salt=f"place in {request.path} {filters!r}", sep=".")
