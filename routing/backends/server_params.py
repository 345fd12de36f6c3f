"""Params of every backend that asks a server."""

from django.utils.translation import gettext_lazy as _

from routing.backends.params import Number, Part, Secret, Text, Whole

SPEED = Part(_("Speed, limits and the rest"))

URL = Text(
    "url",
    _("Address of the server"),
    _("For example https://api.openai.com/v1; of a Label Studio ML backend http://ml.example.org:9090."),
    required=True,
    strip=True,
    most=500,
)
KEY = Secret(
    "api_key",
    _("Key for the server"),
    _("Stored encrypted, sent to this server only, and never shown again."),
)
CONCURRENCY = Whole(
    "concurrency", _("Calls at a time"), _("Empty: what suits the kind of source."), low=1, part=SPEED
)
BATCH_SIZE = Whole(
    "batch_size",
    _("Items in one request or file"),
    _("Empty: 16 in a request, 5,000 in a file."),
    low=1,
    part=SPEED,
)
CONNECT_TIMEOUT = Number(
    "connect_timeout", _("Seconds to connect"), _("Empty: 5."), low=0.1, default=5.0, part=SPEED, row="times"
)
READ_TIMEOUT = Number(
    "read_timeout",
    _("Seconds without a sign of life"),
    _("Empty: what suits the kind of source."),
    part=SPEED,
    row="times",
)
TOTAL_TIMEOUT = Number(
    "total_timeout",
    _("Seconds for an answer in all"),
    _("Its repetitions included. Empty: what suits the kind of source."),
    part=SPEED,
    row="times",
)
