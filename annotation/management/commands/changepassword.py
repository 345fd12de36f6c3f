"""`manage.py changepassword`: Django's, which tells nobody by itself."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from annotation.models import User
from annotation.people.second_factor.change import note


class Command(changepassword.Command):
    help = "Sets somebody's password, and tells them by mail, as far as their address is confirmed."

    def handle(self, *args: Any, **options: Any) -> str | None:
        said = super().handle(*args, **options)
        name = options["username"] or getpass.getuser()
        note(User.objects.get(username=name), "account.password_set", by=None)
        return said
