"""Why there was no answer from an address that a person entered."""

from annotation.errors import HypacError

KINDS = (
    "url",  # it is no address that may be asked
    "refused_address",  # it leads into the server's own network
    "resolve",  # its name is not known
    "connect",  # nobody accepts connections there
    "timeout",  # no answer, or not all of it, in time
    "reset",  # the connection ended before the answer did
    "too_large",
    "tls",
    "protocol",  # what came is no HTTP answer, or not what its header says
    "request",  # what was to be sent cannot be
)


class NetError(HypacError):
    """There was no answer; `kind` is one of KINDS. The message never holds what was sent or received."""

    def __init__(self, kind: str, message: str, *, permanent: bool = False) -> None:
        assert kind in KINDS  # noqa: S101 - a mistake of the programmer
        super().__init__(message, permanent=permanent)
        self.kind = kind
