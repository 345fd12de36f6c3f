"""Hosts that share nothing but a database, a broker and an object store: folders with processes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class Host:
    """`folder` is its disk: state and temporary files. `environment` is what all hosts have in common."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str], *, logs: Path) -> None:
        self.name, self.folder, self.logs = name, folder, logs
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("HYPAC_", "DJANGO_", "CELERY_", "AWS_")) and key != "DATABASE_URL"
        }
        self.environment = kept | environment
        self.environment |= {
            "HYPAC_VAR": str(folder / "var"),
            "TMPDIR": str(folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        self._boots = 0

    def boot(self) -> None:
        """Begin with an empty disk."""
        self._boots += 1
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir(parents=True)

    def run(self, *command: str, timeout: float = 300) -> str:
        """Run to the end; returns what it printed. Raises RuntimeError with all of it where it failed."""
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command} failed on {self.name}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def manage(self, *arguments: str) -> str:
        return self.run(sys.executable, "manage.py", *arguments)

    def python(self, code: str, *arguments: str) -> str:
        return self.run(sys.executable, "-c", "import django; django.setup()\n" + code, *arguments)

    def start(self, *command: str) -> None:
        """Start a process that goes on; what it says is in the log of this host."""
        with self._log().open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def start_worker(self, *options: str) -> None:
        self.start(*worker_command(f"worker@{self.name}"), "--loglevel=info", *options)
        until(lambda: "ready." in self._log().read_text(), f"the worker of {self.name}")

    def said(self) -> str:
        """What all its processes have said, before it was killed and since."""
        return "".join(log.read_text(errors="replace") for log in sorted(self.logs.glob(f"{self.name}-*")))

    def _log(self) -> Path:
        return self.logs / f"{self.name}-{self._boots}.log"

    def files(self) -> list[str]:
        """Every file on its disk, by its path in the folder."""
        found = ((top, name) for top, _, names in os.walk(self.folder) for name in names)
        return sorted(os.path.relpath(os.path.join(*path), self.folder) for path in found)

    def kill(self) -> None:
        """As by a power cut: all processes at once, with nothing said to anybody."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # a session of its own: parent and children
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        end = time.monotonic() + 60
        for process in self._processes:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()


def worker_command(node: str) -> list[str]:
    """A Celery worker with one child, as docs/configuration.md starts it; brokers want names."""
    celery = [sys.executable, "-m", "celery", "-A", "hypac_site", "worker", "-Q", "default", "-c", "1"]
    return [*celery, f"--hostname={node}", "--without-gossip", "--without-mingle", "--without-heartbeat"]


def until(condition: Callable[[], Any], what: str, seconds: float = 300, every: float = 0.05) -> Any:
    """What `condition` gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(every)
    return found
