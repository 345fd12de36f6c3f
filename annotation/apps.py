from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = "People and data"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from annotation import append_only, checks, jobs  # noqa: F401 - `checks` registers itself
        from annotation.services.import_job import run_import
        from annotation.services.import_undo import undo_import

        append_only.register("annotation_label", "annotation_settlement", "annotation_auditevent")
        jobs.register("import", run_import, title="Import")
        jobs.register("import_undo", undo_import, title="Import taken back")
        post_migrate.connect(append_only.install, sender=self)
