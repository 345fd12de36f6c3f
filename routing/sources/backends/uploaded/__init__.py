"""The backend `uploaded` (docs/backends.md): answers of any model, sent in from outside."""

from routing.sources.backends.uploaded.backend import Uploaded

__all__ = ["Uploaded"]
