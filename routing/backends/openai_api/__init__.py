"""Chat completions of any OpenAI-compatible server: vLLM, OpenAI, llama.cpp and others."""

from routing.backends.openai_api.backend import OpenAIApi

__all__ = ["OpenAIApi"]
