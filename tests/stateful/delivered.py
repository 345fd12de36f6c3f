"""What a delivery must hold: every imported item once, and each label from where the row says it is from."""

import json
from typing import Any

from routing.core.verify import verify
from routing.models import Delivery, Route, Run
from routing.services.deliveries import deliver
from testbed.worlds import files_of
from tests.stateful.invariants import Invariants


class Deliveries(Invariants):
    """`answers` says who answered last about an item, and what."""

    answers: dict[str, tuple[str, str]]

    def do_all_jobs(self) -> None:
        raise NotImplementedError

    def _delivered(self, run: Run) -> None:
        """Every imported item once, and each label from where the row says it is from."""
        first, second = self._export(run), self._export(run)
        assert first == second, "the same labels gave other bytes"
        rows = [json.loads(line) for line in first["labels.jsonl"].splitlines()]
        assert [row["external_id"] for row in rows] == list(
            self.project.items.order_by("position").values_list("external_id", flat=True)
        )
        assert {row["external_id"] for row in rows} == set(self.rows)
        routes = dict(Route.objects.filter(run=run).values_list("item__external_id", "position"))
        models = dict(run.run_sources.values_list("position", "source__name"))
        for row in rows:
            self._check_row(row, routes, models)
        assert verify(first["certificate.json"], first["draw.jsonl"]) == []
        if run.pk in self.touched:
            assert b"marked invalid" in first["README.md"]

    def _check_row(self, row: dict[str, Any], routes: dict[str, int], models: dict[int, str]) -> None:
        name = row["external_id"]
        imported = self.rows[name]
        assert row["text"] == imported["text"]
        if row["label"] is None:
            assert row["reason"]
            assert name not in routes or row["source"] is None
        elif row["source"] == "person":
            if row["settled_by"] is None:
                assert (row["annotator"], row["label"]) == self.answers[name]
        else:
            assert row["source"] == models[routes[name]]
            assert row["label"] == imported[row["source"]]
            assert row["annotator"] is None

    def _export(self, run: Run) -> dict[str, bytes]:
        deliver(run=run, user=None)
        self.do_all_jobs()
        delivery = Delivery.objects.filter(run=run).order_by("-number")[0]
        return files_of(delivery)
