"""`manage.py source PROJECT --name NAME --backend BACKEND`: a model for a project."""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand, add_project, decimal_of
from routing.core.costs import COSTS
from routing.models import Source
from routing.sources.api import usability_content
from routing.sources.backends import Prompt
from routing.sources.health import Health, health_of
from routing.sources.health_api import health_content
from routing.sources.manage import backend_names, save_source
from routing.sources.save_mends import save_mends
from routing.sources.usability import usability_of
from routing.sources.warnings import usability_in_words, warnings_of

SECRETS = frozenset({"api_key", "apikey", "authorization", "key", "password", "secret", "token"})


class Command(ScriptCommand):
    help = (
        "Add a model to a project; it comes last among its models, before people. A key of its server is "
        "read from the environment or from standard input, never from the command line, which all users of "
        "a machine can see."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("--name", required=True)
        parser.add_argument(
            "--backend",
            metavar="NAME",
            help=f"{', '.join(backend_names())}; needed unless one that is there is only looked at",
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="KEY=TEXT",
            help="a parameter of the backend, several times; KEY:=JSON for a number, a list, true or false",
        )
        parser.add_argument("--cost", default="0", metavar="DECIMAL", help="price per label, on average")
        parser.add_argument("--cost-function", default="flat", choices=COSTS)
        parser.add_argument(
            "--price", action="append", default=[], metavar="NAME=DECIMAL", help="those that it needs"
        )
        parser.add_argument(
            "--position", type=int, metavar="NUMBER", help="its place among the models, from 1"
        )
        parser.add_argument(
            "--template", type=Path, metavar="FILE", help="the prompt, where it is asked with one"
        )
        parser.add_argument("--system", type=Path, metavar="FILE", help="the prompt's system message")
        keys = parser.add_mutually_exclusive_group()
        keys.add_argument("--key-env", metavar="VARIABLE", help="the environment variable with its key")
        keys.add_argument("--key-stdin", action="store_true", help="read its key from standard input")
        parser.add_argument(
            "--unless-there",
            action="store_true",
            help="where the project has a source of that name, change nothing and tell of that one",
        )
        parser.add_argument(
            "--health",
            action="store_true",
            help="change nothing: tell what is known of the answers of the source of that name",
        )
        parser.add_argument(
            "--mend",
            action="append",
            choices=("blanks", "capitals", "nothing"),
            help="read its answers so that these do not matter; nothing: as they are given",
        )
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="TEXT=LABEL",
            help="and so that this answer means this label, several times",
        )
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "sources.edit")
        source = access.project.sources.filter(name=options["name"].strip()).first()
        if options["health"] or options["mend"] or options["map"]:
            if source is None:
                raise CommandError(f"The project has no source {options['name'].strip()!r}.")
            if options["mend"] or options["map"]:
                mend = frozenset(options["mend"] or ())
                save_mends(
                    source=source,
                    user=access.user,
                    blanks="blanks" in mend,
                    capitals="capitals" in mend,
                    labels=pairs_of("--map", options["map"]),
                )
            health = health_of(source, access)
            self.tell(health_content(health), "\n".join(health_lines(health)))
            return
        if options["backend"] is None:
            raise CommandError(f"--backend: say which one, of {', '.join(backend_names())}.")
        if source is None or not options["unless_there"]:
            source = save_source(
                project=access.project,
                user=access.user,
                name=options["name"],
                backend=options["backend"],
                params=params_of(options["param"]),
                cost_per_label=decimal_of("--cost", options["cost"]),
                cost_function=options["cost_function"],
                prices=pairs_of("--price", options["price"]),
                prompt=prompt_of(options),
                api_key=key_of(options),
                position=options["position"],
            )
        warnings, seen = warnings_of(source), usability_of(source)
        content = {**_content(source), "usability": usability_content(seen), "warnings": warnings}
        self.tell(content, "\n".join(filter(None, [_words(source), usability_in_words(seen), *warnings])))


def _content(source: Source) -> dict[str, Any]:
    names = ("id", "name", "position", "backend", "cost_per_label")
    return {name: getattr(source, name) for name in names} | {"has_key": bool(source.api_key)}


def _words(source: Source) -> str:
    return f"{source.name} ({source.backend}) is source {source.position} of {source.project.slug}."


def health_lines(health: Health) -> list[str]:
    """What is known of its answers, in lines for people."""
    lines = [
        usability_in_words(health.usable) or f"{health.source.name}: nothing is known of its answers yet."
    ]
    for reason in health.reasons:
        told = (
            f"{one.answer!r}{f' ({one.item.external_id})' if one.item else ''}" for one in reason.examples
        )
        lines.append(f"  {reason.kind.count:,} {reason.kind.words}: {', '.join(told)}".rstrip(": "))
    if health.bins:
        lines.append("Confidence:")
        lines += [f"  {one.low:.2f} to {one.high:.2f}  {one.count:,}" for one in health.bins if one.count]
    if health.classes:
        lines.append("Labels:")
        lines += [f"  {name}  {count:,}" for name, count in health.classes]
    lines += [f"The same as {one.source} on {one.same:,} of {one.both:,} items." for one in health.agreements]
    if (found := health.measured) is not None:
        interval = "" if found.low is None else f", {found.low:.1%} to {found.high:.1%} at 95 %"
        runs = ", ".join(map(str, found.runs))
        lines.append(
            f"Right on {found.accuracy:.1%} of {found.answered:,} items that people labelled in run "
            f"{runs}{interval}."
        )
    return lines


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
