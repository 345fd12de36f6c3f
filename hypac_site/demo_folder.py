"""Where a demonstration keeps its state: apart from whatever the environment names."""

import contextlib
import os
import socket
from pathlib import Path

from hypac_site import environment

KEPT = {
    *("HYPAC_VAR", "HYPAC_UMASK", "HYPAC_TIME_ZONE", "HYPAC_LOG_LEVEL", "HYPAC_LOG_FORMAT"),
    *("HYPAC_LOG_REQUESTS", "HYPAC_WORKER_MEMORY_MB", "HYPAC_DATA", "DJANGO_SETTINGS_MODULE"),
}
"""What it heeds of the settings of a site that is run from the same environment."""
chosen = ""
"""Which demonstration this process was given a folder for; "" for none."""


def use_demo_folder(name: str = "demo", *, model_servers: int = 0) -> None:
    """Give a demonstration a state folder of its own, before the settings are read.

    So it shares database, files, messages, keys and mail with no real project, and runs on the embedded
    default whatever the environment says, but for what is KEPT. Of this machine it may ask so many
    `model_servers`, and nothing else.
    """
    global chosen
    chosen = name
    folder = environment.folder("HYPAC_VAR", Path(__file__).resolve().parent.parent / "var") / name
    for variable in list(os.environ):
        ours = variable.startswith(("HYPAC_", "DJANGO_", "CELERY_")) or variable == "DATABASE_URL"
        if ours and variable not in KEPT and not variable.startswith("HYPAC_TEST_"):
            del os.environ[variable]
    os.environ.update(
        HYPAC_VAR=str(folder),
        # Browsers keep cookies by host, whatever the port: a log-in here must end none at a site beside it.
        HYPAC_COOKIE_PREFIX=name,
        HYPAC_SKLEARN_MODELS=str(folder / "models"),
        DJANGO_ALLOWED_HOSTS="localhost,127.0.0.1",
    )
    if model_servers:
        ports = _kept_ports(folder / "ports", model_servers)
        os.environ["HYPAC_PRIVATE_HOSTS"] = ",".join(f"127.0.0.1:{port}" for port in ports)
    os.environ.setdefault("HYPAC_LOG_LEVEL", "WARNING")


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
