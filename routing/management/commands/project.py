"""`manage.py project list` and `project create NAME`; a project as one file: `project export SLUG --to FILE`
and `project import FILE`.
"""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand, decimal_of
from annotation.ports import routing_port
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import create_project
from annotation.projects.queries import projects_of
from annotation.task_types import DEFAULT, TASK_TYPES
from hypac_site.portable.exporting import export_project
from hypac_site.portable.importing import Imported, import_project

STAYS = (
    "Keys of model servers, tokens, links and leases are never in such a file; sources whose server wants a "
    "key need it entered again."
)
READABLE = (
    "Whoever has the file can read all of the project: labels, model output, and of a run whose labels are "
    "not analysed yet what was drawn."
)
SHOWN = 20


class Command(ScriptCommand):
    help = (
        "`list` the projects of a person, or `create NAME`: make one, of which they become the owner. "
        "`export SLUG --to FILE` writes a project to one file, with items, labels, runs, certificates, "
        "deliveries and stored files; `import FILE` brings it into another installation of the same version, "
        f"all of it or nothing. {STAYS} {READABLE}"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["list", "create", "export", "import"])
        parser.add_argument(
            "name", nargs="?", default="", help="of the new project; what is exported; the file that comes in"
        )
        parser.add_argument("--to", type=Path, metavar="FILE", help="the file that an export makes")
        parser.add_argument(
            "--owner", default="", metavar="NAME", help="who is to own an imported project (default: --user)"
        )
        parser.add_argument("--slug", default="", help="what an imported project is called in addresses here")
        parser.add_argument(
            "--match-people",
            action="store_true",
            help="take people of the file to be the accounts of the same name here; else each gets an "
            "account that nobody can log in with, as the same name may be another person's",
        )
        parser.add_argument(
            "--person",
            action="append",
            default=[],
            metavar="THEIRS=HERE",
            help="that somebody of the file is this account here; once for each",
        )
        parser.add_argument("--choice", action="append", metavar="LABEL", help="once for each label")
        parser.add_argument("--task-type", default=DEFAULT, choices=list(TASK_TYPES))
        parser.add_argument("--loss", default="", help="what counts as an error; its name in docs/methods.md")
        parser.add_argument("--guidelines", default="")
        parser.add_argument("--currency", metavar="CODE")
        parser.add_argument("--human-cost", metavar="DECIMAL", help="price of one label by a person")
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        if options["what"] == "export":
            self._export(options)
            return
        if options["what"] == "import":
            self._import(options)
            return
        user = self.user(options)
        if options["what"] == "list":
            rows: Any = projects_of(user)
            projects = [{"slug": row.slug, "name": row.name, "role": row.role} for row in rows]
            words = "\n".join(f"{row['slug']}\t{row['role']}\t{row['name']}" for row in projects)
            self.tell({"projects": projects}, words or "None.")
            return
        if not options["name"]:
            raise CommandError("Say what the project is called: manage.py project create NAME")
        named: dict[str, Any] = {}
        if options["currency"] is not None:
            named["currency"] = options["currency"]
        if options["human_cost"] is not None:
            named["human_cost"] = decimal_of("--human-cost", options["human_cost"])
        project = create_project(
            user=user,
            name=options["name"],
            task_type=options["task_type"],
            choices=[ChoiceSpec(name) for name in options["choice"] or ()],
            guidelines=options["guidelines"],
            loss=options["loss"],
            **named,
        )
        lacks = routing_port().loss_lacks(project=project)
        content = {"slug": project.slug, "name": project.name, "task_type_lacks": lacks}
        self.tell(content, "\n".join(filter(None, [project.slug, lacks])))

    def _export(self, options: dict[str, Any]) -> None:
        if not options["name"] or options["to"] is None:
            raise CommandError("Say which project, and where to: manage.py project export SLUG --to FILE")
        actor = self.user(options) if options["user"] else None
        before = os.umask(0o077)  # what people wrote, and who they are: for nobody else on this machine
        try:
            manifest = export_project(slug=options["name"], target=options["to"].resolve(), actor=actor)
        finally:
            os.umask(before)
        rows = sum(part.rows for part in manifest.parts)
        content = {
            "file": str(options["to"]),
            "rows": rows,
            "files": manifest.files,
            "missing": manifest.missing,
            "left_out": manifest.left_out,
        }
        files = f"{manifest.files:,} files ({manifest.files_bytes:,} bytes)"
        words = [f"{options['to']}: {rows:,} rows, {files}."]
        if manifest.left_out:
            words.append(f"Not in it: {_counted(manifest.left_out)}.")
        words += [STAYS, READABLE]
        if manifest.missing:
            words.append(
                f"{len(manifest.missing)} stored files are damaged or gone from the storage, and so not in "
                f"it; the SHA-256 of one is {manifest.missing[0]}."
            )
        self.tell(content, "\n".join(words))

    def _import(self, options: dict[str, Any]) -> None:
        if not options["name"]:
            raise CommandError("Say which file: manage.py project import FILE")
        imported = import_project(
            path=Path(options["name"]),
            owner=options["owner"] or options["user"],
            slug=options["slug"],
            match_people=options["match_people"],
            same=dict(_pair(text) for text in options["person"]),
        )
        left_out = imported.manifest.left_out
        content = {
            "slug": imported.project.slug,
            "name": imported.project.name,
            "rows": imported.rows,
            "files": imported.manifest.files,
            "matched": imported.matched,
            "made": imported.made,
            "left_out": left_out,
            "missing": imported.manifest.missing,
        }
        self.tell(content, "\n".join(_told(imported)))


def _pair(text: str) -> tuple[str, str]:
    theirs, sign, here = text.partition("=")
    if not sign or not theirs or not here:
        raise CommandError(f"--person {text!r}: write THEIRS=HERE, two usernames.")
    return theirs, here


def _told(imported: Imported) -> list[str]:
    manifest = imported.manifest
    words = [
        f"{imported.project.slug}: {imported.rows:,} rows and {manifest.files:,} files are here, as they "
        f"were on {manifest.made_at}."
    ]
    if imported.matched:
        words.append(f"Taken to be accounts here: {_people(imported.matched)}.")
    if imported.made:
        words.append(f"Accounts that nobody can log in with stand for: {_people(imported.made)}.")
    if manifest.left_out:
        words.append(f"Not in the file: {_counted(manifest.left_out)}.")
    words.append(STAYS)
    if manifest.missing:
        words.append(f"{len(manifest.missing)} stored files had been lost before the export.")
    return words


def _people(names: dict[str, str]) -> str:
    shown = [f"{theirs} as {here}" for theirs, here in sorted(names.items())[:SHOWN]]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join(shown + more)


def _counted(counts: dict[str, int]) -> str:
    return "; ".join(f"{what} ({count:,})" for what, count in counts.items())
