"""The signing key of the site: from the environment, or made on first use and kept in a private file."""

import contextlib
import os
import secrets
import tempfile
import time
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from hypac_site.environment import DISTINCT_CHARACTERS, text

# Of a key that nobody can guess, as Django's check `security.W009` has it.
CHARACTERS = 50
# So long an empty key file may be one that another process is writing.
SECONDS_TO_WRITE = 1.0
HOW_TO_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(50))'"


def secret_key(variable: str, file: Path, *, may_create: bool, may_be_weak: bool = False) -> str:
    """The signing key: from the environment, else from a private file.

    The embedded default makes its own random key on first use, so that nobody ever runs with a key that
    others know; a server with its own database has to be given one. A key that somebody could guess signs
    sessions of anybody, and is refused.
    """
    key = text(variable)
    if key:
        if not may_be_weak and _can_be_guessed(key):
            raise ImproperlyConfigured(f"{variable} {_WEAK}Make one with: {HOW_TO_MAKE_ONE}")
        return key
    if not file.exists():
        if not may_create:
            raise ImproperlyConfigured(f"{variable} is not set. Make one with: {HOW_TO_MAKE_ONE}")
        try:
            _make_secret(file)
        except OSError as error:
            raise ImproperlyConfigured(
                f"No key can be written to {file} ({error.strerror}). HYPAC_VAR names the folder."
            ) from None
    key = _read_secret(file)
    if _can_be_guessed(key):
        raise ImproperlyConfigured(
            f"The key in {file} {_WEAK}Remove the file: the next start makes a new one. People then have to "
            "log in again, and keys of model servers that were stored without HYPAC_ENCRYPTION_KEYS have to "
            "be entered again."
        )
    return key


_WEAK = (
    f"can be guessed: it needs {CHARACTERS} characters, {DISTINCT_CHARACTERS} of them different, and "
    "none that Django wrote for development. "
)


def _can_be_guessed(key: str) -> bool:
    short = len(key) < CHARACTERS or len(set(key)) < DISTINCT_CHARACTERS
    return short or key.startswith("django-insecure-")


def _make_secret(file: Path) -> None:
    """There is no moment at which the file is there and empty, as another process of the same start reads it,
    but where the file system has no links.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = secrets.token_urlsafe(50)
    # A name of its own: processes of two containers on one volume may have the same number.
    descriptor, part = tempfile.mkstemp(prefix=f"{file.name}.", suffix=".part", dir=file.parent)
    with os.fdopen(descriptor, "w") as handle:
        handle.write(key)
    with contextlib.suppress(FileExistsError):  # another process was quicker
        try:
            os.link(part, file)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: readers wait for the end of the moment
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
                handle.write(key)
    Path(part).unlink()


def _read_secret(file: Path) -> str:
    until = time.monotonic() + SECONDS_TO_WRITE
    while not (key := file.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.05)
    return key
