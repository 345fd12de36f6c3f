"""`manage.py person NAME`: an account for somebody, and a role in a project; with `export` their data, with
`erase` nothing that says who they are any more, with `reset-second-factor` no second step of their log-in.
"""

import os
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand
from annotation.models import Membership, Project, User
from annotation.people import own_data
from annotation.people.erase import erase_person, erasure_in_words
from annotation.people.members import add_member, change_role, create_account, new_account
from annotation.people.second_factor.change import reset
from annotation.permissions import Access


class Command(ScriptCommand):
    help = (
        "Make an account where there is none, and give it a role in a project. What is so already stays. Its "
        "password is read from standard input, never from the command line, which all users of a machine "
        "can see; else a random one is printed, this once. `export NAME` writes all that is kept about "
        "somebody, as JSON. `erase NAME` removes all that says who they are; what they did stays, under a "
        "number. `reset-second-factor NAME` ends the two-step log-in of somebody who has lost app, passkeys "
        "and recovery codes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name",
            nargs="+",
            metavar="[export | erase | reset-second-factor] NAME",
            help="that the person logs in with",
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="where the export goes; else printed")
        parser.add_argument("--typed", default="", metavar="NAME", help="the name once more, to erase it")
        parser.add_argument("--email", default="", help="of a new account")
        parser.add_argument("--project", help="the project, as its address names it, that they take part in")
        parser.add_argument("--role", choices=Membership.Role.values, help="theirs in that project")
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password of a new account from there"
        )
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        *does, options["name"] = options["name"]
        if does:
            known = {
                "export": self._export,
                "erase": self._erase,
                "reset-second-factor": self._reset_second_factor,
            }
            if len(does) > 1 or does[0] not in known:
                words = " or ".join(f"`person {name} NAME`" for name in known)
                raise CommandError(f"There is no `person {does[0]}`: write {words}.")
            known[does[0]](options)
            return
        if (options["project"] is None) != (options["role"] is None):
            raise CommandError("--project and --role belong together.")
        access = None if options["project"] is None else self.access(options, "members.edit")
        name = User.normalize_username(options["name"].strip())  # as it is stored
        user = User.objects.filter(username=name).first()
        if user is None:
            told = self._made(name, access, options)
        elif not user.is_active:
            raise CommandError(f"The account {name!r} is switched off.")
        else:
            told = {"created": False}
            if access is not None:
                told["joined"], told["role_was"] = _role(access, user, options["role"])
        content = {"username": name, "project": options["project"], "role": options["role"], **told}
        self.tell(content, _words(content))

    def _export(self, options: dict[str, Any]) -> None:
        user = _person(options["name"])
        if options["output"] is None:
            for part in own_data.stream(user):
                self.stdout.write(part.decode(), ending="")
            return
        descriptor = os.open(options["output"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(own_data.stream(user))
        content = {"username": user.username, "file": str(options["output"])}
        self.tell(content, f"What is kept about {user.username} is in {options['output']}.")

    def _erase(self, options: dict[str, Any]) -> None:
        user = _person(options["name"])
        if not options["typed"] and sys.stdin.isatty():
            options["typed"] = input(f"Nothing brings it back. Type {user.username} to go on: ")
        done = erase_person(user=user, actor=None, typed=options["typed"])
        self.tell(asdict(done), erasure_in_words(done))

    def _reset_second_factor(self, options: dict[str, Any]) -> None:
        user = _person(options["name"])
        done = reset(user=user, actor=self.user(options) if options["user"] else None)
        words = "has no two-step log-in any more." if done else "had no two-step log-in."
        self.tell({"username": user.username, "reset": done}, f"{user.username} {words}")

    def _made(self, name: str, access: Access | None, options: dict[str, Any]) -> dict[str, Any]:
        password = ""
        if options["password_stdin"]:
            password = sys.stdin.read().removesuffix("\n").removesuffix("\r")
            if not password:
                raise CommandError("Standard input has no password.")
        account = {"username": name, "email": options["email"], "password": password}
        told: dict[str, Any] = {"created": True}
        if access is None:
            # There may be nobody yet on whose behalf, and who makes their own account needs nobody.
            actor = self.user(options) if options["user"] not in ("", name) else None
            _user, made = new_account(project=None, actor=actor, **account)
        else:
            role = options["role"]
            _member, made = create_account(project=access.project, actor=access.user, role=role, **account)
            told |= {"joined": True, "role_was": None}
        return told if password else {**told, "password": made}


def _person(name: str) -> User:
    """Raises CommandError. Also somebody who cannot log in: an account that is switched off, or erased."""
    user = User.objects.filter(username=User.normalize_username(name.strip())).first()
    if user is None:
        raise CommandError(f"There is no account {name!r}.")
    return user


def _role(access: Access, user: User, role: str) -> tuple[bool, str | None]:
    """Whether they joined just now, and what they were where they were something else."""
    who: dict[str, Any] = {"project": access.project, "actor": access.user}
    membership = _membership(access.project, user)
    if membership is None:
        add_member(**who, username=user.username, role=role)  # whoever runs the server decides
        return True, None
    if not membership.is_active:
        raise CommandError(
            f"{user.username} was deactivated in this project; its owners can let them go on, on the page "
            "People."
        )
    before = membership.role
    if before == role:
        return False, None
    change_role(**who, user=user, role=role)
    return False, before


def _membership(project: Project, user: User) -> Membership | None:
    return Membership.objects.filter(project=project, user=user).first()


def _words(told: dict[str, Any]) -> str:
    name, where = told["username"], f"{told['role']} in {told['project']}"
    words = [f"The account {name} was made." if told["created"] else f"The account {name} was there already."]
    if told["project"] is not None:
        if told["joined"]:
            words.append(f"{name} is {where} now.")
        elif told["role_was"]:
            words.append(f"{name} is {where} now, no longer {told['role_was']}.")
        else:
            words.append(f"{name} is {where} already.")
    if "password" in told:
        words.append(f"Their password, which is stored nowhere and shown this once: {told['password']}")
    return "\n".join(words)
