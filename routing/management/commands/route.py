"""`manage.py route PROJECT RUN`: send every item of an analysed run to its source, and the rest to people."""

from typing import Any

from routing.common.states import OPEN, ROUTED
from routing.management.runs import RunCommand, left_to_label, missing_in_words, run_content, run_of
from routing.models import Run
from routing.runs.route import route


class Command(RunCommand):
    help = (
        "Route a run. Ends with 2 before its analysis, and with 0 where it has been routed already; `left` "
        "says how many answers by people are still missing then."
    )

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        run = run_of(access, options["run"])
        if run.state in OPEN:
            state = run.get_state_display().lower()
            self.not_yet(run_content(run), f"Run {run.number} is not analysed yet: {state}.")
        if run.state == Run.State.ROUTING:
            self.follow_run(run, "route_run", access, options)
        elif run.state not in ROUTED:
            job = route(run=run, user=access.user)
            self.follow(job, options, beside=run_content(run))
            run.refresh_from_db()
        left = left_to_label(run)
        words = f"Run {run.number}: {run.get_state_display().lower()}"
        words += f"; {missing_in_words(left, ' by people')}." if left else "."
        self.tell({**run_content(run), "left": left}, words)
