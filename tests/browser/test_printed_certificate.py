"""The certificate on paper: one sheet, whatever was certified."""

import io
import os
import re
from decimal import Decimal

import pytest
import zxingcpp
from django.urls import reverse
from PIL import Image
from playwright.sync_api import Page

from routing.models import Run
from testbed.experts import ExpertWorld
from testbed.worlds import make_world
from tests.browser.sessions import log_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "Réclamations des clients de la coopérative agricole des trois vallées, avril à juin, " * 2


def pages_of(content: bytes) -> int:
    """Of a PDF as Chromium writes it: each page is an object of its own."""
    return len(re.findall(rb"/Type\s*/Page[^s]", content))


def with_an_expert() -> Run:
    here = ExpertWorld(240)
    plan = {"recheck_share": Decimal("0.5"), "audit_share": Decimal("0.2")}
    return here.finish(here.routed(here.start(**plan)))


def with_many_sources_that_is_invalid() -> Run:
    world = make_world(300, costs=("0.01", "0.02", "0.03", "0.04"), error=(lambda u: u / 4,) * 4)
    for source in world.project.sources.all():
        source.name = f"{source.position} {LONG}"[:100]
        source.save(update_fields=["name"])
    world.complete(m=60)
    run = world.complete(m=60, rule="multi_chain")
    reasons = [
        {"code": "", "params": {}, "words": f"A calibration label was changed ({n})."} for n in range(4)
    ]
    Run.objects.filter(pk=run.pk).update(invalid_reasons=reasons)
    return run


def ordinary() -> Run:
    return make_world(200).complete(m=120, rule="every_score", p=Decimal(1))


def nothing() -> Run:
    return make_world(200).complete(m=60, epsilon=Decimal("0.001"), target="population")


@pytest.mark.parametrize(
    "made",
    [ordinary, nothing, with_an_expert, with_many_sources_that_is_invalid],
    ids=lambda made: made.__name__,
)
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_it_is_one_sheet_in_black_on_white(made, paper, page: Page, live_server) -> None:
    run = made()
    if made is with_many_sources_that_is_invalid:
        run.project.name = LONG[:200]
        run.project.save(update_fields=["name"])
    log_in(page.context, run.project.created_by)
    page.emulate_media(color_scheme="dark")
    page.goto(reverse("run_certificate_page", args=[run.project.slug, run.number]))
    if folder := os.environ.get("PRINTED"):
        page.pdf(path=f"{folder}/{made.__name__}-{paper}.pdf", format=paper, print_background=True)
    assert pages_of(page.pdf(format=paper, print_background=True)) == 1
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.paper')).color") == "rgb(0, 0, 0)"
    for hidden in (".site-header", "[data-print]"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator(".qr").is_visible()
    square = Image.open(io.BytesIO(page.locator(".qr").screenshot()))
    digits = "".join(page.locator(".seal .hash span").all_inner_texts())
    assert digits == run.commitments.get(number=1).sha256
    assert [code.text for code in zxingcpp.read_barcodes(square)] == [f"hypac:commitment:{digits}"]
    assert f"--commitment {digits}" in page.locator(".command").first.inner_text()


def test_a_button_prints_it(page: Page, live_server) -> None:
    run = ordinary()
    log_in(page.context, run.project.created_by)
    page.goto(reverse("run_certificate_page", args=[run.project.slug, run.number]))
    page.evaluate("window.print = () => { window.printed = true; }")
    page.get_by_role("button", name="Print").click()
    assert page.evaluate("window.printed")
