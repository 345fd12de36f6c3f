"""Sampling defaults that families of models come with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_noop


@dataclass(frozen=True)
class Preset:
    """Params of openai_api and vllm as the makers of a family recommend them, and where they say so: an
    address, or "" for a preset that is nobody's recommendation.
    """

    name: str
    title: str
    params: Mapping[str, Any] = field(hash=False)
    source: str


_CARDS = "https://huggingface.co/"

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "qwen3-instruct-2507",
            gettext_noop("Qwen3 Instruct 2507 (the paper's fast model)"),
            {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.0, "max_tokens": 16_384},
            f"{_CARDS}Qwen/Qwen3-4B-Instruct-2507",
        ),
        Preset(
            "qwen3-thinking-2507",
            gettext_noop("Qwen3 Thinking 2507 (the paper's slow model)"),
            {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0, "max_tokens": 32_768},
            f"{_CARDS}Qwen/Qwen3-4B-Thinking-2507",
        ),
        Preset(
            "deepseek-r1",
            gettext_noop("DeepSeek-R1 and its distilled models"),
            {"temperature": 0.6, "top_p": 0.95},
            f"{_CARDS}deepseek-ai/DeepSeek-R1/blob/main/generation_config.json",
        ),
        Preset(
            "gpt-oss",
            "gpt-oss",
            {"temperature": 1.0, "top_p": 1.0},
            "https://github.com/openai/gpt-oss#recommended-sampling-parameters",
        ),
        Preset(
            "gemma-3",
            "Gemma 3",
            {"temperature": 1.0, "top_p": 0.95, "top_k": 64},
            f"{_CARDS}google/gemma-3-4b-it/blob/main/generation_config.json",
        ),
        Preset(
            "greedy",
            gettext_noop("Always the most likely token"),
            {"temperature": 0.0},
            "",
        ),
    )
}
