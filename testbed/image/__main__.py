"""Builds the image of docs/compose and shows that it works: what `make test-image` runs.

CONTRIBUTING.md says what it needs. The containers are on this machine's own network, where PostgreSQL,
Redis and Caddy run beside them.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from testbed import compose
from testbed.image import letters_and_sign_on, pip_here, released
from testbed.image.letters_and_sign_on import Beside
from testbed.image.podman import ImageError, Podman, limits, missing, run, say
from testbed.image.site import Site
from testbed.servers import PostgresServer, RedisServer, create_database

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/hypac:tested"
NOT_ALL_CHECKED = "3"  # the exit code of hypac-verify
MOST_BYTES = 700_000_000
ACCOUNT = 10_001
# Everywhere that something can be written, and as whom.
PROBE = """
import json, os
found = []
for folder, folders, _ in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys")]
    try:
        os.close(os.open(os.path.join(folder, ".probe"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(os.path.join(folder, ".probe"))
        found.append(folder)
    except OSError:
        pass
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(json.dumps({"writable": found, "uid": os.getuid(), "capabilities": int(status["CapEff"], 16),
                  "may_gain": status["NoNewPrivs"].strip() == "0"}))
"""
VOLUMES = {"/tmp", "/var/lib/hypac"}  # noqa: S108 - of the container
# The folder of devices is made anew for each container, and kept in memory.
WRITABLE = VOLUMES | {"/dev"}


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    say(f"--- {name}")
    began = time.monotonic()
    yield
    say(f"    {time.monotonic() - began:.0f} s")


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ImageError(otherwise)


def check_compose_file(folder: Path) -> None:
    """By Docker Compose, the newest that is here. Version 1 knows all of the file but `name`."""
    example = (ROOT / "docs/compose/.env.example").read_text().splitlines()
    filled = [line + "0" * 50 if line.partition("=")[0] in compose.KEYS else line for line in example]
    (folder / "env").write_text("\n".join(filled))
    text = (ROOT / "docs/compose/compose.yaml").read_text()
    command = ["docker", "compose"]
    if not shutil.which("docker") or run([*command, "version"], check=False, code=True) != "0":
        command = ["docker-compose"]
        text = text.replace("\nname: hypac\n", "\n")
    file = folder / "compose.yaml"
    file.write_text(text)
    run([*command, "--env-file", str(folder / "env"), "--file", str(file), "--profile", "gpu", "config"])
    say(f"    {run([*command, 'version']).splitlines()[0]}")


def build(podman: Podman, target: Path) -> None:
    dockerfile = ROOT / "docs/compose/Dockerfile"
    with step("Base image"):
        base = podman.base(dockerfile)
        say(f"    {base}: {podman.size(base) / 1e6:.0f} MB")
    with step("Image"):
        podman.build(ROOT, IMAGE, pip_here.mounts(podman.folder))
        size = podman.size(IMAGE)
        say(f"    {size / 1e6:.0f} MB, its base included")
        check(size <= MOST_BYTES, f"The image has more than {MOST_BYTES / 1e6:.0f} MB.")
    listed = podman("run", "--rm", *limits(), "--network", "host", IMAGE, "cat", "/srv/contents.cdx.json")
    target.mkdir(parents=True, exist_ok=True)
    (target / "contents.cdx.json").write_text(listed)
    say(f"    {len(json.loads(listed)['components'])} packages, listed in {target / 'contents.cdx.json'}")


def check_enclosure(site: Site) -> None:
    for user in ((), ("--user", "0")):
        found = json.loads(site.run("python", "-c", PROBE, more=user))
        outside = [path for path in found["writable"] if not any(_within(path, top) for top in WRITABLE)]
        check(outside == [], f"can be written: {outside}")
        check(found["capabilities"] == 0, "the container has capabilities")
        check(not found["may_gain"], "programs in it may gain privileges")
        if not user:
            check(found["uid"] == ACCOUNT, f"runs as {found['uid']}")
            check(set(found["writable"]) >= VOLUMES, f"{found['writable']} alone")


def _within(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")


def verified(folder: Path, *, whole: bool = True) -> dict[str, bytes]:
    """Its files, after `hypac-verify` found that they hold; not `whole`: what an older version did not yet
    write down cannot be checked. What a client noted there for itself is left out.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT / "clients/verify")}
    command = [sys.executable, "-m", "hypac_verify", str(folder)]
    code = run(command, env=environment, check=False, code=True)
    if code not in (["0"] if whole else ["0", NOT_ALL_CHECKED]):
        run(command, env=environment)  # says why
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Story:
    """What is done with the image, from an empty database on."""

    def __init__(self, podman: Podman, postgres: PostgresServer, redis: RedisServer) -> None:
        self.podman, self.folder = podman, podman.folder
        self.server, self.broker = postgres.url("postgres"), redis.url().removesuffix("/0")
        self.sites = 0

    def site(self, state: str, *, database: str = "", **options: Any) -> Site:
        """With a database, a volume and a number of Redis of its own."""
        self.sites += 1
        return Site(
            self.podman,
            IMAGE,
            options.get("code") or ROOT,
            database=database or create_database(self.server, state),
            broker=f"{self.broker}/{self.sites}",
            state=state,
            **options,
        )

    def new_site(self) -> None:
        with letters_and_sign_on.beside() as others:
            self._new_site(others)

    def _new_site(self, others: Beside) -> None:
        site = self.site("first", environment=others.environment)
        with step("What can be written"):
            check_enclosure(site)
        with ExitStack() as stack:
            with step("Start"):
                stack.enter_context(site)
                site.check_health()
                site.make_people()
            with step("A project from its data to its certificate, over HTTPS"):
                said = site.whole_project(self.folder / "first")
                say("    " + said.strip().splitlines()[-1])
                delivered = verified(self.folder / "first/delivery")
                check("annotation.reconcile_jobs" in site.log("worker"), "the reconciler made no round")
            with step("Mail and sign-on"):
                others.check(site)
            with step("Backup"):
                self.back_up(site)
            with step("Stop"):
                codes = site.stop()
                check(codes == dict.fromkeys(codes, 0), f"exit codes {codes}")
        with step("Restore into an empty database"):
            self.restore(site, delivered)

    def back_up(self, site: Site) -> None:
        backups = self.folder / "backups"
        backups.mkdir(mode=0o700)
        os.chown(backups, ACCOUNT, ACCOUNT)
        self.backups = ("--volume", f"{backups}:/backups")
        site.manage("backup", "/backups/one", more=self.backups)
        site.manage("restore", "--check", "/backups/one", more=self.backups)

    def restore(self, before: Site, delivered: dict[str, bytes]) -> None:
        site = self.site("restored")
        site.manage("restore", "/backups/one", more=self.backups)
        with site:
            site.tokens = before.tokens
            site.download(self.folder / "restored")
            check(verified(self.folder / "restored") == delivered, "the delivery is another one")
            site.stop()

    def upgrade(self) -> None:
        found = released.newest(ROOT)
        if found is None:
            say("--- Upgrade: the history of this checkout has no version to begin with")
            return
        name, commit = found
        code = released.unpack(ROOT, commit, self.folder / "before")
        before = self.site("upgraded", code=code)
        with step(f"A project on {name}"), before:
            before.make_people()
            before.whole_project(self.folder / "old")
            before.stop()
        delivered = verified(self.folder / "old/delivery", whole=False)
        # The same database and the same volume, with the processes of this version.
        shutil.rmtree(before.folder)
        site = self.site("upgraded", database=before.instead["DATABASE_URL"])
        with step(f"Upgrade from {name}, and another project"), site:
            site.tokens = before.tokens
            site.download(self.folder / "kept")
            check(verified(self.folder / "kept", whole=False) == delivered, "the delivery is another one")
            site.whole_project(self.folder / "new")
            verified(self.folder / "new/delivery")
            site.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.image", description=__doc__)
    parser.add_argument(
        "--storage", type=Path, help="for images, kept for the next time; else a temporary one"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "var/image", help="where the list of packages goes"
    )
    options = parser.parse_args()
    if lacking := [*missing(), *(["root"] if os.geteuid() != 0 else [])]:
        parser.error(f"this needs {', '.join(lacking)} (CONTRIBUTING.md)")
    began = time.monotonic()
    with ExitStack() as stack:
        # In /var/tmp, as it is large. What is mounted from there is read by the account of the image.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hypac-image-", dir="/var/tmp")))
        folder.chmod(0o755)
        with step("Compose file"):
            check_compose_file(folder)
        runner = Podman(folder, options.storage or folder / "storage")
        stack.callback(runner.clear)
        build(runner, options.output)
        postgres = stack.enter_context(PostgresServer(PostgresServer.installed()))
        redis = stack.enter_context(RedisServer(RedisServer.installed()))
        story = Story(runner, postgres, redis)
        story.new_site()
        story.upgrade()
    say(f"All of it holds; {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImageError as error:
        sys.exit(f"FAILED: {error}")
