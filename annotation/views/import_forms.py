"""Forms of the import: a file, and which of its columns is what."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from annotation.services.imports import Mapping


class UploadForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        required=False,
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.jsonl,.ndjson,.json,.zip,.txt"}),
    )
    text = forms.CharField(
        label=_("Or paste rows or lines here"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 7, "spellcheck": "false"}),
        help_text=_("Comma-separated with a header line, or one JSON object on each line."),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file, text = data.get("file"), data.get("text", "")
        if file and file.size > settings.HYPAC_MAX_UPLOAD_BYTES:
            self.add_error("file", _("The file is larger than this server accepts. Split it."))
        if not self.errors and not file and not text.strip():
            raise forms.ValidationError(_("Choose a file or paste some rows."))
        if file and text.strip():
            raise forms.ValidationError(_("Give a file or pasted rows, not both."))
        return data


class MappingForm(forms.Form):
    """Which column is what. The choices are the columns of the file."""

    text_column = forms.ChoiceField(label=_("Text to label"), required=False)
    id_column = forms.ChoiceField(
        label=_("Name of the item"),
        required=False,
        help_text=_(
            "A column that tells every item apart. Without one, the line number or file name is used."
        ),
    )

    def __init__(self, *args: Any, columns: list[str], images: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = [(column, column) for column in columns]
        by_place = ("", _("Line number or file name"))
        self.fields["id_column"].choices = [by_place, *named]  # type: ignore[attr-defined]
        if images:
            del self.fields["text_column"]
        else:
            self.fields["text_column"].choices = named  # type: ignore[attr-defined]
            self.fields["text_column"].required = True

    def mapping(self) -> Mapping:
        return Mapping(
            id_column=self.cleaned_data["id_column"], text_column=self.cleaned_data.get("text_column", "")
        )
