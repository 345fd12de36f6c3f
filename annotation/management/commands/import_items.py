"""`manage.py import_items PROJECT FILE`: the rows of a file become items."""

import mimetypes
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from annotation.imports.columns import ColumnMapping
from annotation.imports.encodings import ENCODINGS
from annotation.imports.formats.registry import IMPORTERS
from annotation.imports.sent_files import keep_for_import
from annotation.imports.upload import preview, start_import
from annotation.management.scripts import ScriptCommand, add_project, add_strict, add_waiting
from annotation.models import Project


class Command(ScriptCommand):
    help = (
        "Import a file. What is there already, under the same id and with the same content, stays as it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("file", type=Path)
        formats = ", ".join(IMPORTERS)
        parser.add_argument(
            "--format", default="", help=f"{formats}, excel:SHEET; else what the file seems to be"
        )
        parser.add_argument(
            "--encoding",
            default="",
            choices=["", *ENCODINGS],
            metavar="NAME",
            help=f"of a text that is neither UTF-8 nor marked as UTF-16: {', '.join(ENCODINGS)}",
        )
        parser.add_argument("--id-column", default="", help="else items are named by the file and the line")
        parser.add_argument(
            "--text-column",
            action="append",
            metavar="COLUMN",
            help="what people read, several times for several fields; else the column that seems to be it",
        )
        parser.add_argument("--text-format", default="", choices=["", *Project.TextFormat.values])
        parser.add_argument(
            "--keep-labels",
            action="store_true",
            help="what people said of the items in the program that wrote the file becomes labels",
        )
        parser.add_argument(
            "--add-duplicates",
            action="store_true",
            help="add rows once more whose content is in the project under other names",
        )
        add_strict(parser)
        add_waiting(parser)
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "items.import")
        path = options["file"]
        with path.open("rb") as content:
            stored = keep_for_import(
                project=access.project,
                content=content,
                original_name=path.name,
                media_type=mimetypes.guess_type(path.name)[0] or "",
            )
        if options["text_column"]:
            mapping = ColumnMapping.showing(options["text_column"], id_column=options["id_column"])
        else:
            seen = preview(
                stored_file=stored, rows=1, format_name=options["format"], encoding=options["encoding"]
            ).suggestion
            mapping = ColumnMapping.showing(seen.shown, id_column=options["id_column"] or seen.id_column)
        job = start_import(
            project=access.project,
            user=access.user,
            stored_file=stored,
            mapping=mapping,
            format_name=options["format"],
            text_format=options["text_format"],
            keep_labels=options["keep_labels"],
            add_duplicates=options["add_duplicates"],
            encoding=options["encoding"],
        )
        self.read_file(job, options, name=path.name, does="imports", adds="items", of="rows")
