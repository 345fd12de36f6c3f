"""A web host and two worker hosts on one database, broker and object store; each worker host dies once.

    .venv/bin/python benchmarks/hosts.py [--rows 20000]

As root on Linux: each host gets processes, network, mounts and host name of its own (namespaces), with a disk
in memory and one cable to a bridge where PostgreSQL, Redis and the S3 server listen. A file is uploaded
through the web host, imported by a worker host that is killed in the middle, predicted by one that is killed
as well, certified, routed, delivered, downloaded through the web host and verified. All is made for this and
goes away. Exit code 1 where anything was lost. tests/services/test_worker_hosts.py has the same story with
folders as hosts.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from runner import Table, options_of, own_server

from testbed.hosts import IsolatedHost, ip
from testbed.hosts_story import Story, StoryReport, environment_of
from testbed.object_store import ObjectStoreServer
from testbed.servers import PostgresServer, RedisServer, create_database

INSIDE = "HYPAC_BENCH_INSIDE"
NETWORK = "10.123.45"


def main() -> int:
    options = options_of(__doc__, rows=(20_000, "texts to import"))
    if not IsolatedHost.possible():
        sys.exit("Namespaces cannot be made here: root, util-linux and iproute2 are needed.")
    if INSIDE not in os.environ:
        # A network and mounts of this script's own: whatever it makes there goes with it.
        return subprocess.run(
            ["unshare", "-nm", sys.executable, *sys.argv], env=os.environ | {INSIDE: "1"}, check=False
        ).returncode
    with tempfile.TemporaryDirectory(prefix="hypac-hosts-") as folder, ExitStack() as stack:
        return report(tell(stack, Path(folder), options.rows), options.rows)


def tell(stack: ExitStack, folder: Path, rows: int) -> StoryReport:
    ip("link", "set", "lo", "up")
    ip("link", "add", "hosts", "type", "bridge")
    ip("address", "add", f"{NETWORK}.1/24", "dev", "hosts")
    ip("link", "set", "hosts", "up")
    postgres, redis = (
        stack.enter_context(own_server(kind, address=f"{NETWORK}.1"))
        for kind in (PostgresServer, RedisServer)
    )
    store = stack.enter_context(ObjectStoreServer(f"{NETWORK}.1"))
    database, web = create_database(postgres.url("postgres"), "hypac"), f"{NETWORK}.11:8000"
    environment = environment_of(store.bucket(), database, redis.url(), web)
    logs = folder / "logs"
    logs.mkdir()
    hosts = [
        IsolatedHost(name, folder / "disk", environment, logs=logs, address=f"{NETWORK}.{number}")
        for number, name in enumerate(("web", "one", "two"), start=11)
    ]
    for host in hosts:
        stack.callback(host.stop)
    try:
        return Story(*hosts, f"http://{web}", database, rows, folder).tell()
    except Exception:
        for host in hosts:
            print(f"--- what {host.name} said last\n{host.said()[-3000:]}", file=sys.stderr)
        raise


def report(told: StoryReport, rows: int) -> int:
    print(f"{rows:,} texts; hosts are namespaces.")
    stages = Table("stage", "seconds", "finished by")
    for what, seconds, who in told.stages:
        stages.row(what, f"{seconds:.1f}", who)
    kept = [file for files in told.files.values() for file in files if file.startswith("var/media")]
    shown = Table("", "")
    shown.row("items lost", rows - told.rows)
    shown.row("items doubled", max(told.rows - rows, 0))
    shown.row("labels of models that are wrong", told.different)
    shown.row("images shown, of 20", told.images)
    shown.row("the two imports were begun by", ", ".join(told.begun["import"]))
    shown.row("the predictions were begun by", ", ".join(told.begun["prepare_run"]))
    shown.row("certificate verified", told.verified)
    shown.row("files of the project on a host's disk", len(kept))
    for name, files in told.files.items():
        print(f"\nOn the disk of {name}: {', '.join(files) or 'nothing'}")
    return 0 if told.rows == rows and told.images == 20 and told.verified and not kept else 1


if __name__ == "__main__":
    sys.exit(main())
