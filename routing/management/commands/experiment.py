"""`manage.py experiment FILE`: the experiment of the paper on a table of outputs; it touches no database."""

import argparse

from django.core.management.base import BaseCommand, CommandError, CommandParser

from routing.core.console import unread_output
from routing.core.experiment.cli import DESCRIPTION, add_arguments, execute
from routing.core.experiment.settings import ExperimentError
from routing.core.experiment.table import TableError
from routing.core.registry import UnknownNameError


class Command(BaseCommand):
    help = DESCRIPTION
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: object, **options: object) -> None:
        try:
            with unread_output():
                execute(argparse.Namespace(**options), say=self.stdout.write)
        except (ExperimentError, TableError, UnknownNameError) as error:
            raise CommandError(str(error)) from None
