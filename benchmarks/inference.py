"""What the pipeline adds to a language model, in a table: the same prompts through a run and straight.

    .venv/bin/python benchmarks/inference.py [--items 1600] [--runs 3] [--delay 0.2] [--concurrency 32]
    .venv/bin/python benchmarks/inference.py --url http://127.0.0.1:8000/v1 --model NAME
    .venv-llm/bin/python benchmarks/inference.py --folder DIR        (on a GPU: the worker's interpreter)

The first asks a scripted server that answers after a delay, the second any OpenAI-compatible server, the
third an engine in this process through the `vllm` backend. "Straight" sends the same bodies to the same
server by as many threads, or the same prompts to vLLM's own `LLM.generate`. "Pipeline" is the job of a run
that has its first source answer all items: read, called, parsed, scored, paid, committed. Each pass has new
items. Medians; the processor time is that of this process, with an engine in it or a server beside it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from runner import ROOT, Table, installation, machine, options_of

PROMPT = "{{ text }}"


class Pass(NamedTuple):
    """Seconds that passed and seconds of the processor, items and generated tokens."""

    wall: float
    processor: float
    items: int
    tokens: int


def timed(work: Callable[[], tuple[int, int]]) -> Pass:
    wall, processor = time.perf_counter(), time.process_time()
    items, tokens = work()
    return Pass(time.perf_counter() - wall, time.process_time() - processor, items, tokens)


# --- Through a run ------------------------------------------------------------------------------------------


def through_a_run(texts: list[str], backend: str, params: dict[str, Any]) -> Callable[[], tuple[int, int]]:
    """A project with these items and one source, its run planned; the work is the job that asks it."""
    from django.db.models import Sum

    from annotation.jobs import jobs
    from annotation.models import Job
    from routing.models import Prediction, RunSource
    from routing.runs.start import start_run
    from routing.sources.backends import Prompt
    from routing.sources.manage import save_source
    from testbed.factories import make_items, make_project

    project = make_project(choices=[], task_type="short_text")
    user = project.created_by
    make_items(project, texts)
    source = save_source(
        project=project,
        user=user,
        name="Model",
        backend=backend,
        params=params,
        cost_per_label=Decimal("0.001"),
        cost_function="tokens",
        prices={},
        prompt=Prompt(PROMPT),
    )
    run = start_run(
        project=project, user=user, epsilon=Decimal("0.2"), alpha=Decimal("0.2"), m=40, p=Decimal("0.9")
    )
    job = Job.objects.get(project=project, kind="prepare_run")

    def work() -> tuple[int, int]:
        if not jobs.run(job.pk):
            job.refresh_from_db()
            raise SystemExit(f"The job failed: {job.error}")
        frozen = RunSource.objects.get(run=run, source=source)
        made = Prediction.objects.filter(source=source, fingerprint=frozen.fingerprint)
        return made.count(), made.aggregate(total=Sum("tokens_out"))["total"] or 0

    return work


# --- Straight -----------------------------------------------------------------------------------------------


def straight_to_a_server(url: str, bodies: list[dict[str, Any]], concurrency: int) -> tuple[int, int]:
    """The same bodies by as many threads and connections; answers are read and nothing else."""
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    with (
        httpx.Client(timeout=600, trust_env=False, limits=limits) as client,
        ThreadPoolExecutor(concurrency) as pool,
    ):
        answers = pool.map(lambda body: client.post(f"{url}/chat/completions", json=body), bodies)
        tokens = [answer.raise_for_status().json()["usage"]["completion_tokens"] for answer in answers]
    return len(tokens), sum(tokens)


def straight_to_the_engine(llm: Any, requests: list[tuple[list[int], dict[str, Any]]]) -> tuple[int, int]:
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": tokens} for tokens, _ in requests]
    outputs = llm.generate(prompts, [SamplingParams(**params) for _, params in requests], use_tqdm=False)
    return len(outputs), sum(len(text.token_ids) for output in outputs for text in output.outputs)


# --- The three comparisons ----------------------------------------------------------------------------------


def texts_of(options: argparse.Namespace, number: int) -> list[str]:
    return [f"{number * options.items + n} + {(n * 37) % 1000}" for n in range(options.items)]


def beside_a_server(options: argparse.Namespace, url: str, model: str) -> Iterator[tuple[str, Pass]]:
    from annotation.models import Item
    from routing.sources.backends import Prompt, TaskSpec
    from routing.sources.backends.openai_api.completions import answer_body
    from routing.sources.backends.openai_api.params import read_params
    from routing.sources.prompts import render

    params = params_of(options, url=url, model=model, seed=1)
    spec = TaskSpec("short_text")
    read = read_params(params, spec)
    for number in range(options.runs):
        texts = texts_of(options, 2 * number)
        chats = [render(Prompt(PROMPT), spec, Item(text=text)).as_chat() for text in texts]
        bodies = [answer_body(read, spec, chat) for chat in chats]
        yield "straight", timed(partial(straight_to_a_server, url, bodies, options.concurrency))
        yield "pipeline", timed(through_a_run(texts_of(options, 2 * number + 1), "openai_api", params))


def beside_an_engine(options: argparse.Namespace) -> Iterator[tuple[str, Pass]]:
    """One engine for both: the backend's own is borrowed for the straight passes."""
    from annotation.models import Item
    from routing.sources.backends import Prompt, SourceContext, TaskSpec, open_backend
    from routing.sources.backends.vllm.requests import ItemRequests, prompt_tokens
    from routing.sources.prompts import render

    length, dtype = options.max_model_len, options.dtype
    params = params_of(options, model=options.folder.name, max_model_len=length, dtype=dtype)
    spec = TaskSpec("short_text")
    backend = open_backend("vllm", params, SourceContext(spec, Prompt(PROMPT)))
    with borrowed_engine(backend) as (llm, tokenizer):
        for number in range(options.runs + 1):
            requests = []
            for text in texts_of(options, 2 * number):
                messages = render(Prompt(PROMPT), spec, Item(text=text))
                asked = ItemRequests(messages.as_chat(), messages.user, spec, backend.sampling).first()[0]
                requests.append((prompt_tokens(tokenizer, asked.chat, {}), dict(asked.params)))
            straight = timed(partial(straight_to_the_engine, llm, requests))
            if number:  # the first one warms up
                yield "straight", straight
    for number in range(options.runs):
        yield "pipeline", timed(through_a_run(texts_of(options, 2 * number + 1), "vllm", params))


