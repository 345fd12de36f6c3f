"""Ways to run a source. The registry names where each lives; it is imported when it is used."""

from importlib import import_module
from typing import Any

from annotation.errors import InputError
from routing.backends.base import Answer, Backend, BackendError

BACKENDS = {
    "recorded": "routing.backends.recorded.Recorded",
    "sklearn": "routing.backends.sklearn.Sklearn",
}

__all__ = ["BACKENDS", "Answer", "Backend", "BackendError", "open_backend"]


def open_backend(name: str, params: dict[str, Any]) -> Backend:
    """The backend of a source, its params checked. Raises InputError that names the wrong one."""
    try:
        module, attribute = BACKENDS[name].rsplit(".", 1)
    except KeyError:
        raise InputError(
            f"There is no backend {name!r}; choose one of {', '.join(BACKENDS)}.", where="backend"
        ) from None
    backend: Backend = getattr(import_module(module), attribute)(params)
    return backend
