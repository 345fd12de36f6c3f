"""`manage.py source PROJECT --name NAME --backend BACKEND`: a model for a project."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.management.scripts import ScriptCommand, add_project, decimal_of
from routing.core.costs import COSTS
from routing.management.sources import key_of, pairs_of, params_of, prompt_of
from routing.models import Source
from routing.sources.manage import backend_names, save_source
from routing.sources.usability import look_at_one
from routing.sources.usability_api import usability_content
from routing.sources.usability_words import in_words
from routing.sources.warnings import warnings_of


class Command(ScriptCommand):
    help = (
        "Add a model to a project; it comes last among its models, before people. A key of its server is "
        "read from the environment or from standard input, never from the command line, which all users of "
        "a machine can see."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("--name", required=True)
        parser.add_argument("--backend", required=True, metavar="NAME", help=", ".join(backend_names()))
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
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "sources.edit")
        source = access.project.sources.filter(name=options["name"].strip()).first()
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
        warnings, seen = warnings_of(source), look_at_one(source)
        content = {**_content(source), "usability": usability_content(seen), "warnings": warnings}
        self.tell(content, "\n".join(filter(None, [_words(source), in_words(seen), *warnings])))


def _content(source: Source) -> dict[str, Any]:
    names = ("id", "name", "position", "backend", "cost_per_label")
    return {name: getattr(source, name) for name in names} | {"has_key": bool(source.api_key)}


def _words(source: Source) -> str:
    return f"{source.name} ({source.backend}) is source {source.position} of {source.project.slug}."
