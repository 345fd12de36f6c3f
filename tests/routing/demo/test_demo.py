"""What the demonstrations are set up with, and how their people answer. The whole way is `make demo` and
`make demo-llm`.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hypac_site import demo_folder
from hypac_site.supervisor import ServeError
from routing.demo import model_servers, sums
from routing.demo.people import _button_named, _Page
from routing.demo.scene import content_key

pytestmark = pytest.mark.costly

RESULT = {"+": int.__add__, "-": int.__sub__, "x": int.__mul__}
HOSTS = ("127.0.0.1:1", "127.0.0.1:2")
ROOT = Path(__file__).resolve().parents[3]


def test_the_pool_keeps_the_truth_apart_and_is_the_same_each_time(tmp_path: Path) -> None:
    pool = sums.make_pool(tmp_path)
    rows = pool.file.read_text().splitlines()
    assert rows[0] == "id,question"
    assert len(rows) == pool.size + 1
    truth = json.loads(pool.truth_file.read_text())
    _, question = rows[1].split(",")
    a, operation, b = question.split()
    assert truth[content_key(question.encode())] == str(RESULT[operation](int(a), int(b)))
    before = pool.file.read_bytes()
    assert sums.make_pool(tmp_path).file.read_bytes() == before


def test_the_models_are_asked_with_the_text_alone_a_seed_and_the_presets_sampling() -> None:
    fast, slow = sums.scene(HOSTS).models
    assert (fast.params["url"], slow.params["url"]) == ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")
    for model, temperature in ((fast, 0.7), (slow, 0.6)):
        assert model.params["temperature"] == temperature
        assert model.params["seed"] == sums.SEED
        assert model.prompt is not None
        assert (model.prompt.template, model.prompt.system) == ("{{ text }}", "")


def test_the_budget_has_room_for_both_models_on_everything() -> None:
    scene = sums.scene(HOSTS)
    assert sums.QUESTIONS * sum(model.cost for model in scene.models) < scene.plan["budget"]
    assert scene.plan["budget"] < sums.QUESTIONS * scene.human_cost


def test_a_person_reads_the_text_and_finds_the_field() -> None:
    page = _Page(
        '<div class="item-text" id="item-text">7 x 468</div><p>other</p><form action="/go">'
        '<input type="hidden" name="work_item" value="4"><input type="text" name="value" value=""></form>'
    )
    assert page.text == "7 x 468"
    form = page.form_with("work_item")
    assert form is not None
    assert "value" in form.fields


def test_a_person_presses_the_button_where_there_is_no_field() -> None:
    page = _Page(
        '<img id="item-image" src="/x.png"><form><input type="hidden" name="work_item" value="4">'
        '<button name="value" value="k7">7 <kbd>7</kbd></button></form>'
    )
    assert (page.image, page.text) == ("/x.png", "")
    form = page.form_with("work_item")
    assert form is not None
    assert "value" not in form.fields
    assert _button_named(form, "7").value == "k7"


def test_each_demonstration_has_its_own_folder_and_keeps_its_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dict.fromkeys(("DATABASE_URL", "DJANGO_SECRET_KEY", "HYPAC_MAIL_URL", "HYPAC_S3_BUCKET"), "x")
    monkeypatch.setattr(os, "environ", {"HYPAC_VAR": str(tmp_path)} | real)
    demo_folder.use_demo_folder("demo-llm", model_servers=2)
    found = dict(os.environ)
    assert found["HYPAC_VAR"] == str(tmp_path / "demo-llm")
    assert found["HYPAC_COOKIE_PREFIX"] == "demo-llm"
    assert not real.keys() & found.keys()
    hosts = found["HYPAC_PRIVATE_HOSTS"].split(",")
    assert len(set(hosts)) == 2
    assert all(host.startswith("127.0.0.1:") for host in hosts)
    os.environ["HYPAC_VAR"] = str(tmp_path)
    demo_folder.use_demo_folder("demo-llm", model_servers=2)
    assert os.environ["HYPAC_PRIVATE_HOSTS"].split(",") == hosts


def test_its_sessions_have_a_cookie_of_their_own(tmp_path: Path) -> None:
    """A browser sends what one port of a host has set to all others: a log-in here must end none there."""
    show = (
        "import django; django.setup(); from django.conf import settings;"
        "from annotation.people.attempt_limits import COOKIE;"
        "from annotation.templatetags.hypac import csrf_cookie;"
        "print(settings.SESSION_COOKIE_NAME, csrf_cookie(), COOKIE)"
    )

    def shown(**variables: str) -> str:
        own = {"HYPAC_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
        kept = {**os.environ, **own, **variables}
        done = subprocess.run(
            [sys.executable, "-c", show], cwd=ROOT, env=kept, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert [shown(), shown(HYPAC_COOKIE_PREFIX="demo")] == [
        "sessionid csrftoken known_device",
        "demo-sessionid demo-csrftoken demo-known_device",
    ]


def test_without_vllm_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ServeError, match="make demo-llm"), model_servers.model_servers(HOSTS, tmp_path):
        pass


def test_a_server_that_ends_while_starting_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no such instruction'\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(sys, "executable", str(python))
    hosts = [f"127.0.0.1:{port}" for port in demo_folder._kept_ports(tmp_path / "ports", 2)]
    with model_servers.model_servers(hosts, tmp_path) as servers:
        for server in servers:
            with pytest.raises(ServeError, match="no such instruction"):
                server.wait()
