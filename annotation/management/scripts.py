"""What commands for scripts have in common: on whose behalf, waiting for jobs, output, and how they end.

They end with 0 where what was asked for is done, 1 where it was refused or has failed (the reason is on
standard error), and 2 where it is not done yet: a wait that was too short, or people who have to label first.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from annotation.errors import HypacError
from annotation.jobs import jobs
from annotation.models import Job, JobProblem, User
from annotation.permissions import Access, access_to

FAILED, NOT_YET = 1, 2
USER = "HYPAC_USER"
LONGEST = 24 * 3600.0
POLL_SECONDS = 0.5
# So long a job may wait before a lack of workers is the likely reason.
PATIENCE_SECONDS = 20.0
MOST_PROBLEMS = 20


class ScriptCommand(BaseCommand):
    """A command that does one thing on behalf of a person, as a page would for them."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        if parser.called_from_command_line:

            def error(message: str) -> NoReturn:
                """argparse would end with 2, which says "not yet" here."""
                parser.print_usage(sys.stderr)
                parser.exit(FAILED, f"{parser.prog}: error: {message}\n")

            parser.error = error  # type: ignore[method-assign]
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--user",
            default=os.environ.get(USER, ""),
            metavar="NAME",
            help=f"on whose behalf: their role counts, and the audit trail names them (default: ${USER})",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        self.as_json = options["json"]
        self.beside: dict[str, Any] | None = None
        try:
            self.do(options)
        except (HypacError, OSError) as error:
            raise CommandError(_in_words(error), returncode=FAILED) from error

    def do(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def user(self, options: dict[str, Any]) -> User:
        name = options["user"]
        if not name:
            raise CommandError(f"Say on whose behalf: --user NAME, or {USER} in the environment.")
        user = User.objects.filter(username=name, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account {name!r}.")
        return user

    def access(self, options: dict[str, Any], action: str) -> Access:
        """To the project of the command. Raises CommandError where the person may not do `action` there."""
        user, slug = self.user(options), options["project"]
        access = access_to(user, slug)
        if access is None:
            raise CommandError(f"There is no project {slug!r}, or {user.username} is no member of it.")
        if access.closed(action):
            raise CommandError("This project is archived: nothing in it can be changed.")
        if not access.allows(action):
            raise CommandError(
                f"The role of {user.username} in this project ({access.role}) may not do this."
            )
        return access

    def tell(self, content: dict[str, Any], words: str) -> None:
        """The outcome, in words or as JSON."""
        if self.as_json:
            self.stdout.write(json.dumps(content, ensure_ascii=False, cls=DjangoJSONEncoder))
        else:
            self.stdout.write(words)

    def not_yet(self, content: dict[str, Any], words: str) -> NoReturn:
        if self.as_json:
            self.stdout.write(json.dumps(content, ensure_ascii=False, cls=DjangoJSONEncoder))
        raise CommandError(words, returncode=NOT_YET)

    def follow(self, job: Job, options: dict[str, Any], *, beside: dict[str, Any] | None = None) -> Job:
        """The job once it is done, if the command is to wait for it or to do it itself; else as it is. Where
        the wait was too short, --json has what is `beside` the job, whose facts are under "job" then.
        """
        self.beside = beside
        if options.get("here"):
            jobs.run(job.pk)
            job.refresh_from_db()
        if options.get("here") or options["wait"] is not None:
            self._wait(job, options["wait"] or 0.0)
        return job

    def read_file(
        self, job: Job, options: dict[str, Any], *, name: str, does: str, adds: str, of: str
    ) -> None:
        """Follow a job that reads the file `name`, and tell what became of it: what the job `does` with it,
        what it `adds`, and what such a file consists `of`. Raises CommandError where --strict asks for that
        and something could not be used: the rest is stored.
        """
        job = self.follow(job, options)
        words = f"Job {job.pk} {does} {name}."
        if job.state == Job.State.DONE:
            found = job.result
            words = (
                f"{name}: {found['added']:,} {adds} were added, {found['already_there']:,} were there "
                f"already, {found['problems']:,} {of} could not be used (job {job.pk})."
            )
            if found["already_there"] and not found.get("compared", True):
                words += " What was there stays; whether it is the same is not told before a run is analysed."
            if empty := found.get("uncomputed"):
                told = ", ".join(f"{column} {count:,}" for column, count in empty.items())
                words += f" Cells that are empty as their formula was never computed: {told}."
        self.tell(job_content(job), words)
        if job.state == Job.State.DONE:
            self._tell_problems(job, name, of=of, strict=options["strict"])

    def _tell_problems(self, job: Job, name: str, *, of: str, strict: bool) -> None:
        """On standard error: the first ones, how many more there are, and where these are."""
        told = [] if self.as_json else [str(one) for one in job.problems.all()[:MOST_PROBLEMS]]
        for line in told:
            self.stderr.write(line)
        kept = job.problems.count()
        if told and (more := kept - len(told)):
            slug = job.project.slug
            self.stderr.write(f"... and {more:,} more: /projects/{slug}/jobs/{job.pk}/ has all of them.")
        refused = job.result["problems"] + job.result.get("labels_unread", 0)
        if strict and refused:
            raise CommandError(
                f"{name}: {refused:,} {of} or labels could not be used. All others are stored (--strict).",
                returncode=FAILED,
            )

    def _wait(self, job: Job, seconds: float) -> None:
        began = time.monotonic()
        warned = False
        while True:
            job.refresh_from_db()
            if job.state == Job.State.DONE:
                return
            if job.state in (Job.State.FAILED, Job.State.CANCELLED):
                reason = job.error or "It was cancelled."
                raise CommandError(f"Job {job.pk} ({job.kind}): {reason}", returncode=FAILED)
            if job.state == Job.State.PAUSED:
                words = f"Job {job.pk} ({job.kind}) is paused; resume it on its page."
                self.not_yet(self._content(job), words)
            waited = time.monotonic() - began
            if waited >= seconds:
                self.not_yet(self._content(job), _not_done(job, waited))
            if (
                job.state == Job.State.QUEUED
                and not job.attempts
                and waited > PATIENCE_SECONDS
                and not warned
            ):
                warned = True
                self.stderr.write(_no_worker(job))
            time.sleep(min(POLL_SECONDS, seconds - waited))

    def _content(self, job: Job) -> dict[str, Any]:
        return job_content(job) if self.beside is None else {**self.beside, "job": job_content(job)}


def add_project(parser: ArgumentParser) -> None:
    parser.add_argument("project", help="the project, as its address names it")


def decimal_of(option: str, text: str) -> Decimal:
    """Raises CommandError that names the option."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise CommandError(f"{option}: {text!r} is no number.", returncode=FAILED)
    return number


def add_waiting(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        nargs="?",
        type=float,
        const=LONGEST,
        metavar="SECONDS",
        help="wait until a worker has done it, at most so long (a day where no number is given)",
    )
    parser.add_argument("--here", action="store_true", help="do it in this process, where no worker runs")


def add_strict(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="end with 1 where something of the file could not be used; the rest is stored all the same",
    )


def job_content(job: Job) -> dict[str, Any]:
    problems = JobProblem.objects.filter(job=job)
    told = list(problems.values("where", "line", "column", "message")[:MOST_PROBLEMS])
    return {
        "job": job.pk,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "error": job.error,
        "result": job.result,
        "problems": told,
        "problem_count": problems.count(),
    }


def _in_words(error: HypacError | OSError) -> str:
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"There is no file {str(error.filename)!r}."
    if isinstance(error, IsADirectoryError):
        return f"{str(error.filename)!r} is a folder, not a file."
    return f"{str(error.filename)!r}: {error.strerror}."


def _not_done(job: Job, waited: float) -> str:
    words = f"Job {job.pk} ({job.kind}) is not done after {waited:.0f} seconds: {job.get_state_display()}"
    words += f", {job.done:,} of {job.total:,}." if job.total else "."
    if job.state == Job.State.QUEUED and job.error:
        words += f" Its last attempt failed and is made again: {job.error}"
    elif job.state == Job.State.QUEUED:
        words += f" {_no_worker(job)}"
    return words


def _no_worker(job: Job) -> str:
    return (
        f"No worker has taken job {job.pk} yet: start `manage.py serve` or a worker, or add --here to have "
        "this command do the work."
    )
