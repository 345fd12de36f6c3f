"""Somebody is logged in from the start: for tests that are about what comes after the login page."""

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import BrowserContext

from annotation.models import User


def log_in(context: BrowserContext, user: User) -> None:
    """As whom the pages of this profile are asked for from now on."""
    session = SessionStore()
    session.update(
        {
            "_auth_user_id": str(user.pk),
            "_auth_user_backend": "annotation.people.log_in.PasswordBackend",
            "_auth_user_hash": user.get_session_auth_hash(),
        }
    )
    session.save()
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": str(session.session_key)}
    context.clear_cookies()
    context.add_cookies([{**cookie, "domain": "localhost", "path": "/"}])
