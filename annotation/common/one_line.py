"""Names and other texts that stand on one line: in lists, logs, terminals and the subjects of letters."""

import re

from django.utils.translation import gettext as _

from annotation.errors import InputError

# Ends of lines and what terminals take for commands (C0, C1), and what turns the direction of writing.
NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def checked_line(text: str, *, where: str) -> str:
    """The text without blanks around it. Raises InputError where it has what no line shows."""
    text = text.strip()
    if found := NOT_SHOWN.search(text):
        raise InputError(
            _("This has a line break or another character that is not shown (%(code)s). Remove it.")
            % {"code": f"U+{ord(found[0]):04X}"},
            where=where,
        )
    return text
