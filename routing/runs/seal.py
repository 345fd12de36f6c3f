"""What to check a certificate by, on paper: a hash, in digits and as a square that a phone reads."""

from dataclasses import dataclass

import segno
from django.utils.safestring import SafeString, mark_safe

from routing.models import Certificate
from routing.runs.commitment_queries import first_hash

DIGITS = 8
"""In a group, so that they can be read aloud and compared."""


@dataclass(frozen=True)
class Seal:
    """The hash of the run's first commitment, which whoever noted it compares; of a run without one the
    certificate's id.
    """

    sha256: str
    is_commitment: bool

    @property
    def groups(self) -> list[str]:
        return [self.sha256[start : start + DIGITS] for start in range(0, len(self.sha256), DIGITS)]

    @property
    def text(self) -> str:
        """What the square says."""
        return f"hypac:{'commitment' if self.is_commitment else 'certificate'}:{self.sha256}"

    @property
    def square(self) -> SafeString:
        """A QR code as SVG that takes the size of its place; nothing in it was typed by anybody."""
        code = segno.make(self.text, error="m", micro=False)
        return mark_safe(code.svg_inline(border=2, omitsize=True, svgclass="qr", lineclass="qr-line"))  # noqa: S308


def seal_of(certificate: Certificate) -> Seal:
    committed = first_hash(certificate.run)
    return Seal(committed or certificate.sha256, bool(committed))
