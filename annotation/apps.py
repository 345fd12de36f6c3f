from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = "People and data"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from annotation import append_only

        append_only.register("annotation_label", "annotation_auditevent")
        post_migrate.connect(append_only.install, sender=self)
