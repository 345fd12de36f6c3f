"""Our backend beside a real server of the package label-studio-ml, where an environment has one."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from annotation.errors import InputError
from annotation.models import Item
from routing.backends import SourceContext, TaskSpec, open_backend, predict_all
from testbed.servers import free_port

PYTHON = os.environ.get("HYPAC_TEST_LABEL_STUDIO_ML", "")
PETS = TaskSpec("single_choice", (("c1", "cat"), ("d1", "dog")))

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="HYPAC_TEST_LABEL_STUDIO_ML names no Python that has the package label-studio-ml."
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("label-studio-ml")
    port = free_port()
    program = Path(__file__).with_name("label_studio_words.py")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([PYTHON, program, str(port), folder], cwd=folder, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _open(url, task=PETS):
    return open_backend("label_studio_ml", {"url": url, "batch_size": 3}, SourceContext(task=task))


@pytest.fixture(autouse=True)
def _up(url, settings):
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    until = time.monotonic() + 300
    while True:
        try:
            return _open(url).check()
        except InputError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_a_real_server_answers_item_by_item(url):
    backend = _open(url)
    texts = ["a cat", "a dog", "boom", "a cow", "dog again", "cat and dog", "the cat"]
    answers = predict_all(backend, [Item(pk=index, text=text) for index, text in enumerate(texts)])
    assert [answer.value for answer in answers] == ["cat", "dog", None, None, "dog", None, "cat"]
    assert [answer.reason for answer in answers if answer.value is None] == [
        "the server answered with status 500",
        "no prediction",
        "several answers in place of one",
    ]
    assert answers[0].raw == {"confidence": 0.75}
    assert backend.fingerprint() == _open(url).fingerprint()


def test_a_real_server_takes_several_labels(url):
    backend = _open(url, TaskSpec("multiple_choice", PETS.choices))
    (answer,) = predict_all(backend, [Item(pk=1, text="cat and dog")])
    assert answer.value == ["cat", "dog"]
