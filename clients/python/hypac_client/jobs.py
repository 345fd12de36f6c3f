"""Work in the background."""

from collections.abc import Iterator
from typing import Any, Self

from hypac_client.errors import JobError
from hypac_client.models import JobData, Problem
from hypac_client.progress import Progress, progress_of
from hypac_client.resource import DEFAULT_WAIT, Resource, pages, until

FINISHED = frozenset({"done", "failed", "cancelled"})


class Job(Resource):
    """Work that a worker does: an import, predictions, an analysis, a delivery."""

    data: JobData

    @property
    def id(self) -> int:
        return int(self.data["id"])

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def state(self) -> str:
        """`queued`, `running`, `paused`, `done`, `failed` or `cancelled`."""
        return str(self.data["state"])

    @property
    def result(self) -> dict[str, Any]:
        """What came of it; empty before it is done."""
        return dict(self.data.get("result") or {})

    @property
    def problems(self) -> list[Problem]:
        """What went wrong by line or item, `where`, `line`, `column` and `message`: the first 100 of
        `problem_count`. All of them are in `all_problems`. Asked for where the last answer had none of them,
        as that of a list.
        """
        if "problems" not in self.data:
            self.refresh()
        return list(self.data.get("problems") or [])

    @property
    def problem_count(self) -> int:
        """How many problems the server has kept, however many of them `problems` holds."""
        counted = self.data.get("problem_count")
        return len(self.problems) if counted is None else int(counted)

    def all_problems(self) -> Iterator[Problem]:
        """All that are kept, page by page as they are read."""
        return pages(self._transport, f"{self._path}problems/")

    def wait(self, *, timeout: float | None = DEFAULT_WAIT, progress: bool | Progress = False) -> Self:
        """Until it is done. Raises JobError where it fails or is cancelled, WaitTimeoutError after `timeout`
        seconds, a day where nothing is said; None waits for ever.
        """
        shown = progress_of(self.kind.replace("_", " "), progress)

        def finished() -> bool:
            self.refresh()
            shown.show(str(self.data.get("stage") or ""), int(self["done"] or 0), self["total"])
            return self.state in FINISHED

        try:
            what = f"job {self.id} ({self.kind}) is not done"
            until(finished, timeout=timeout, what=what, sleep=self._transport.sleep)
        finally:
            shown.close()
        if self.state != "done":
            reason = str(self.data.get("error") or self.state)
            raise JobError(
                f"job {self.id} ({self.kind}) {self.state}: {reason}",
                problems=self.problems,
                problem_count=self.problem_count,
            )
        return self

    def cancel(self) -> Self:
        return self._act("cancel")

    def pause(self) -> Self:
        return self._act("pause")

    def resume(self) -> Self:
        return self._act("resume")

    def retry(self) -> Self:
        """Have a job that failed or was cancelled done again from where it stopped."""
        return self._act("retry")

    def _act(self, what: str) -> Self:
        return self._add(self._post(f"{what}/"))
