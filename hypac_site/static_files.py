"""How static files are stored for production: compressed, under names that may be cached for ever."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):
    """Leaves scripts as they are: vendored ones name source maps, of which no copy is kept here, and
    collecting would fail for want of them. What style sheets refer to is still checked and renamed.
    """

    patterns = tuple(entry for entry in CompressedManifestStaticFilesStorage.patterns if entry[0] != "*.js")
