"""What a command about a source was given: parameters, a prompt, a key."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from routing.sources.backends import Prompt

SECRETS = frozenset({"api_key", "apikey", "authorization", "key", "password", "secret", "token"})


def params_of(given: Sequence[str]) -> dict[str, Any]:
    """From KEY=TEXT and KEY:=JSON. Raises CommandError, which repeats no value: it may be a secret."""
    params: dict[str, Any] = {}
    for name, value in pairs_of("--param", given).items():
        key = name.removesuffix(":")
        if key.lower().replace("-", "_") in SECRETS:
            raise CommandError(f"--param {key}: give a secret by --key-env or --key-stdin.")
        if key == name:
            params[key] = value
            continue
        try:
            params[key] = json.loads(value)
        except (ValueError, RecursionError):
            raise CommandError(f"--param {key}: what follows := is no JSON.") from None
    return params


def pairs_of(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for entry in given:
        name, sign, value = entry.partition("=")
        if not sign or not name.strip(" :"):
            raise CommandError(f"{option}: this has to look like NAME=VALUE.")
        if name in pairs:
            raise CommandError(f"{option}: {name.removesuffix(':')} is given twice.")
        pairs[name] = value
    return pairs


def prompt_of(options: dict[str, Any]) -> Prompt | None:
    template, system = options["template"], options["system"]
    if template is None:
        if system is not None:
            raise CommandError("--system belongs to a prompt: give its --template, too.")
        return None
    return Prompt(_text(template), "" if system is None else _text(system))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{path} is no text in UTF-8.") from None


def key_of(options: dict[str, Any]) -> str | None:
    if options["key_stdin"]:
        key = sys.stdin.read().strip()
        if not key:
            raise CommandError("Standard input has no key.")
        return key
    if options["key_env"] is None:
        return None
    key = os.environ.get(options["key_env"], "").strip()
    if not key:
        raise CommandError("The environment variable that --key-env names is not set, or empty.")
    return key
