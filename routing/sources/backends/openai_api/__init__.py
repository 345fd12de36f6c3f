"""Chat completions of any OpenAI-compatible server: vLLM, OpenAI, llama.cpp and others."""

from routing.sources.backends.openai_api.backend import OpenAIApi

__all__ = ["OpenAIApi"]
