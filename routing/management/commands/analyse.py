"""`manage.py analyse PROJECT RUN`: have its thresholds certified, once, when all labels are there."""

from typing import Any

from routing.management.runs import RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.models import Certificate, Run
from routing.runs.certify import analyse
from routing.runs.losses_to_measure import losses_so_far


class Command(RunCommand):
    help = (
        "Have a run analysed. Ends with 2 while people still label its calibration set, or losses that are "
        "measured elsewhere are missing, and with 0 where it has been analysed already."
    )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        if run.state == Run.State.PREPARING:
            self.follow_run(run, "prepare_run", access, options)
        if run.state == Run.State.ANALYSING:
            self.follow_run(run, "analyse_run", access, options)
        if run.state == Run.State.PREPARING:
            self.not_yet(run_content(run), f"The models of run {run.number} are still at work.")
        if run.state == Run.State.CALIBRATING and run.by_expert:
            self.not_yet(run_content(run), f"Run {run.number} waits for its expert: have her asked first.")
        if run.state in (Run.State.CALIBRATING, Run.State.CHECKING) and (left := left_to_label(run)):
            words = (
                f"Run {run.number} waits for people: {missing_in_words(left, ' about its calibration set')}."
            )
            self.not_yet({**run_content(run), "missing": left}, words)
        if run.state == Run.State.CALIBRATING and run.measured_elsewhere:
            words = f"Run {run.number} has its labels: have the losses of models' answers asked for first."
            self.not_yet(run_content(run), words)
        if run.state == Run.State.LOSSES and (missing := losses_so_far(run).left):
            words = f"Run {run.number} waits for the losses of models' answers about {missing:,} items."
            self.not_yet({**run_content(run), "missing": missing}, words)
        if run.state != Run.State.ANALYSING and not Certificate.objects.filter(run=run).exists():
            job = analyse(run=run, user=access.user)
            self.follow(job, options, beside=run_content(run))
            run.refresh_from_db()
        words = f"Run {run.number} is {run.get_state_display().lower()}"
        certificate: Certificate | None = getattr(run, "certificate", None)
        if certificate is not None and not certificate.certified:
            words += ": nothing could be certified."
        elif certificate is not None:
            words += ": certified." if certificate.holds else ": its certificate is no longer valid."
        self.tell(run_content(run), words)
