"""Gather what pages say, and compile its translations: `python -m tests.messages` (make messages)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.core.management.commands import makemessages

ROOT = Path(__file__).resolve().parent.parent
# What holds no words of pages.
PASSED_OVER = (".venv*", "var", "tests", "testbed", "benchmarks", "static")
PROGRAMS = ("xgettext", "msgmerge", "msgfmt")
# Changes with every call, and says nothing.
DATE = re.compile(r'^"POT-Creation-Date: .*\n', re.MULTILINE)


class _Gathering(makemessages.Command):
    # A translation is taken from no other sentence that is merely like it.
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]


def languages() -> list[str]:
    """All but English, which the words in the code are in."""
    return [code for code, name in settings.LANGUAGES if code != settings.LANGUAGE_CODE]


def catalogue(folder: Path, language: str, ending: str = "po") -> Path:
    return folder / language / "LC_MESSAGES" / f"django.{ending}"


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]


def gather(root: Path) -> None:
    """Bring the words of the code and the templates below `root` into its folder locale/."""
    here, folder = Path.cwd(), root / "locale"
    os.chdir(root)  # whose own locale/ Django writes to, whatever else it is told
    try:
        settings.LOCALE_PATHS = [str(folder)]
        call_command(
            _Gathering(),
            locale=languages(),
            add_location="file",
            no_obsolete=True,
            ignore_patterns=list(PASSED_OVER),
            verbosity=0,
        )
    finally:
        os.chdir(here)
    for language in languages():
        path = catalogue(folder, language)
        path.write_text(DATE.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")


def compile_all(folder: Path) -> None:
    for language in languages():
        paths = [str(catalogue(folder, language, ending)) for ending in ("mo", "po")]
        subprocess.run(["msgfmt", "--check-format", "-o", *paths], check=True)


def main(root: Path) -> int:
    if missing := missing_programs():
        print(
            f"There is no {', '.join(missing)}: install GNU gettext (apt install gettext).", file=sys.stderr
        )
        return 1
    gather(root)
    compile_all(root / "locale")
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as state:
        os.environ.update(HYPAC_VAR=state, DJANGO_DEBUG="1", DJANGO_SETTINGS_MODULE="hypac_site.settings")
        django.setup()
        sys.exit(main(ROOT))
