"""The services of compose.yaml as containers, the proxy of the Caddyfile in front, and people."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import httpx

from testbed import compose
from testbed.image.podman import ImageError, Podman, run
from testbed.servers import free_port

OWNER, ANNOTATORS = "ada", ("bo", "cy")
PASSWORD = "correct-horse-battery"
STARTED = ("web", "worker", "beat")
START_SECONDS, STOP_SECONDS = 240, 150
PROXY = """{{
	admin off
	skip_install_trust
	auto_https disable_redirects
	storage file_system {storage}
}}
import {caddyfile}
"""
ACCOUNTS = """
import django; django.setup()
import json, sys
from annotation.models import User
from annotation.people.tokens import make_token
made = {name: make_token(user=User.objects.create_user(name), name="tests")[1] for name in sys.argv[1:]}
print(json.dumps(made))
"""
DOWNLOAD = """
import os, sys
from hypac_client import Client
with Client(sys.argv[1], os.environ["HYPAC_TOKEN"]) as client:
    next(client.projects.get("sums").deliveries()).download(sys.argv[2])
"""


class Site:
    """One installation: `database` and `broker` are addresses, `state` the name of its volume.

    `root` is the checkout whose compose.yaml says how it is started, and whose client speaks with it. With
    `code` this folder takes the place of what the image has in /srv/hypac. `environment` goes before what
    compose.yaml says.
    """

    def __init__(
        self,
        podman: Podman,
        image: str,
        root: Path,
        *,
        database: str,
        broker: str,
        state: str,
        code: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.podman, self.image, self.root, self.state = podman, image, root, state
        self.code = ["--volume", f"{code}:/srv/hypac:ro"] if code else []
        self.services = compose.services(root)
        self.folder = podman.folder / f"site-{state}"
        self.folder.mkdir()
        self.port, proxy = free_port(), free_port()
        self.host = f"localhost:{proxy}"
        self.url = f"https://{self.host}"
        self.instead = {
            "DATABASE_URL": database,
            "CELERY_BROKER_URL": broker,
            "HYPAC_WEB_BIND": f"127.0.0.1:{self.port}",
            **(environment or {}),
        }
        self.tokens: dict[str, str] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    # --- Containers -----------------------------------------------------------------------------------------

    def options(self, service: str) -> list[str]:
        entry = self.services[service]
        values = compose.environment(entry, compose.KEYS | {"HYPAC_HOST": self.host}) | self.instead
        return [*self.podman.options(entry, values, self.state), *self.code]

    def run(self, *command: str, service: str = "web", more: tuple[str, ...] = ()) -> str:
        """As `docker compose run --rm SERVICE COMMAND`; returns what it printed."""
        arguments = ("run", "--rm", *self.options(service), *more, self.image, *command)
        return self.podman(*arguments)

    def manage(self, *arguments: str, **options: Any) -> str:
        return self.run("python", "manage.py", *arguments, **options)

    def start(self) -> None:
        self.run(*self.services["migrate"]["command"], service="migrate")
        for service in STARTED:
            command = ["run", "--rm", "--name", self._name(service), *self.options(service), self.image]
            self._popen(service, [*self.podman.command, *command, *self.services[service]["command"]])
        self._start_proxy()
        self._wait()

    def _name(self, service: str) -> str:
        return f"hypac-{self.state}-{service}"

    def _popen(self, name: str, command: list[str], **environment: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )

    def _start_proxy(self) -> None:
        file, storage = self.folder / "Caddyfile", self.folder / "caddy"
        file.write_text(PROXY.format(storage=storage, caddyfile=self.root / "docs/compose/Caddyfile"))
        self.authority = storage / "pki/authorities/local/root.crt"
        command = ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
        self._popen("proxy", command, HYPAC_HOST=self.host, HYPAC_UPSTREAMS=f"localhost:{self.port}")

    def _wait(self) -> None:
        """Until the proxy hands on a page, and /readyz, which it keeps inside, says that all parts work."""
        deadline = time.monotonic() + START_SECONDS
        while not (self._ready() and self._answers("/login/") == 200):
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise ImageError(f"{name} ended:\n{self.log(name)[-3000:]}")
            if time.monotonic() > deadline:
                raise ImageError(f"The site did not get ready:\n{self.log('web')[-3000:]}")
            time.sleep(0.3)

    def _ready(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://localhost:{self.port}/readyz", timeout=5).status_code == 200
        return False

    def _answers(self, path: str) -> int:
        """The status by way of the proxy; 0: none yet."""
        if not self.authority.exists():
            return 0
        try:
            trusted = ssl.create_default_context(cafile=self.authority)
            return httpx.get(self.url + path, timeout=30, verify=trusted).status_code
        except httpx.TransportError:
            return 0

    def check_health(self) -> None:
        """The check that Compose makes in the container, and what the proxy keeps inside."""
        test = self.services["web"]["healthcheck"]["test"][1:]
        command = [part.replace("localhost:8000", f"localhost:{self.port}") for part in test]
        self.execute(*command)
        for path in ("/metrics", "/readyz", "/healthz"):
            if self._answers(path) != 404:
                raise ImageError(f"The proxy hands on {path}.")

    def execute(self, *command: str) -> str:
        """As `docker compose exec web COMMAND`."""
        return self.podman("exec", self._name("web"), *command)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self) -> dict[str, int]:
        """In order, as Compose does; returns the exit code of each container."""
        codes = {}
        running, self._running = self._running, {}
        for name, process in running.items():
            if name != "proxy" and process.poll() is None:
                self.podman("stop", "--time", str(STOP_SECONDS), self._name(name))
            elif process.poll() is None:
                process.send_signal(signal.SIGTERM)
            code = process.wait(STOP_SECONDS)
            if name != "proxy":
                codes[name] = code
        return codes

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in [name for name in self._running if name != "proxy"]:
            self.podman("kill", self._name(name), check=False)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        self._running = {}

    # --- People ---------------------------------------------------------------------------------------------

    def make_people(self) -> None:
        """An administrator and a token by commands; the others with the password that they would choose."""
        secret = ("--env", f"DJANGO_SUPERUSER_PASSWORD={PASSWORD}")
        who = ("--username", OWNER, "--email", "ada@example.org")
        self.manage("createsuperuser", "--no-input", *who, more=secret)
        self.tokens = {OWNER: self.execute("python", "manage.py", "token", OWNER).strip()}
        self.tokens |= json.loads(
            self.execute(
                "env", "DJANGO_SETTINGS_MODULE=hypac_site.settings", "python", "-c", ACCOUNTS, *ANNOTATORS
            )
        )

    def whole_project(self, folder: Path) -> str:
        """The example of the client; what is delivered comes to `folder`/delivery. Returns what it said."""
        annotators = " ".join(f"{name}={self.tokens[name]}" for name in ANNOTATORS)
        example = self.root / "clients/python/examples/whole_project.py"
        return self._client(str(example), self.url, str(folder), HYPAC_ANNOTATORS=annotators)

    def download(self, folder: Path) -> None:
        """The newest delivery of the project that the example makes."""
        self._client("-c", DOWNLOAD, self.url, str(folder))

    def _client(self, *arguments: str, **environment: str) -> str:
        more = {
            "PYTHONPATH": str(self.root / "clients/python"),
            "SSL_CERT_FILE": str(self.authority),
            "HYPAC_TOKEN": self.tokens[OWNER],
        }
        return run([sys.executable, *arguments], env=os.environ | more | environment)
