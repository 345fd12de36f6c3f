"""`manage.py plan PROJECT`: what a plan would mean and, with --start, a run of it."""

import json
from argparse import ArgumentParser
from fractions import Fraction
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand, add_project, add_waiting, decimal_of, job_content
from annotation.models import Job, Project
from routing.management.runs import run_content
from routing.runs.due import why_not_due
from routing.runs.forecast import forecast_of_plan
from routing.runs.plan import PlanOutlook, outlook_of_plan
from routing.runs.plan_api import measured_content, promises_content
from routing.runs.reference_api import SECONDS_OF_HOUR, references_part
from routing.runs.reference_forms import share_in
from routing.runs.reference_outlook import Row, missing_for_references, references_of_plan
from routing.runs.start import start_run
from routing.sources.api import usability_content
from routing.sources.warnings import usability_in_words

NUMBERS = (
    *("epsilon", "alpha", "p", "split_share", "budget"),
    *("expert_cost", "recheck_share", "audit_share", "accepted_error"),
    *("final_models_error", "final_models_alpha", "final_people_alpha"),
    "later_audit_share",
)
TEXTS = ("p_column", "target", "rule", "bound", "loss", "score", "reference", "draw_from")
JSON = ("loss_params", "score_params")
WHOLE = ("m", "pilot_size", "final_sample")
NOT_COUNTED = "People's mistakes are not counted"


class Command(ScriptCommand):
    help = "Say what a plan would promise and cost; with --start, draw the calibration set and begin."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_project(parser)
        for name in NUMBERS:
            parser.add_argument(_option(name), required=name in ("epsilon", "alpha"), metavar="DECIMAL")
        for name in WHOLE:
            parser.add_argument(_option(name), type=int, required=name == "m", metavar="NUMBER")
        parser.add_argument(
            "--leave-out", action="append", metavar="MODEL", help="a model that the run does without"
        )
        for name in TEXTS:
            parser.add_argument(_option(name), metavar="NAME")
        parser.add_argument(
            "--annotator",
            action="append",
            metavar="NAME[=SHARE]",
            help="somebody on the roster, with a share of the work such as 0.25 or 1/4",
        )
        parser.add_argument(
            "--expert",
            action="append",
            metavar="NAME[=SHARE]",
            help="the expert; several, with their shares, where they share the work",
        )
        for name in JSON:
            parser.add_argument(_option(name), metavar="JSON")
        parser.add_argument(
            "--suggestions",
            action="store_true",
            help="show whoever labels a routed item what a model answered",
        )
        parser.add_argument("--start", action="store_true", help="start a run of it")
        parser.add_argument(
            "--anyway", action="store_true", help="start it also where it can certify nothing"
        )
        parser.add_argument(
            "--accept-unusable",
            action="store_true",
            help="start it also where many answers of a model cannot be used",
        )
        parser.add_argument(
            "--accept-missing",
            action="store_true",
            help="start it also where a source of the backend `uploaded` lacks answers for its items",
        )
        parser.add_argument(
            "--accept-dearer",
            action="store_true",
            help="start it also where its expert alone is expected to cost less",
        )
        parser.add_argument(
            "--unless-under-way",
            action="store_true",
            help="where a run is not finished yet, start none and tell of that one",
        )
        parser.add_argument(
            "--unless-undelivered",
            action="store_true",
            help="where the newest run is complete and not delivered since, start none and tell of that one",
        )
        parser.add_argument(
            "--if-new-items",
            action="store_true",
            help="start none where each item that it would cover was in the pool of an earlier run",
        )
        add_waiting(parser)
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        access = self.access(options, "runs.edit")
        fields = _fields(options)
        if not options["start"]:
            seen = outlook_of_plan(project=access.project, **fields)
            part = references_part(access.project, seen)
            self.tell(
                {**_content(seen), "promises": promises_content(access.project, seen), **part},
                "\n".join([*_lines(seen), *part["warnings"], *_references(access.project, seen)]),
            )
            return
        if self.starts_none(access.project, options):
            return
        run = start_run(
            project=access.project,
            user=access.user,
            allow_uncertifiable=options["anyway"],
            accept_unusable=options["accept_unusable"],
            accept_missing=options["accept_missing"],
            accept_dearer=options["accept_dearer"],
            **fields,
        )
        job = Job.objects.get(project=access.project, kind="prepare_run", params__run=run.pk)
        self.follow(job, options, beside=run_content(run))
        run.refresh_from_db()
        words = f"Run {run.number} is {run.get_state_display().lower()}."
        self.tell({**run_content(run), "started": True, "job": job_content(job)}, words)

    def starts_none(self, project: Project, options: dict[str, Any]) -> bool:
        """Whether one of the options says so; then the command has told why."""
        asked = {name: options[name] for name in ("unless_under_way", "unless_undelivered", "if_new_items")}
        why = why_not_due(project, target=options["target"], **asked)
        if why is None:
            return False
        self.tell({**(run_content(why.run) if why.run else {}), "started": False}, why.words)
        return True


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """Those of `PlanFields` that were given, and the budget."""
    given = (*TEXTS, *WHOLE, "leave_out")
    fields: dict[str, Any] = {name: options[name] for name in given if options[name] is not None}
    for name in NUMBERS:
        if options[name] is not None:
            fields[name] = decimal_of(_option(name), options[name])
    for name, option in (("roster", "annotator"), ("expert", "expert")):
        if options[option]:
            fields[name] = _roster(_option(option), options[option])
    if options["suggestions"]:
        fields["suggestions"] = True
    for name in JSON:
        if options[name] is not None:
            try:
                fields[name] = json.loads(options[name])
            except (ValueError, RecursionError):
                raise CommandError(f"{_option(name)}: this is no JSON.") from None
            if not isinstance(fields[name], dict):
                raise CommandError(f"{_option(name)}: this is no JSON object.")
    return fields


