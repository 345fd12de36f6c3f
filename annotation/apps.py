from django.apps import AppConfig
from django.utils.translation import gettext_noop


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = "People and data"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate, pre_migrate

        from annotation import checks
        from annotation.common import append_only, converters
        from annotation.common.events import import_finished
        from annotation.imports import fetching
        from annotation.imports.job import run_import
        from annotation.imports.undo import undo_import
        from annotation.jobs import jobs
        from annotation.labelling import batches
        from annotation.projects import removal as project_removal

        converters.register()
        append_only.register(
            *("annotation_label", "annotation_settlement", "annotation_auditevent"),
            "annotation_replacedchoice",
        )
        jobs.register("import", run_import, title=gettext_noop("The import"), finished=import_finished)
        jobs.register(fetching.KIND, fetching.run_fetch, title=gettext_noop("Reading from a store"))
        jobs.register("import_undo", undo_import, title=gettext_noop("Import taken back"))
        jobs.register(
            project_removal.KIND, project_removal.remove_project, title=gettext_noop("Removal of a project")
        )
        jobs.register(batches.KIND, batches.withdraw_work, title=gettext_noop("Withdrawal of work"))
        pre_migrate.connect(checks.refuse_too_old, sender=self)
        post_migrate.connect(append_only.install, sender=self)
