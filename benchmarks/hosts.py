"""A web host and two worker hosts on one database, broker and object store; each worker host dies once.

    .venv/bin/python benchmarks/hosts.py [--rows 20000] [--plain]

As root on Linux, each host gets processes, network, mounts and host name of its own (namespaces), with a disk
in memory and one cable to a bridge where PostgreSQL, Redis and the S3 server listen; otherwise, or with
--plain, a host is a folder with processes. A file is uploaded through the web host, imported by a worker host
that is killed in the middle, predicted by one that is killed as well, certified, routed, delivered,
downloaded through the web host and verified. All is made for this and goes away.
Exit code 1 where anything was lost.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from runner import Table, parser_of

from testbed.hosts import Host, IsolatedHost, ip
from testbed.hosts_story import Story, StoryReport
from testbed.object_store import ObjectStoreServer
from testbed.servers import LOOPBACK, PostgresServer, RedisServer, create_database, free_port

INSIDE = "HYPAC_BENCH_INSIDE"
NETWORK = "10.123.45"
KEY = "YSBrZXkgdGhhdCBhbGwgaG9zdHMgaGF2ZSBpbiBjb20="


def main() -> int:
    options = parser_of(
        __doc__, rows=(20_000, "texts to import"), plain=(False, "hosts are folders, without namespaces")
    ).parse_args()
    isolated = not options.plain and IsolatedHost.possible()
    if isolated and INSIDE not in os.environ:
        # A network and mounts of this script's own: whatever it makes there goes with it.
        return subprocess.run(
            ["unshare", "-nm", sys.executable, *sys.argv], env=os.environ | {INSIDE: "1"}, check=False
        ).returncode
    if not isolated and not options.plain:
        print(
            "Namespaces cannot be made here (root, util-linux and iproute2 are needed): hosts are folders.\n"
        )
    with tempfile.TemporaryDirectory(prefix="hypac-hosts-") as folder, ExitStack() as stack:
        told = _tell(stack, Path(folder), options.rows, isolated=isolated)
        return _report(told, options.rows, isolated=isolated)


def _tell(stack: ExitStack, folder: Path, rows: int, *, isolated: bool) -> StoryReport:
    if isolated:
        ip("link", "set", "lo", "up")
        ip("link", "add", "hosts", "type", "bridge")
        ip("address", "add", f"{NETWORK}.1/24", "dev", "hosts")
        ip("link", "set", "hosts", "up")
    address = f"{NETWORK}.1" if isolated else LOOPBACK
    binaries, redis_program = PostgresServer.installed(), RedisServer.installed()
    if binaries is None or redis_program is None:
        sys.exit("PostgreSQL and Redis have to be installed (Debian: postgresql, redis-server).")
    postgres = stack.enter_context(PostgresServer(binaries, address))
    redis = stack.enter_context(RedisServer(redis_program, address))
    store = stack.enter_context(ObjectStoreServer(address))
    database_url = create_database(postgres.url("postgres"), "hypac")
    web_address = f"{NETWORK}.11:8000" if isolated else f"127.0.0.1:{free_port()}"
    environment = {
        **store.bucket().environment,
        "DATABASE_URL": database_url,
        "CELERY_BROKER_URL": redis.url(),
        "DJANGO_SECRET_KEY": "the same on every host " * 3,
        "DJANGO_ALLOWED_HOSTS": web_address.partition(":")[0],
        "HYPAC_ENCRYPTION_KEYS": KEY,
        "HYPAC_JOB_STALE_SECONDS": "10",
        "HYPAC_WEB_BIND": web_address,
        "WEB_CONCURRENCY": "1",
    }
    logs = folder / "logs"
    logs.mkdir()
    hosts = [
        IsolatedHost(name, folder / "disk", environment, logs=logs, address=f"{NETWORK}.{number}")
        if isolated
        else Host(name, folder / name, environment, logs=logs)
        for number, name in enumerate(("web", "one", "two"), start=11)
    ]
    for host in hosts:
        stack.callback(host.stop)
    story = Story(*hosts, f"http://{web_address}", database_url, rows, folder)
    try:
        return story.tell()
    except Exception:
        for host in hosts:
            print(f"--- what {host.name} said last\n{host.said()[-3000:]}", file=sys.stderr)
        raise


def _report(told: StoryReport, rows: int, *, isolated: bool) -> int:
    print(f"{rows:,} texts; hosts are {'namespaces' if isolated else 'folders with processes'}.")
    stages = Table("stage", "seconds", "finished by")
    for what, seconds, who in told.stages:
        stages.row(what, f"{seconds:.1f}", who)
    kept = {
        name: [file for file in files if file.startswith("var/media")] for name, files in told.files.items()
    }
    facts = {
        "items lost": rows - told.rows,
        "items doubled": max(told.rows - rows, 0),
        "labels of models that are wrong": told.different,
        "images shown, of 20": told.images,
        "the two imports were begun by": ", ".join(told.begun["import"]),
        "the predictions were begun by": ", ".join(told.begun["prepare_run"]),
        "certificate verified": told.verified,
        "files of the project on a host's disk": sum(map(len, kept.values())),
    }
    shown = Table("", "")
    for name, value in facts.items():
        shown.row(name, value)
    for name, files in told.files.items():
        print(f"\nOn the disk of {name}: {', '.join(files) or 'nothing'}")
    well = told.rows == rows and told.images == 20 and told.verified and not any(kept.values())
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
