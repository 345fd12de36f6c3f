"""`manage.py token`: a token of the API for somebody, for scripts on this server."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import HypacError
from annotation.models import Project, User
from annotation.people.tokens import make_token


class Command(BaseCommand):
    help = "Makes a token with which a program uses the API as this person, and prints it: stored it is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="the name that the person logs in with")
        parser.add_argument("--name", default="made on the server", help="what it is for")
        parser.add_argument("--days", type=int, help="how long it holds (default: HYPAC_TOKEN_DAYS)")
        parser.add_argument("--role", default="", help="it may do what this role may, of what the person may")
        parser.add_argument("--project", help="it opens the project with this short name only")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no account {options['user']!r}, or it is switched off.")
        project = Project.objects.filter(slug=options["project"]).first() if options["project"] else None
        if options["project"] and project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        try:
            _, secret = make_token(
                user=user, name=options["name"], days=options["days"], role=options["role"], project=project
            )
        except HypacError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(secret)
