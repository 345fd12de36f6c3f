"""Params of a source as forms and the API give them: text or JSON values, "" and None for what is not set."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError

Params = Mapping[str, Any]


def number(params: Params, name: str, low: float, high: float) -> float | None:
    """A number from `low` to `high`, or None. Raises InputError naming the param."""
    value = params.get(name)
    if value is None or value == "":
        return None
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not low <= found <= high:
        raise InputError(
            _("This must be a number from %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"},
            where=name,
        )
    return found


def whole(params: Params, name: str, low: int, high: int) -> int | None:
    """A whole number from `low` to `high`, or None. Raises InputError naming the param."""
    found = number(params, name, low, high)
    if found is not None and found != int(found):
        raise InputError(
            _("This must be a whole number from %(low)s to %(high)s.")
            % {"low": f"{low:,}", "high": f"{high:,}"},
            where=name,
        )
    return None if found is None else int(found)


def flag(params: Params, name: str, default: bool) -> bool:
    """True or False, as JSON or as a form gives it. Raises InputError naming the param."""
    value = params.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, bool):
        return value
    known = {
        "true": True,
        "on": True,
        "1": True,
        "yes": True,
        "false": False,
        "off": False,
        "0": False,
        "no": False,
    }
    if str(value).lower() not in known:
        raise InputError(_("This must be true or false."), where=name)
    return known[str(value).lower()]


def one_of(params: Params, name: str, known: Sequence[str]) -> str:
    """One of `known`, the first where nothing is given. Raises InputError naming the param."""
    value = params.get(name) or known[0]
    if value not in known:
        raise InputError(_("This must be one of %(names)s.") % {"names": ", ".join(known)}, where=name)
    return str(value)


def json_object(params: Params, name: str) -> dict[str, Any] | None:
    """A JSON object, given as such or as text, or None. Raises InputError naming the param."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        raise InputError(_('This must be a JSON object such as {"stop": ["\\n"]}.'), where=name)
    return value
