"""WSGI entry point."""

import os
from typing import TYPE_CHECKING

from django.core.wsgi import get_wsgi_application
from waitress.channel import HTTPChannel
from waitress.task import WSGITask

from hypac_site.statement_limit import limit_statements

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")


def without_body_for_head(inner: "WSGIApplication") -> "WSGIApplication":
    """Leave out the body of an answer to HEAD, and keep its headers (RFC 9110, 9.3.2).

    waitress sends what it is given, and whoever asked takes that for the beginning of the next answer on the
    connection. gunicorn leaves it out by itself.
    """

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        body = inner(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return body
        if close := getattr(body, "close", None):
            close()
        return []

    return answer


class _Task(WSGITask):
    """Of an answer without a length waitress would send the end of its pieces after the head, too."""

    def build_response_header(self) -> bytes:
        head: bytes = super().build_response_header()
        if self.request.command == "HEAD":
            self.chunked_response = False
        return head


# For `python -m waitress`; gunicorn has its own.
HTTPChannel.task_class = _Task
application = without_body_for_head(get_wsgi_application())
limit_statements()
