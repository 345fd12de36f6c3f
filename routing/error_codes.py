"""Codes of errors that are about models and runs (annotation.error_codes)."""

from annotation.error_codes import register_codes

register_codes(
    403, {"still_blind": ("What models answered is not shown yet", "Ask again once the run is analysed.")}
)
