"""`manage.py people_run PROJECT`: what having people label everything means and, with --start, do it."""

from argparse import ArgumentParser
from typing import Any

from annotation.management.scripts import ScriptCommand, add_project, decimal_of
from routing.by_people.start import Wanted, people_outlook, start_people_run
from routing.core.exact import plain
from routing.management.filters import add_filters, filters_of
from routing.management.runs import run_content


class Command(ScriptCommand):
    help = (
        "Say what it means to have people label items without any model; with --start, ask them. Items that "
        "have a label already keep it. Nothing is certified."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        add_filters(parser)
        parser.add_argument("--sample", type=int, metavar="NUMBER", help="so many of them, drawn at random")
        parser.add_argument(
            "--overlap", type=int, metavar="NUMBER", help="people per item (default: as the project says)"
        )
        parser.add_argument(
            "--overlap-share", metavar="DECIMAL", help="on which share of the items (default: as it says)"
        )
        parser.add_argument("--start", action="store_true", help="ask people")
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        share = options["overlap_share"]
        wanted = Wanted(
            filters_of(options["filter"]),
            sample=options["sample"],
            overlap=options["overlap"],
            overlap_share=None if share is None else decimal_of("--overlap-share", share),
        )
        if options["start"]:
            run = start_people_run(access=access, wanted=wanted)
            self.tell(run_content(run), f"Run {run.number}: {run.pool_size:,} items for people.")
            return
        found = people_outlook(access=access, wanted=wanted)
        currency = access.project.currency
        content = {
            "items": found.items,
            "labelled": found.labelled,
            "answers": found.answers,
            "cost": found.cost,
            "currency": currency,
            "seconds": found.seconds,
        }
        words = (
            f"{found.items:,} items, {plain(found.answers)} labels, about {plain(found.cost)} {currency}; "
            f"{found.labelled:,} have a label already."
        )
        self.tell(content, words)
