"""Simulated people. They know the truth and touch nothing but HTTP: the pages that a browser uses."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import httpx

from annotation.errors import HypacError
from routing.demo.scene import content_key

BUSY_TRIES, BUSY_SECONDS = 15, 2.0
"""How often, and how long after each other, somebody tries to log in where the site is too busy to look."""


class PersonError(HypacError):
    """A simulated person met a page that they could not use."""


@dataclass(frozen=True)
class Account:
    username: str
    password: str
    role: str


class _Page(HTMLParser):
    """The parts of a page that a person needs: form fields, buttons with their words, the item."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self.image = self.text = ""
        self._in_text = False
        self._button: _Button | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(_Form(values.get("action", ""), {}, []))
        elif tag == "input" and self.forms and values.get("name"):
            self.forms[-1].fields[values["name"]] = values.get("value", "")
        elif tag == "button" and self.forms:
            self._button = _Button(values.get("name", ""), values.get("value", ""), "")
            self.forms[-1].buttons.append(self._button)
        elif tag == "img" and values.get("id") == "item-image":
            self.image = values.get("src", "")
        elif values.get("id") == "item-text":
            self._in_text = True

    def handle_data(self, data: str) -> None:
        if self._in_text:
            self.text += data
        if self._button is not None:
            self._button.words += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "button":
            self._button = None
        self._in_text = False

    def form_with(self, field: str) -> "_Form | None":
        return next((form for form in self.forms if field in form.fields), None)


@dataclass
class _Button:
    name: str
    value: str
    words: str


@dataclass
class _Form:
    action: str
    fields: dict[str, str]
    buttons: list[_Button]


class Person:
    """Somebody who logs in, looks at the item that is shown, and gives the right answer: by the button with
    its name, or typed where the page has a field for it.
    """

    def __init__(self, *, address: str, account: Account, annotate_path: str, truth: dict[str, str]) -> None:
        self._client = httpx.Client(base_url=address, follow_redirects=True, timeout=60)
        self._account = account
        self._annotate_path = annotate_path
        self._truth = truth
        self.labels = 0

    def __enter__(self) -> "Person":
        page = _Page(self._client.get("/login/").raise_for_status().text)
        form = page.form_with("password")
        if form is None:
            raise PersonError("The log-in page has no form with a password.")
        fields = form.fields | {"username": self._account.username, "password": self._account.password}
        for _ in range(BUSY_TRIES):
            answer = self._client.post(form.action or "/login/", data=fields, headers=self._origin())
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                break
            time.sleep(BUSY_SECONDS)  # it looks at a few passwords at a time
        if answer.is_error:
            raise PersonError(
                f"{self._account.username} could not log in: the site answered {answer.status_code}."
            )
        if _Page(answer.text).form_with("password"):
            raise PersonError(f"{self._account.username} could not log in.")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def label_until_done(self, *, stop: threading.Event, labelled: Callable[[], None]) -> int:
        """Label item after item until nothing waits for this person. Returns how many."""
        page = _Page(self._client.get(self._annotate_path).raise_for_status().text)
        while not stop.is_set() and (form := page.form_with("work_item")) is not None:
            right = self._truth[content_key(self._shown(page))]
            value = right if "value" in form.fields else _button_named(form, right).value
            answer = self._client.post(
                form.action or self._annotate_path,
                data=form.fields | {"value": value},
                headers=self._origin(),
            )
            page = _Page(answer.raise_for_status().text)
            self.labels += 1
            labelled()
        return self.labels

    def _shown(self, page: _Page) -> bytes:
        if page.image:
            return self._client.get(page.image).raise_for_status().content
        return page.text.strip().encode()

    def _origin(self) -> dict[str, str]:
        return {"Referer": str(self._client.base_url)}


def _button_named(form: _Form, name: str) -> _Button:
    for button in form.buttons:
        if button.name == "value" and name in button.words.split():
            return button
    raise PersonError(f"The page has no button for {name!r}.")


def label_everything(
    *,
    address: str,
    accounts: list[Account],
    annotate_path: str,
    truth_file: Path,
    labelled: Callable[[int], None],
) -> int:
    """Let all these people label side by side until nothing waits. Returns the number of labels.

    `labelled` is called with the count so far. An error of one person stops the others and is raised.
    """
    truth: dict[str, str] = json.loads(truth_file.read_text())
    stop = threading.Event()
    lock = threading.Lock()
    count = 0

    def one_more() -> None:
        nonlocal count
        with lock:
            count += 1
            labelled(count)

    def work(account: Account) -> int:
        try:
            with Person(address=address, account=account, annotate_path=annotate_path, truth=truth) as person:
                return person.label_until_done(stop=stop, labelled=one_more)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(len(accounts)) as pool:
        futures = [pool.submit(work, account) for account in accounts]
        try:
            return sum(future.result() for future in futures)
        except BaseException:
            stop.set()
            raise
