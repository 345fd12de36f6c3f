"""Write the calls of a source as an OpenAI batch file, `vllm run-batch` among those that answer it."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import HypacError
from routing.models import Source
from routing.sources.batch_files import write_calls


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "source", type=int, help="number of the source, as its page has it in the address"
        )
        parser.add_argument("file", type=Path, help="JSONL file to write; one that is there is replaced")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with options["file"].open("wb") as file:
                count = write_calls(source=Source.objects.get(pk=options["source"]), file=file)
        except Source.DoesNotExist:
            raise CommandError(f"There is no source {options['source']}.") from None
        except (HypacError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count:,} calls were written to {options['file']}.")
