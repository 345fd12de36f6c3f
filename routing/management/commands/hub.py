"""`manage.py hub pull PROJECT CONNECTION FILE` and `hub push PROJECT CONNECTION`: a data set of the Hugging
Face Hub that the project is connected to.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from annotation.imports.columns import ColumnMapping
from annotation.imports.encodings import ENCODINGS
from annotation.imports.fetching import fetch
from annotation.management.scripts import (
    ScriptCommand,
    add_project,
    add_strict,
    add_waiting,
    job_content,
)
from annotation.models import Connection, Job
from annotation.permissions import Access
from routing.delivery.exports import export_delivery
from routing.management.runs import NEWEST
from routing.models import Delivery


class Command(ScriptCommand):
    help = (
        "`pull PROJECT CONNECTION FILE` imports a file of a data set of the Hugging Face Hub; `push PROJECT "
        "CONNECTION` puts a delivery there, as one commit with a data card. Connections are made on the page "
        "Connections, or by the API; they hold the token."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["pull", "push"])
        add_project(parser)
        parser.add_argument("connection", help="its name")
        parser.add_argument(
            "file", nargs="?", default="", help="pull: its path, below the connection's folder"
        )
        parser.add_argument("--format", default="", help="pull: else what the file seems to be")
        parser.add_argument("--encoding", default="", choices=["", *ENCODINGS], metavar="NAME")
        parser.add_argument("--id-column", default="", help="pull: else items are named by file and line")
        parser.add_argument(
            "--text-column",
            action="append",
            metavar="COLUMN",
            help="pull: what people read, several times for several fields",
        )
        parser.add_argument("--keep-labels", action="store_true", help="pull: labels of people become labels")
        parser.add_argument("--add-duplicates", action="store_true", help="pull: as of import_items")
        parser.add_argument(
            "--delivery", default=NEWEST, metavar="ID", help=f"push: its id (default: {NEWEST})"
        )
        parser.add_argument("--folder", default="", help="push: below the connection's folder")
        parser.add_argument("--overwrite", action="store_true", help="push: replace a README.md of others")
        add_strict(parser)
        add_waiting(parser)
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        (self._pull if options["what"] == "pull" else self._push)(options)

    def _pull(self, options: dict[str, Any]) -> None:
        access = self.access(options, "items.import")
        if not options["file"]:
            raise CommandError("Name a file of the data set, like data/train.parquet.")
        job = fetch(
            connection=_connection(access, options["connection"]),
            user=access.user,
            key=options["file"],
            mapping=ColumnMapping.showing(options["text_column"] or [], id_column=options["id_column"]),
            format_name=options["format"],
            keep_labels=options["keep_labels"],
            add_duplicates=options["add_duplicates"],
            encoding=options["encoding"],
        )
        job = self.follow(job, options)
        if job.state != Job.State.DONE:
            self.tell(job_content(job), f"Job {job.pk} brings {options['file']}.")
            return
        brought = access.project.jobs.get(pk=job.result["import"])
        self.read_file(brought, options, name=options["file"], does="imports", adds="items", of="rows")

    def _push(self, options: dict[str, Any]) -> None:
        access = self.access(options, "deliveries.make")
        delivery = _delivery(access, options["delivery"])
        job = export_delivery(
            delivery=delivery,
            connection=_connection(access, options["connection"]),
            user=access.user,
            prefix=options["folder"],
            overwrite=options["overwrite"],
        )
        self.follow(job, options)
        words = f"Job {job.pk} sends delivery {delivery.number} of run {delivery.run.number}."
        if job.state == Job.State.DONE:
            words = f"Delivery {delivery.number} of run {delivery.run.number} is in {job.result['bucket']}"
            words += f": {job.result['commit']}" if job.result["commit"] else ", where it was already."
        self.tell(job_content(job), words)


def _connection(access: Access, name: str) -> Connection:
    known = access.project.connections.filter(kind=Connection.Kind.HUB)
    found = known.select_related("project").filter(name=name).first()
    if found is None:
        names = ", ".join(known.values_list("name", flat=True)) or "there is none"
        raise CommandError(
            f"The project has no connection {name!r} to a data set of the Hugging Face Hub ({names})."
        )
    return found


def _delivery(access: Access, named: str) -> Delivery:
    found = Delivery.objects.select_related("run__project").filter(run__project=access.project)
    if named != NEWEST:
        found = found.filter(pk=int(named) if named.isdecimal() and len(named) < 19 else 0)
    delivery = found.order_by("-pk").first()
    if delivery is None:
        raise CommandError(f"The project has no delivery {named}.")
    return delivery
