"""`hypac`: what a script of a shell needs of a site. The address and the token come from HYPAC_URL and
HYPAC_TOKEN; what each command does stands in hypac_client.commands.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from hypac_client import commands
from hypac_client.client import Client
from hypac_client.commands import Told
from hypac_client.errors import (
    AuthenticationError,
    HypacError,
    JobError,
    NotYetError,
    WaitTimeoutError,
    does_not_fit,
)
from hypac_client.texts import printable, printable_json
from hypac_client.transport import address_of

FAILED, WRONG_USE, NOT_YET, STOPPED, CLOSED = 1, 2, 3, 130, 141
ENDS = (
    "Ends with 0; with 1 where the site or the work refuses, or nothing of a file could be used, with "
    "--strict also where a part of it could not (the rest is stored all the same); with 2 where the command "
    "is used wrongly; with 3 where something has to be done first, mostly by people, or the wait was too "
    "short."
)
OF_TOKEN = frozenset({"token_too_narrow", "too_many_wrong_tokens"})
"""Codes of errors that another token ends; 401 is one whatever its code."""
MISSING = "also where a source lacks answers that are sent in"
FIELDS = "NAME=TEXT, or NAME:=JSON for what is no text"
STRICT = "end with 1 also where only a part of it cannot be used; the rest is stored all the same"
MEANS = {
    "run": "its number, or newest",
    "source": "its name",
    "file": "what is sent, or where it goes; answers from CVAT are annotations.xml",
    "role": "annotator, reviewer or viewer",
}
Parser = argparse.ArgumentParser


def main(arguments: Sequence[str] | None = None, *, transport: httpx.BaseTransport | None = None) -> int:
    """The exit status, as ENDS says."""
    options = _parser().parse_args(arguments)
    try:
        with _client(transport) as client, _naming_the_token(client), _naming_the_answer(client):
            told = options.does(client, options)
        told = told if isinstance(told, Told) else Told(told)
        _tell(told.result if options.json else told.in_short, as_json=options.json)
        for line in () if options.json else told.problems:
            print(printable(str(line), sys.stderr.encoding), file=sys.stderr)
        if told.refused and not told.used and not options.json:
            print("hypac: nothing of it could be used", file=sys.stderr)
        return FAILED if told.refused and (options.strict or not told.used) else 0
    except (NotYetError, WaitTimeoutError) as error:
        _refuse(error, as_json=options.json)
        return NOT_YET
    except BrokenPipeError:
        raise
    except (HypacError, OSError) as error:
        _refuse(error, as_json=options.json)
        return FAILED
    except RecursionError:
        _refuse(HypacError("What was read is nested too deeply."), as_json=options.json)
        return FAILED
    except ValueError as error:
        _refuse(error, as_json=options.json)
        return WRONG_USE


def _client(transport: httpx.BaseTransport | None) -> Client:
    """Raises ValueError that names what is to be set."""
    token = os.environ.get("HYPAC_TOKEN", "")
    site = _site(os.environ.get("HYPAC_URL", ""))
    try:
        return Client(site, token, transport=transport)
    except ValueError:
        fault = "is nothing that a site shows as a token" if token else "is not set"
        how = f"Make a token on the page of your account, {site}/account/, and set HYPAC_TOKEN to it."
        raise ValueError(f"HYPAC_TOKEN {fault}. {how}") from None


def _site(url: str) -> str:
    """Its address. Raises ValueError that says what HYPAC_URL lacks."""
    wanted = "the site's address, as in https://labels.example.org, without a name in it."
    try:
        return address_of(url)
    except ValueError:
        if not url.strip():
            raise ValueError(f"HYPAC_URL is not set: it is {wanted}") from None
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError("HYPAC_URL has to begin with http:// or https://") from None
        raise ValueError(f"HYPAC_URL has to be {wanted}") from None


@contextmanager
def _naming_the_token(client: Client) -> Iterator[None]:
    """Where the site takes no such token: that it is this one, and where another is made."""
    try:
        yield
    except HypacError as error:
        if isinstance(error, AuthenticationError) or error.code in OF_TOKEN:
            page = f"{client.url}/account/"
            error.detail += f" HYPAC_TOKEN has it: make another on the page of your account, {page}."
        raise


@contextmanager
def _naming_the_answer(client: Client) -> Iterator[None]:
    """Where an answer is JSON of another shape, which shows only where it is used: whose it was. Before there
    is an answer such an error is a fault of this program, and stays one.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        if not client.answered:
            raise
        raise does_not_fit(client.answered, f"{type(error).__name__}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hypac",
        description="Talks to a HyPAC site, whose address is HYPAC_URL, with the token HYPAC_TOKEN, which is "
        "made on the page of your account there.",
        epilog=ENDS,
    )
    parser.add_argument("--json", action="store_true", help="results and errors as JSON")
    parser.set_defaults(strict=False)
    found = parser.add_subparsers(title="commands", required=True)

    def command(name: str, does: Callable[[Client, Any], Any], says: str, *words: str) -> Parser:
        """With what it takes in this order, each by its name."""
        made = found.add_parser(name, help=says, description=says)
        made.set_defaults(does=does)
        for word in words:
            made.add_argument(word, help=MEANS.get(word))
        return made

    command("me", lambda client, _options: client.me(), "whose token it is")
    command("projects", commands.projects, "the projects that the token reaches")
    says = "make a project"
    made = command("new-project", commands.new_project, says, "name")
    made.add_argument("field", nargs="+", help=f"choices=good,bad and others of POST projects/: {FIELDS}")
    says = "add a source, which comes last"
    made = command("new-source", commands.new_source, says, "project", "name")
    made.add_argument("field", nargs="+", help=f"of POST P/sources/: {FIELDS}")
    _flags(made, api_key_stdin="its key is what standard input has")
    command("preview", commands.preview, "what a file seems to be; nothing is imported", "project", "file")
    _import(command("import", commands.import_file, "import a file and wait", "project", "file"))
    says = "send answers of a source's model and wait"
    _predictions(command("predictions", commands.predictions, says, "project", "source", "file"))
    says = "start a run of a plan, where one is due, and wait until people are asked"
    _start(command("start", commands.start, says, "project"))
    says = "have a run's thresholds certified, once its calibration set is labelled, and wait"
    _waiting(command("analyse", commands.analyse, says, "project", "run"))
    says = "send each item of an analysed run to its source, the rest to people, and wait"
    _waiting(command("route", commands.route, says, "project", "run"))
    says = "have a run whose target is population take in what came later, and wait"
    made = command("take-in", commands.take_in, says, "project", "run")
    _flags(made, accept_missing=MISSING)
    _waiting(made)
    says = "have a delivery made, wait, and download it"
    _deliver(command("deliver", commands.deliver, says, "project", "run", "folder"))
    says = "the labelling configuration for Label Studio"
    made = command("label-config", commands.label_config, says, "project")
    made.add_argument("file", nargs="?", default="", help="where it goes; else it is printed")
    says = "what a run asks of people, for another program, a line each"
    _work(command("work", commands.work, says, "project", "run", "file"))
    says = "store what people answered in another program"
    _take_back(command("take-back", commands.take_back, says, "project", "run", "file"))
    says = "lock a run's calibration labels, once all are there, and ask for the losses that you measure"
    _waiting(command("ask-losses", commands.ask_losses, says, "project", "run"))
    says = "labels and models' answers, for the program that measures losses"
    command("losses", commands.losses, says, "project", "run", "file")
    says = "store the losses that your program measured"
    _flags(command("give-losses", commands.give_losses, says, "project", "run", "file"), strict=STRICT)
    says = "erase the content of items for good"
    made = command("erase-items", commands.erase_items, says, "project")
    made.add_argument("item", nargs="+", help="its name in the imported data")
    _flags(made, yes="nothing brings it back, and that is wanted")
    command("invite", commands.invite, "invite an account to a project", "project", "name", "role")
    made = command("request", commands.request, "any request of the API")
    made.add_argument("method", type=str.upper, choices=["GET", "POST", "PUT", "PATCH", "DELETE"])
    made.add_argument("path", help="below /api/v1/")
    made.add_argument("--data", default="", help="the body as JSON, - for standard input")
    return parser


