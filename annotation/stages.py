"""What a job says that it is doing: words with a name in them, said in the language of whoever reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _, override

MAX_CHARACTERS = 100


@dataclass(frozen=True)
class Stage:
    """`text` is marked by gettext_noop; `named` are the plain values in it."""

    text: str
    named: Mapping[str, str | int] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> "Stage":
        """Only the name of what it is at."""
        return cls("%(name)s", {"name": name})

    @property
    def columns(self) -> dict[str, Any]:
        """What a job keeps of it: in English for programs and logs, and what to say it in other languages."""
        with override("en"):
            english = self.in_words()
        return {"stage": english, "stage_params": {"text": self.text, "named": dict(self.named)}}

    def in_words(self) -> str:
        """In the language of the reader, shortened to what a job can keep."""
        named = {
            name: value if isinstance(value, str) else number_format(value, force_grouping=True)
            for name, value in self.named.items()
        }
        return (_(self.text) % named if named else _(self.text))[:MAX_CHARACTERS]
