"""The errors that programs can tell apart: the one registry of codes, of which answers of the API, their
OpenAPI description, the page of each code and docs/errors.csv are made.

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
        "second_factor_first": (
            "The account has to have a second step of its log-in",
            "Set it up on the page of the account; tokens go on without.",
        ),
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
        # Projects, people
        "archived_meanwhile": ("The project is archived", "Take it out of the archive first."),
        "project_deleted": ("The project is being deleted", "Stop: it is gone for good."),
        "too_many_views": ("There are as many saved views as there may be", "Delete one first."),
        "view_of_project": ("The view is the project's", "Ask a manager, or save one of your own."),
        "view_name_taken": ("A saved view has this name already", "Take another name."),
        "job_unfinished": ("Work of the project is not finished", "Wait for its jobs, or cancel them."),
        "labels_in_use": ("Something is under way with the labels as they are", "Finish or cancel it first."),
        "wording_in_use": (
            "People have been asked, or are, as it is worded",
            "Keep it, or take a new project.",
        ),
        "label_given": ("Items have this label already", "Keep the label; it can be renamed."),
        "label_key_spent": ("The key was that of a label merged or split", "Give the new label another key."),
        "label_merged_into": ("Another label was merged into this one", "Keep the label; it can be renamed."),
        "only_owner": ("The person is the only owner", "Make somebody else an owner first."),
        "only_administrator": ("The person is the only administrator", "Make another one first."),
        "expert_of_open_run": ("A run under way needs this person", "Complete or cancel the run first."),
        "no_member": ("The person is no member any more", "Read the list of members again."),
        "too_many_members": ("The project has as many members as it may", "Remove one who has left."),
        "member_already": ("The person is a member already", "Go on: nothing is to be accepted."),
        "member_switched_off": ("An owner has switched the membership off", "Ask an owner to switch it on."),
        "removed_after_invitation": (
            "The person was removed after being invited",
            "Ask an owner to add them.",
        ),
        "invitation_accepted": ("The invitation has been accepted", "Go on: it was done before."),
        "invitation_used_up": ("The invitation has been used up", "Ask whoever sent it for a new one."),
        "invitation_expired": ("The invitation has expired", "Ask whoever sent it for a new one."),
        "invitation_revoked": ("The invitation has been taken back", "Ask whoever sent it for a new one."),
        "invitation_declined": ("The invitation has been declined", "Ask whoever sent it for a new one."),
        "invitation_sender_gone": ("Its sender may no longer invite", "Ask another owner for a new one."),
        "link_not_valid": ("The link of a letter does not hold any more", "Ask for a new one on its page."),
        "choose_password_first": ("Somebody else may know the password", "Choose a new password first."),
        # Work in the background, data that comes in
        "same_work_under_way": ("The same work is under way", "Wait until its job has ended, or cancel it."),
        "cannot_pause": ("This work cannot be paused, or not now", "Cancel it; it can be started again."),
        "not_paused": ("The work is not paused", "Read its state: only paused work is resumed."),
        "not_waiting": ("The work does not wait for another attempt", "Read its state."),
        "cannot_retry": ("The work has not failed and was not cancelled", "Read its state."),
        "other_import_under_way": ("Another import is under way", "Wait until its job has ended."),
        "would_double_items": (
            "Rows are in the project already, under other names",
            "Name the column that names the items, or send add_duplicates.",
        ),
        "import_not_ended": ("This is no import, or one that has not ended", "Wait until its job has ended."),
        "import_empty": ("The import has no items that are still there", "Go on: nothing is left of it."),
        "file_being_read": ("The file is being read", "Wait until the job that reads it has ended."),
        "file_in_use": ("Items or deliveries are made of the file", "Keep it."),
        "import_in_use": ("Items of the import are used", "Keep them: something rests on them."),
        # Labelling, review
        "not_your_item": ("This token never held the item", "Claim an item, and answer with its token."),
        "labelled_already": ("You have labelled this item", "Claim the next item; correct/ changes a label."),
        "labelled_by_other": ("Somebody else has labelled this item", "Claim the next item."),
        "lease_passed_on": ("The item was held too long and went to another", "Claim the next item."),
        "lease_elsewhere": ("You hold the item with another token", "Go on where you claimed it last."),
        "lease_gone": ("You do not hold this item any more", "Claim the next item."),
        "not_asked_for": ("The item is no longer asked for", "Claim the next item."),
        "cannot_be_labelled": ("It was decided that nobody can label the item", "Claim the next item."),
        "practice_left": ("The person practises first", "Have them answer the practice items."),
        "skipped_by_person": ("The person has skipped the item", "Have somebody else answer it."),
        "item_with_other": ("Somebody else has the item open now", "Send the answer again later."),
        "person_paused": ("The person is paused in the project", "Have them go on first, or name another."),
        "quota_spent": ("The person has labelled as many items as they may", "Name another person."),
        "answer_key_reused": (
            "The idempotency_key came with another answer",
            "Take a new key for each answer.",
        ),
        "skipped_item_taken": ("The item that you skipped has gone to another", "Claim the next item."),
        "corrected_meanwhile": ("The label has been corrected since", "Read the label again."),
        "round_closed": ("The guideline round is closed", "Leave its answers as they are."),
        "labels_locked": ("The labels are locked, or no longer asked for", "Leave them as they are."),
        "confirm_locked": ("The label is locked, and others rest on it", "Send confirm, if you want that."),
        "items_unlabelled": ("Items still wait for their label", "Have them labelled, or given up."),
        "items_disputed": ("People differ about items", "Have a reviewer decide about each."),
        "no_dispute": ("The item waits for no decision", "Read the list of reviews again."),
        "third_person_decides": ("A third person of the roster decides here", "Wait for that person."),
        "blind_batch": ("This may not settle the items of a blind batch", "Have a reviewer decide."),
        "one_person_asked": ("One person is asked: that answer is the label", "Have that label corrected."),
        "not_all_answered": ("Not everybody who is asked has answered", "Wait for the other answers."),
        "answers_agree": ("The answers agree by now", "Go on: nothing is to be decided."),
        "decided_by_other": ("Somebody else has decided about it", "Read the list of reviews again."),
        "can_still_be_labelled": ("Somebody can still label the item", "Read the list of such work again."),
        "roster_decides": ("Nobody decides in place of the roster", "Send ask_again or give_up."),
        "no_answer_yet": ("Nobody has answered about the item", "Send ask_again or give_up."),
        "not_waiting_for_label": ("The item waits for no label", "Read the list of such work again."),
        "item_in_hand": ("Somebody has the item open, or it is done", "Read the list of such work again."),
        "flag_not_open": ("This is no open flag", "Read the list of flags again."),
        "too_many_comments": ("The item has as many comments as it may", "Leave it with those."),
        "no_practice_item": ("This is no practice item any more", "Ask for the practice items again."),
        "no_practice": ("Nobody practises in this project now", "Claim an item of the queue."),
        "person_not_paused": ("The person is not paused", "Go on: nothing is to be done."),
        # Other programs
        "object_changed": (
            "The object is in the bucket, or was changed",
            "Look at the bucket, and try again.",
        ),
        "name_taken": ("There is a connection of this name", "Choose another name."),
        "too_many_connections": ("The project has as many connections as it may", "Delete one first."),
        "too_many_webhooks": ("The project has as many webhooks as it may", "Delete one first."),
        "message_waits": ("The message waits to be sent", "Wait until it was tried."),
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
        "database_busy": (
            "Others changed the same at the same moment",
            "It was not stored; send it again as Retry-After says.",
        ),
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