def _waiting(parser: Parser) -> None:
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait (%(default)g)")


def _flags(parser: Parser, **means: str) -> None:
    for name, says in means.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=says)


def _texts(parser: Parser, *names: str) -> None:
    for name in names:
        parser.add_argument(name, default="")


def _import(parser: Parser) -> None:
    _texts(parser, "--id-column", "--format", "--encoding", "--text-format")
    parser.add_argument("--text-column", action="append", default=[], help="several times for several fields")
    _flags(parser, keep_labels="labels of people in the file become labels", add_duplicates="add rows again")
    _flags(parser, strict=STRICT)
    _waiting(parser)


def _predictions(parser: Parser) -> None:
    _texts(parser, "--format", "--revision", "--encoding", "--id-column")
    _flags(parser, strict=STRICT)
    _waiting(parser)


def _start(parser: Parser) -> None:
    parser.add_argument("field", nargs="+", help="of the plan: epsilon=0.05 alpha=0.1 m:=150, JSON behind :=")
    _flags(
        parser,
        unless_under_way="not where a run is not finished",
        unless_undelivered="not where the newest run is complete and not delivered since",
        if_new_items="not where each item was in the pool of an earlier run",
        anyway="also where it can certify nothing",
        accept_unusable="also where many answers of a model cannot be used",
        accept_missing=MISSING,
        accept_dearer="also where its expert alone is expected to cost less",
    )
    _waiting(parser)


