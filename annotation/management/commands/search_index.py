"""`manage.py search_index`: the index for searching in names and texts."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import HypacError
from annotation.services.search_index import create_search_index, drop_search_index


class Command(BaseCommand):
    help = (
        "Makes or drops the index by which PostgreSQL finds a part of a text among millions of items, while "
        "others work. Imports are several times slower with it (docs/importing.md)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--create", action="store_true", help="make it")
        which.add_argument("--drop", action="store_true", help="drop it, for example before a large import")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["create"]:
                self.stdout.write("Made." if create_search_index() else "It is there already.")
            else:
                self.stdout.write("Dropped." if drop_search_index() else "There is none.")
        except HypacError as error:
            raise CommandError(str(error)) from error
