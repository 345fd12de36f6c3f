"""The certificate as a page: what it says, what it does not, and who finds none."""

import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from django.urls import reverse

from routing.core.correctness import meaning_of_right
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.runs.certificate_words import limitations_of
from routing.runs.queries import run_report
from testbed.worlds import make_world

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def test_it_says_what_holds_what_it_rests_on_and_what_would_break_it(client_of) -> None:
    world = make_world(200)
    run = world.complete(m=120)
    client = client_of(world.manager)
    address = reverse("run_certificate_page", args=[world.project.slug, run.number])
    assert address in client.get(reverse("run", args=[world.project.slug, run.number])).content.decode()
    page = unescape(client.get(address).content.decode())
    report = run_report(run)
    for words in (
        report.sentence,
        f"differed from people on {report.observed_errors:.0f} of these; ",
        f"the test allowed {report.allowed_errors}.",
        "without seeing any answer of a model",
        "What it does not promise",
        "What would break it",
        "against people labelling every item for 1,600.00\N{NO-BREAK SPACE}USD",
        run.certificate.sha256,
    ):
        assert words in page, words
    Run.objects.update(
        invalid_reasons=[{"code": "", "params": {}, "words": "A calibration label was changed."}]
    )
    page = client.get(address).content.decode()
    assert "This certificate is no longer valid." in page
    assert "A calibration label was changed." in page


def test_the_command_that_it_names_recomputes_it(client_of, tmp_path: Path) -> None:
    """As it is printed, from a checkout, on the files as the page gives them."""
    world = make_world(200)
    run = world.complete(m=120)
    client, here = client_of(world.manager), (world.project.slug, run.number)
    page = unescape(client.get(reverse("run_certificate_page", args=here)).content.decode())
    (command,) = re.findall(r"<code>(.*routing.core.verify.*)</code>", page)
    program, *arguments = shlex.split(command)
    assert program == ".venv/bin/python"
    for name in ("run_certificate", "run_draw"):
        answer = client.get(reverse(name, args=here))
        saved = tmp_path / re.findall('filename="(.*)"', answer["Content-Disposition"])[0]
        saved.write_bytes(answer.content)
    arguments = [str(tmp_path / part) if "run-" in part else part for part in arguments]
    told = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "OK: the certificate follows from its draw\n"), told.stderr


def test_there_is_none_before_the_analysis(client_of) -> None:
    world = make_world(60)
    run = world.calibrated(m=40)
    address = reverse("run_certificate_page", args=[world.project.slug, run.number])
    assert client_of(world.manager).get(address).status_code == 404


@pytest.mark.parametrize("target", Run.Target.values)
@pytest.mark.parametrize("certified", [True, False])
def test_each_target_says_whose_label_is_right_and_which_items_are_left_out(target: str, certified) -> None:
    limits = " ".join(limitations_of(Run(target=target, alpha="0.05"), meaning_of_right(certified=certified)))
    assert "5\N{NO-BREAK SPACE}%" in limits
    assert ("added after the run" in limits) == (target != Run.Target.POPULATION)
    assert "the label that a person gave, blind, or would have given" in limits
    # A certificate says it itself.
    assert ("People's own mistakes are not counted" in limits) == (not certified)


def test_pages_name_the_risk_of_the_run_and_the_one_that_the_certificate_says(client_of) -> None:
    world = make_world(200)
    cancel_run(run=world.calibrating(m=60), user=world.manager)
    run = world.analysed(m=60)
    assert "with probability at least 80 %" in run_report(run).sentence
    client, slug = client_of(world.manager), world.project.slug

    def page(name: str, *args: object) -> str:
        return (
            client.get(reverse(name, args=[slug, *args])).content.decode().replace("\N{NO-BREAK SPACE}", " ")
        )

    assert "With earlier draws, as a certificate says</dt><dd>20 %</dd>" in page("overview")
    assert "with earlier draws 20 %" in page("runs")
    assert page("runs").count("with earlier draws") == 1  # the first run had none
    said = "at most with probability 20 %: 10 % of this run (alpha), and the rest of earlier draws"
    assert said in page("run_certificate_page", run.number)
