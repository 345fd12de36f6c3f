"""What a model thought aloud, kept apart from its answer."""

import re

_NAMES = "think|thinking|thought|reasoning"
_OPENS = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSES = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """The reasoning in `text` and the rest, both without white space around them.

    Everything before the last closing tag is reasoning, with or without an opening tag: the chat templates of
    some models write that themselves. An answer that begins with an opening tag and has no closing one was
    cut off: it is reasoning as a whole, and the rest is empty. A tag in the middle of an answer is text.
    """
    reasoning, rest = "", text
    end = 0
    for close in _CLOSES.finditer(text):
        end = close.end()
    if end:
        reasoning, rest = _CLOSES.sub("", _OPENS.sub("", text[:end])), text[end:]
    if opened := _OPENS.match(rest.lstrip()):
        reasoning, rest = f"{reasoning.rstrip()}\n{rest.lstrip()[opened.end() :]}", ""
    return reasoning.strip(), rest.strip()


def ends_in_thought(text: str) -> bool:
    """Whether the answer was cut off before the thinking had ended."""
    reasoning, rest = split_thinking(text)
    return not rest and bool(reasoning or _OPENS.search(text)) and not _CLOSES.search(text.rstrip()[-20:])
