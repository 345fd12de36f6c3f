"""The browser fixtures: a page of the site opens in Chromium, styled, and with nothing from elsewhere."""

from playwright.sync_api import Page, expect


def test_the_login_page_opens_and_is_styled(page: Page) -> None:
    answer = page.goto("/")
    assert answer is not None
    assert answer.status == 200
    expect(page.get_by_label("Password")).to_be_visible()
    sheets = page.evaluate("Array.from(document.styleSheets).map(sheet => new URL(sheet.href).pathname)")
    assert any("vendor/pico" in sheet for sheet in sheets)
