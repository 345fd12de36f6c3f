"""A worker to be killed. `prepare` stores a file and an import of it; `work JOB` does the job.

Run as `python -m tests.annotation.jobs.killed_worker ...` on a migrated database.
"""

import io
import json
import sys

import django

ROWS = 3000


def prepare() -> None:
    from annotation.common.files import store_file
    from annotation.imports.columns import ColumnMapping
    from annotation.imports.upload import start_import
    from testbed.factories import make_project

    project = make_project()
    # Every tenth row has no text, every hundredth the text of another one.
    rows = (f"{n},{'' if n % 10 == 9 else f'text {n % 100 and n}'}" for n in range(ROWS))
    content = io.BytesIO(("id,text\n" + "\n".join(rows)).encode())
    stored = store_file(project=project, content=content, original_name="x.csv", media_type="text/csv")
    mapping = ColumnMapping(id_column="id", text_column="text")
    job = start_import(project=project, user=project.created_by, stored_file=stored, mapping=mapping)
    print(job.pk)


def work(job_id: int) -> None:
    from annotation.imports import job as import_job
    from annotation.jobs import jobs
    from annotation.models import Item, Job

    import_job.CHUNK_ROWS = 25
    finished = jobs.run(job_id)
    job = Job.objects.get(pk=job_id)
    print(
        json.dumps(
            {
                "finished": finished,
                "state": job.state,
                "result": job.result,
                "items": Item.objects.count(),
                "positions": Item.objects.values("position").distinct().count(),
                "problems": job.problems.count(),
            }
        )
    )


if __name__ == "__main__":
    django.setup()
    if sys.argv[1] == "prepare":
        prepare()
    else:
        work(int(sys.argv[2]))
