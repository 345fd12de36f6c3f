"""Models in the process of the worker itself, on its own GPU."""

from routing.sources.backends.vllm.backend import Vllm

__all__ = ["Vllm"]
