"""Read a file of answers to the calls that `write_batch` wrote; the next run that asks takes them."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import HypacError
from routing.models import Source
from routing.sources.batch_files import read_answers


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "source", type=int, help="number of the source, as its page has it in the address"
        )
        parser.add_argument("file", type=Path, help="JSONL file of the answers")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with options["file"].open("rb") as file:
                answered, failed = read_answers(source=Source.objects.get(pk=options["source"]), lines=file)
        except Source.DoesNotExist:
            raise CommandError(f"There is no source {options['source']}.") from None
        except (HypacError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{answered:,} answers were read; {failed:,} calls had none.")
