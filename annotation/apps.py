from django.apps import AppConfig
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _, gettext_noop


class AnnotationConfig(AppConfig):
    name = "annotation"
    verbose_name = "People and data"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate, pre_migrate

        from annotation import checks
        from annotation.common import agreed_settings, append_only, converters
        from annotation.common.events import import_finished
        from annotation.imports import bucket_look, bucket_sync, fetching
        from annotation.imports.job import run_import
        from annotation.imports.undo import undo_import
        from annotation.jobs import jobs
        from annotation.labelling import batches
        from annotation.projects import removal

        # Of all forms, in the words of the other pages.
        MinValueValidator.message = _("Give a number that is at least %(limit_value)s.")
        MaxValueValidator.message = _("Give a number that is at most %(limit_value)s.")
        converters.register()
        append_only.register("annotation_replacedchoice", "annotation_shownsuggestion")
        for table in ("annotation_label", "annotation_settlement"):
            append_only.register_emptied(table, comment="''")
        # A name in it may give way to a number (annotation.people.erase), and each time that is counted.
        counted = "IS NOT NULL AND NEW.redactions = OLD.redactions + 1"
        append_only.register_columns(
            "annotation_auditevent",
            fixed=("id", "project_id", "actor_id", "action", "created_at"),
            once={"target": counted, "data": counted, "redactions": "+ 1 = NEW.redactions"},
            message="annotation_auditevent is append-only: add a new row that names the one it replaces",
        )
        jobs.register("import", run_import, title=gettext_noop("The import"), finished=import_finished)
        reads = gettext_noop("Reading from a store")
        jobs.register(fetching.KIND, fetching.run_fetch, title=reads, copies_items=True)
        jobs.register(
            bucket_sync.KIND,
            bucket_look.run_look,
            title=gettext_noop("Synchronising a bucket"),
            copies_items=True,
            finished=bucket_sync.look_ended,
            is_news=bucket_sync.brought_something,
        )
        jobs.register("import_undo", undo_import, title=gettext_noop("Import taken back"))
        jobs.register(removal.KIND, removal.remove_project, title=gettext_noop("Removal of a project"))
        jobs.register(batches.KIND, batches.withdraw_work, title=gettext_noop("Withdrawal of work"))
        pre_migrate.connect(checks.refuse_too_old, sender=self)
        post_migrate.connect(append_only.install, sender=self)
        post_migrate.connect(agreed_settings.note_after_migrate, sender=self)
