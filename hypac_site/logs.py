"""What logs must not hold."""

import logging
import re

# Links that open something by themselves: an invitation, a new password. Also as part of a query.
SECRET_PARTS = re.compile(r"((?:/|%2F)(?:join|password(?:/|%2F)[\w-]{1,40})(?:/|%2F))[\w.~-]{8,}")


class HideTokens(logging.Filter):
    """Put "..." in the place of the token in the address of such a link. Lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        hidden = SECRET_PARTS.sub(r"\1...", message)
        if hidden != message:
            record.msg, record.args = hidden, ()
        return True
