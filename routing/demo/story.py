"""The steps of the demonstration, each of which can be interrupted and taken up again."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from django.core.files import File

from annotation.common.files import store_file
from annotation.imports.upload import start_import
from annotation.jobs import jobs
from annotation.models import Job, Membership, Project, User, WorkItem
from annotation.people.members import add_member
from annotation.projects.manage import create_project
from routing.delivery.deliver import deliver
from routing.demo import experts, people
from routing.demo.scene import Model, Pool, Scene
from routing.models import Delivery, ModelPrice, Run, SourceTry
from routing.runs.certify import analyse
from routing.runs.expert.ask import ask_expert
from routing.runs.route import route
from routing.runs.start import start_run
from routing.sources.manage import save_source
from routing.sources.prices import save_price
from routing.sources.trials import newest_try, start_try

ANNOTATORS = 3


class DemoError(people.PersonError):
    """The demonstration cannot go on."""


@dataclass
class Story:
    """The state lives in `folder` and in the database; every step looks what is there already."""

    scene: Scene
    folder: Path
    address: str
    tell: Callable[[str], None]
    progress: Callable[[str, int, int | None], None]
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seconds_file.parent.mkdir(parents=True, exist_ok=True)
        if self._seconds_file.exists():
            self.seconds = json.loads(self._seconds_file.read_text())

    def pool(self) -> Pool:
        with self.stage("models and data"):
            pool = self.scene.make_pool(self.folder)
        for line in pool.models:
            self.tell(f"  {line}")
        self.tell(f"  People: a label costs {self.scene.human_cost}")
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
        if self.scene.expert and self.scene.expert not in {account.username for account in accounts}:
            accounts.append(people.Account(self.scene.expert, accounts[0].password, "annotator"))
        file.touch(mode=0o600)
        file.write_text(json.dumps([asdict(account) for account in accounts], indent=2))
        for account in accounts:
            user, _ = User.objects.get_or_create(username=account.username)
            if not user.check_password(account.password):
                user.set_password(account.password)
                user.save(update_fields=["password"])
        return accounts

    def project(self, accounts: list[people.Account]) -> Project:
        scene = self.scene
        existing = Project.objects.filter(slug=scene.slug).first()
        manager = User.objects.get(username=accounts[0].username)
        project = existing or create_project(
            user=manager,
            name=scene.name,
            task_type=scene.task_type,
            choices=scene.choices,
            guidelines=scene.guidelines,
            currency=scene.currency,
            human_cost=scene.human_cost,
        )
        if project.slug != scene.slug:
            raise DemoError(f"The demo's project got the address {project.slug!r} instead of {scene.slug!r}.")
        members = set(Membership.objects.filter(project=project).values_list("user__username", flat=True))
        for account in accounts:
            if account.username not in members:
                add_member(project=project, actor=manager, username=account.username, role=account.role)
        return project

    def sources(self, project: Project) -> None:
        """The price list and the models; their servers have to be up."""
        lines = {line.name: line for line in project.model_prices.all()}
        for name, (function, prices) in self.scene.prices.items():
            if name not in lines:
                lines[name] = save_price(
                    project=project,
                    user=project.created_by,
                    name=name,
                    cost_function=function,
                    prices=prices,
                )
        for position, model in enumerate(self.scene.models, start=1):
            if not project.sources.filter(position=position).exists():
                self._save_source(project, position, model, lines.get(model.price))

    def _save_source(self, project: Project, position: int, model: Model, price: ModelPrice | None) -> None:
        save_source(
            project=project,
            user=project.created_by,
            name=model.name,
            backend=model.backend,
            params=dict(model.params),
            cost_per_label=model.cost,
            price=price,
            prompt=model.prompt,
            position=position,
        )

    def import_pool(self, project: Project, pool: Pool) -> None:
        if project.items.count() == pool.size:
            return
        with self.stage("import"):
            job = _unfinished(project, "import")
            if job is None:
                with open(pool.file, "rb") as file:
                    stored = store_file(
                        project=project,
                        content=File(file),
                        original_name=pool.file.name,
                        media_type=pool.media_type,
                    )
                job = start_import(
                    project=project, user=project.created_by, stored_file=stored, mapping=pool.columns
                )
            self._wait(job, "import")
        if (count := project.items.count()) != pool.size:
            raise DemoError(f"{count} items were imported instead of {pool.size}.")

    def try_models(self, project: Project) -> None:
        """Ask each model about a few items, once, as a manager does before a run rests on it."""
        if not self.scene.tries_models or project.runs.exists():
            return
        for source in project.sources.order_by("position"):
            if not SourceTry.objects.filter(source=source).exists():
                with self.stage(f"try {source.name.lower()}"):
                    job = newest_try(source).job
                    if job is None or job.state not in jobs.UNFINISHED:
                        job = start_try(source=source, user=project.created_by)
                    self._wait(job, f"try {source.name.lower()}")
            seen = newest_try(source)
            if seen.tried is not None and seen.mean_cost is not None:
                self.tell(
                    f"    {seen.usable} of {len(seen.tried.rows)} answers usable; a label cost "
                    f"{seen.mean_cost:.1f} {project.currency}"
                )

    def run(self, project: Project) -> Run:
        """Plan, predict and draw."""
        run = project.runs.exclude(state=Run.State.CANCELLED).order_by("number").first()
        if run is None:
            run = start_run(
                project=project,
                user=project.created_by,
                accept_unusable=True,  # nobody is there to be asked; what tries found is told above
                **self.scene.plan,
            )
        if run.state == Run.State.PREPARING:
            with self.stage("predict and draw"):
                self._wait(_job(project, "prepare_run"), "predict and draw")
            run.refresh_from_db()
        return run

    def label(self, stage: str, run: Run, accounts: list[people.Account], pool: Pool) -> None:
        """Let the simulated people label whatever waits for them."""
        while total := self._waiting(run):
            with self.stage(stage):
                for labelling, truth_file in self._people(accounts, pool):
                    people.label_everything(
                        address=self.address,
                        accounts=labelling,
                        annotate_path=f"/projects/{self.scene.slug}/annotate/",
                        truth_file=truth_file,
                        labelled=lambda count: self.progress(stage, count, total),
                    )

    def _waiting(self, run: Run) -> int:
        """Work items of the run that wait for somebody."""
        run.refresh_from_db()
        return WorkItem.objects.filter(batch__in=run.own_batches, state__in=("open", "leased")).count()

    def _people(self, accounts: list[people.Account], pool: Pool) -> list[tuple[list[people.Account], Path]]:
        """Who labels, with what they take for right: the expert after the others."""
        annotators = [account for account in accounts if account.role == "annotator"]
        if not self.scene.expert:
            return [(annotators, pool.truth_file)]
        others = [account for account in annotators if account.username != self.scene.expert]
        expert = [account for account in annotators if account.username == self.scene.expert]
        return [(others, experts.annotators_truth(self.folder, pool)), (expert, pool.truth_file)]

    def ask_expert(self, run: Run) -> None:
        run.refresh_from_db()
        if run.by_expert and run.state == Run.State.CALIBRATING:
            with self.stage("ask the expert"):
                self._wait(ask_expert(run=run, user=run.created_by), "ask the expert")
            run.refresh_from_db()

    def analyse(self, run: Run) -> None:
        run.refresh_from_db()
        if run.state in (Run.State.CALIBRATING, Run.State.CHECKING):
            with self.stage("analyse"):
                self._wait(analyse(run=run, user=run.created_by), "analyse")
        elif run.state == Run.State.ANALYSING:
            with self.stage("analyse"):
                self._wait(_job(run.project, "analyse_run"), "analyse")
        run.refresh_from_db()

    def route(self, run: Run) -> None:
        if run.state == Run.State.ANALYSED:
            with self.stage("route"):
                self._wait(route(run=run, user=run.created_by), "route")
        elif run.state == Run.State.ROUTING:
            with self.stage("route"):
                self._wait(_job(run.project, "route_run"), "route")
        run.refresh_from_db()

    def deliver(self, run: Run) -> Delivery:
        run.refresh_from_db()
        if not run.deliveries.exists():
            with self.stage("deliver"):
                job = _unfinished(run.project, "deliver_run") or deliver(run=run, user=run.created_by)
                self._wait(job, "deliver")
        return run.deliveries.order_by("-number")[0]

    @property
    def _seconds_file(self) -> Path:
        return self.folder / self.scene.folder / "seconds.json"

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done inside, and say how long it took; a try that was interrupted does not count."""
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
