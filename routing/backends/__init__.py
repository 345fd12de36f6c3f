"""Ways to run a source. The registry names where each lives; it is imported when it is used."""

from importlib import import_module
from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.backends.base import Answer, Backend, BackendError, predict_all
from routing.backends.context import Example, Prompt, SourceContext, TaskSpec

BACKENDS = {
    "label_studio_ml": "routing.backends.label_studio_ml.LabelStudioMl",
    "openai_api": "routing.backends.openai_api.OpenAIApi",
    "openai_batch": "routing.backends.openai_batch.OpenAIBatch",
    "recorded": "routing.backends.recorded.Recorded",
    "sklearn": "routing.backends.sklearn.Sklearn",
    "uploaded": "routing.backends.uploaded.Uploaded",
    "vllm": "routing.backends.vllm.Vllm",
}

__all__ = [
    "BACKENDS",
    "Answer",
    "Backend",
    "BackendError",
    "Example",
    "Prompt",
    "SourceContext",
    "TaskSpec",
    "open_backend",
    "predict_all",
]


def open_backend(name: str, params: dict[str, Any], context: SourceContext | None = None) -> Backend:
    """The backend of a source, its params checked. Raises InputError that names the wrong one.

    `routing.services.opened.open_source` opens that of a stored source with its context.
    """
    try:
        module, attribute = BACKENDS[name].rsplit(".", 1)
    except KeyError:
        raise InputError(
            _("There is no backend %(name)r; choose one of %(names)s.")
            % {"name": name, "names": ", ".join(BACKENDS)},
            where="backend",
        ) from None
    backend: Backend = getattr(import_module(module), attribute)(params, context or SourceContext())
    return backend
