"""Reading settings from the environment, with errors that name the variable."""

import contextlib
import json
import logging
import os
import re
import zoneinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import dj_database_url
from dj_database_url import DBConfig
from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
LONGEST_DAYS = 36_500
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9])?)(:[0-9]{1,5})?")
ALLOWED_HOST = re.compile(r"\*|\[[0-9a-f:.]+\]|\.?[a-z0-9_]([a-z0-9._-]*[a-z0-9])?")
# Those of memberships, which settings cannot import.
ROLES = ("owner", "manager", "reviewer", "annotator", "viewer")
RATE = re.compile(r"[1-9][0-9]{0,7}/(s|sec|m|min|h|hour|d|day)")
DATABASES = ("postgres", "postgresql", "pgsql", "sqlite")
KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
# Of a secret that nobody can guess, as Django's check `security.W009` has it.
DISTINCT_CHARACTERS = 5


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def flag(name: str, *, default: bool = False) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.strip().lower() in TRUE:
        return True
    if value.strip().lower() in FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no. Use 1 or 0.")


def integer(name: str, default: int, *, least: int = 0) -> int:
    value = os.environ.get(name)
    if value is None or not value.strip():
        return default
    try:
        found = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from None
    if found < least:
        raise ImproperlyConfigured(f"{name}={found}: the least is {least}.")
    return found


def days(name: str) -> int | None:
    """How many days something is kept; None, where it is not set, for ever."""
    if not text(name).strip():
        return None
    found = integer(name, 0)
    if not 1 <= found <= LONGEST_DAYS:
        raise ImproperlyConfigured(
            f"{name}={found} is no number of days from 1 to {LONGEST_DAYS:,}. Leave it out to keep for ever."
        )
    return found


def folder(name: str, default: Path) -> Path:
    """A folder that is there, or can be made."""
    found = Path(text(name) or default).absolute()
    with contextlib.suppress(OSError):  # where it may not be entered
        found = found.resolve()
    there = next(part for part in (found, *found.parents) if os.path.exists(part))
    if not there.is_dir():
        raise ImproperlyConfigured(f"{name}: {there} is a file. Name a folder.")
    return found


def database(name: str, default: str, **options: Any) -> DBConfig:
    """Django's settings of the database at an address of PostgreSQL, or at a file of SQLite. The address may
    hold a password, and is in no message.
    """
    scheme, found, rest = (text(name) or default).partition("://")
    is_file = rest.startswith("/") or rest == ":memory:"
    if not found or scheme.lower() not in DATABASES or (scheme.lower() == "sqlite" and not is_file):
        raise ImproperlyConfigured(
            f"{name}: write postgresql://user:password@host:5432/name, or sqlite:////srv/hypac.sqlite3. "
            "Without it, SQLite in HYPAC_VAR."
        )
    try:
        return dj_database_url.parse(f"{scheme.lower()}://{rest}", **options)
    except (ValueError, dj_database_url.ParseError):
        raise ImproperlyConfigured(
            f"{name} cannot be read. Write postgresql://user:password@host:5432/name, and in the password "
            "%2F for /, %40 for @, %3A for :, %23 for #."
        ) from None


def time_zone(name: str) -> str:
    zone = text(name) or "UTC"
    try:
        zoneinfo.ZoneInfo(zone)
    except (OSError, ValueError):  # of which "not found" is none
        near = []
    except zoneinfo.ZoneInfoNotFoundError:
        near = get_close_matches(zone, sorted(zoneinfo.available_timezones()), 1)
    else:
        return zone
    raise ImproperlyConfigured(
        f"{name}={zone!r} is no time zone. Write one as {near[0] if near else 'Europe/Paris'}."
    )


def log_level(name: str) -> str:
    level = text(name).upper() or "INFO"
    if level not in logging.getLevelNamesMapping():
        raise ImproperlyConfigured(
            f"{name}={level!r} is no level. Write DEBUG, INFO, WARNING, ERROR or CRITICAL."
        )
    return level


def cookie_prefix(name: str) -> str:
    """What the names of this site's cookies begin with, "" for nothing more than their own."""
    given = text(name)
    if given and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", given):
        raise ImproperlyConfigured(f"{name}={given!r}: write letters and digits, at most 40, as in staging.")
    return f"{given}-" if given else ""


