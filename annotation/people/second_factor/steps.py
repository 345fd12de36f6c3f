"""Between the password, or the provider's word, and the second step, and what is done once somebody is in."""

import time
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from annotation.models import User
from annotation.people.attempt_limits import note_right_password
from annotation.people.log_in import PASSWORD_BACKEND, PasswordBackend, SignOnBackend
from annotation.people.password_links import link_in_words, should_hear_of_link
from annotation.people.second_factor.policy import has_second_factor

SECONDS = 600
_STEP = "second_step"  # in the session
# Pages that send on whoever is logged in: from one to itself, without an end.
ON_THE_WAY_IN = {"login", "passkey_log_in", "second_step", "sign_on", "sign_on_done"}


def begin(
    request: HttpRequest, user: User, wanted: str, *, by_provider: dict[str, Any] | None = None
) -> None:
    """Remember who knew the password, or for whom the provider spoke and how, and where they want to go;
    under a new name of the session, as whoever knew the old one may be somebody else.
    """
    request.session.cycle_key()
    request.session[_STEP] = {
        "user": user.pk,
        "password": user.get_session_auth_hash(),
        "until": int(time.time()) + SECONDS,
        "next": wanted,
        "by_provider": by_provider,
    }
    note_right_password(request)


def pending_user(request: HttpRequest) -> User | None:
    """Who knew the password, or was vouched for, and has to take the second step; None where that was too
    long ago, or anything about the account has changed since.
    """
    kept = request.session.get(_STEP)
    if kept is None or kept["until"] < time.time():
        return None
    backend = SignOnBackend() if kept.get("by_provider") else PasswordBackend()
    user = backend.get_user(kept["user"])
    if not isinstance(user, User) or not has_second_factor(user):
        return None
    return user if constant_time_compare(kept["password"], user.get_session_auth_hash()) else None


def is_vouched_for(request: HttpRequest) -> bool:
    """Whether the provider spoke for them, whose account it then becomes."""
    return bool(request.session.get(_STEP, {}).get("by_provider"))


def pop_pending(request: HttpRequest) -> dict[str, Any]:
    """What `begin` remembered, once the step is taken."""
    kept: dict[str, Any] = request.session.pop(_STEP)
    return kept


def finish(request: HttpRequest, user: User) -> str:
    """Let them in; returns where they wanted to go."""
    wanted: str = pop_pending(request)["next"]
    log_in(request, user)
    return wanted


def log_in(request: HttpRequest, user: User) -> None:
    """Log somebody in, under a new name of the session."""
    before = user.last_login
    login(request, user, backend=PASSWORD_BACKEND)
    if should_hear_of_link(user, last_login=before):
        messages.warning(request, link_in_words(user))


def safe_next(wanted: str) -> str:
    """Where somebody wanted to go, if it is an address of this site that can be looked at; "" else: whoever
    was sending a form finds nothing there, and whoever is in has nothing to do at a log-in.
    """
    if not url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        return ""
    try:
        there = resolve(wanted.partition("?")[0].partition("#")[0])
    except Resolver404:
        return ""
    looked_at = "GET" in getattr(there.func, "methods", ("GET",)) and there.url_name not in ON_THE_WAY_IN
    return wanted if looked_at else ""


def after_log_in(wanted: str) -> str:
    return safe_next(wanted) or resolve_url("project_list")
