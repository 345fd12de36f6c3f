"""Predictions sent in by a program: how long one request takes, and how much memory the server.

    .venv/bin/python benchmarks/sending.py [--sizes 10000,100000,1000000]

`manage.py serve` is started on a folder of its own, with SQLite. For each size a project gets so many items,
then a source gets a prediction for each in one request by the Python client. Memory is the most that the web
server, and that the worker's processes together, held meanwhile (Linux).
"""

import json
import time
from pathlib import Path

from runner import Table, children_of, forget_peak, installation, parser_of, peak_mib, served

from hypac_client import Client


def main() -> None:
    options = parser_of(__doc__, sizes=("10000,100000,1000000", "numbers of lines")).parse_args()
    table = Table("lines", "body", "answered after", "taken in after", "web server", "worker")
    with installation() as folder, served() as (address, pid):
        for size in map(int, options.sizes.split(",")):
            table.row(f"{size:,}", *sent(size, folder / "predictions.jsonl", address, pid))


def sent(size: int, file: Path, address: str, pid: int) -> list[str]:
    """The other cells of the row."""
    with file.open("w") as out:
        out.writelines(f"{json.dumps(prediction(n))}\n" for n in range(size))
    with Client(address, token(f"ada {size}"), timeout=600) as client:
        project = client.projects.create(f"Sending {size}", choices=["yes", "no"])
        items = ({"id": f"item-{n}", "text": f"text {n}"} for n in range(size))
        project.import_data(items, id_column="id", text_column="text").wait()
        source = project.sources.add("mine", params={"model": "m", "revision": "1"})
        for process in children_of(pid):
            forget_peak(process)
        start = time.perf_counter()
        job = source.upload_predictions(file)
        answered = time.perf_counter() - start
        result = job.wait().result
        taken = time.perf_counter() - start
    assert result["added"] == size, result
    web, work = 0.0, 0.0
    for process in children_of(pid):
        if "waitress" in Path(f"/proc/{process}/cmdline").read_text():
            web += peak_mib(process)
        else:
            work += peak_mib(process)
    body = f"{file.stat().st_size / 2**20:.1f} MiB"
    return [body, f"{answered:.1f} s", f"{taken:.1f} s", f"{web:.0f} MiB", f"{work:.0f} MiB"]


def prediction(n: int) -> dict[str, object]:
    return {"external_id": f"item-{n}", "label": "yes" if n % 3 else "no", "confidence": 0.5 + n % 500 / 1000}


def token(name: str) -> str:
    from annotation.people.tokens import make_token
    from testbed.factories import make_user

    return make_token(user=make_user(name.replace(" ", "")), name="benchmark")[1]


if __name__ == "__main__":
    main()
