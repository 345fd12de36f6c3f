"""What it costs to watch a large installation and to back it up, in a table.

    .venv/bin/python benchmarks/watching.py [--items 100000] [--repeat 21]             (SQLite)
    .venv/bin/python -m testbed.servers postgres -- .venv/bin/python benchmarks/watching.py --items 1000000

The project is that of benchmarks/items.py, with a payment for each item besides, as of a model that answers
one by one; one that was made before is used again, if it is still in the database. Pages are asked within
this process, so that the figures are those of the page alone. "First" is the first look after the cache was
emptied, which sums up all payments; "new" has 50,000 new predictions to count. With --backup it also writes a
backup, reads it through, and where the database is SQLite puts it back beside.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
TOKEN = "a-token-of-the-benchmark"
PAYMENTS = """
INSERT INTO routing_spend (project_id, run_id, source_id, stage, quantity, amount, key, created_at)
SELECT p.project_id, p.run_id, p.source_id, p.stage, 1, 0.0001, 'b' || i.id, p.created_at
FROM annotation_item i, (SELECT * FROM routing_spend WHERE source_id IS NOT NULL ORDER BY id LIMIT 1) p
"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--backup", action="store_true", help="measure backup and restore, too")
    return parser.parse_args()


def milliseconds(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began)


def show(name: str, times: list[float], note: str = "") -> None:
    worst = sorted(times)[min(len(times) - 1, round(0.95 * len(times)))]
    print(f"{name:<34}{statistics.median(times):>10.1f}{worst:>10.1f}  {note}", flush=True)


def measure(repeat: int) -> None:
    from django.core.cache import cache
    from django.test import Client

    from hypac_site.readiness import _parts

    client = Client()

    def scrape() -> None:
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200

    def scrape_of(mark: int) -> float:
        cache.set("metrics:predictions", {"mark": mark, "sources": {}})
        return milliseconds(scrape)

    def ready(*, anew: bool) -> float:
        for part in _parts.values():
            part.looked_at = -1e9 if anew else part.looked_at
        return milliseconds(lambda: client.get("/readyz"))

    def first() -> float:
        cache.clear()
        return milliseconds(scrape)

    scrape()  # imports, connections
    print(f"{'':<34}{'median ms':>10}{'p95 ms':>10}")
    show("/metrics", [milliseconds(scrape) for _ in range(repeat)])
    show("/metrics, new", [scrape_of(0) for _ in range(5)])
    show("/metrics, first", [first() for _ in range(5)])
    show("/readyz, every part looked at", [ready(anew=True) for _ in range(5)])
    show("/readyz, within 3 seconds of that", [ready(anew=False) for _ in range(repeat)])


def back_up(folder: Path) -> None:
    def manage(*arguments: str, **environment: str) -> None:
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True, capture_output=True)

    def seconds(*arguments: str, **environment: str) -> float:
        return milliseconds(lambda: manage(*arguments, **environment)) / 1000

    copy = folder / "copy"
    print(f"{'backup':<34}{seconds('backup', str(copy)):>10.1f} s")
    size = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    print(f"{'its size':<34}{size / 2**20:>10.0f} MiB")
    print(f"{'restore --check':<34}{seconds('restore', '--check', str(copy)):>10.1f} s")
    if not os.environ.get("DATABASE_URL"):
        print(f"{'restore':<34}{seconds('restore', str(copy), HYPAC_VAR=str(folder / 'other')):>10.1f} s")


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        os.environ.setdefault("HYPAC_VAR", f"{name}/var")
        os.environ |= {"HYPAC_METRICS_TOKEN": TOKEN, "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
        os.environ.setdefault("DJANGO_SECRET_KEY", "only-for-a-benchmark-" + "0123456789" * 4)
        os.environ["DJANGO_ALLOWED_HOSTS"] = "testserver"
        os.environ.setdefault("HYPAC_LOG_LEVEL", "ERROR")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection
        from items_world import found, make

        call_command("migrate", verbosity=0)
        if found(options.items)[0] is None:
            make(options.items)
            with connection.cursor() as cursor:
                cursor.execute(PAYMENTS)
                cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
        print(f"{options.items:,} items on {connection.vendor}", flush=True)
        measure(options.repeat)
        if options.backup:
            back_up(Path(name))


if __name__ == "__main__":
    main()
