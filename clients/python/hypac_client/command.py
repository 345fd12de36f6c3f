"""`hypac`: what a script of a shell needs of a site. The address and the token come from HYPAC_URL and
HYPAC_TOKEN.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import httpx

from hypac_client.client import Client
from hypac_client.errors import HypacError, JobError
from hypac_client.models import Taken

FAILED, WRONG_USE = 1, 2
MOST_ROWS = 1_000
"""Of answers that one request takes."""


def main(arguments: Sequence[str] | None = None, *, transport: httpx.BaseTransport | None = None) -> int:
    """The exit status: 0, 1 where the site or the work refuses, 2 where the command is used wrongly."""
    options = _parser().parse_args(arguments)
    url, token = os.environ.get("HYPAC_URL", ""), os.environ.get("HYPAC_TOKEN", "")
    try:
        with Client(url, token, transport=transport) as client:
            _tell(options.does(client, options), as_json=options.json)
    except (HypacError, OSError) as error:
        _refuse(error, as_json=options.json)
        return FAILED
    except ValueError as error:
        _refuse(error, as_json=options.json)
        return WRONG_USE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hypac",
        description="Talks to a HyPAC site, whose address is HYPAC_URL, with the token HYPAC_TOKEN.",
    )
    parser.add_argument("--json", action="store_true", help="results and errors as JSON")
    commands = parser.add_subparsers(title="commands", required=True)

    def command(name: str, does: Callable[[Client, Any], Any], says: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=says, description=says)
        found.set_defaults(does=does)
        return found

    def waiting(found: argparse.ArgumentParser) -> None:
        found.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait (%(default)g)")

    command("me", lambda client, _options: client.me(), "whose token it is")
    command("projects", _projects, "the projects that the token reaches")
    found = command("preview", _preview, "what a file seems to be; nothing is imported")
    found.add_argument("project")
    found.add_argument("file")
    found = command("import", _import, "import a file and wait")
    found.add_argument("project")
    found.add_argument("file")
    for name in ("--id-column", "--text-column", "--format"):
        found.add_argument(name, default="")
    found.add_argument("--keep-labels", action="store_true")
    found.add_argument("--add-duplicates", action="store_true")
    waiting(found)
    found = command("predictions", _predictions, "send answers of a source's model and wait")
    found.add_argument("project")
    found.add_argument("source", help="its name")
    found.add_argument("file", help="JSON Lines or a table, gzipped or not")
    for name in ("--format", "--revision", "--encoding"):
        found.add_argument(name, default="")
    waiting(found)
    found = command("deliver", _deliver, "have a delivery made, wait, and download it")
    found.add_argument("project")
    found.add_argument("run", type=int, help="its number")
    found.add_argument("folder")
    found.add_argument("--formats", default="csv,jsonl", help="with commas between (%(default)s)")
    waiting(found)
    found = command("work", _work, "what a run asks of people, for another program, a line each")
    found.add_argument("project")
    found.add_argument("run", type=int, help="its number")
    found.add_argument("file", help="where the lines go")
    found.add_argument("--shape", default="hypac", help="hypac, label-studio or cvat (%(default)s)")
    found.add_argument("--image-seconds", type=int, help="give images by addresses that hold so long")
    found.add_argument("--part", default="routed", help="routed or calibration (%(default)s)")
    found = command("take-back", _take_back, "store what people answered in another program")
    found.add_argument("project")
    found.add_argument("run", type=int, help="its number")
    found.add_argument("file", help="a list of rows as JSON, or one a line; of CVAT annotations.xml")
    found.add_argument("--people", default="{}", help='JSON: who is who here, {"user 3": "ann"}')
    found.add_argument("--part", default="routed", help="routed or calibration (%(default)s)")
    found.add_argument("--annotator", default="", help="of CVAT's file: who drew, by username here")
    found.add_argument("--empty", default="wait", help="of CVAT's images without a box: wait or nothing")
    found = command("losses", _losses, "labels and models' answers, for the program that measures losses")
    found.add_argument("project")
    found.add_argument("run", type=int, help="its number")
    found.add_argument("file", help="where the lines go")
    found = command("give-losses", _give_losses, "store the losses that your program measured")
    found.add_argument("project")
    found.add_argument("run", type=int, help="its number")
    found.add_argument(
        "file", help="those lines with loss1, loss2, ...; or a CSV of item, measured and these"
    )
    found = command("request", _request, "any request of the API")
    found.add_argument("method", type=str.upper, choices=["GET", "POST", "PUT", "PATCH", "DELETE"])
    found.add_argument("path", help="below /api/v1/")
    found.add_argument("--data", default="", help="the body as JSON, - for standard input")
    return parser


def _projects(client: Client, _options: Any) -> Any:
    return [dict(project.data) for project in client.projects]


def _preview(client: Client, options: Any) -> Any:
    return client.projects.get(options.project).preview(options.file)


def _import(client: Client, options: Any) -> Any:
    job = client.projects.get(options.project).import_data(
        options.file,
        id_column=options.id_column,
        text_column=options.text_column,
        format=options.format,
        keep_labels=options.keep_labels,
        add_duplicates=options.add_duplicates,
    )
    return job.wait(timeout=options.timeout, progress=not options.json).result


def _predictions(client: Client, options: Any) -> Any:
    sources = list(client.projects.get(options.project).sources)
    source = next((one for one in sources if one.name == options.source), None)
    if source is None:
        names = ", ".join(one.name for one in sources) or "none"
        raise HypacError(f"There is no source {options.source!r} in this project; there are: {names}.")
    job = source.upload_predictions(
        options.file, format=options.format, revision=options.revision, encoding=options.encoding
    )
    return job.wait(timeout=options.timeout, progress=not options.json).result


def _deliver(client: Client, options: Any) -> Any:
    run = client.projects.get(options.project).run(options.run)
    delivery = run.deliver(options.formats.split(","), timeout=options.timeout, progress=not options.json)
    return {"delivery": delivery.id, "files": [str(path) for path in delivery.download(options.folder)]}


def _work(client: Client, options: Any) -> Any:
    run = client.projects.get(options.project).run(options.run)
    waiting = run.waiting_work(options.part)
    conditions = waiting["conditions"]
    if options.shape == "cvat":
        run.cvat_archive(options.file, part=options.part)
        return {"file": options.file, "items": waiting["waiting"], "conditions": conditions}
    rows = run.work(options.shape, part=options.part, image_seconds=options.image_seconds)
    count = _write_lines(options.file, rows)
    return {"file": options.file, "items": count, "conditions": conditions}


def _take_back(client: Client, options: Any) -> Any:
    """Sent in parts; rows are counted over all of them."""
    run = client.projects.get(options.project).run(options.run)
    if options.file.endswith(".xml"):
        return dict(
            run.take_back_cvat(
                options.file, annotator=options.annotator, part=options.part, empty=options.empty
            )
        )
    people = json.loads(options.people)
    return _in_parts(
        _rows_of(options.file), lambda rows: run.take_back(rows, people=people, part=options.part)
    )


def _losses(client: Client, options: Any) -> Any:
    run = client.projects.get(options.project).run(options.run)
    asked, count = run.losses_asked(), _write_lines(options.file, run.losses_to_measure())
    return {
        "file": options.file,
        "items": count,
        "missing": len(asked["missing"]),
        "models": asked["models"],
        "conditions": asked["conditions"],
    }


def _give_losses(client: Client, options: Any) -> Any:
    """Sent in parts; rows are counted over all of them."""
    run = client.projects.get(options.project).run(options.run)
    if options.file.endswith(".csv"):
        with open(options.file, encoding="utf-8-sig", newline="") as file:
            rows: list[Any] = list(csv.DictReader(file))
    else:
        rows = _rows_of(options.file)
    told = _in_parts(rows, run.give_losses)
    return {**told, "missing": len(run.losses_asked()["missing"])}


def _write_lines(name: str, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    with open(name, "w", encoding="utf-8") as file:
        for row in rows:
            count += 1
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def _rows_of(name: str) -> list[Any]:
    """Of a list as JSON, or of one row a line."""
    with open(name, encoding="utf-8") as file:
        text = file.read()
    if text.lstrip().startswith("["):
        return list(json.loads(text))
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _in_parts(rows: Sequence[Any], send: Callable[[Sequence[Any]], Taken]) -> dict[str, Any]:
    told: dict[str, Any] = {"stored": 0, "known": 0, "refused": []}
    for start in range(0, len(rows), MOST_ROWS):
        taken = send(rows[start : start + MOST_ROWS])
        told["stored"] += taken["stored"]
        told["known"] += taken["known"]
        told["refused"] += [{**one, "row": one["row"] + start} for one in taken["refused"]]
    return told


def _request(client: Client, options: Any) -> Any:
    text = sys.stdin.read() if options.data == "-" else options.data
    return client.request(options.method, options.path, json=json.loads(text) if text else None)


def _tell(result: Any, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
        return
    for entry in result if isinstance(result, list) else [result]:
        if isinstance(entry, dict):
            print("  ".join(f"{name}={_short(value)}" for name, value in entry.items()))
        elif entry is not None:
            print(_short(entry))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refuse(error: Exception, *, as_json: bool) -> None:
    if not as_json:
        print(f"hypac: {error}", file=sys.stderr)
        return
    told: dict[str, Any] = {"error": type(error).__name__, "detail": str(error)}
    if isinstance(error, HypacError):
        told |= {"code": error.code, "detail": error.detail, "status": error.status}
        told |= {"field": error.field, "errors": error.errors, "faults": error.faults}
    if isinstance(error, JobError):
        told |= {"problems": error.problems, "problem_count": error.problem_count}
    print(json.dumps(told, ensure_ascii=False), file=sys.stderr)


def entry() -> None:
    sys.exit(main())
