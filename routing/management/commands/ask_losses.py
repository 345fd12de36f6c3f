"""`manage.py ask_losses PROJECT RUN`: lock the calibration labels, so that losses can be measured."""

from typing import Any

from routing.management.runs import RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.models import Run
from routing.runs.ask_losses import ask_losses
from routing.runs.losses_to_measure import refuse_computed_here


class Command(RunCommand):
    help = (
        "Lock the labels of the calibration set of a run whose losses your own program measures, and have "
        "the losses asked for. Ends with 2 while people still label, and with 0 where they have been asked "
        "for already."
    )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        refuse_computed_here(run)
        if run.state == Run.State.PREPARING:
            self.follow_run(run, "prepare_run", access, options)
        if run.state == Run.State.PREPARING:
            self.not_yet(run_content(run), f"The models of run {run.number} are still at work.")
        if run.state == Run.State.CALIBRATING and (left := left_to_label(run)):
            words = (
                f"Run {run.number} waits for people: {missing_in_words(left, ' about its calibration set')}."
            )
            self.not_yet({**run_content(run), "missing": left}, words)
        if run.state in (Run.State.CALIBRATING, Run.State.CANCELLED):
            ask_losses(run=run, user=access.user)
        self.tell(run_content(run), f"Run {run.number} is {run.get_state_display().lower()}.")
