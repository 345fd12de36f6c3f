"""Ways to run a source. The registry names where each lives; its class says what it needs and can do."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.sources.backends.base import Answer, Backend, BackendError, predict_all
from routing.sources.source_context import Example, Prompt, SourceContext, TaskSpec

BACKENDS = {
    "openai_api": "routing.sources.backends.openai_api.OpenAIApi",
    "openai_batch": "routing.sources.backends.openai_batch.OpenAIBatch",
    "vllm": "routing.sources.backends.vllm.Vllm",
    "label_studio_ml": "routing.sources.backends.label_studio_ml.LabelStudioMl",
    "sklearn": "routing.sources.backends.sklearn.Sklearn",
    "recorded": "routing.sources.backends.recorded.Recorded",
    "uploaded": "routing.sources.backends.uploaded.Uploaded",
}
"""Where each backend lives, by its name, in the order in which forms offer them."""

__all__ = [
    "BACKENDS",
    "Answer",
    "Backend",
    "BackendError",
    "Example",
    "Prompt",
    "SourceContext",
    "TaskSpec",
    "backend_class",
    "backend_classes",
    "backends_that",
    "open_backend",
    "predict_all",
]


def backend_class(name: str) -> type[Backend]:
    """What the backend called `name` declares. Raises InputError where there is none."""
    try:
        module, attribute = BACKENDS[name].rsplit(".", 1)
    except KeyError:
        raise InputError(
            _("There is no backend %(name)r; choose one of %(names)s.")
            % {"name": name, "names": ", ".join(sorted(BACKENDS))},
            where="backend",
        ) from None
    found: type[Backend] = getattr(import_module(module), attribute)
    return found


def backend_classes() -> dict[str, type[Backend]]:
    """All of them by their names."""
    return {name: backend_class(name) for name in BACKENDS}


def backends_that(holds: Callable[[type[Backend]], bool]) -> frozenset[str]:
    """The names of those whose declaration `holds` is true of."""
    return frozenset(name for name, declared in backend_classes().items() if holds(declared))


def open_backend(name: str, params: dict[str, Any], context: SourceContext | None = None) -> Backend:
    """The backend of a source, its params checked. Raises InputError that names the wrong one.

    `routing.sources.backend_for.backend_for` opens that of a stored source with its context.
    """
    return backend_class(name)(params, context or SourceContext())
