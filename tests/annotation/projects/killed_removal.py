"""A removal of a project to be killed. `prepare` deletes a project with a run and files and keeps another;
`work JOB` does the job of the removal; `count` says what is left.

Run as `python -m tests.annotation.projects.killed_removal ...` on a migrated database.
"""

import io
import json
import sys

import django

ITEMS = 150


def prepare() -> None:
    from django.conf import settings

    settings.HYPAC_JOB_STALE_SECONDS = 600  # nobody dies here: a slow computer is not to be taken for dead
    from annotation.common.files import store_file
    from annotation.models import Job
    from annotation.projects.lifecycle import delete_project
    from testbed.factories import make_image_items, make_items, make_project
    from testbed.worlds import make_world

    make_items(make_project(name="kept"), 7)
    world = make_world(ITEMS)
    world.routed(m=30)
    make_image_items(world.project, 20)
    for number in range(20):
        content = io.BytesIO(b"file %d" % number)
        store_file(project=world.project, content=content, original_name="x", media_type="text/plain")
    delete_project(project=world.project, actor=world.manager, name=world.project.name)
    print(Job.objects.get(kind="remove_project").pk)


def work(job_id: int) -> None:
    from annotation.jobs import jobs
    from annotation.projects import removal

    removal.ITEMS, removal.ROWS, removal.FILES = 8, 5, 3
    jobs.run(job_id)


def count() -> None:
    from django.apps import apps
    from django.conf import settings

    from annotation.models import Item, Project

    rows = {
        model.__name__: model._default_manager.count()
        for app in ("annotation", "routing")
        for model in apps.get_app_config(app).get_models()
    }
    left = {name: n for name, n in rows.items() if n and name not in ("User", "KeyedRequest")}
    kept = Project.objects.get(name="kept")
    assert Item.objects.filter(project=kept).count() == 7
    files = [path for path in (settings.MEDIA_ROOT / "projects").rglob("*") if path.is_file()]
    print(json.dumps({"left": left, "files": len(files)}))


if __name__ == "__main__":
    django.setup()
    {"prepare": prepare, "work": lambda: work(int(sys.argv[2])), "count": count}[sys.argv[1]]()
