"""Compares mathematical answers with math-verify, in a process of its own.

    python -P math_worker.py

Reads one JSON object per line, {"label", "prediction", "decimals", "strict"}, and answers each with one line:
{"equal": true or false}, or {"unreadable": true} for a label in which no formula is found.  It ends with its
input.  Some formulas keep a computer algebra system busy for ever, in code that no signal interrupts, and
signals reach the main thread only: so whoever asks puts an end to this process instead.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

DELIMITED = re.compile(r"\$.+\$|\\boxed\b|\\\(.+\\\)|\\\[.+\\\]", re.DOTALL)
WORDS = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_]+(?:[\s'-]+[^\W\d_]+)*")
MEMORY = 4 * 2**30
"""Bytes after which the system refuses more: a power tower fills any memory before it fills the time."""


def formula(text: str) -> str:
    """``text`` with its formula marked as one.

    Taken as it is where a part is marked ($...$, \\boxed{...}, \\(...\\), \\[...\\]; the last one counts).
    Else all of it is the answer: words are a name, everything else is a formula.
    """
    text = text.strip()
    if DELIMITED.search(text):
        return text
    text = text.replace("\\$", "").replace("$", "")
    return f"$\\text{{{text}}}$" if WORDS.fullmatch(text) else f"${text}$"


def compare(request: dict[str, Any]) -> dict[str, bool]:
    """The answer to one request."""
    from math_verify import LatexExtractionConfig, parse, verify

    config = (LatexExtractionConfig(),)
    label, prediction = (
        parse(formula(request[name]), config, parsing_timeout=None) if request[name].strip() else []
        for name in ("label", "prediction")
    )
    if not label:
        return {"unreadable": True}
    equal = verify(
        label,
        prediction,
        float_rounding=request["decimals"],
        strict=request["strict"],
        timeout_seconds=None,
    )
    return {"equal": bool(equal)}


def main() -> None:
    """Answer requests until the input ends."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, OSError, ValueError):
        pass  # not every system can; the time limit still holds
    logging.disable(logging.CRITICAL)
    compare({"label": "1", "prediction": "1", "decimals": 6, "strict": True})  # loads what is loaded late
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(compare(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
