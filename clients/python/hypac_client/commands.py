"""What each command of `hypac` does: of a client and the options to what is told."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote
from typing import Any

from hypac_client import nights
from hypac_client.client import Client
from hypac_client.errors import ConflictError, HypacError
from hypac_client.jobs import Job
from hypac_client.models import Problem, Taken
from hypac_client.row_files import json_in, rows_of_file, rows_of_losses, write_lines
from hypac_client.runs import Run
from hypac_client.sources import UPLOADED

MOST_ROWS, FEW_ROWS = 1_000, 20
"""Of answers that one request takes: at most, and where those were too much to read at once."""
MOST_PROBLEMS = 20
A_PLAN = "epsilon=0.05 alpha=0.1 m:=150"
SAID_AT_A_START = (
    *("unless_under_way", "unless_undelivered", "if_new_items"),
    *("anyway", "accept_unusable", "accept_missing", "accept_dearer"),
)


@dataclass
class Told:
    """A result, and what could not be used: the first lines about it, how much that was (`refused`), and how
    much of the same could be (`used`). `short` is what people read of a long result.
    """

    result: Any
    problems: Sequence[str] = ()
    refused: int = 0
    used: int = 0
    short: dict[str, Any] | None = None

    @property
    def in_short(self) -> Any:
        return self.result if self.short is None else self.short


def projects(client: Client, _options: Any) -> Any:
    return [dict(project.data) for project in client.projects]


def new_project(client: Client, options: Any) -> Told:
    fields = fields_of(options.field, but=("name",))
    if isinstance(choices := fields.get("choices"), str):
        fields["choices"] = choices.split(",")
    project = client.projects.create(options.name, **fields)
    short = {
        "slug": project.slug,
        "name": project["name"],
        "page": f"{client.url}/projects/{project.slug}/",
        "next": f"hypac import {project.slug} FILE --id-column NAME --text-column NAME",
    }
    return Told(dict(project), short=short)


def new_source(client: Client, options: Any) -> Told:
    fields = fields_of(options.field, but=("name",))
    if options.api_key_stdin:
        fields["api_key"] = sys.stdin.read().strip()
    project = client.projects.get(options.project)
    source = project.sources.add(options.name, **fields)
    if source["backend"] == UPLOADED:
        following = f"hypac predictions {project.slug} {quote(source.name)} FILE"
    else:
        following = f"hypac start {project.slug} {A_PLAN}"
    short = {
        "id": source.id,
        "name": source.name,
        "backend": source["backend"],
        "page": f"{client.url}/projects/{project.slug}/sources/{source.id}/",
        "next": following,
    }
    return Told(dict(source), source.warnings, short=short)


def preview(client: Client, options: Any) -> Told:
    seen = client.projects.get(options.project).preview(options.file)
    suggested = seen["suggestion"]
    words = ["hypac", "import", options.project, options.file]
    if suggested["id_column"]:
        words += ["--id-column", suggested["id_column"]]
    for column in [suggested["text_column"]] if suggested["text_column"] else suggested["field_columns"]:
        words += ["--text-column", column]
    short = {
        "format": seen["format_title"],
        "columns": ", ".join(column["name"] for column in seen["columns"]),
        "next": join(words),
    }
    return Told(dict(seen), [_told_of(one) for one in seen["problems"]], short=short)


def import_file(client: Client, options: Any) -> Told:
    columns = options.text_column
    job = client.projects.get(options.project).import_data(
        options.file,
        id_column=options.id_column,
        text_column=columns[0] if len(columns) == 1 else "",
        field_columns=columns if len(columns) > 1 else (),
        text_format=options.text_format,
        format=options.format,
        encoding=options.encoding,
        keep_labels=options.keep_labels,
        add_duplicates=options.add_duplicates,
    )
    return _of_file(job.wait(timeout=options.timeout, progress=not options.json))


def predictions(client: Client, options: Any) -> Told:
    sources = list(client.projects.get(options.project).sources)
    source = next((one for one in sources if one.name == options.source), None)
    if source is None:
        names = ", ".join(one.name for one in sources) or "none"
        raise HypacError(f"There is no source {options.source!r} in this project; there are: {names}.")
    job = source.upload_predictions(
        options.file,
        format=options.format,
        revision=options.revision,
        encoding=options.encoding,
        id_column=options.id_column,
    )
    return _of_file(job.wait(timeout=options.timeout, progress=not options.json))


def _of_file(job: Job) -> Told:
    result = job.result
    refused = int(result["problems"]) + int(result.get("labels_unread", 0))
    used = int(result["added"]) + int(result["already_there"])
    first = job.problems[:MOST_PROBLEMS]
    lines = [_told_of(one) for one in first]
    if (more := job.problem_count - len(first)) > 0:
        lines.append(f"... and {more:,} more of job {job.id}")
    short = {**result, "job": job.id}
    return Told({**short, "first_problems": first}, lines, refused, used, short)


def _told_of(problem: Problem) -> str:
    return f"{problem['where']}: {problem['message']}"


def start(client: Client, options: Any) -> Any:
    """A run where one is due; none otherwise, which is told."""
    said = {name: getattr(options, name) for name in SAID_AT_A_START}
    try:
        run = client.projects.get(options.project).start_run(
            **fields_of(options.field, but=SAID_AT_A_START), **said
        )
    except ConflictError as error:
        if error.code != "no_run_due":
            raise
        return {"started": False, "why": error.detail}
    job = run.work_of_state()
    if job is not None:
        job.wait(timeout=options.timeout, progress=not options.json)
    return {"started": True, **_facts(run.refresh())}


def fields_of(given: Sequence[str], *, but: Sequence[str] = ()) -> dict[str, Any]:
    """Of `NAME=TEXT`, or `NAME:=JSON` for what is no text. `but`: what is said to the command otherwise."""
    found: dict[str, Any] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign:
            raise ValueError(f"{one!r} is neither NAME=TEXT nor NAME:=JSON")
        field = name.removesuffix(":")
        if field in but or field in found:
            raise ValueError(f"{one!r}: {field} is said otherwise already (hypac COMMAND --help)")
        found[field] = json_in(value, f"{one!r}, behind :=") if name.endswith(":") else value
    return found


def analyse(client: Client, options: Any) -> Any:
    return _facts(nights.analyse(_run(client, options), **_patience(options)))


def ask_losses(client: Client, options: Any) -> Any:
    return _facts(nights.ask_losses(_run(client, options), **_patience(options)))


def route(client: Client, options: Any) -> Any:
    return _facts(nights.route(_run(client, options), **_patience(options)))


def take_in(client: Client, options: Any) -> Any:
    run = _run(client, options)
    came = nights.take_in(run, accept_missing=options.accept_missing, **_patience(options))
    return {"taken_in": came, **_facts(run)}


def _run(client: Client, options: Any) -> Run:
    return nights.run_of(client.projects.get(options.project), options.run)


def _patience(options: Any) -> dict[str, Any]:
    return {"timeout": options.timeout, "progress": not options.json}


def _facts(run: Run) -> dict[str, Any]:
    facts = {"run": run.number, "state": run.state, "left": run.left_to_label, "certified": run.certified}
    return facts | ({"sentence": run.sentence} if run.sentence else {})


def deliver(client: Client, options: Any) -> Any:
    project = client.projects.get(options.project)
    run, folder = nights.run_of(project, options.run), Path(options.folder)
    nights.refuse_undeliverable(run, complete=options.complete)
    since = nights.base_of(project, run, options.since, folder)
    delivery = run.deliver(
        options.formats.split(","),
        since=since,
        filters=fields_of(options.filter),
        unless_delivered=options.unless_delivered,
        **_patience(options),
    )
    left = delivery.made or (not options.since and not delivery.is_in(folder))
    files = [str(path) for path in delivery.download(folder)] if left else []
    return {"delivery": delivery.id, "number": delivery["number"], "made": delivery.made, "files": files}


def label_config(client: Client, options: Any) -> Any:
    config = client.projects.get(options.project).label_config()
    if not options.file:
        return config
    Path(options.file).write_text(config, encoding="utf-8")
    return {"file": options.file}


def erase_items(client: Client, options: Any) -> Any:
    if not options.yes:
        raise ValueError("nothing brings the content of an item back: say --yes")
    return dict(client.projects.get(options.project).erase_items(options.item))


def invite(client: Client, options: Any) -> Told:
    made = dict(client.projects.get(options.project).invite(options.name, options.role))
    short = {name: made[name] for name in ("username", "role", "state", "expires_at")}
    after = f"{made['username']} accepts it on their list of projects, {client.url}/"
    return Told(made, short={**short, "next": after})


@contextmanager
def _naming_the_option() -> Iterator[None]:
    """The site's words name the field of the API; whoever typed a command has an option."""
    try:
        yield
    except ConflictError as error:
        error.detail = error.detail.replace("part=calibration", "--part calibration")
        raise


