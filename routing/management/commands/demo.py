"""`manage.py demo`: the whole job once, from import to certified delivery.

On real images or, with `--llm`, with language models behind real servers.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from annotation.errors import HypacError
from hypac_site import demo_folder
from hypac_site.supervisor import ServeError, end_with_parent, interrupt_on_terminate, only_one
from routing.demo import experts, handwriting, sums
from routing.demo.model_servers import model_servers
from routing.demo.people import Account
from routing.demo.scene import Pool, Scene
from routing.demo.story import Story
from routing.demo.summary import Summary, summarise
from routing.models import Run


class Command(BaseCommand):
    help = "Label a data set with two models and simulated people, and leave HyPAC running."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--exit", action="store_true", help="Stop after the summary; 0 only if the promise held."
        )
        parser.add_argument("--people", choices=["simulated", "none"], default="simulated")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--fresh", action="store_true", help="Forget an earlier demonstration and start anew."
        )
        parser.add_argument(
            "--expert",
            action="store_true",
            help="The digits with annotators who err on 6 %% of them, and an expert who is right.",
        )
        parser.add_argument(
            "--llm",
            action="store_true",
            help="Sums instead of handwritten digits, and two tiny language models behind servers of vLLM.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = settings.VAR_DIR
        if demo_folder.chosen != ("demo-llm" if options["llm"] else "demo"):
            raise CommandError(
                "Start the demonstration with `make demo`, `make demo-llm` or `manage.py demo`: it keeps its "
                "own data."
            )
        if options["llm"] and options["expert"]:
            raise CommandError("Choose one of --llm and --expert.")
        digits = experts.SCENE if options["expert"] else handwriting.SCENE
        scene = sums.scene(settings.HYPAC_PRIVATE_HOSTS) if options["llm"] else digits
        interrupt_on_terminate()
        try:
            with only_one(folder / "demo.lock"):
                if options["fresh"]:
                    _forget(folder)
                self._show(scene, folder, options)
        except KeyboardInterrupt:
            self.stdout.write(
                f"\nStopped. `{scene.command}` goes on where it was; DEMO_ARGS=--fresh starts anew."
            )
        except HypacError as error:
            raise CommandError(str(error)) from None

    def _show(self, scene: Scene, folder: Path, options: dict[str, Any]) -> None:
        self._last_line = ""
        self._scene = scene
        address = f"http://localhost:{options['port']}"
        story = Story(scene=scene, folder=folder, address=address, tell=self._tell, progress=self._progress)
        plan = scene.plan
        self._tell(f"HyPAC demonstration: {scene.title}")
        self._tell(
            f"epsilon = {plan['epsilon']}, alpha = {plan['alpha']}, m = {plan['m']}, p = {plan['p']}, "
            f"target {plan['target']}"
        )
        pool = story.pool()
        with contextlib.ExitStack() as stack:
            servers = []
            if options["llm"]:
                servers = stack.enter_context(model_servers(settings.HYPAC_PRIVATE_HOSTS, folder))
            stack.enter_context(_server(options["port"], folder / "serve.log"))
            accounts = story.accounts()
            project = story.project(accounts)
            story.import_pool(project, pool)
            if servers:
                with story.stage("wait for the model servers"):
                    for server in servers:
                        server.wait()
            story.sources(project)
            story.try_models(project)
            run = story.run(project)
            if options["people"] == "simulated":
                summary = self._label_and_deliver(story, run, accounts, pool, folder)
            else:
                summary = None
                self._invite_to_label(run, address)
            if not options["exit"]:
                self._tell_accounts(address, accounts)
                while True:
                    time.sleep(3600)
        if summary is not None and not summary.kept_its_promise:
            sys.exit(1)

    def _label_and_deliver(
        self, story: Story, run: Run, accounts: list[Account], pool: Pool, folder: Path
    ) -> Summary:
        if run.state == Run.State.CALIBRATING:
            story.label("calibration labels", run, accounts, pool)
            story.ask_expert(run)
        if run.state == Run.State.CHECKING:
            story.label("the expert's labels", run, accounts, pool)
        story.analyse(run)
        story.route(run)
        story.label("routed labels", run, accounts, pool)
        delivery = story.deliver(run)
        run.refresh_from_db()
        summary = summarise(
            run=run,
            delivery=delivery,
            pool=pool,
            folder=folder / self._scene.folder,
            seconds=story.seconds,
            beside=experts.peoples_word(run, folder, pool).summary(run) if run.by_expert else "",
        )
        self._tell("\n" + "\n".join(summary.lines))
        return summary

    def _invite_to_label(self, run: Run, address: str) -> None:
        if run.state == Run.State.COMPLETE:
            self._tell(
                "\nThis demonstration is labelled to its end. To label by hand, stop it and start anew:"
            )
            self._tell(f'{self._scene.command} DEMO_ARGS="--people=none --fresh"')
            return
        self._tell(f"\nNow label: log in as annotator1 at {address}/projects/{self._scene.slug}/annotate/")
        self._tell("and as manager to analyse, route and deliver.")

    def _tell_accounts(self, address: str, accounts: list[Account]) -> None:
        names = ", ".join(f"{account.username} ({account.role})" for account in accounts)
        self._tell(f"\nHyPAC runs at {address}/projects/{self._scene.slug}/")
        self._tell(f"Accounts: {names}; password of each: {accounts[0].password}")
        self._tell("Ctrl-C stops it.")

    def _tell(self, line: str) -> None:
        if self._last_line:
            self.stdout.write("\r" + " " * len(self._last_line) + "\r", ending="")
            self._last_line = ""
        self.stdout.write(line)
        self.stdout.flush()

    def _progress(self, stage: str, done: int, total: int | None) -> None:
        """One line that is written over, and only where somebody watches."""
        if not self.stdout.isatty():
            return
        line = f"  {stage}: {done:,}" + (f" of {total:,}" if total else "")
        self.stdout.write("\r" + line.ljust(len(self._last_line)), ending="")
        self.stdout.flush()
        self._last_line = line


def _forget(folder: Path) -> None:
    """Remove what an earlier demonstration left, except the lock that this one holds."""
    for path in folder.iterdir():
        if path.name in ("demo.lock", "ports", "secret_key"):
            continue
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("broker/messages", "broker/control"):
        (folder / name).mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _server(port: int, log_file: Path) -> Iterator[None]:
    """`manage.py serve` beside us, as a user would start it; its output goes to a file."""
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "serve", "--port", str(port)]
    with open(log_file, "ab") as log:
        offset = log.tell()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )
    try:
        _wait_until_healthy(process, port, log_file, offset)
        connections.close_all()  # the tables may have been made only now
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log_file: Path, offset: int) -> None:
    """Wait as long as it lives: it gives up by itself, and a slow machine takes long to make tables."""
    while process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://localhost:{port}/healthz", timeout=2).status_code == 200:
                return
        time.sleep(0.2)
    with open(log_file, "rb") as log:
        log.seek(offset)
        said = log.read().decode(errors="replace").strip().splitlines()
    raise ServeError("The server did not start: " + (said[-1] if said else f"see {log_file}"))
