"""How language models are asked, and how their answers are read. Needs no database."""

from routing.prompts.base import Messages
from routing.prompts.check import check_prompt
from routing.prompts.defaults import default_prompt
from routing.prompts.placeholders import item_fields, placeholders
from routing.prompts.presets import PRESETS, Preset
from routing.prompts.reading import read_answer
from routing.prompts.render import prompt_digest, render
from routing.prompts.thinking import split_thinking

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
