"""An existing Label Studio ML backend as a source."""

from routing.sources.backends.label_studio_ml.backend import LabelStudioMl

__all__ = ["LabelStudioMl"]
