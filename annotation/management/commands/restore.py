"""`manage.py restore`: a backup put back, or looked through."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.errors import HypacError
from hypac_site.backup.restoring import check_backup, missing_files, restore_backup


class Command(BaseCommand):
    help = (
        "Put a backup back into a site whose database is empty; never into one that holds anything. Let no "
        "web server and no worker run meanwhile."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, help="The folder that `manage.py backup` wrote.")
        parser.add_argument(
            "--check", action="store_true", help="Only read it through and say whether it is whole."
        )

    def handle(self, *args: object, **options: object) -> None:
        source = Path(str(options["source"])).resolve()
        try:
            restored = check_backup(source) if options["check"] else restore_backup(source)
            missing = [] if options["check"] else list(missing_files(restored))
        except (HypacError, OSError) as error:
            raise CommandError(str(error)) from None
        manifest = restored.manifest
        done = "is whole" if options["check"] else "is put back"
        self.stdout.write(
            f"The backup of {manifest.created_at} {done}: database, {manifest.files} files, "
            f"{manifest.bytes:,} bytes of files."
        )
        if not restored.keys_fit:
            self.stdout.write(
                self.style.WARNING(
                    "The keys of this site do not open the stored keys of model servers: set "
                    "DJANGO_SECRET_KEY and HYPAC_ENCRYPTION_KEYS as they were, or enter those keys again."
                )
            )
        if restored.behind:
            self.stdout.write(
                f"It is of an older version: run `manage.py migrate` ({len(restored.behind)} to do)."
            )
        if missing:
            raise CommandError(f"{len(missing)} files are not in the storage, among them {missing[0]}.")