def _deliver(parser: Parser) -> None:
    parser.add_argument("--formats", default="csv,jsonl", help="with commas between (%(default)s)")
    says = (
        "only what is new since the delivery of this id, or newest: since that whose files the folder holds"
    )
    parser.add_argument("--since", default="", help=says)
    parser.add_argument("--filter", action="append", default=[], help="NAME=VALUE of the table of items")
    _flags(
        parser,
        unless_delivered="make none where the last one holds all of it already",
        complete="only once people have labelled everything",
    )
    _waiting(parser)


def _work(parser: Parser) -> None:
    parser.add_argument("--shape", default="hypac", help="hypac, label-studio or cvat (%(default)s)")
    parser.add_argument("--image-seconds", type=int, help="give images by addresses that hold so long")
    parser.add_argument("--part", default="routed", help="routed or calibration (%(default)s)")


def _take_back(parser: Parser) -> None:
    parser.add_argument("--people", default="{}", help='JSON: who is who here, {"user 3": "ann"}')
    parser.add_argument("--part", default="routed", help="routed or calibration (%(default)s)")
    parser.add_argument("--annotator", default="", help="of CVAT's file: who drew, by username here")
    parser.add_argument("--empty", default="wait", help="of CVAT's images without a box: wait or nothing")
    _flags(parser, strict=STRICT)


def _tell(result: Any, *, as_json: bool) -> None:
    if as_json:
        print(printable_json(result, sys.stdout.encoding))
        return
    for entry in result if isinstance(result, list) else [result]:
        if isinstance(entry, dict):
            line = "  ".join(f"{name}={_short(value)}" for name, value in entry.items())
            print(printable(line, sys.stdout.encoding))
        elif entry is not None:
            print(printable(_short(entry), sys.stdout.encoding, lines=True))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refuse(error: Exception, *, as_json: bool) -> None:
    if not as_json:
        for line in (error, *_other_faults(error)):
            print(printable(f"hypac: {line}", sys.stderr.encoding), file=sys.stderr)
        return
    told: dict[str, Any] = {"error": type(error).__name__, "detail": str(error)}
    if isinstance(error, HypacError):
        told |= {"code": error.code, "detail": error.detail, "status": error.status}
        told |= {"field": error.field, "errors": error.errors, "faults": error.faults}
    if isinstance(error, JobError):
        told |= {"problems": error.problems, "problem_count": error.problem_count}
    print(printable_json(told, sys.stderr.encoding), file=sys.stderr)


def _other_faults(error: Exception) -> list[str]:
    """Of fields beside the one that the error names."""
    if not isinstance(error, HypacError):
        return []
    return [
        f"{one['field']}: {one['detail']}"
        for one in error.faults
        if isinstance(one, dict) and {"field", "detail"} <= set(one) and one["field"] != error.field
    ]


def entry() -> None:
    """The command; whoever waits may stop it, and a pipe behind it may end early."""
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("hypac: stopped. What has begun at the site goes on there.", file=sys.stderr)
        status = STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = CLOSED
    sys.exit(status)
