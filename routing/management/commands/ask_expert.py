"""`manage.py ask_expert PROJECT RUN`: bring the expert her part of the labelled calibration set."""

from typing import Any

from routing.management.runs import RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.models import Run
from routing.runs.expert.ask import ask_expert


class Command(RunCommand):
    help = (
        "Lock the annotators' labels of the calibration set, and have the expert asked. Ends with 2 while "
        "annotators still label, and with 0 where the expert has been asked already."
    )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        if run.state == Run.State.PREPARING:
            self.follow_run(run, "prepare_run", access, options)
        if run.state == Run.State.PREPARING:
            self.not_yet(run_content(run), f"The models of run {run.number} are still at work.")
        if run.state == Run.State.CALIBRATING and (left := left_to_label(run)):
            words = f"Run {run.number} waits for annotators: {missing_in_words(left)}."
            self.not_yet({**run_content(run), "missing": left}, words)
        if run.state == Run.State.CALIBRATING:
            job = ask_expert(run=run, user=access.user)
            self.follow(job, options, beside=run_content(run))
            run.refresh_from_db()
        self.tell(run_content(run), f"Run {run.number} is {run.get_state_display().lower()}.")
