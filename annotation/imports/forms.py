"""Forms of the import: a file, and which of its columns is what."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext, gettext_lazy as _

from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.excel import Excel
from annotation.imports.formats.registry import IMPORTERS, text_formats
from annotation.imports.upload import Preview
from annotation.models import Project


class UploadForm(forms.Form):
    file = forms.FileField(
        label=_("File"),
        required=False,
        widget=forms.FileInput,
    )
    text = forms.CharField(
        label=_("Or paste rows or lines here"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 7, "spellcheck": "false"}),
        help_text=_(
            "Rows copied from a spreadsheet, comma-separated rows with a header line, JSON objects, or plain "
            "lines, one item each."
        ),
    )

    def __init__(self, *args: Any, kept: bool = False, **kwargs: Any) -> None:
        """`kept`: a file that was sent before is used where no other one is chosen."""
        super().__init__(*args, **kwargs)
        self.kept = kept
        endings = dict.fromkeys(ending for importer in IMPORTERS.values() for ending in importer.endings)
        self.fields["file"].widget.attrs["accept"] = ",".join([*endings, ".gz"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file, text = data.get("file"), data.get("text", "")
        if file and file.size > settings.HYPAC_MAX_UPLOAD_BYTES:
            self.add_error("file", _("The file is larger than this server accepts. Split it."))
        if not self.errors and not file and not self.kept and not text.strip():
            raise forms.ValidationError(_("Choose a file or paste some rows."))
        if (file or self.kept) and text.strip():
            raise forms.ValidationError(_("Give a file or pasted rows, not both."))
        return data


class ShownColumns(forms.MultipleChoiceField):
    """Several selects of one name: their order is the order in which the columns are shown."""

    def clean(self, value: Any) -> list[str]:
        return [str(name) for name in super().clean([name for name in value or [] if name])]


class MappingForm(forms.Form):
    """Which column is what. The choices are the columns of the file."""

    format = forms.ChoiceField(label=_("Read the file as"), required=False)
    text_column = ShownColumns(label=_("What people read"), required=False)
    id_column = forms.ChoiceField(
        label=_("Name of the item"),
        required=False,
        help_text=_(
            "A column that tells every item apart. Without one, the id that the file gives it is "
            "used, else its line or name."
        ),
    )
    text_format = forms.ChoiceField(
        label=_("How the text is shown"),
        required=False,
        choices=Project.TextFormat.choices,
        help_text=_("For all items of the project; it stays once people have been asked to label."),
    )

    keep_labels = forms.BooleanField(
        label=_("Keep the labels that people gave elsewhere"),
        required=False,
        help_text=_(
            "Items that have one are delivered with it, and nobody is asked about them. No certificate rests "
            "on such labels."
        ),
    )

    add_duplicates = forms.BooleanField(label=_("Add them all the same"), required=False)

    def __init__(
        self, *args: Any, look: Preview, guess: str, text_format_is_open: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        named = [(column, column) for column in look.columns]
        by_place = ("", _("Line number or file name"))
        self.fields["id_column"].choices = [by_place, *named]  # type: ignore[attr-defined]
        self.fields["text_column"].choices = named  # type: ignore[attr-defined]
        if look.holds_images:
            del self.fields["text_column"]
        if len(look.sheets) > 1:
            self.fields["format"].label = _("Sheet")
            self.fields["format"].help_text = _(
                "The workbook has %(count)d sheets, of which an import reads one."
            ) % {"count": len(look.sheets)}
            self.fields["format"].choices = [  # type: ignore[attr-defined]
                (Excel(sheet).name, sheet) for sheet in look.sheets
            ]
        elif guess not in text_formats():
            del self.fields["format"]
        else:
            self.fields["format"].choices = [  # type: ignore[attr-defined]
                (name, _guessed(gettext(title)) if name == guess else gettext(title))
                for name, title in ((name, IMPORTERS[name].title) for name in text_formats())
            ]
        if look.holds_images or not text_format_is_open:
            del self.fields["text_format"]
        if not look.may_keep_labels:
            del self.fields["keep_labels"]

    def mapping(self) -> ColumnMapping:
        return ColumnMapping.showing(
            self.cleaned_data.get("text_column", []), id_column=self.cleaned_data["id_column"]
        )


def _guessed(title: str) -> str:
    return _("%(format)s (so it seems)") % {"format": title}
