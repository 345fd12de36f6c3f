"""`manage.py move`: a site that began on SQLite goes on with PostgreSQL."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.errors import HypacError
from hypac_site.backup.moving import move


class Command(BaseCommand):
    help = (
        "Copy everything from this site's SQLite database into an empty PostgreSQL database, and compare "
        "each row. Let no web server and no worker run meanwhile. This database stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to", required=True, metavar="URL", help="postgres://user:password@host:5432/name"
        )

    def handle(self, *args: object, **options: object) -> None:
        try:
            count = move(str(options["to"]), say=self.stdout.write)
        except (HypacError, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{count:,} rows are there, each compared. To go on with them, start the site with that address "
            "as DATABASE_URL, with HYPAC_VAR as it is (the files stay in it), and with the content of "
            "HYPAC_VAR/secret_key as DJANGO_SECRET_KEY, if it was not set before."
        )
