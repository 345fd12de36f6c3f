"""`manage.py final_audit PROJECT RUN`: draw the final audit of a run, and later have it analysed."""

from typing import Any

from routing.management.runs import RunCommand, run_content, run_of
from routing.models import Run
from routing.runs.expert.final import (
    analyse_final_audit,
    draw_final_audit,
    final_certificate_of,
    final_state,
)


class Command(RunCommand):
    help = (
        "Draw the final audit of a run with an expert once everything is labelled, or, where she has "
        "labelled what was drawn, have it analysed. Ends with 2 while somebody still labels, and with 0 "
        "where it has been analysed already."
    )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        state = final_state(run)
        if state is None or state.audit is None:
            if run.final_sample is not None and run.state == Run.State.LABELLING:
                self.not_yet(run_content(run), f"Run {run.number} waits for people and its expert.")
            job = draw_final_audit(run=run, user=access.user)
            self.follow(job, options, beside=run_content(run))
            state = final_state(run)
        if state is not None and state.certificate is None:
            if state.open:
                words = f"The final audit of run {run.number} waits for the expert: {state.open:,} are left."
                self.not_yet({**run_content(run), "missing": state.open}, words)
            job = analyse_final_audit(run=run, user=access.user)
            self.follow(job, options, beside=run_content(run))
        run.refresh_from_db()
        found = final_certificate_of(run)
        content = {**run_content(run), "final_audit": found and found.holds}
        self.tell(content, found.sentence if found else f"Run {run.number} has no final audit.")
