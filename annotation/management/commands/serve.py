"""`manage.py serve`: web server, worker and reconciler with nothing else to install."""

import os
import subprocess
import sys
from shlex import quote
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.models import User
from hypac_site.supervisor import (
    ServeError,
    Supervisor,
    interrupt_on_terminate,
    only_one,
    require_free_port,
)


class Command(BaseCommand):
    help = "Run HyPAC: web server, worker and reconciler. Ctrl-C stops all of them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="Address to listen on (default: %(default)s)."
        )
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--threads", type=int, default=8, help="Requests answered at the same time.")
        parser.add_argument("--concurrency", type=int, default=1, help="Jobs done at the same time.")

    def handle(self, *args: Any, **options: Any) -> None:
        interrupt_on_terminate()
        try:
            with only_one(settings.VAR_DIR / "serve.lock"):
                require_free_port(options["host"], options["port"])
                self.stdout.write("Preparing the database and the pages; the first time takes a minute ...")
                self.stdout.flush()  # whoever waits, or reads a log file, shall see it now
                prepare()
                self._serve(options)
        except ServeError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")

    def _serve(self, options: dict[str, Any]) -> None:
        supervisor = Supervisor(
            host=options["host"],
            port=options["port"],
            threads=options["threads"],
            concurrency=options["concurrency"],
        )
        try:
            supervisor.start()
            self.stdout.write(self.style.SUCCESS(f"HyPAC runs at {supervisor.address}  (Ctrl-C stops it)"))
            if not User.objects.filter(is_active=True).exists():
                place = f"HYPAC_VAR={quote(str(settings.VAR_DIR))} " if os.environ.get("HYPAC_VAR") else ""
                command = f"{place}.venv/bin/python manage.py createsuperuser"
                self.stdout.write(f"No account yet. Make one: {command}")
            self.stdout.flush()  # a log file shall say so now, not at the end
            while True:
                supervisor.watch(3600)
        finally:
            supervisor.stop()


def prepare() -> None:
    """Bring the database and the static files up to date, each in a process of its own.

    The static files are collected before the web server starts, so that it can serve them compressed and
    under names that may be cached for ever; which way is used is decided when the settings are read.
    """
    manage = [sys.executable, str(settings.BASE_DIR / "manage.py")]
    collecting = {"HYPAC_COLLECT_STATIC": "1"}
    for command, more in ((["migrate", "-v0"], {}), (["collectstatic", "--noinput", "-v0"], collecting)):
        done = subprocess.run(
            manage + command,
            cwd=settings.BASE_DIR,
            env=os.environ | more,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServeError(
                f"`manage.py {command[0]}` failed:\n{done.stderr.strip() or done.stdout.strip()}"
            )
