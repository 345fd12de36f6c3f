"""`manage.py draw PROJECT RUN [VALUE]`: have the calibration set of a run drawn that waits for a value."""

from argparse import ArgumentParser
from typing import Any

from routing.management.runs import RunCommand, run_content, run_of
from routing.runs.commitment_report import commitment_report
from routing.runs.commitments import give_value


class Command(RunCommand):
    help = (
        "Draw the calibration set of a run that was planned with --draw-from nonce, drand or nist and waits "
        "for the value. `commitments` has the hashes of what it has committed to."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "value",
            nargs="?",
            default="",
            help="the text that somebody else chose, or the value of the beacon; none: ask the beacon again",
        )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        job = give_value(run=run, user=access.user, value=options["value"])
        self.follow(job, options, beside=run_content(run))
        run.refresh_from_db()
        found = commitment_report(run)
        hashes = [one.sha256 for one in found.commitments] if found else []
        words = (
            f"Run {run.number} is {run.get_state_display().lower()}. It has committed to: {' '.join(hashes)}"
        )
        self.tell({**run_content(run), "commitments": hashes}, words)
