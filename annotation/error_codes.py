"""The errors that programs can tell apart: the one registry of codes, of which answers of the API, their
OpenAPI description, the page of each code and docs/api.md are made.

A code is stable within a version of the API; so is its status. Its words are in English, as the names are:
what went wrong in the reader's language is `detail`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorCode:
    """`title` is what it means, `remedy` one sentence on what a program, or whoever wrote it, can do."""

    code: str
    status: int
    title: str
    remedy: str


ERROR_CODES: dict[str, ErrorCode] = {}


def register_codes(status: int, codes: Mapping[str, tuple[str, str]]) -> None:
    """Make codes known, each with its title and its remedy. Another part of HyPAC than this one registers its
    own when it is loaded.
    """
    ERROR_CODES.update({code: ErrorCode(code, status, *words) for code, words in codes.items()})


def code_of(code: object, status: int) -> str:
    """`code`, where it is one of this status; else the general one, "" for a status that nothing here has."""
    known = ERROR_CODES.get(code) if isinstance(code, str) else None
    return known.code if known is not None and known.status == status else GENERAL.get(status, "")


def codes_by_status() -> dict[int, list[ErrorCode]]:
    """All of them by status, from the lowest, and by name, the general one first."""
    found: dict[int, list[ErrorCode]] = {}
    for known in sorted(ERROR_CODES.values(), key=lambda known: known.code):
        found.setdefault(known.status, []).append(known)
    return {
        status: sorted(codes, key=lambda known: known.code != GENERAL.get(status))
        for status, codes in sorted(found.items())
    }


# What an error is where it has no code of its own.
GENERAL = {
    400: "invalid_input",
    401: "not_authenticated",
    403: "permission_denied",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    410: "image_lost",
    411: "length_required",
    412: "changed_meanwhile",
    413: "too_large",
    415: "unsupported_media_type",
    422: "idempotency_key_reused",
    429: "throttled",
    500: "server_error",
    503: "unavailable",
}

register_codes(
    400,
    {
        "invalid_input": ("Something in the request cannot be used", "Look at faults: each names a field."),
        "parse_error": ("The body cannot be read", "Send what Content-Type says, such as whole JSON."),
        "bad_request": ("The address or a header cannot be read", "Look at the address and the headers."),
        "unknown_name": (
            "A field or parameter that is not known",
            "Leave it out, or spell it as the API does.",
        ),
        "body_cut_off": ("Not all of the body came", "Send the request again."),
        "not_possible": ("It could not be done", "Read detail: often another server or a file is at fault."),
    },
)
register_codes(
    401,
    {
        "not_authenticated": ("Nobody is logged in", "Send a token in the header Authorization."),
        "authentication_failed": ("The token does not hold", "Make a new token: it is expired or revoked."),
    },
)
register_codes(
    403,
    {
        "permission_denied": ("Your role may not do this", "Ask an owner or a manager of the project."),
        "project_archived": ("The project is archived", "Take it out of the archive before you change it."),
        "session_needed": ("A token cannot do this", "Log in at the site and do it there."),
        "token_too_narrow": ("This token cannot do this", "Take a token without a role and a project."),
    },
)
register_codes(
    404,
    {
        "not_found": ("Nothing is here, or nothing that you may see", "Look whether it is still there."),
        "no_such_address": ("The API has no such address", "Look at the slash at its end and at the schema."),
    },
)
register_codes(
    405, {"method_not_allowed": ("The address does not take this method", "Use one that detail names.")}
)
register_codes(
    406, {"not_acceptable": ("The address does not answer in this type", "Name another one in Accept.")}
)
register_codes(
    409,
    {
        "conflict": ("Things have moved on", "Read how it stands now, and decide again."),
        "request_at_work": (
            "The first request with this key is still being worked on",
            "Wait as Retry-After says, and send it again with the same key.",
        ),
        "request_broke_off": (
            "The first request with this key broke off in the server",
            "Look whether it was done; if not, send it with a new key.",
        ),
        "answer_not_kept": (
            "The request with this key was done, its answer is not kept",
            "Take it as done, and read how it stands now.",
        ),
    },
)
register_codes(410, {"image_lost": ("The storage has lost the image", "Have the operator put it back.")})
register_codes(
    411, {"length_required": ("The body came in chunks, without its length", "Send a Content-Length.")}
)
register_codes(
    412, {"changed_meanwhile": ("Somebody changed it since it was read", "Read it again, then change it.")}
)
register_codes(413, {"too_large": ("The body is too large", "Send less at once; detail says how much.")})
register_codes(
    415, {"unsupported_media_type": ("The address does not read this type", "Send one that detail names.")}
)
register_codes(
    422,
    {
        "idempotency_key_reused": (
            "The Idempotency-Key came with another request before",
            "Take a new key for each request.",
        )
    },
)
register_codes(
    429,
    {
        "throttled": ("Too many requests", "Wait as Retry-After says."),
        "too_many_attempts": ("Too many passwords were tried", "Wait as Retry-After says."),
        "too_many_keys": ("Too many Idempotency-Keys are kept", "Wait as Retry-After says, or send no key."),
        "too_many_wrong_tokens": (
            "Too many tokens that do not hold came from this address",
            "Stop sending the wrong token; a right one is let in.",
        ),
    },
)
register_codes(
    500, {"server_error": ("An error of the server", "Look whether it was done; the log has the request_id.")}
)
register_codes(
    503,
    {
        "unavailable": ("It cannot be had now", "Try again later."),
        "database_too_slow": (
            "The database took too long and was stopped",
            "Ask for less, or try again as Retry-After says.",
        ),
    },
)

FAULT_CODES = {
    "invalid": "It cannot be used; `detail` says why.",
    "required": "It is missing.",
    "null": "It is null, and may not be.",
    "blank": "It is empty, and may not be.",
    "empty": "The list is empty, and may not be.",
    "invalid_choice": "It is none of the values that there are; `detail` names them.",
    "min_value": "The number is too small.",
    "max_value": "The number is too large.",
    "min_length": "It is too short.",
    "max_length": "It is too long.",
    "unknown": "There is no such field or parameter.",
}
"""What is to be mended about one field (`faults[].code`)."""
