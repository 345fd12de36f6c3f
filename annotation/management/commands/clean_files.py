"""`manage.py clean_files`: what nothing names any more in the storage of files."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.common.files import clean_files
from annotation.errors import HypacError


class Command(BaseCommand):
    help = (
        "Finds files in the storage that nothing names: of imports and deliveries that were killed, or of "
        "deleted projects. Only counts them unless --remove is given."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove them")
        parser.add_argument(
            "--older-than",
            type=float,
            default=24,
            metavar="HOURS",
            help="leave what was written later than that; a job writes files before it names them "
            "(default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            cleaned = clean_files(older_than_hours=options["older_than"], remove=options["remove"])
        except HypacError as error:
            raise CommandError(str(error)) from error
        done = "removed" if options["remove"] else "could be removed (--remove does)"
        self.stdout.write(
            f"{cleaned.looked_at:,} files looked at. {cleaned.files:,} that nothing names, of "
            f"{cleaned.bytes:,} bytes, and {cleaned.leftovers:,} unfinished writes: {done}. "
            f"{cleaned.young:,} are younger than {options['older_than']:g} hours and left alone."
        )
