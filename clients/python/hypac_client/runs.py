"""Runs: one plan, one draw, one analysis."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, cast

from hypac_client.deliveries import Delivery
from hypac_client.errors import HypacError, JobError, does_not_fit
from hypac_client.jobs import Job
from hypac_client.models import FinalAudit, LossesAsked, RosterEntry, RunData, Taken, WaitingWork
from hypac_client.progress import Progress, progress_of
from hypac_client.resource import DEFAULT_WAIT, Resource, lines, pages, until
from hypac_client.transport import Transport

STATES = (
    *("preparing", "calibrating", "checking", "losses", "analysing", "analysed"),
    *("routing", "labelling", "complete"),
)
"""In their order; in `checking` is only a run with an expert, in `losses` one whose losses a program of yours
measures.
"""
ASKED = {"calibrating": ("calibration",), "checking": ("expert",), "labelling": ("labelling", "expert")}
"""By state, the parts of a run that say how far whoever labels then is."""
JOB_OF_STATE = {"preparing": "prepare_run", "analysing": "analyse_run", "routing": "route_run"}


def _is_of_losses(name: str) -> bool:
    return name in ("item", "measured") or str(name).startswith("loss")


class Run(Resource):
    title_field = "number"
    data: RunData

    def __init__(self, transport: Transport, project: str, data: dict[str, Any]) -> None:
        super().__init__(transport, f"{project}runs/{data['number']}/", data)
        self._project = project

    @property
    def number(self) -> int:
        return int(self.data["number"])

    @property
    def state(self) -> str:
        """One of `STATES`, or `cancelled`."""
        return str(self.data["state"])

    def is_at(self, state: str) -> bool:
        """Whether it is in this state or beyond, as of the last answer."""
        if self.state not in STATES:
            raise does_not_fit(self._path, f"state is {self.state!r}")
        return STATES.index(self.state) >= STATES.index(state)

    @property
    def certified(self) -> bool:
        """Whether the analysis found thresholds that hold; False before it, and once something broke them
        (`data["invalid_reasons"]`)."""
        certificate = self.data.get("certificate")
        return bool(certificate and certificate.get("certified"))

    @property
    def sentence(self) -> str:
        """What is certified, in words; empty before the analysis."""
        certificate = self.data.get("certificate")
        return str((certificate and certificate.get("sentence")) or "")

    def wait_for(
        self, state: str, *, timeout: float | None = DEFAULT_WAIT, progress: bool | Progress = False
    ) -> Self:
        """Until the run is in `state` or beyond. Raises JobError where its work fails or it is cancelled."""
        if state not in STATES:
            raise ValueError(f"a run is never {state!r}: one of {', '.join(STATES)}")
        shown = progress_of(f"run {self.number}", progress)

        def reached() -> bool:
            self.refresh()
            if self.state == "cancelled":
                raise JobError(f"run {self.number} was cancelled")
            if self.is_at(state):
                shown.show(self.state, 1, 1)
                return True
            self._show_work(shown)
            return False

        try:
            what = f"run {self.number} is not {state}"
            until(reached, timeout=timeout, what=what, sleep=self._transport.sleep)
        finally:
            shown.close()
        return self

    def wait_for_labels(
        self, *, timeout: float | None = DEFAULT_WAIT, progress: bool | Progress = False
    ) -> Self:
        """Until people, and in a run with an expert she, have answered everything that they are asked for
        now, and a reviewer has decided where they differ.
        """
        shown = progress_of(f"run {self.number}", progress)

        def answered() -> bool:
            self.refresh()
            if self.state == "cancelled":
                raise JobError(f"run {self.number} was cancelled")
            if self.state not in ASKED:
                return self.state not in JOB_OF_STATE
            parts = self._asked_now()
            total = sum(int(part.get("total") or 0) for part in parts)
            left = self.left_to_label
            shown.show("expert" if self.state == "checking" else "people", max(0, total - left), total)
            return total > 0 and left == 0

        try:
            what = f"people have not labelled everything of run {self.number}"
            until(answered, timeout=timeout, what=what, sleep=self._transport.sleep)
        finally:
            shown.close()
        return self

    def ask_expert(self) -> Job:
        """In a run with an expert: lock the annotators' calibration labels and have her asked. When she is
        done, `analyse`.
        """
        return self._job("ask-expert/")

    def ask_losses(self) -> Self:
        """In a run whose losses a program of yours measures: lock the calibration labels, so that they can be
        measured against. When all losses are there, `analyse`.
        """
        self._post("ask-losses/")
        return self.refresh()

    def losses_asked(self) -> LossesAsked:
        """How to measure, the `models` behind `answer1` and `loss1` and so on, of how many `items` losses are
        wanted and `measured`, and names of the first that are `missing`. Raises ConflictError where nothing
        is to be measured now.
        """
        return cast(LossesAsked, self._get("losses/"))

    def losses_to_measure(self) -> Iterator[dict[str, Any]]:
        """Each labelled item of the calibration set with its `label`, the models' answers `answer1`, ..., and
        `measured`, which names both. They are for the program that measures, and for nobody who labels.
        """
        return lines(self._transport, f"{self._path}losses.ndjson", {})

    def give_losses(self, rows: Sequence[Mapping[str, Any]]) -> Taken:
        """Store what was measured, at most 1,000 rows at once: those of `losses_to_measure` with `loss1`,
        ..., from 0 to 1, for each answer. `refused` has `row` and `reason`. What comes again replaces what
        came before, until the analysis.
        """
        # Labels and answers may be long, and stay here: `measured` names them.
        sent = [{name: row[name] for name in row if _is_of_losses(name)} for row in rows]
        return cast(Taken, self._post("losses/", {"rows": sent}))

    def analyse(self) -> Job:
        """Lock the calibration labels and certify thresholds. A draw is analysed once."""
        return self._job("analyse/")

    def route(self) -> Job:
        """Send every item to its source, the rest to people."""
        return self._job("route/")

    def take_in(self, *, accept_missing: bool = True) -> Job:
        """Have items that came later routed by the thresholds of this run, whose target is `population`.

        Raises InvalidError where a source whose answers are sent in lacks some for them, unless
        `accept_missing`; ConflictError where there are none, or none may be taken in; `data["later_items"]`
        says so before.
        """
        return self._job("take-in/", None if accept_missing else {"accept_missing": False})

    def accept_unusable(self) -> Self:
        """Let a run go on that stopped before people were asked, because many answers cannot be used."""
        self._post("accept-unusable/")
        return self.refresh()

    def draw(self, value: str = "") -> Job:
        """Draw the calibration set of a run that waits for what its draw is to come from
        (`data["draw_waits"]`): a text that somebody else chose once they had seen the hash of the first
        commitment, or the value of the beacon; empty: ask the beacon again.
        """
        return self._job("draw/", {"value": value})

    def commitment(self, number: int) -> dict[str, Any]:
        """What the run committed to: 1 before its draw, 2 before the first label. Raises NotFoundError before
        it has, and ConflictError before the run is analysed. The hashes are in `data["commitments"]`.
        """
        return dict(self._get(f"commitments/{number}.json"))

    def roster(self) -> list[RosterEntry]:
        """Who labels: `user`, `role`, `share`, what is `open` and `done`, `last_label_at`, ... Empty where
        whoever is free takes the next item.
        """
        return list(self._get("roster/")["entries"])

    def hand_over(self, user: str) -> int:
        """Give up the open items of somebody on the roster who is absent; how many these were."""
        return int(self._post("hand-over/", {"user": user})["items"])

    def final_audit(self) -> FinalAudit:
        """How far the final audit is: `planned`, `drawn_at`, `open`, `objection`, and once it is analysed
        `certified` and `sentence`. Raises NotFoundError where none is planned.
        """
        return cast(FinalAudit, self._get("final-audit/"))

    def draw_final_audit(self) -> Job:
        """Once everything is labelled: draw the labels by people that the expert labels, too."""
        return self._job("final-audit/")

    def analyse_final_audit(self) -> Job:
        """Once the expert has labelled what was drawn: compute its certificate."""
        return self._job("analyse-final-audit/")

    def waiting_work(self, part: str = "routed") -> WaitingWork:
        """How many items of that part another program can be given now (`waiting`), whether a certificate
        will rest on their labels (`blind`), and what must not be shown or done there (`conditions`).
        """
        return cast(WaitingWork, self._get("work/", {"part": part}))

    def work(
        self, shape: str = "hypac", *, part: str = "routed", image_seconds: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """What people still have to label, for another program: `shape` is `hypac` or `label-studio`, `part`
        is `routed`, once the run is routed, or `calibration`, where what `waiting_work` says has to be kept.
        With `image_seconds` each image has an address that shows it for so long to whoever has it.
        Raises ConflictError where nothing of that part may be labelled elsewhere now.
        """
        asked = {"shape": shape, "part": part}
        if image_seconds is not None:
            asked["image_seconds"] = str(image_seconds)
        return lines(self._transport, f"{self._path}work.ndjson", asked)

    def cvat_archive(self, file: str | PathLike[str], *, part: str = "routed") -> Path:
        """Images that wait to be drawn on, as a zip archive for CVAT."""
        path = f"{self._path}work/cvat/"
        with self._transport.stream(path, params={"part": part}) as response, open(file, "wb") as out:
            for piece in response.iter_bytes():
                out.write(piece)
        return Path(file)

    def take_back_cvat(
        self,
        file: str | PathLike[str],
        *,
        annotator: str,
        part: str = "routed",
        empty: str = "wait",
    ) -> Taken:
        """Store the boxes or masks of a file that CVAT exported, `annotations.xml` of “CVAT for images 1.1”,
        drawn by `annotator`. `empty="nothing"`: whoever drew looked at all of its images, and those without a
        shape have nothing to draw.
        """
        asked = {"part": part, "annotator": annotator, "empty": empty}
        with open(file, "rb") as content:
            answer = self._transport.upload(
                f"{self._path}work/cvat/", content, media_type="application/xml", params=asked
            )
        return cast(Taken, answer)

    def take_back(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        people: Mapping[str, str] | None = None,
        part: str = "routed",
    ) -> Taken:
        """Store what people answered there, at most 1,000 rows at once: how many are `stored` and `known`,
        and `refused` with `row` and `reason`. `people`: the username here of whoever rows name otherwise.
        """
        body = {"rows": [dict(row) for row in rows], "people": dict(people or {}), "part": part}
        return cast(Taken, self._post("work/", body))

    def cancel(self) -> Self:
        self._post("cancel/")
        return self.refresh()

    def set_budget(self, budget: float | str | None) -> Self:
        """What its models may cost; None: no limit."""
        body = {"budget": None if budget is None else str(budget)}
        self._transport.request("PUT", f"{self._path}budget/", json=body)
        return self.refresh()

    def deliver(
        self,
        formats: Sequence[str] = ("csv", "jsonl"),
        *,
        since: Delivery | int | None = None,
        filters: Mapping[str, str] | None = None,
        unless_delivered: bool = False,
        timeout: float | None = DEFAULT_WAIT,
        progress: bool | Progress = False,
    ) -> Delivery:
        """Have a delivery made and wait for it.

        `since`: another delivery of the project; only what is not as that one gave it out is in the new one.
        `filters`: only what these filters of the table of items find, `{"label": "good", "by": "person"}`.
        `unless_delivered`: make none where the last one holds the same, or `since` it nothing is new; that
        one comes back, and its `made` is False.
        """
        body: dict[str, Any] = {"formats": list(formats)}
        if since is not None:
            body["since"] = since.id if isinstance(since, Delivery) else since
        if filters:
            body["filters"] = dict(filters)
        if unless_delivered:
            body["unless_delivered"] = True
        job = self._job("deliveries/", body).wait(timeout=timeout, progress=progress)
        address = f"{self._project}deliveries/{job.result['delivery']}/"
        delivery = Delivery(self._transport, address, self._transport.get(address))
        delivery.made = bool(job.result.get("made", True))
        return delivery

    @property
    def left_to_label(self) -> int:
        """How many answers by people are missing at this stage, as of the last answer."""
        parts = self._asked_now()
        return sum(int(part.get(name) or 0) for part in parts for name in ("open", "leased", "disagreeing"))

    def _asked_now(self) -> list[Mapping[str, Any]]:
        """How far whoever labels now is."""
        fields: Mapping[str, Any] = self.data
        return [fields.get(name) or {} for name in ASKED.get(self.state, ())]

    def work_of_state(self) -> Job | None:
        """The newest job that takes the run out of its state; None where none does."""
        kind = JOB_OF_STATE.get(self.state)
        return None if kind is None else self.newest_work(kind)

    def newest_work(self, kind: str) -> Job | None:
        """The newest job of this kind in the project."""
        found = next(pages(self._transport, f"{self._project}jobs/", {"kind": kind}), None)
        return found and Job(self._transport, f"{self._project}jobs/{found['id']}/", found)

    def certificate_file(self) -> bytes:
        """The bytes that the certificate's id is the SHA-256 of."""
        return self._transport.content(f"{self._path}certificate.json")

    def draw_file(self) -> bytes:
        """`draw.jsonl`: with the certificate all that is needed to recompute it."""
        return self._transport.content(f"{self._path}draw.jsonl")

    def _job(self, below: str, body: dict[str, Any] | None = None) -> Job:
        answer = self._post(below, body)
        if not isinstance(answer, dict) or "id" not in answer:
            raise HypacError(f"{below} was not answered with a job")
        return Job(self._transport, f"{self._project}jobs/{answer['id']}/", answer)

    def _show_work(self, shown: Progress) -> None:
        """Show how far the run's work is; raise JobError where it has failed."""
        job = self.work_of_state()
        if job is None:
            shown.show(self.state, 0, None)
            return
        if job["state"] in {"failed", "cancelled"}:
            raise JobError(f"run {self.number}: its work {job['state']}: {job['error'] or 'no reason given'}")
        shown.show(str(job["stage"] or self.state), int(job["done"] or 0), job["total"])