def params_of(options: argparse.Namespace, **own: Any) -> dict[str, Any]:
    """Of the source."""
    shared = {"concurrency": options.concurrency, "max_tokens": options.max_tokens, "temperature": 0.7}
    return {**shared, **own}


@contextmanager
def borrowed_engine(backend: Any) -> Iterator[tuple[Any, Any]]:
    """vLLM's own object of the backend's engine. What is generated with it is generated in this thread while
    the engine's thread waits for requests."""
    from routing.sources.backends.vllm.engine import engine_for

    with engine_for(backend._engine_settings()) as engine:
        yield engine._llm, engine.tokenizer


def report(title: str, passes: Iterator[tuple[str, Pass]]) -> None:
    found: dict[str, list[Pass]] = {"straight": [], "pipeline": []}
    for name, one in passes:
        found[name].append(one)
        print(f"  {name}: {one.wall:.2f} s", file=sys.stderr, flush=True)
    table = Table("", "items", "items/s", "tokens/s", "wall", "beside", "processor ms per item", title=title)
    straight = statistics.median(one.wall for one in found["straight"])
    for name, several in found.items():
        figures = ((one.tokens / one.wall, one.wall, 1000 * one.processor / one.items) for one in several)
        tokens, wall, processor = map(statistics.median, zip(*figures, strict=True))
        items = several[0].items
        cells = (f"{items:,}", f"{items / wall:,.1f}", f"{tokens:,.0f}", f"{wall:.2f} s")
        table.row(name, *cells, f"{wall / straight - 1:+.1%}", f"{processor:.2f}")


@contextmanager
def scripted(delay: float) -> Iterator[str]:
    command = [sys.executable, "-m", "testbed.scripted_server", "--delay", str(delay)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main() -> None:
    options = options_of(
        __doc__,
        items=(1600, "of each pass"),
        runs=(3, "passes of each kind"),
        delay=(0.2, "seconds, of the scripted server"),
        concurrency=(32, "calls at a time"),
        max_tokens=(16, "of an answer"),
        url=("", "a server to ask in place of the scripted one"),
        model=("scripted", "the model's name on that server"),
        dtype=("auto", "of the engine"),
        folder=(Path, "a model's folder, for an engine in this process"),
        max_model_len=(int, "of the engine"),
    )
    if options.folder:
        options.folder = options.folder.resolve()
        os.environ["HYPAC_VLLM_MODELS"] = str(options.folder.parent)
    print(machine(*(["torch", "vllm"] if options.folder else [])))
    at_a_time = f"{options.concurrency} calls at a time"
    with installation(HYPAC_PRIVATE_HOSTS="127.0.0.1,localhost"):
        if options.folder:
            report(f"Engine in this process, {options.folder.name}", beside_an_engine(options))
        elif options.url:
            report(f"Server, {at_a_time}", beside_a_server(options, options.url, options.model))
        else:
            with scripted(options.delay) as url:
                title = f"Scripted server, {options.delay:g} s, {at_a_time}"
                report(title, beside_a_server(options, url, "scripted"))


if __name__ == "__main__":
    main()