@_naming_the_option()
def work(client: Client, options: Any) -> Any:
    run = _run(client, options)
    waiting = run.waiting_work(options.part)
    told = {"file": options.file, "items": waiting["waiting"], "conditions": waiting["conditions"]}
    if note := waiting.get("note"):  # a server before 0.3 has none
        told["note"] = note
    if options.shape == "cvat":
        run.cvat_archive(options.file, part=options.part)
        return told
    rows = run.work(options.shape, part=options.part, image_seconds=options.image_seconds)
    return {**told, "items": write_lines(options.file, rows)}


@_naming_the_option()
def take_back(client: Client, options: Any) -> Told:
    """Sent in parts; rows are counted over all of them."""
    run = _run(client, options)
    if options.file.endswith(".xml"):
        taken = run.take_back_cvat(
            options.file, annotator=options.annotator, part=options.part, empty=options.empty
        )
        return _taken(dict(taken))
    people = json_in(options.people, "--people")
    if not isinstance(people, dict) or not all(isinstance(name, str) for name in people.values()):
        raise ValueError('--people: names are wanted, as in {"user 3": "ann"}')
    if not (rows := rows_of_file(options.file)):
        raise HypacError("The file has no answers: nothing was sent.")
    return _in_parts(rows, lambda part: run.take_back(part, people=people, part=options.part))


