"""`manage.py project list` and `manage.py project create NAME`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from annotation.management.scripts import ScriptCommand, decimal_of
from annotation.ports import task_type_lacks
from annotation.projects.choices import ChoiceSpec
from annotation.projects.manage import create_project
from annotation.projects.queries import projects_of
from annotation.task_types import DEFAULT, TASK_TYPES


class Command(ScriptCommand):
    help = "List the projects of a person, or make one, of which they become the owner."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["list", "create"])
        parser.add_argument("name", nargs="?", default="", help="of the new project")
        parser.add_argument("--choice", action="append", metavar="LABEL", help="once for each label")
        parser.add_argument("--task-type", default=DEFAULT, choices=list(TASK_TYPES))
        parser.add_argument("--guidelines", default="")
        parser.add_argument("--currency", metavar="CODE")
        parser.add_argument("--human-cost", metavar="DECIMAL", help="price of one label by a person")
        super().add_arguments(parser)

    def do(self, options: dict[str, Any]) -> None:
        user = self.user(options)
        if options["what"] == "list":
            rows: Any = projects_of(user)
            projects = [{"slug": row.slug, "name": row.name, "role": row.role} for row in rows]
            words = "\n".join(f"{row['slug']}\t{row['role']}\t{row['name']}" for row in projects)
            self.tell({"projects": projects}, words or "None.")
            return
        if not options["name"]:
            raise CommandError("Say what the project is called: manage.py project create NAME")
        named: dict[str, Any] = {}
        if options["currency"] is not None:
            named["currency"] = options["currency"]
        if options["human_cost"] is not None:
            named["human_cost"] = decimal_of("--human-cost", options["human_cost"])
        project = create_project(
            user=user,
            name=options["name"],
            task_type=options["task_type"],
            choices=[ChoiceSpec(name) for name in options["choice"] or ()],
            guidelines=options["guidelines"],
            **named,
        )
        lacks = task_type_lacks(project.task_type)
        content = {"slug": project.slug, "name": project.name, "task_type_lacks": lacks}
        self.tell(content, "\n".join(filter(None, [project.slug, lacks])))
