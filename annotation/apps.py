from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = "People and data"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from annotation import append_only, jobs
        from annotation.services.import_job import run_import

        append_only.register("annotation_label", "annotation_auditevent")
        jobs.register("import", run_import, title="Import")
        post_migrate.connect(append_only.install, sender=self)
