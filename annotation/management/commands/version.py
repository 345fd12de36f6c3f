"""`manage.py version`: which version this is, and whether everything around it agrees."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hypac_site.version import findings, version


class Command(BaseCommand):
    help = "Tells the version. With --check also what database and environment lack, and what to do."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="compare migrations and HYPAC_ variables with this version; changes nothing, asks no other "
            "host than the database's; status 1 where there is something to do",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"HyPAC {version()}")
        if not options["check"]:
            return
        if found := list(findings()):
            raise CommandError("\n".join(found))
        self.stdout.write("Database and settings are those of this version: nothing is to be done.")

    def get_version(self) -> str:
        """What --version says."""
        return version()
