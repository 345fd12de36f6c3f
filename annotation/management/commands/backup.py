"""`manage.py backup`: everything that is stored, in a folder."""

import os
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.errors import HypacError
from hypac_site.backup.making import make_backup

KEYS = (
    "The keys are not in it: keep DJANGO_SECRET_KEY and HYPAC_ENCRYPTION_KEYS (or the file secret_key of the "
    "embedded default) in another place. Without them the keys of model servers have to be entered again."
)


class Command(BaseCommand):
    help = (
        "Write a backup of the database and of all files into a new folder, as they are at one moment. "
        "People and workers may go on. " + KEYS + " The folders of models for workers (HYPAC_SKLEARN_MODELS, "
        "HYPAC_VLLM_MODELS) are not in it either."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", type=Path, help="The folder to be made.")
        parser.add_argument(
            "--without-files",
            action="store_true",
            help="Only the database, where the object store has its own versions or copies.",
        )

    def handle(self, *args: object, **options: object) -> None:
        target = Path(str(options["target"])).resolve()
        before = os.umask(0o077)  # what people wrote, and who they are: for nobody else on this machine
        try:
            manifest = make_backup(target, with_files=not options["without_files"])
        except (HypacError, OSError) as error:
            raise CommandError(str(error)) from None
        finally:
            os.umask(before)
        self.stdout.write(f"{target}: database, {manifest.files} files, {manifest.bytes:,} bytes of files")
        self.stdout.write(KEYS)
        if manifest.missing:
            raise CommandError(
                f"The backup is written, but {len(manifest.missing)} files of its rows are damaged or gone "
                f"from the storage, one of them {manifest.missing[0]}. Was a project deleted meanwhile?"
            )
