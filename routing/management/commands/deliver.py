"""`manage.py deliver PROJECT RUN --to FOLDER`: the labelled data of a run as files in a folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from annotation.errors import HypacError
from annotation.management.scripts import LONGEST, job_content
from annotation.models import Job
from routing.common.states import OPEN
from routing.delivery.deliver import deliver
from routing.delivery.folder import base_in, check_folder, holds, write_delivery
from routing.delivery.formats import DEFAULT_FORMATS, FORMATS
from routing.delivery.parts import find_base, newest_base
from routing.management.filters import add_filters, filters_of
from routing.management.runs import NEWEST, RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.models import Delivery, Run


class Command(RunCommand):
    help = (
        "Make a delivery and, with --to, write its files into a folder, each checked against its SHA-256. "
        "Ends with 2 while people still label, unless --partial takes what there is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--formats",
            default=",".join(DEFAULT_FORMATS),
            help=f"separated by commas, of {', '.join(FORMATS)} (default: %(default)s)",
        )
        parser.add_argument(
            "--since",
            metavar="DELIVERY",
            help="only what is not as this delivery (its id) gave it out; "
            f"{NEWEST}: with --to the one whose files that folder holds, else the last one that was not "
            "filtered; everything where there is none",
        )
        parser.add_argument(
            "--unless-delivered",
            action="store_true",
            help="make none where the last one holds all of it already; with --to its files are written only "
            "where that folder does not hold them",
        )
        add_filters(parser)
        parser.add_argument("--to", type=Path, metavar="FOLDER", help="waits for the delivery")
        parser.add_argument(
            "--partial", action="store_true", help="also while people label; rows without a label say so"
        )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "deliveries.make")
        run = run_of(access, options["run"])
        if run.state in OPEN:
            state = run.get_state_display().lower()
            self.not_yet(run_content(run), f"Run {run.number} has nothing to deliver yet: {state}.")
        if run.state == Run.State.LABELLING and not options["partial"]:
            left = left_to_label(run)
            words = f"Run {run.number} waits for people: {missing_in_words(left)} (--partial delivers now)."
            self.not_yet({**run_content(run), "left": left}, words)
        if options["to"] is not None:
            check_folder(options["to"], project=access.project)
        formats = [name.strip() for name in options["formats"].split(",") if name.strip()]
        job = deliver(
            run=run,
            user=access.user,
            formats=formats,
            since=_base(run, options["since"], options["to"]),
            filters=filters_of(options["filter"]),
            unless_delivered=options["unless_delivered"],
        )
        if options["to"] is not None and options["wait"] is None and not options["here"]:
            options["wait"] = LONGEST
        self.follow(job, options, beside=run_content(run))
        content = {**run_content(run), "job": job_content(job)}
        if job.state != Job.State.DONE:
            self.tell(content, f"Job {job.pk} writes the delivery.")
            return
        delivery = Delivery.objects.select_related("run__project").get(pk=job.result["delivery"])
        made = job.result.get("made", True)
        content |= {"made": made, "delivery": {"id": delivery.pk, "number": delivery.number}}
        if delivery.is_part:
            content["certified"] = False  # of all items together, and not of these
        words = f"Delivery {delivery.number} of run {run.number}: {delivery.rows:,} rows"
        words += f" of {delivery.items:,} items" if delivery.is_part else ""
        words += f", {delivery.blanks:,} of them without a label." if delivery.blanks else "."
        words = words if made else f"Nothing is new since delivery {delivery.number} of run {run.number}."
        if options["to"] is not None:
            left = made or (options["since"] is None and not holds(options["to"], delivery))
            written = _write(delivery, options["to"]) if left else []
            content["files"] = [str(path) for path in written]
            words += "".join(f"\n{path}" for path in written)
        self.tell(content, words)


def _base(run: Run, named: str | None, folder: Path | None) -> Delivery | None:
    if named == NEWEST:
        return newest_base(run) if folder is None else base_in(folder, run)
    if named is None:
        return None
    if not (named.isascii() and named.isdecimal() and len(named) < 19):
        raise CommandError(f"--since: {named!r} is neither the id of a delivery nor {NEWEST}.")
    return find_base(run.project, int(named))


def _write(delivery: Delivery, folder: Path) -> list[Path]:
    try:
        return write_delivery(delivery=delivery, folder=folder)
    except (HypacError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        slug, number = delivery.run.project.slug, delivery.run.number
        raise CommandError(
            f"Delivery {delivery.number} of run {number} (id {delivery.pk}) was made, and its files could "
            f"not be written into the folder {folder}: {(reason or str(error)).rstrip('.')}. They can be had "
            f"on the page /projects/{slug}/deliveries/ and by the API at "
            f"/api/v1/projects/{slug}/deliveries/{delivery.pk}.zip."
        ) from error
