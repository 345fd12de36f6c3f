"""How logs are written, and what they must not hold."""

import logging
import re
from typing import Any

from pythonjsonlogger.json import JsonFormatter as _JsonFormatter

from annotation.common.log_context import current
from annotation.common.one_line import NOT_SHOWN

# Links that open something by themselves: an invitation, a new password, an address that is confirmed, mail
# that ends, and a signed address of an image (which has colons, unlike its SHA-256). Also as part of a query.
_SLASH = r"(?:/|%2F)"
_SIGNED = r"(?:[\w.~:=-]|%3A|%3D){8,}"
_LINKS = ("join", r"password/[\w-]{1,40}", "account/mail", "mail/ends")
SECRET_PARTS = re.compile(
    rf"({_SLASH}(?:{'|'.join(_LINKS).replace('/', _SLASH)}){_SLASH}){_SIGNED}"
    rf"|({_SLASH}images{_SLASH})[\w.~-]{{8,}}(?::|%3A){_SIGNED}",
    re.IGNORECASE,
)


def hidden(text: str) -> str:
    """`text` with "..." in the place of the tokens in addresses of such links."""
    return SECRET_PARTS.sub(r"\1\2...", text)


class HideTokens(logging.Filter):
    """Put "..." in the place of the token in the address of such a link. Lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if hidden(message) != message:
            record.msg, record.args = hidden(message), ()
        return True


class RefusalsInALine(logging.Filter):
    """Leave the trace out of what is said about a refused request (4xx): it is no fault of the program, whose
    traces (500) stay. Lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if 400 <= getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class Place(logging.Filter):
    """Put on a record which request or job it belongs to. Lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        # Django logs what a page answered when the request is no longer at work here, but names it.
        number = getattr(getattr(record, "request", None), "request_id", None)
        record.about = current() or ({"request_id": number} if number else {})
        return True


class TextFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, and behind it the request or job. Lines of a trace are
    indented, so that nothing that came in begins a line of its own.
    """

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name} {message}", style="{")

    def formatMessage(self, record: logging.LogRecord) -> str:
        place = " ".join(f"{name}={value}" for name, value in getattr(record, "about", {}).items())
        return _on_one_line(super().formatMessage(record) + (f" [{place}]" if place else ""))

    def formatException(self, ei: Any) -> str:
        return _indented(hidden(super().formatException(ei)))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    return "\n".join(f"    {_on_one_line(line)}" for line in text.split("\n"))


def _on_one_line(text: str) -> str:
    """With ends of lines and what terminals take for commands as Python writes them: \\n, \\x1b."""
    return NOT_SHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class JsonFormatter(_JsonFormatter):
    """A JSON object per line: time (UTC), level, logger, message, process, what was given as `extra`, the
    request (request_id) or job (job, job_kind) it belongs to, and the trace of an exception (exc_info).
    """

    def __init__(self) -> None:
        super().__init__(
            ["levelname", "name", "message", "process"],
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
        )

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        place = log_data.pop("about", {})
        log_data.pop("request", None)
        return {name: hidden(v) if isinstance(v, str) else v for name, v in (log_data | place).items()}
