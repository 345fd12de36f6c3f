"""A file that was sent need not be chosen again where its form comes back, or its second step was left."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from testbed.factories import make_project
from tests.annotation.imports.test_import_pages import ROWS, text, upload

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


class TestFileThatIsHere:
    def test_a_file_beside_pasted_rows_need_not_be_chosen_again(self, owner, project) -> None:
        page = reverse("import_upload", args=[project.slug])
        both = {"file": SimpleUploadedFile("rows.csv", ROWS.encode()), "text": "a line"}
        answer = text(owner.post(page, both))
        assert "Give a file or pasted rows, not both." in answer
        stored = project.files.get()
        assert f'<input type="checkbox" name="kept" value="{stored.pk}" checked>' in answer
        assert "<bdi>rows.csv</bdi>" in answer
        again = owner.post(page, {"kept": stored.pk, "text": ""})
        assert again.url == reverse("import_mapping", args=[project.slug, stored.pk])
        other = make_project().files.create(sha256="0" * 64, storage_name="x", original_name="x", size=1)
        assert "Choose a file or paste some rows." in text(owner.post(page, {"kept": other.pk}))
        assert "Choose a file or paste some rows." in text(owner.post(page, {"kept": "x"}))

    def test_whoever_left_at_the_second_step_goes_on_with_the_file(self, owner, project) -> None:
        page = reverse("import_upload", args=[project.slug])
        path = upload(owner, project, ROWS)
        assert f'<a href="{path}">go on with it</a>' in text(owner.get(page))
        owner.post(path, {"text_column": ["body"], "id_column": "id"})
        assert "go on with it" not in text(owner.get(page))
