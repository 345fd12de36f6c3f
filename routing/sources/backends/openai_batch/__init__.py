"""API batch files: the calls of many items in one file, cheaper and hours later."""

from routing.sources.backends.openai_batch.backend import OpenAIBatch

__all__ = ["OpenAIBatch"]
