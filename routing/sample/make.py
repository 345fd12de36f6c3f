"""A project to try HyPAC with, made by a click: digits to look at, and what two models say of them."""

import io
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit
from annotation.common.files import store_file
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.zip_images import ZipImages
from annotation.imports.job import run_import
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, Project, User
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import create_project
from annotation.words import Words
from routing.sample.digits import CLASSES, sample_archive
from routing.sources.backends import recorded
from routing.sources.manage import save_source

KIND = "sample"
ITEMS = 400
"""So few that whoever tries it labels the calibration set in some minutes."""
SEED = 0


def make_sample_project(*, user: User) -> Project:
    """A project of `user` that the job "sample" fills. Raises NotAllowedError where they may make none."""
    with transaction.atomic():
        project = create_project(
            user=user,
            name=_("Sample: handwritten digits"),
            choices=[ChoiceSpec(name=name, key=name, hotkey=name) for name in CLASSES],
            question=_("Which digit is written here?"),
            guidelines=_(
                "Say what you see, even where the writing is poor. Where two digits are equally likely, "
                "choose the one that you thought of first."
            ),
            currency="USD",
            human_cost=Decimal("0.10"),
        )
        audit.record(
            project=project, actor=user, action="project.sample_made", target=f"project:{project.slug}"
        )
        jobs.enqueue(project=project, kind_name=KIND, params={}, unique_key=KIND, user=user)
    return project


def fill_sample(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "sample": imports the images with the models' answers, and names the models."""
    job = context.job
    project = job.project
    if "file" not in job.params:
        context.progress(stage=Words(gettext_noop("Making the images")))
        job.params = {**job.params, **_archive(project)}
        Job.objects.filter(pk=job.pk).update(params=job.params)
        context.params = job.params
    result = run_import(context)
    project.refresh_from_db()
    for position, (name, column, cost) in enumerate(
        ((_("Fast model"), "fast", "0.001"), (_("Slow model"), "slow", "0.004")), start=1
    ):
        if not project.sources.filter(position=position).exists():
            save_source(
                project=project,
                user=project.created_by,
                name=name,
                backend=recorded.NAME,
                params={recorded.LABEL: column, "confidence_column": f"{column}_confidence"},
                cost_per_label=Decimal(cost),
                position=position,
            )
    return result


def _archive(project: Project) -> dict[str, Any]:
    """What an import of the images is asked with."""
    stored = store_file(
        project=project,
        content=io.BytesIO(sample_archive(ITEMS, seed=SEED)),
        original_name="digits.zip",
        media_type="application/zip",
    )
    mapping = ColumnMapping()
    return {
        "file": stored.pk,
        "format": ZipImages.name,
        "id_column": mapping.id_column,
        "text_column": mapping.text_column,
        "field_columns": list(mapping.field_columns),
    }
