"""Annotators for benchmarks/load.py, and those who try passwords meanwhile. An annotator logs in, holds
items, answers, and notes how long it took.
"""

import asyncio
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import httpx

CLAIM_EVERY = 20
"""Answers after which somebody loads anew."""
COUNTS_EVERY = 5
"""Answers after which the page asks how far the person is."""
TWICE_EVERY = 25
"""Answers of which one is sent two times at once."""
EMPTY_WAIT = 5.0
"""Seconds after which somebody without an item asks again."""

Card = dict[str, Any]


@dataclass
class Report:
    """Times in seconds; `processor` and `server` are processor time, of the clients and of the web server.
    `stored` has the keys of the answers that the server confirmed, `attempts` how often each status answered
    a password that was tried.
    """

    answers: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    handed: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    attempts: Counter[int] = field(default_factory=Counter)
    twice: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    server: float = 0.0

    @property
    def held_by_two(self) -> int:
        """Work items that were handed to two people. No lease ends here, and nobody skips."""
        return sum(len(people) > 1 for people in self.handed.values())


@dataclass
class Crowd:
    """`think`: mean seconds between two answers. `attackers` try passwords meanwhile."""

    address: str
    slug: str
    password: str
    seed: int
    think: float
    attackers: int

    async def label(self, names: Sequence[str], seconds: float, taken: Callable[[], float]) -> Report:
        report = Report()
        people = [Person(self, name, random.Random(f"{self.seed} {name}"), report) for name in names]
        for person in people:  # passwords are dear to check: not part of what is measured
            await person.log_in()
        with ProcessPoolExecutor(1, get_context("spawn")) as others:
            if self.attackers:
                attempts = others.submit(attack, self.address, self.attackers, seconds)
            began, processor, server = time.perf_counter(), time.process_time(), taken()
            await asyncio.gather(*(person.work(began + seconds) for person in people))
            report.seconds = time.perf_counter() - began
            report.processor = time.process_time() - processor
            report.server = taken() - server
            if self.attackers:
                report.attempts = attempts.result()
        for person in people:
            await person.client.aclose()
        return report


class Person:
    def __init__(self, crowd: Crowd, name: str, rng: random.Random, report: Report) -> None:
        self.crowd, self.name, self.rng, self.report = crowd, name, rng, report
        self.client = httpx.AsyncClient(base_url=crowd.address, timeout=120)
        self.path = f"/projects/{crowd.slug}/annotate"
        self.cards: list[Card] = []
        self.count = 0

    async def log_in(self) -> None:
        await self.client.get("/login/")
        fields = {"username": self.name, "password": self.crowd.password}
        fields["csrfmiddlewaretoken"] = self.client.cookies["csrftoken"]
        answer = await self.client.post("/login/", data=fields)
        assert answer.status_code == 302, f"{self.name} cannot log in: {answer.status_code}"

    async def work(self, end: float) -> None:
        # Nobody comes at the same moment as everybody else.
        await asyncio.sleep(self.rng.uniform(0, self.crowd.think))
        while time.perf_counter() < end:
            try:
                if not self.cards or self.count % CLAIM_EVERY == CLAIM_EVERY - 1:
                    await self._claim()
                    if not self.cards:
                        await asyncio.sleep(EMPTY_WAIT)
                        continue
                await asyncio.sleep(self.rng.uniform(0.5, 1.5) * self.crowd.think)
                await self._answer(self.cards.pop(0))
            except (httpx.HTTPError, ValueError, KeyError, AttributeError) as error:
                self.report.errors.append(f"{self.name}: {type(error).__name__}: {error}"[:300])
                self.cards = []
            self.count += 1

    async def _claim(self) -> None:
        began = time.perf_counter()
        page = await self.client.get(f"{self.path}/")
        self.report.claims.append(time.perf_counter() - began)
        page.raise_for_status()
        work_item = re.search(r'name="work_item" value="(\d+)"', page.text)
        token = re.search(r'name="token" value="(\w+)"', page.text)
        self.cards = []
        if work_item and token:
            behind = await self._post("ahead", holding=work_item[1])
            self.cards = [{"work_item": int(work_item[1]), "token": token[1]}, *behind["ahead"]]
        self._note(self.cards)

    async def _answer(self, card: Card) -> None:
        key = f"{self.name}-{self.count}-{self.rng.getrandbits(64):x}"
        fields = {
            "work_item": card["work_item"],
            "token": card["token"],
            "value": self.rng.choice(["cat", "dog", "emu"]),
            "idempotency_key": key,
            "lead_time_ms": 1000,
        }
        sent = [self._send(fields)]
        if self.rng.random() < 1 / TWICE_EVERY:
            self.report.twice += 1
            sent.append(self._send(fields))
        for stored, cards in await asyncio.gather(*sent):
            if not stored:
                raise ValueError(f"an answer was not stored: {cards}")
            self.report.stored.add(key)
            self._note(cards)
            # Both of two twins may bring the same item.
            known = {one["work_item"] for one in self.cards}
            self.cards += [one for one in cards if one["work_item"] not in known]

    async def _send(self, fields: dict[str, Any]) -> tuple[bool, list[Card]]:
        held = ",".join(str(card["work_item"]) for card in self.cards)
        counts = "yes" if self.count % COUNTS_EVERY == 0 else "no"
        began = time.perf_counter()
        answer = await self._post("submit", **fields, holding=held, counts=counts)
        self.report.answers.append(time.perf_counter() - began)
        return answer["outcome"] == "stored", answer["ahead"]

    async def _post(self, what: str, **data: Any) -> dict[str, Any]:
        headers = {"X-CSRFToken": self.client.cookies["csrftoken"], "HX-Request": "true"}
        answer = await self.client.post(f"{self.path}/{what}/", headers=headers, data=data)
        answer.raise_for_status()
        return answer.json()

    def _note(self, cards: Sequence[Card]) -> None:
        for card in cards:
            self.report.handed[card["work_item"]].add(self.name)


def attack(address: str, attackers: int, seconds: float) -> Counter[int]:
    """Each tries a password of another name each time, from another address, without a pause."""
    end = time.monotonic() + seconds

    def try_passwords(number: int) -> Counter[int]:
        found: Counter[int] = Counter()
        with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
            client.get("/login/")
            form = {"csrfmiddlewaretoken": client.cookies["csrftoken"], "password": "wrong"}
            while time.monotonic() < end:
                tries = found.total()
                headers = {"X-Forwarded-For": f"10.{number}.{tries >> 8 & 255}.{tries & 255}"}
                form["username"] = f"{number}-{tries}"
                found[client.post("/login/", data=form, headers=headers).status_code] += 1
        return found

    with ThreadPoolExecutor(attackers) as pool:
        return sum(pool.map(try_passwords, range(attackers)), Counter())
