"""A project from its data to its certificate, by the API alone.

    HYPAC_TOKEN=... HYPAC_ANNOTATORS="bo=TOKEN cy=TOKEN" python whole_project.py http://localhost:8000 FOLDER

The items are sums, as in "417 + 385 = 802": right or wrong? The fast model looks at the last digit alone, the
slow one at the last two, and people, who are simulated here by their tokens, add up. Into FOLDER go the data,
and what is delivered.
"""

import argparse
import csv
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hypac_client import Client, Delivery, Project, Run

ITEMS = 600
RIGHT, WRONG = "right", "wrong"


def write_data(file: Path) -> None:
    """`ITEMS` sums, half of them right; the others are off by 1 to 9, by tens, or by hundreds."""
    chance = random.Random(7)  # noqa: S311 - the same data each time
    with file.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["id", "sum"])
        for number in range(ITEMS):
            one, other = chance.randrange(100, 500), chance.randrange(100, 500)
            off = chance.choices(
                [0, chance.randrange(1, 10), chance.randrange(1, 10) * 10, 100], [5, 3, 1.5, 0.2]
            )
            table.writerow([f"sum-{number:03}", f"{one} + {other} = {one + other + off[0]}"])


def judged(text: str, digits: int) -> str:
    """By so many of the last digits."""
    left, _, claimed = text.partition(" = ")
    total = sum(map(int, left.split(" + ")))
    return RIGHT if (total - int(claimed)) % 10**digits == 0 else WRONG


def answers(file: Path, digits: int, trust: float) -> Iterator[dict[str, Any]]:
    """A model's answers: sure of what does not add up, less so of what seems to."""
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            label = judged(row["sum"], digits)
            confidence = 0.99 if label == WRONG else trust
            yield {"external_id": row["id"], "label": label, "confidence": confidence, "cost": "0.001"}


def set_up(client: Client, folder: Path, annotators: dict[str, str]) -> Project:
    """The project with its people, its items and what two models say of them."""
    data = folder / "sums.csv"
    write_data(data)
    project = client.projects.create("Sums", choices=[RIGHT, WRONG], human_cost="0.50", currency="EUR")
    for name in annotators:
        project.invite(name, "annotator")
    project.import_data(data, id_column="id", text_column="sum").wait(progress=True, timeout=300)
    for name, digits, trust in (("last digit", 1, 0.7), ("last two digits", 2, 0.9)):
        params = {"model": name, "revision": "1"}
        source = project.sources.add(name, params=params, cost_per_label="0.001")
        source.upload_predictions(answers(data, digits, trust)).wait(progress=True, timeout=300)
    return project


def take_part(url: str, token: str) -> None:
    """What somebody does who is invited; they can as well accept on their list of projects."""
    with Client(url, token) as client:
        for invitation in list(client.invitations()):
            invitation.accept()


def label_all(url: str, slug: str, token: str) -> int:
    """What one annotator does: answer until nothing waits. Returns how many."""
    count = 0
    with Client(url, token) as client:
        for task in client.projects.get(slug).queue():
            task.submit(judged(task.text, 4))
            count += 1
    return count


def people_label(url: str, run: Run, slug: str, annotators: dict[str, str]) -> None:
    with ThreadPoolExecutor() as pool:
        counts = list(pool.map(lambda token: label_all(url, slug, token), annotators.values()))
    run.wait_for_labels(timeout=300)
    print("labelled:", ", ".join(f"{name} {count}" for name, count in zip(annotators, counts, strict=True)))


def whole_project(url: str, token: str, annotators: dict[str, str], folder: Path) -> Delivery:
    with Client(url, token) as client:
        project = set_up(client, folder, annotators)
        for annotator in annotators.values():
            take_part(url, annotator)
        plan = {"epsilon": "0.05", "alpha": "0.1", "m": 150, "p": "0.9"}
        print(project.plan(**plan)["sentence"])
        # Each confidence is one of two numbers, and of fewer than ten a start asks whether that is meant.
        run = project.start_run(**plan, accept_unusable=True).wait_for("calibrating", timeout=300)
        people_label(url, run, project.slug, annotators)
        run.analyse().wait(timeout=300)
        print(run.refresh().sentence)
        run.route().wait(timeout=300)
        people_label(url, run, project.slug, annotators)
        run.wait_for("complete", timeout=300)
        delivery = run.deliver(["csv", "jsonl"], timeout=300)
        delivery.download(folder / "delivery")
        certificate = delivery.certificate
        print("delivered:", ", ".join(file["name"] for file in delivery.files))
        print("certified:", certificate["result"]["sentence"])
        return delivery


def main() -> None:
    parser = argparse.ArgumentParser(description="A project from its data to its certificate.")
    parser.add_argument("url", help="the site's address")
    parser.add_argument("folder", type=Path, help="where data and delivery go")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    # Tokens come by the environment: what stands on a command line, others can see.
    annotators = dict(pair.split("=", 1) for pair in os.environ["HYPAC_ANNOTATORS"].split())
    whole_project(options.url, os.environ["HYPAC_TOKEN"], annotators, options.folder)


if __name__ == "__main__":
    main()
