"""Reading settings from the environment, with errors that name the variable."""

import contextlib
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9._-]*[a-z0-9])?)(:[0-9]{1,5})?")
RATE = re.compile(r"[1-9][0-9]{0,7}/(s|sec|m|min|h|hour|d|day)")
KEY = re.compile(r"[A-Za-z0-9_-]{43}=")


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


def integer(name: str, default: int) -> int:
    value = os.environ.get(name)
    if value is None or not value.strip():
        return default
    try:
        return int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number.") from None


def names(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


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


def bearer_token(name: str) -> str:
    """A token that programs show; "" for none. Nobody shall guess it."""
    token = text(name)
    if token and len(token) < 16:
        raise ImproperlyConfigured(
            f"{name} is too short. Make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
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
    """Keys of 32 bytes in URL-safe base64."""
    found = names(name)
    for number, key in enumerate(found, 1):
        if not KEY.fullmatch(key):
            raise ImproperlyConfigured(
                f"{name}: key {number} is not 32 bytes in URL-safe base64. Make one with: "
                "python -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"
            )
    return found


def secret_key(variable: str, file: Path, *, may_create: bool) -> str:
    """The signing key: from the environment, else from a private file.

    The embedded default makes its own random key on first use, so that nobody ever runs with a key that
    others know; a server with its own database has to be given one.
    """
    if key := text(variable):
        return key
    if file.exists():
        return file.read_text().strip()
    if not may_create:
        raise ImproperlyConfigured(
            f"{variable} is not set. Make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(50)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process of the same start was quicker
        return file.read_text().strip()
    with os.fdopen(descriptor, "w") as handle:
        handle.write(key)
    return key


def file_storage() -> dict[str, Any]:
    """Where files lie: in a folder of this machine, or in the S3-compatible store that HYPAC_S3_BUCKET names.

    Without keys of its own the store is asked with what boto3 finds: a profile, the role of the machine.
    """
    bucket = text("HYPAC_S3_BUCKET")
    if not bucket:
        return {"BACKEND": "annotation.storage.LocalFiles"}
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
    return {"BACKEND": "annotation.object_store.ObjectStore", "OPTIONS": options}


def use_demo_folder(name: str = "demo", *, model_servers: int = 0) -> None:
    """Give a demonstration a state folder of its own, before the settings are read.

    So it shares database, files and messages with no real project, and runs on the embedded default whatever
    the environment says. Of this machine it may ask so many `model_servers`, and nothing else.
    """
    base = Path(text("HYPAC_VAR") or Path(__file__).resolve().parent.parent / "var")
    folder = base.resolve() / name
    os.environ.update(
        HYPAC_DEMO=name,
        HYPAC_VAR=str(folder),
        HYPAC_SKLEARN_MODELS=str(folder / "models"),
        DJANGO_ALLOWED_HOSTS="localhost,127.0.0.1",
    )
    if model_servers:
        ports = _kept_ports(folder / "ports", model_servers)
        os.environ["HYPAC_PRIVATE_HOSTS"] = ",".join(f"127.0.0.1:{port}" for port in ports)
    os.environ.setdefault("HYPAC_LOG_LEVEL", "WARNING")
    for variable in (
        "DATABASE_URL",
        "CELERY_BROKER_URL",
        "HYPAC_S3_BUCKET",
        "HYPAC_HTTPS",
        "HYPAC_BEHIND_PROXY",
        "DJANGO_DEBUG",
        "HYPAC_CACHE_URL",
        "HYPAC_STATIC_ROOT",
    ):
        os.environ.pop(variable, None)


def _kept_ports(file: Path, count: int) -> list[str]:
    """Free ports, chosen once: the addresses stay with what is stored."""
    if not file.exists():
        with contextlib.ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in range(count)]
            for probe in probes:
                probe.bind(("127.0.0.1", 0))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(" ".join(str(probe.getsockname()[1]) for probe in probes))
    return file.read_text().split()
