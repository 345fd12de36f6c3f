"""Names stand on one line: in lists, logs, terminals and the subjects of letters."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from annotation.errors import InputError
from annotation.models import Project
from annotation.outside.connections import create_connection
from annotation.outside.webhooks.manage import create_webhook
from annotation.people.invitations import create_invitation
from annotation.people.second_factor.change import add_passkey
from annotation.people.tokens import make_token
from annotation.permissions import Access
from annotation.projects.choices import ChoiceSpec
from annotation.projects.lifecycle import duplicate_project
from annotation.projects.manage import create_project, set_choices, update_project
from routing.items.saved_views import save_view
from routing.sources.prices import save_price
from tests.annotation.apis import Api, problem
from tests.routing.sources.sending import uploaded

pytestmark = pytest.mark.django_db

S3 = {
    "endpoint": "https://s3.example.org",
    "bucket": "reviews",
    "access_key": "key",
    "secret": "secret",
    "prefix": "",
}
BY_NAME: dict[str, Callable[[Project, str], Any]] = {
    "project": lambda project, name: create_project(
        user=project.created_by, name=name, choices=[ChoiceSpec("a"), ChoiceSpec("b")]
    ),
    "another name": lambda project, name: update_project(project=project, user=project.created_by, name=name),
    "question": lambda project, name: update_project(project=project, user=project.created_by, question=name),
    "copy": lambda project, name: duplicate_project(project=project, actor=project.created_by, name=name),
    "label": lambda project, name: set_choices(
        project=project, user=project.created_by, choices=[ChoiceSpec(name, key="x"), ChoiceSpec("b")]
    ),
    "source": lambda project, name: uploaded(project, name=name),
    "price": lambda project, name: save_price(
        project=project, user=project.created_by, name=name, cost_function="flat", prices={}
    ),
    "connection": lambda project, name: create_connection(
        project=project, actor=project.created_by, name=name, **S3
    ),
    "webhook": lambda project, name: create_webhook(
        project=project,
        actor=project.created_by,
        url="https://example.org/",
        events=["job.failed"],
        description=name,
    ),
    "token": lambda project, name: make_token(user=project.created_by, name=name),
    "invitation": lambda project, name: create_invitation(
        project=project, actor=project.created_by, role="viewer", max_uses=1, days=1, note=name
    ),
    "passkey": lambda project, name: add_passkey(
        user=project.created_by, name=name, handle="h", made=SimpleNamespace()
    ),
    "view": lambda project, name: save_view(
        access=Access(project, project.created_by, "owner"), permission=SimpleNamespace(), name=name, query=""
    ),
}


@pytest.mark.parametrize("what", BY_NAME)
@pytest.mark.parametrize("sign", ["\x1b", "\x9b", "\u202e"], ids=ascii)
def test_what_no_line_shows_is_in_no_name(project: Project, what: str, sign: str) -> None:
    with pytest.raises(InputError, match=rf"not shown \(U\+{ord(sign):04X}\)"):
        BY_NAME[what](project, f"Reviews{sign}[2J of May")


def test_a_line_break_is_refused_beside_its_field(project) -> None:
    api = Api(project, project.created_by)
    told = problem(api.patch(name="Reviews\n2026-01-01 ERROR of nobody"), 400)
    assert told["faults"][0]["field"] == "name"
    assert "U+000A" in told["detail"]
    project.refresh_from_db()
    assert "\n" not in project.name


def test_what_other_languages_write_is_no_such_sign(project) -> None:
    for name in ("Ärzte & 患者", "कल\u200dप", "مراجعات", "👩\u200d🔬"):
        assert update_project(project=project, user=project.created_by, name=f" {name} ").name == name


def test_a_label_that_has_such_a_name_already_keeps_others_from_nothing(project: Project) -> None:
    project.choices.filter(position=project.choices.first().position).update(name="a\u202eb")
    specs = [ChoiceSpec(key=one.key, name=one.name) for one in project.choices.all()]
    set_choices(project=project, user=project.created_by, choices=[*specs, ChoiceSpec(name="new")])
    with pytest.raises(InputError, match="not shown"):
        set_choices(project=project, user=project.created_by, choices=[*specs, ChoiceSpec(name="n\u202ew")])
