"""The steps of the demonstration, each of which can be interrupted and taken up again."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path

from django.core.files import File

from annotation import jobs
from annotation.models import Job, Membership, Project, User
from annotation.services.files import store_file
from annotation.services.imports import Mapping, start_import
from annotation.services.members import add_member
from annotation.services.projects import ChoiceSpec, create_project
from routing.demo import digits, people
from routing.demo.digits import CLASSES, DigitsPool
from routing.models import Delivery, Run
from routing.services.deliveries import deliver
from routing.services.runs import analyse, route, start_run
from routing.services.sources import save_source

SLUG = "handwritten-digits"
SEED = 0
EPSILON = ALPHA = Decimal("0.05")
M = 300
P = Decimal("0.9")
FAST_COST, SLOW_COST, HUMAN_COST = Decimal(1), Decimal(2), Decimal(8)
ANNOTATORS = 3
GUIDELINES = """Which digit is written here?

- Say what you see, even where the writing is poor.
- Where two digits are equally likely, choose the one that you thought of first.
"""


class DemoError(people.PersonError):
    """The demonstration cannot go on."""


@dataclass
class Story:
    """The state lives in `folder` and in the database; every step looks what is there already."""

    folder: Path
    address: str
    tell: Callable[[str], None]
    progress: Callable[[str, int, int | None], None]
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._seconds_file.exists():
            self.seconds = json.loads(self._seconds_file.read_text())

    def train(self) -> DigitsPool:
        pool = DigitsPool.load(self.folder)  # trained once: another model file would be another model
        if pool is None:
            with self._stage("models"):
                pool = digits.make_pool(self.folder, seed=SEED)
        for model, cost in ((pool.fast, FAST_COST), (pool.slow, SLOW_COST)):
            self.tell(
                f"  {model.name}: {model.description}; a label costs {cost}; alone it labels "
                f"{model.mistakes} of {model.pool_size:,} wrong ({model.error:.1%})"
            )
        self.tell(f"  People: a label costs {HUMAN_COST}")
        return pool

    def accounts(self) -> list[people.Account]:
        """The demo accounts; their password is made anew for every installation and kept in `folder`."""
        file = self.folder / "accounts.json"
        if file.exists():
            accounts = [people.Account(**entry) for entry in json.loads(file.read_text())]
        else:
            password = secrets.token_urlsafe(9)
            roles = [
                ("manager", "owner"),
                *((f"annotator{k}", "annotator") for k in range(1, ANNOTATORS + 1)),
            ]
            accounts = [people.Account(name, password, role) for name, role in roles]
            file.touch(mode=0o600)
            file.write_text(json.dumps([asdict(account) for account in accounts], indent=2))
        for account in accounts:
            user, _ = User.objects.get_or_create(username=account.username)
            if not user.check_password(account.password):
                user.set_password(account.password)
                user.save(update_fields=["password"])
        return accounts

    def project(self, accounts: list[people.Account]) -> Project:
        existing = Project.objects.filter(slug=SLUG).first()
        manager = User.objects.get(username=accounts[0].username)
        project = existing or create_project(
            user=manager,
            name="Handwritten digits",
            choices=[ChoiceSpec(name=name, key=name, hotkey=name) for name in CLASSES],
            guidelines=GUIDELINES,
            currency="units",
            human_cost=HUMAN_COST,
        )
        if project.slug != SLUG:
            raise DemoError(f"The demo's project got the address {project.slug!r} instead of {SLUG!r}.")
        members = set(Membership.objects.filter(project=project).values_list("user__username", flat=True))
        for account in accounts:
            if account.username not in members:
                add_member(project=project, actor=manager, username=account.username, role=account.role)
        for position, (name, model, cost) in enumerate(
            (("Fast model", "digits-fast", FAST_COST), ("Slow model", "digits-slow", SLOW_COST)), start=1
        ):
            if not project.sources.filter(position=position).exists():
                save_source(
                    project=project,
                    user=manager,
                    name=name,
                    backend="sklearn",
                    params={"model": model},
                    cost_per_label=cost,
                    position=position,
                )
        return project

    def import_pool(self, project: Project, pool: DigitsPool) -> None:
        if project.items.count() == pool.size:
            return
        with self._stage("import"):
            job = _unfinished(project, "import")
            if job is None:
                with open(pool.archive, "rb") as archive:
                    stored = store_file(
                        project=project,
                        content=File(archive),
                        original_name=pool.archive.name,
                        media_type="application/zip",
                    )
                job = start_import(
                    project=project, user=project.created_by, stored_file=stored, mapping=Mapping()
                )
            self._wait(job, "import")
        if (count := project.items.count()) != pool.size:
            raise DemoError(f"{count} images were imported instead of {pool.size}.")

    def run(self, project: Project) -> Run:
        """Plan, predict and draw."""
        run = project.runs.exclude(state=Run.State.CANCELLED).order_by("number").first()
        if run is None:
            run = start_run(
                project=project,
                user=project.created_by,
                epsilon=EPSILON,
                alpha=ALPHA,
                target=Run.Target.DATASET,
                m=M,
                p=P,
                entropy=SEED,
            )
        if run.state == Run.State.PREPARING:
            with self._stage("predict and draw"):
                self._wait(_job(project, "prepare_run"), "predict and draw")
            run.refresh_from_db()
        return run

    def label(self, stage: str, run: Run, accounts: list[people.Account], pool: DigitsPool) -> None:
        """Let the simulated people label whatever waits for them."""
        batch = run.calibration_batch if run.state == Run.State.CALIBRATING else run.routed_batch
        total = batch.work_items.filter(state__in=("open", "leased")).count() if batch else 0
        if not total:
            return
        with self._stage(stage):
            people.label_everything(
                address=self.address,
                accounts=[account for account in accounts if account.role == "annotator"],
                annotate_path=f"/projects/{SLUG}/annotate/",
                truth_file=pool.truth_file,
                labelled=lambda count: self.progress(stage, count, total),
            )

    def analyse(self, run: Run) -> None:
        if run.state == Run.State.CALIBRATING:
            with self._stage("analyse"):
                self._wait(analyse(run=run, user=run.created_by), "analyse")
        elif run.state == Run.State.ANALYSING:
            with self._stage("analyse"):
                self._wait(_job(run.project, "analyse_run"), "analyse")
        run.refresh_from_db()

    def route(self, run: Run) -> None:
        if run.state == Run.State.ANALYSED:
            with self._stage("route"):
                self._wait(route(run=run, user=run.created_by), "route")
        elif run.state == Run.State.ROUTING:
            with self._stage("route"):
                self._wait(_job(run.project, "route_run"), "route")
        run.refresh_from_db()

    def deliver(self, run: Run) -> Delivery:
        run.refresh_from_db()
        if not run.deliveries.exists():
            with self._stage("deliver"):
                job = _unfinished(run.project, "deliver_run") or deliver(run=run, user=run.created_by)
                self._wait(job, "deliver")
        return run.deliveries.order_by("-number")[0]

    @property
    def _seconds_file(self) -> Path:
        return self.folder / "seconds.json"

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 2)
        self._seconds_file.write_text(json.dumps(self.seconds))
        self.tell(f"  {name}: {self.seconds[name]:.1f} s")

    def _wait(self, job: Job, title: str) -> None:
        """Wait for a job that the worker does; this process only looks."""
        if job.state in (Job.State.FAILED, Job.State.CANCELLED):
            jobs.retry(job=job)
        while True:
            job.refresh_from_db()
            if job.state == Job.State.DONE:
                return
            if job.state in (Job.State.FAILED, Job.State.CANCELLED):
                raise DemoError(f"{title} did not finish: {job.error or job.get_state_display()}")
            self.progress(job.stage or title, job.done, job.total)
            time.sleep(0.1)


def _unfinished(project: Project, kind: str) -> Job | None:
    return project.jobs.filter(kind=kind, state__in=jobs.UNFINISHED).order_by("-id").first()


def _job(project: Project, kind: str) -> Job:
    job = project.jobs.filter(kind=kind).order_by("-id").first()
    if job is None:
        raise DemoError(f"The job {kind} is missing; start afresh with --fresh.")
    return job