def _roster(option: str, given: list[str]) -> dict[str, Fraction | None]:
    found: dict[str, Fraction | None] = {}
    for name, sign, share in (one.partition("=") for one in given):
        if name in found:
            raise CommandError(f"{option}: {name} is named twice.")
        try:
            found[name] = share_in(name, share) if sign else None
        except ValidationError as error:
            raise CommandError(f"{option}: {error.messages[0]}") from None
    return found


def _foretold(seen: PlanOutlook) -> list[str]:
    """What was measured foretells, in sentences."""
    found = forecast_of_plan(seen)
    if found is None and seen.expert is not None and seen.measured.usable:
        return []
    if found is None:
        return [f"Not measured. {seen.measured.stale}".strip()]
    now = found.now
    lines = [
        f"Expected net saving: {100 * now.net_saving:.0f} %, probably between {100 * now.low:.0f} and "
        f"{100 * now.high:.0f} %."
    ]
    lines += [
        f"With m = {row.m:,}: {100 * row.net_saving:.0f} %, about {row.net_cost:,.2f} {seen.currency} in all."
        for row in found.rows
    ]
    return [*lines, *filter(None, [found.needless_in_words])]


def _lines(seen: PlanOutlook) -> list[str]:
    return _foretold(seen) + list(
        filter(
            None,
            [
                *(seen.nearly_all, seen.sentence, seen.beside, seen.final_audit),
                *map(usability_in_words, seen.looked.sources),
                *(missing.in_words for missing in seen.missing),
            ],
        )
    )


def _references(project: Project, seen: PlanOutlook) -> list[str]:
    """What each reference would take, as a table for each assumption, or what is missing for that."""
    found = references_of_plan(project, seen)
    if found is None:
        return [missing_for_references(project, seen)]
    lines = [found.recommendation]
    for assumption, rows in found.tables:
        lines += ["", f"If people err on {assumption.in_words}:"]
        titles = ("", "annotators", "", "expert", "", found.currency)
        cells = [titles, *(_cells(row) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for first, *others in cells:
            right = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *right]))
    return [*lines, "", f"* {NOT_COUNTED}. {found.times_in_words}"]


def _cells(row: Row) -> tuple[str, ...]:
    """Title, labels and hours of annotators, of the expert, and the money."""
    way = row.way
    return (
        row.title if way.counts_people else f"{row.title} *",
        f"{way.people:,.0f} labels",
        f"{row.people_time / SECONDS_OF_HOUR:,.1f} h",
        f"{way.expert:,.0f} labels",
        f"{row.expert_time / SECONDS_OF_HOUR:,.1f} h",
        f"{way.cost:,.2f}",
    )


def _content(seen: PlanOutlook) -> dict[str, Any]:
    return {
        "sentence": " ".join(filter(None, [seen.nearly_all, seen.sentence])),
        "what_is_right": seen.beside,
        "certifiable": seen.statistics.certifiable and seen.scored,
        "pool_size": seen.pool_size,
        "expected_labels": seen.statistics.expected_human_labels,
        "currency": seen.currency,
        "at_least": seen.at_least,
        "at_most": seen.at_most,
        "people_only": seen.people_only,
        "people_at_least": seen.people_at_least,
        "nearly_all_to_people": bool(seen.nearly_all),
        "usability": [usability_content(source) for source in seen.looked.sources],
        "asks_to_accept_unusable": bool(seen.looked.asking),
        "missing": [missing.in_words for missing in seen.missing],
        "final_audit": seen.final_audit,
        "measured": measured_content(seen.measured, forecast_of_plan(seen)),
    }
