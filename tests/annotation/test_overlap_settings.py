"""How many people a project asks about an item."""

from decimal import Decimal

import pytest

from annotation.errors import InputError
from annotation.services.projects import update_project
from testbed.factories import make_project

pytestmark = pytest.mark.django_db


class TestProject:
    def test_the_settings_are_kept_and_audited(self) -> None:
        project = make_project()
        fields = {"overlap": 3, "overlap_share": Decimal("0.5"), "consensus": "dawid_skene"}
        update_project(project=project, user=project.created_by, **fields)
        project.refresh_from_db()
        assert (project.overlap, project.overlap_share, project.consensus) == (
            3,
            Decimal("0.5"),
            "dawid_skene",
        )
        assert project.audit_events.get(action="project.changed").data["overlap"] == ["1", "3"]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("overlap", 0),
            ("overlap", 10),
            ("overlap_share", Decimal(0)),
            ("overlap_share", Decimal("1.1")),
            ("consensus", "vote"),
            ("text_format", "html"),
        ],
    )
    def test_what_cannot_be_is_refused_beside_its_field(self, field, value) -> None:
        project = make_project()
        with pytest.raises(InputError) as raised:
            update_project(project=project, user=project.created_by, **{field: value})
        assert raised.value.where == field
        assert getattr(project, field) != value

    def test_dawid_skene_is_for_single_choices(self) -> None:
        with pytest.raises(InputError, match="single choices") as raised:
            make_project(task_type="multiple_choice", consensus="dawid_skene")
        assert raised.value.where == "consensus"
