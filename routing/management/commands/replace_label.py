"""`manage.py replace_label PROJECT KEY --into LABEL ...`: what it means to merge or split a label; do it."""

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from annotation.management.scripts import ScriptCommand, add_project
from routing.label_set.replace import preview_replacement, replace_label


class Command(ScriptCommand):
    help = (
        "Say what it means to merge a label into another one (one --into) or to split it (several); with "
        "--replace, do it. What was stored stays, and is read otherwise."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("key", metavar="KEY", help="key of the label that is given no more")
        parser.add_argument(
            "--into",
            action="append",
            required=True,
            metavar="LABEL",
            help="key or name of the label in its place; several times to split it",
        )
        parser.add_argument("--replace", action="store_true", help="do it")
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "project.edit")
        key, into = options["key"], options["into"]
        if options["replace"]:
            made = replace_label(access=access, key=key, into=into)
            done = "split into" if len(made.into) > 1 else "merged into"
            self.tell({"key": made.key, "into": made.into}, f"{made.name} is {done} {', '.join(made.into)}.")
            return
        found = preview_replacement(project=access.project, key=key, into=into).effects
        words = (
            f"{found.labels:,} labels by people and {found.predictions:,} answers of models give it, in "
            f"{len(found.runs):,} runs with {found.deliveries:,} deliveries."
        )
        if found.invalid:
            words += f" Certificates would hold no longer: runs {', '.join(map(str, found.invalid))}."
        self.tell(asdict(found), words)
