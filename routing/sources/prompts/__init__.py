"""How language models are asked, and how their answers are read. Needs no database."""

from routing.sources.prompts.check import check_prompt
from routing.sources.prompts.placeholders import item_fields, placeholders
from routing.sources.prompts.presets import PRESETS, Preset
from routing.sources.prompts.reading import read_answer, split_thinking
from routing.sources.prompts.render import Messages, default_prompt, prompt_digest, render

__all__ = [
    "PRESETS",
    "Messages",
    "Preset",
    "check_prompt",
    "default_prompt",
    "item_fields",
    "placeholders",
    "prompt_digest",
    "read_answer",
    "render",
    "split_thinking",
]
