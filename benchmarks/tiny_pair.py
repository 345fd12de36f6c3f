"""A table of two real language models with two real scores: the pair of `make demo-llm` on all of its sums.

    .venv-llm/bin/python benchmarks/tiny_pair.py [--to var/tiny-pair.csv]

Starts both models behind servers of vLLM, has them answer every question by "Measure first" of a project like
that of the demonstration, and writes what an experiment reads: the true result, each model's answer, its own
uncertainty and what it cost. `benchmarks/every_score.py --tiny var/tiny-pair.csv` then has it among its rows.
"""

import csv
import json
from pathlib import Path

import numpy as np
from runner import ROOT, csv_text, installation, machine, options_of


def main() -> None:
    options = options_of(
        __doc__,
        to=("var/tiny-pair.csv", "where the table goes"),
        human_cost=(128, "tokens that a person costs"),
    )
    print(machine("numpy"))
    from testbed.servers import free_port

    hosts = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with installation(HYPAC_PRIVATE_HOSTS=",".join(hosts)) as folder:
        rows = answered(hosts, folder, options.human_cost)
    file = ROOT / options.to
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(csv_text(rows), encoding="utf-8")
    right = [np.mean([row[f"pred{k}"] == row["y_true"] for row in rows]) for k in (1, 2)]
    print(f"{len(rows)} items in {options.to}; right: {right[0]:.1%} and {right[1]:.1%}")


def answered(hosts: list[str], folder: Path, human_cost: float) -> list[dict[str, object]]:
    """One row an item, of those that were measured: all but one."""
    from annotation.jobs import jobs
    from routing.demo import sums
    from routing.demo.model_servers import model_servers
    from routing.demo.scene import content_key
    from routing.models import Measurement
    from routing.runs.measure import start_measurement
    from routing.sources.manage import save_source
    from testbed.factories import make_items, make_project

    scene = sums.scene(hosts)
    pool = scene.make_pool(folder)
    questions = [row["question"] for row in csv.DictReader(pool.file.open())]
    truth = json.loads(pool.truth_file.read_text())
    project = make_project(
        task_type=scene.task_type, choices=[], human_cost=scene.human_cost, currency=scene.currency
    )
    make_items(project, questions)
    with model_servers(hosts, folder) as servers:
        for server in servers:
            server.wait()
        for model in scene.models:
            save_source(
                project=project,
                user=project.created_by,
                name=model.name,
                backend=model.backend,
                params=dict(model.params),
                cost_per_label=model.cost,
                cost_function="tokens",
                prices={"per_token": "1"},
                prompt=model.prompt,
            )
        start_measurement(project=project, user=project.created_by, size=len(questions) - 1, entropy=1)
        jobs.run(project.jobs.get(kind="measure").pk)
    measurement = Measurement.objects.get(project=project)
    assert measurement.finished_at, project.jobs.get(kind="measure").error
    return [
        row
        for item in measurement.items.select_related("item").order_by("order")
        if (row := row_of(item.item, truth[content_key(item.item.text.encode())], human_cost))
    ]


def row_of(item: object, true: str, human_cost: float) -> dict[str, object]:
    from routing.models import ItemScore, Prediction

    row: dict[str, object] = {"item_id": item.external_id, "y_true": true, "cost_h": human_cost}
    for found in Prediction.objects.filter(item=item).select_related("source"):
        k = found.source.position
        score = ItemScore.objects.filter(prediction=found).first()
        row[f"pred{k}"] = "" if found.value is None else found.value
        row[f"u{k}"] = "" if score is None or score.reason else score.value
        row[f"cost{k}"] = float(found.cost)
    return row


if __name__ == "__main__":
    main()
