"""`manage.py take_in PROJECT RUN`: route items that came later by the thresholds of a run."""

from argparse import ArgumentParser
from typing import Any

from annotation.jobs.jobs import UNFINISHED
from annotation.management.scripts import job_content
from annotation.models import Job
from routing.management.runs import RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.runs.later.intakes import KIND
from routing.runs.later.report import later_report
from routing.runs.later.take_in import take_in


class Command(RunCommand):
    help = (
        "Have a run whose target is the population take in items that came after its pool was frozen. Ends "
        "with 0 also where there is none; `taken_in` says how many came in with this call, and `left` how "
        "many answers by people are missing then."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--accept-missing",
            action="store_true",
            help="also where a source of the backend `uploaded` lacks answers for them",
        )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        before, later, job = run.later_size, later_report(run), None
        if run.project.jobs.filter(unique_key=f"{KIND}:{run.pk}", state__in=UNFINISHED).exists():
            self.follow_run(run, KIND, access, options)
        elif later is None or later.waiting or later.unfinished or later.objection:
            taken = take_in(run=run, user=access.user, accept_missing=options["accept_missing"])
            job = self.follow(taken, options, beside=run_content(run))
            run.refresh_from_db()
        came, left = run.later_size - before, left_to_label(run)
        words = f"Run {run.number}: {came:,} new items taken in, {run.later_size:,} in all."
        if job is not None and job.state != Job.State.DONE:
            words = f"Run {run.number}: job {job.pk} takes in new items."
        words += f" {missing_in_words(left, ' by people')}." if left else ""
        content = {**run_content(run), "taken_in": came, "later_size": run.later_size, "left": left}
        self.tell(content if job is None else content | {"job": job_content(job)}, words)
