"""Names of Python objects, "package.module:attribute", for losses and embedders of one's own."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from routing.core.losses.base import LossCodeError, LossError
from routing.core.messages import declare, gettext_noop, say

PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def is_path(name: str) -> bool:
    """Whether ``name`` has the form of such a name."""
    return bool(PATH.fullmatch(name))


def load(path: str) -> Any:
    """The object called ``path``.  This runs the code of its module: only with names that one trusts.

    Raises
    ------
    LossError
        ``path`` is malformed.
    LossCodeError
        Its module or attribute cannot be had.
    """
    if not is_path(path):
        raise LossError(say("own.no_path", path=repr(path)))
    module, _, attribute = path.partition(":")
    try:
        found: Any = import_module(module)
    except Exception as error:  # a module of somebody else's can fail in any way
        raise LossCodeError(
            say(
                "own.not_imported",
                path=repr(path),
                module=repr(module),
                error=f"{type(error).__name__}: {error}",
            )
        ) from error
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise LossCodeError(
                say("own.no_attribute", path=repr(path), module=repr(module), name=repr(attribute))
            ) from None
    return found


SAYS = {
    "own.no_path": gettext_noop(
        "%(path)s is not the name of a Python object; write it as 'package.module:name'"
    ),
    "own.not_imported": gettext_noop(
        "%(path)s: the module %(module)s cannot be imported (%(error)s); it must be installed, or lie in "
        "a folder of PYTHONPATH"
    ),
    "own.no_attribute": gettext_noop("%(path)s: the module %(module)s has no %(name)s"),
}
declare(SAYS)
