"""Predictions sent in by a program: how long one request takes, and how much memory the server.

    .venv/bin/python benchmarks/sending.py [--sizes 10000,100000,1000000]

`manage.py serve` is started on a folder of its own, with SQLite. For each size a project gets so many items,
then a source gets a prediction for each in one request by the Python client. Memory is the most that the web
server, and that the worker's processes together, held meanwhile (Linux).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "clients" / "python")]

from hypac_client import Client  # noqa: E402 - found in this repository

ACCOUNT = """
import django; django.setup()
from annotation.models import User
from annotation.people.tokens import make_token
print(make_token(user=User.objects.create_user("ada"), name="benchmark")[1])
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sizes", default="10000,100000,1000000")
    options.add_argument("--port", type=int, default=8765)
    asked = options.parse_args()
    print("| lines | body | answered after | taken in after | web server | worker |")
    print("|---:|---:|---:|---:|---:|---:|")
    for size in map(int, asked.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), asked.port) as (token, process):
            print(one(size, Path(folder), asked.port, token, process), flush=True)


def one(size: int, folder: Path, port: int, token: str, process: "subprocess.Popen[bytes]") -> str:
    """A line of the table."""
    file = folder / "predictions.jsonl"
    with file.open("w") as out:
        out.writelines(f"{json.dumps(prediction(n))}\n" for n in range(size))
    with Client(f"http://127.0.0.1:{port}", token, timeout=600) as client:
        project = client.projects.create("Sending", choices=["yes", "no"])
        items = ({"id": f"item-{n}", "text": f"text {n}"} for n in range(size))
        project.import_data(items, id_column="id", text_column="text").wait()
        source = project.sources.add("mine", params={"model": "m", "revision": "1"})
        for pid in processes_below(process.pid):
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        start = time.perf_counter()
        job = source.upload_predictions(file)
        answered = time.perf_counter() - start
        result = job.wait().result
        taken = time.perf_counter() - start
    assert result["added"] == size, result
    web, work = 0.0, 0.0
    for pid in processes_below(process.pid):
        if "waitress" in Path(f"/proc/{pid}/cmdline").read_text():
            web += peak_of(pid)
        else:
            work += peak_of(pid)
    body = file.stat().st_size / 2**20
    return (
        f"| {size:,} | {body:.1f} MiB | {answered:.1f} s | {taken:.1f} s | {web:.0f} MiB | {work:.0f} MiB |"
    )


def prediction(n: int) -> dict[str, object]:
    return {"external_id": f"item-{n}", "label": "yes" if n % 3 else "no", "confidence": 0.5 + n % 500 / 1000}


@contextmanager
def serving(folder: Path, port: int) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """A token for a new installation that is being served, and the process that serves it."""
    environment = os.environ | {
        "HYPAC_VAR": str(folder / "var"),
        "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        "PYTHONPATH": str(ROOT),
    }
    (folder / "var").mkdir()
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        wait_for(folder / "serve.log", "http://", process)
        made = subprocess.run(
            [sys.executable, "-c", ACCOUNT], cwd=ROOT, env=environment, check=True, capture_output=True
        )
        yield made.stdout.decode().strip(), process
    finally:
        process.terminate()
        process.wait(60)


def wait_for(log: Path, words: str, process: "subprocess.Popen[bytes]") -> None:
    while words not in log.read_text():
        if process.poll() is not None:
            sys.exit(f"The server ended while it started:\n{log.read_text()}")
        time.sleep(0.2)


def processes_below(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [one for child in children for one in (child, *processes_below(child))]


def peak_of(pid: int) -> float:
    """The most memory that it has held, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
