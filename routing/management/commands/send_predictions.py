"""`manage.py send_predictions PROJECT SOURCE FILE`: what a model answered elsewhere."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotation.imports.encodings import ENCODINGS
from annotation.management.scripts import ScriptCommand, add_project, add_strict, add_waiting
from routing.sources.sent_answers import refuse_other_backends, send_answers, store_answers_file
from routing.sources.sent_reading import READ_AS


class Command(ScriptCommand):
    help = "Take in predictions for a source of the backend `uploaded`. The same line again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("source", help="name of the source")
        parser.add_argument("file", type=Path, help="one JSON object a line, or a table")
        parser.add_argument("--revision", default="", help="other than the one that the source names")
        parser.add_argument(
            "--id-column", default="", help="column or field that names the items (default: external_id)"
        )
        parser.add_argument("--format", default="", choices=["", *READ_AS], help="else the file tells")
        parser.add_argument(
            "--encoding", default="", choices=["", *ENCODINGS], help="of a text that does not say it itself"
        )
        add_strict(parser)
        add_waiting(parser)
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "sources.edit")
        path = options["file"]
        source = access.project.sources.filter(name=options["source"]).first()
        if source is None:
            raise CommandError(f"The project has no source {options['source']!r}.")
        refuse_other_backends(source)
        with path.open("rb") as content:
            stored = store_answers_file(project=access.project, content=content, name=path.name)
        job = send_answers(
            source=source,
            user=access.user,
            stored_file=stored,
            revision=options["revision"],
            format_name=options["format"],
            encoding=options["encoding"],
            id_column=options["id_column"],
        )
        self.read_file(job, options, name=path.name, does="takes in", adds="predictions", of="lines")
