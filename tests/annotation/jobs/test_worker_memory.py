"""A worker's process has so much memory and no more: a job that wants it all fails alone."""

import errno
import io
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings

from annotation.errors import InputError
from annotation.imports.formats import excel
from annotation.jobs import jobs, kinds
from annotation.jobs.context import JobContext, out_of_memory
from annotation.models import Job, Project
from hypac_site import worker_memory
from testbed.factories import make_project
from tests.annotation.jobs import greedy_jobs  # noqa: F401 - makes its kinds known here, too
from tests.support import child_environment

pytestmark = [pytest.mark.database, pytest.mark.costly]

MEGABYTES = 900


@pytest.fixture
def project(transactional_db) -> Project:
    return make_project()


def ended(*made: Job, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while any(job.state in jobs.UNFINISHED for job in made):
        assert time.monotonic() < until, [job.state for job in made]
        time.sleep(0.2)
        jobs.reconcile()
        for job in made:
            job.refresh_from_db()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits what a process may write to.")
def test_a_job_that_wants_too_much_fails_in_words_and_the_next_ones_run(
    project: Project, tmp_path: Path, settings
) -> None:
    made = [
        jobs.enqueue(project=project, kind_name=kind, params={}) for kind in ("greedy", "modest", "modest")
    ]
    celery = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "hypac_site",
        "worker",
        "-I",
        "tests.annotation.jobs.greedy_jobs",
    ]
    log = (tmp_path / "log").open("w")
    worker = subprocess.Popen(
        [*celery, "-c", "1", "-Q", "default", "--loglevel", "info"],
        env=child_environment(HYPAC_WORKER_MEMORY_MB=str(MEGABYTES), HYPAC_VAR=str(settings.VAR_DIR)),
        cwd=settings.BASE_DIR,
        stdout=log,
        stderr=log,
    )
    try:
        ended(*made)
    finally:
        worker.terminate()
        worker.wait(60)
        log.close()
    greedy, *modest = made
    assert (greedy.state, greedy.attempts, greedy.done) == (Job.State.FAILED, 1, 1)
    assert f"more memory than a worker may take ({MEGABYTES:,} MB)" in greedy.error
    assert [job.state for job in modest] == [Job.State.DONE] * 2
    assert {job.result["limit"] for job in modest} == {MEGABYTES * 1024**2}


MANY_CALLS = """
import sys, time
import django
django.setup()
from annotation.models import Item
from hypac_site import worker_memory
from routing.sources.backends.base import Answer
from routing.sources.backends.concurrent import concurrently
from threading import Barrier

worker_memory.limit(2048)
together = Barrier(512)

def ask(item, stopped):
    together.wait(60)
    return Answer(None)

print(sum(len(group) for group in concurrently([Item(pk=pk) for pk in range(512)], ask, 512)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits what a process may write to.")
@pytest.mark.skipif(sys.version_info[:2] == (3, 13), reason="Its threads need larger stacks.")
def test_as_many_calls_at_a_time_as_a_source_may_have_fit_into_the_limit_of_a_small_machine() -> None:
    environment = child_environment(DJANGO_SETTINGS_MODULE="hypac_site.settings")
    done = subprocess.run(
        [sys.executable, "-c", MANY_CALLS],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "512\n", done.stderr


@pytest.mark.skipif(sys.version_info[:2] == (3, 13), reason="Its threads need larger stacks.")
def test_an_answer_of_brackets_alone_does_not_end_the_process() -> None:
    code = f"""
import json, threading
from hypac_site import worker_memory

def read():
    for text in ("[" * 100_000, '{{"a":' * 100_000):
        try:
            json.loads(text)
        except RecursionError:
            print("refused")

worker_memory.limit({MEGABYTES})
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "refused\n" * 2)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), OSError(errno.ENOMEM, "Cannot allocate memory")],
    ids=["memory", "thread", "program"],
)
def test_what_wants_too_much_is_not_tried_again(monkeypatch, error: Exception) -> None:
    def starve(context: JobContext) -> None:
        raise error

    jobs.register("starved", starve, title="Starved")
    job = jobs.enqueue(project=make_project(), kind_name="starved", params={})
    jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert "HYPAC_WORKER_MEMORY_MB" in job.error
    monkeypatch.delitem(kinds.KINDS, "starved")


def test_where_a_worker_has_no_limit_none_is_named(settings) -> None:
    settings.HYPAC_WORKER_MEMORY_MB = 0
    assert "0 MB" not in str(out_of_memory())
    assert "than its worker's machine gives" in str(out_of_memory())


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits what a process may write to.")
def test_a_workbook_too_large_for_its_worker_is_told_the_limit_of_that(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(excel, "READER", tmp_path / "ends_at_once.py")
    for bytes_, megabytes in ((1024**3, 1024), (8 * 1024**3, 2048), (resource.RLIM_INFINITY, 2048)):
        monkeypatch.setattr(excel.resource, "getrlimit", lambda of, most=bytes_: (most, most))
        with pytest.raises(InputError, match=f"more than {megabytes:,} MB of memory"):
            list(excel.Excel().records(io.BytesIO(b"x"), "a.xls"))


class TestLimit:
    def test_it_is_half_of_what_the_container_has(self, monkeypatch, tmp_path) -> None:
        group = tmp_path / "memory.max"
        monkeypatch.setattr(worker_memory, "GROUPS", (group, tmp_path / "none"))
        monkeypatch.setattr(worker_memory.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**22}.get)
        for said, megabytes in (("max\n", 8 * 1024), (f"{4 * 1024**3}\n", 2 * 1024), ("1000000\n", 1024)):
            group.write_text(said)
            assert worker_memory.default_megabytes() == megabytes

    def test_there_is_none_where_models_run_in_the_worker(self, monkeypatch) -> None:
        monkeypatch.setattr(worker_memory.importlib.util, "find_spec", lambda name: name == "vllm" or None)
        assert worker_memory.default_megabytes() == 0
        before = resource.getrlimit(resource.RLIMIT_DATA)
        worker_memory.limit(0)
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
        assert worker_memory.most_resident(0) is None
