"""`manage.py measure PROJECT`: what measuring the models before a plan costs and, with --start, do it."""

from argparse import ArgumentParser
from typing import Any

from annotation.management.scripts import ScriptCommand, add_project, add_waiting, decimal_of
from routing.core.choices import DEFAULT_TARGET
from routing.core.exact import plain
from routing.models import Run
from routing.runs.measure import Offer, discard_measurement, offer, start_measurement


class Command(ScriptCommand):
    help = (
        "Say what it costs to have all models answer a pilot before a plan is chosen; with --start, do it. "
        "No label is asked for and no answer is shown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        parser.add_argument("--target", choices=Run.Target.values, default=DEFAULT_TARGET)
        parser.add_argument(
            "--leave-out", action="append", default=[], metavar="MODEL", help="a model that is not asked"
        )
        parser.add_argument("--size", type=int, metavar="NUMBER", help="items of the pilot")
        parser.add_argument("--budget", metavar="DECIMAL", help="the most that the models may cost")
        parser.add_argument("--start", action="store_true", help="measure")
        parser.add_argument(
            "--discard", action="store_true", help="instead: no run is to take what was measured"
        )
        add_waiting(parser)
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        project = access.project
        if options["discard"]:
            discard_measurement(project=project, user=access.user)
            self.tell({"discarded": True}, "What was measured is discarded.")
            return
        chosen = {name: options[name] for name in ("target", "leave_out", "size")}
        offered = offer(project, **chosen)
        content = _content(offered, project.currency)
        if not options["start"]:
            words = f"{offered.size:,} items, about {plain(offered.price)} {project.currency}."
            self.tell(content, words)
            return
        budget = decimal_of("--budget", options["budget"]) if options["budget"] is not None else None
        measured = start_measurement(project=project, user=access.user, budget=budget, **chosen)
        if measured.job is not None:
            self.follow(measured.job, options, beside=content)
        done = measured.job is not None and measured.job.state == measured.job.State.DONE
        words = "The models are measured." if done else "The models are being measured."
        self.tell({**content, "measured": done}, words)


def _content(offered: Offer, currency: str) -> dict[str, Any]:
    return {
        "sources": [source.name for source in offered.sources],
        "pool_size": offered.pool_size,
        "pilot_size": offered.size,
        "price": offered.price,
        "currency": currency,
    }
