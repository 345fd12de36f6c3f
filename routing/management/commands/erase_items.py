"""`manage.py erase_items PROJECT ID...`: the content of items, for good."""

import sys
from argparse import ArgumentParser, FileType
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand, add_project
from routing.items.erase import erase_items, erasure_in_words


class Command(ScriptCommand):
    help = (
        "Erase text, image and columns of items, and what models wrote about them. Names, labels and hashes "
        "stay. Nothing brings the content back; begun again, it goes on."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("ids", nargs="*", metavar="ID", help="names of items, as they were imported")
        parser.add_argument(
            "--list", type=FileType("r", encoding="utf-8"), metavar="FILE", help="one name a line; - for here"
        )
        parser.add_argument("--yes", action="store_true", help="erase them, without being asked")
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "items.erase")
        names = list(options["ids"])
        if options["list"] is not None:
            names += [name for line in options["list"] if (name := line.rstrip("\r\n"))]
        if not options["yes"] and not _is_sure(len(names)):
            raise CommandError("Nothing was erased. Say --yes to do so.")
        done = erase_items(project=access.project, actor=access.user, external_ids=names)
        self.tell(asdict(done), erasure_in_words(done))


def _is_sure(count: int) -> bool:
    return (
        sys.stdin.isatty() and input(f"Erase {count:,} items? Nothing brings them back. (yes/no) ") == "yes"
    )