def names(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def allowed_hosts(name: str, default: str) -> list[str]:
    """Names that the site answers to, as Django has them: ".example.org" for all below it, "*" for any."""
    found = names(name, default)
    for entry in found:
        if not ALLOWED_HOST.fullmatch(entry.lower()):
            raise ImproperlyConfigured(
                f"{name}: {entry!r} is no host name. Write labels.example.org, without https:// and port."
            )
    return found


def hosts(name: str) -> list[str]:
    """Hosts with or without a port: "localhost:8001", "gpu.internal", "[::1]:8001"; in lower case."""
    found = [entry.lower() for entry in names(name)]
    for entry in found:
        if not HOST.fullmatch(entry):
            raise ImproperlyConfigured(
                f"{name}: {entry!r} is no host. Write host or host:port, an IPv6 address in brackets."
            )
    return found


def cache_url(name: str, broker: str) -> str:
    """A Redis that holds what web processes share: the named one, else the broker where it is a Redis, else
    "" for none."""
    url = text(name)
    if url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured(f"{name}: {url.split('://')[0]!r} is no Redis. Write redis://host:6379/1.")
    return url or (broker if broker.startswith(("redis://", "rediss://")) else "")


def broker_url(name: str) -> str:
    """Where messages to workers go; "" for files of this machine. It may hold a password."""
    url = text(name)
    if url and "://" not in url:
        raise ImproperlyConfigured(
            f"{name}: write redis://host:6379/0 or amqp://user:password@host:5672/vhost."
        )
    return url


def mail_url(name: str) -> str:
    """smtp:// or smtps:// with host, perhaps port, user and password; smtp:// means STARTTLS unless the
    address ends with ?tls=no.
    """
    url = text(name)
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("smtp", "smtps") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        good = False
    if not good or parts.path.strip("/") or parts.query not in ("", "tls=no"):
        # Not the value: it may hold a password.
        raise ImproperlyConfigured(
            f"{name}: write smtp://user:password@host:587, smtps://user:password@host:465, or smtp://host:25?tls=no."
        )
    return url


def _parts(url: str) -> SplitResult:
    """Nothing of an address that cannot be taken apart."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def site_address(name: str) -> str:
    """ "https://labels.example.org", without a path."""
    url = text(name).rstrip("/")
    parts = _parts(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or any(parts[2:]) or "@" in url):
        raise ImproperlyConfigured(f"{name}: write https://labels.example.org, without a path.")
    return url


def mail_settings(url: str, sender: str, address: str) -> dict[str, Any]:
    """Django's settings of the mail server, so that its own commands use it, too."""
    if not url:
        return {}
    if not (sender and address):
        raise ImproperlyConfigured(
            "HYPAC_MAIL_URL is set. Letters need HYPAC_MAIL_FROM and HYPAC_ADDRESS, too: from whom they "
            "come, and the address of this site."
        )
    parts = urlsplit(url)
    by_tls = parts.scheme == "smtps"
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or (465 if by_tls else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": by_tls,
        "EMAIL_USE_TLS": not by_tls and parts.query != "tls=no",
        "EMAIL_TIMEOUT": 20,  # seconds, for each answer
        "DEFAULT_FROM_EMAIL": sender,
    }


def issuer(name: str) -> str:
    """The address of an OpenID Connect provider, as it stands in its own tokens; "" for none. Without TLS it
    is only this machine.
    """
    url = text(name)
    parts = _parts(url)
    near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    good = parts.netloc and not parts.query and (parts.scheme == "https" or (parts.scheme == "http" and near))
    if url and not good:
        raise ImproperlyConfigured(f"{name}={url!r}: write https://id.example.org/realms/team.")
    return url.removesuffix("/.well-known/openid-configuration")


def group_roles(name: str) -> dict[str, dict[str, str]]:
    """Which role in which project a group gives: {"group": {"project": "role"}}, as JSON."""
    given = text(name)
    if not given:
        return {}
    try:
        found = json.loads(given)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no JSON: {error}.") from None
    lines = found.items() if isinstance(found, dict) else [("", None)]
    for group, projects in lines:
        wrong = not isinstance(projects, dict) or any(role not in ROLES for role in projects.values())
        if wrong:
            raise ImproperlyConfigured(
                f'{name}, group {group!r}: write {{"group": {{"project": "role"}}}}, with the name in the '
                f"project's address, and one of the roles {', '.join(ROLES)}."
            )
    return found


def contact(name: str) -> str:
    """Where something is reported: an address of mail or of a page; "" for none."""
    found = text(name)
    if found and not (re.fullmatch(r"mailto:[^\s@]+@[^\s@]+", found) or re.fullmatch(r"https://\S+", found)):
        raise ImproperlyConfigured(f"{name}={found!r}: write mailto:security@example.org, or https://...")
    return found


def bearer_token(name: str) -> str:
    """A token that programs show; "" for none. Nobody shall guess it."""
    token = text(name)
    if token and (len(token) < 16 or len(set(token)) < DISTINCT_CHARACTERS):
        raise ImproperlyConfigured(
            f"{name} can be guessed: it needs 16 characters, {DISTINCT_CHARACTERS} of them different. "
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def rate(name: str, default: str) -> str:
    """So many in a time, as "600/min"; "" for no limit."""
    found = text(name, default)
    if found and not RATE.fullmatch(found):
        raise ImproperlyConfigured(f"{name}={found!r} is no rate. Write 600/min, 10/s or 5000/hour.")
    return found


def one_of(name: str, values: tuple[str, ...]) -> str:
    """One of `values`; the first where nothing is set."""
    value = text(name) or values[0]
    if value not in values:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(values)}.")
    return value


def encryption_keys(name: str) -> list[str]:
    """Keys of 32 random bytes in URL-safe base64."""
    found = names(name)
    for number, key in enumerate(found, 1):
        if not KEY.fullmatch(key) or len(set(key)) < DISTINCT_CHARACTERS:
            raise ImproperlyConfigured(
                f"{name}: key {number} is not 32 random bytes in URL-safe base64. Make one with: "
                "python -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"
            )
    return found


def umask(name: str, default: int) -> int:
    """Which permissions new files do not get, in octal as in a shell; never more than one's own."""
    given = text(name)
    if not given:
        return default
    if not re.fullmatch(r"0?[0-7]{3}", given) or int(given, 8) & 0o700 or int(given, 8) & 0o007 != 0o007:
        raise ImproperlyConfigured(
            f"{name}={given!r} cannot be used: set it to 077, or to 027 so that the "
            "group of the files may read them."
        )
    return int(given, 8)


def file_storage() -> dict[str, Any]:
    """Where files lie: in a folder of this machine, or in the S3-compatible store that HYPAC_S3_BUCKET names.

    Without keys of its own the store is asked with what boto3 finds: a profile, the role of the machine.
    """
    bucket = text("HYPAC_S3_BUCKET")
    if not bucket:
        return {"BACKEND": "annotation.common.storage.LocalFiles"}
    endpoint = text("HYPAC_S3_ENDPOINT")
    keys = [os.environ.get(name, "").strip() for name in ("HYPAC_S3_ACCESS_KEY", "HYPAC_S3_SECRET_KEY")]
    if bool(keys[0]) != bool(keys[1]):
        raise ImproperlyConfigured("Set both HYPAC_S3_ACCESS_KEY and HYPAC_S3_SECRET_KEY, or neither.")
    if endpoint and not endpoint.startswith(("https://", "http://")):
        raise ImproperlyConfigured(f"HYPAC_S3_ENDPOINT={endpoint!r} has to begin with https:// or http://.")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "location": text("HYPAC_S3_PREFIX").strip("/"),
        "region_name": text("HYPAC_S3_REGION") or None,
        "endpoint_url": endpoint or None,
        "path_style": flag("HYPAC_S3_PATH_STYLE", default=bool(endpoint)),
    }
    if keys[0]:
        options |= {"access_key": keys[0], "secret_key": keys[1]}
    return {"BACKEND": "annotation.outside.object_store.ObjectStore", "OPTIONS": options}
