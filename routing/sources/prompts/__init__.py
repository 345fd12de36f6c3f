"""How language models are asked, and how their answers are read. Needs no database."""

from routing.sources.prompts.base import Messages
from routing.sources.prompts.check import check_prompt
from routing.sources.prompts.defaults import default_prompt
from routing.sources.prompts.placeholders import item_fields, placeholders
from routing.sources.prompts.presets import PRESETS, Preset
from routing.sources.prompts.reading import read_answer
from routing.sources.prompts.render import prompt_digest, render
from routing.sources.prompts.thinking import split_thinking

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