def losses(client: Client, options: Any) -> Any:
    run = _run(client, options)
    asked, count = run.losses_asked(), write_lines(options.file, run.losses_to_measure())
    return {
        "file": options.file,
        "items": count,
        "missing": nights.losses_left(asked),
        "models": asked["models"],
        "conditions": asked["conditions"],
    }


def give_losses(client: Client, options: Any) -> Told:
    """Of lines of JSON or a CSV; sent in parts, rows are counted over all of them."""
    run, rows = _run(client, options), rows_of_losses(options.file)
    told = _in_parts(rows, run.give_losses)
    missing = {"missing": nights.losses_left(run.losses_asked())}
    return replace(told, result=told.result | missing, short=told.in_short | missing)


def _in_parts(rows: Sequence[Any], send: Callable[[Sequence[Any]], Taken]) -> Told:
    """A part that was too much to read at once is sent again in smaller ones."""
    told: dict[str, Any] = {"stored": 0, "known": 0, "refused": []}

    def give(numbers: Sequence[int], most: int) -> None:
        for first in range(0, len(numbers), most):
            part = numbers[first : first + most]
            taken = send([rows[number] for number in part])
            told["stored"] += taken["stored"]
            told["known"] += taken["known"]
            left = []
            for one in taken["refused"]:
                number = part[one["row"] - 1]
                if one.get("again") and most > FEW_ROWS:
                    left.append(number)
                else:
                    told["refused"].append({**one, "row": number + 1})
            give(left, FEW_ROWS)

    give(range(len(rows)), MOST_ROWS)
    told["refused"].sort(key=lambda one: one["row"])
    return _taken(told)


def _taken(told: Mapping[str, Any]) -> Told:
    refused = told["refused"]
    lines = [f"row {one['row']}{_of_item(one)}: {one['reason']}" for one in refused[:MOST_PROBLEMS]]
    if (more := len(refused) - len(lines)) > 0:
        lines.append(f"... and {more:,} more")
    used = told["stored"] + told["known"]
    return Told(dict(told), lines, len(refused), used, {**told, "refused": len(refused)})


def _of_item(refused: Mapping[str, Any]) -> str:
    return f" ({refused['name']})" if refused.get("name") else ""


def request(client: Client, options: Any) -> Any:
    text = sys.stdin.read() if options.data == "-" else options.data
    body = json_in(text, "--data") if text else None
    return client.request(options.method, options.path, json=body)
