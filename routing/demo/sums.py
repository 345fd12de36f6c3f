"""The demonstration on sums: two tiny language models (`routing.demo.llm`) behind real servers."""

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from annotation.imports.columns import ColumnMapping as Columns
from routing.demo.llm.questions import held_out_questions
from routing.demo.scene import Model, Pool, Scene, content_key, write_whole
from routing.sources.backends import Prompt
from routing.sources.prompts.presets import PRESETS

SEED = 0
QUESTIONS = 3000
CONTEXT = 128
"""Tokens that question and answer may have together."""
AT_ONCE = 32
# What is counted is tokens that a model generates. A person costs as much as 1,000 of them, far less than on
# any price list: a label for 5 cents pays for tens of thousands.
HUMAN_COST = Decimal(1000)
PRICE = "Generated tokens"
# What both would cost if they were asked about everything, and a little more.
BUDGET = Decimal(50_000)
GUIDELINES = """What is the result?

- Type the number alone.
- Differences are never below 0.
"""


def scene(hosts: Sequence[str]) -> Scene:
    """`hosts` are host and port of the servers, the fast model's first."""
    fast, slow = hosts
    return Scene(
        title="sums, two tiny language models behind real servers, and people",
        command="make demo-llm",
        name="Sums",
        slug="sums",
        task_type="number",
        guidelines=GUIDELINES,
        currency="tokens",
        human_cost=HUMAN_COST,
        prices={PRICE: ("tokens", {"per_token": "1"})},
        models=(
            _model("Fast model", "fast", fast, preset="qwen3-instruct-2507", most=16, cost=Decimal(4)),
            _model("Slow model", "slow", slow, preset="qwen3-thinking-2507", most=64, cost=Decimal(12)),
        ),
        tries_models=True,
        plan={
            "epsilon": Decimal("0.02"),
            "alpha": Decimal("0.05"),
            "target": "dataset",
            "m": 400,
            "p": Decimal("0.9"),
            "loss": "numeric",
            "entropy": SEED,
            "budget": BUDGET,
        },
        make_pool=make_pool,
    )


def make_pool(folder: Path) -> Pool:
    """Sums that neither model has seen in training."""
    questions = held_out_questions(QUESTIONS, seed=SEED)
    rows = io.StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(["id", "question"])
    writer.writerows((one.id, one.question) for one in questions)
    pool = Pool(
        file=folder / "sums.csv",
        media_type="text/csv",
        columns=Columns(id_column="id", text_column="question"),
        truth_file=folder / "truth.json",
        size=QUESTIONS,
        models=[
            "Fast model: writes the answer at once",
            "Slow model: writes its working before the answer",
            "Both: 357,792 parameters, trained from nothing on sums; a generated token costs 1",
        ],
    )
    truth = {content_key(one.question.encode()): one.answer for one in questions}
    write_whole(pool.file, rows.getvalue().encode())
    write_whole(pool.truth_file, json.dumps(truth).encode())
    return pool


def _model(name: str, served: str, host: str, *, preset: str, most: int, cost: Decimal) -> Model:
    """Sampled as the makers of the models recommend that these two stand for, with a seed."""
    return Model(
        name=name,
        backend="openai_api",
        params={
            **PRESETS[preset].params,
            "preset": preset,
            "max_tokens": most,
            "seed": SEED,
            "url": f"http://{host}/v1",
            "model": served,
            "concurrency": AT_ONCE,
        },
        cost=cost,
        price=PRICE,
        prompt=Prompt("{{ text }}"),
    )
