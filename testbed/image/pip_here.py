"""How pip is set up on this machine, for pip in a build: files that are mounted, no part of the image."""

import ast
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

# Where packages come from, and whom to trust there. What else is set concerns this machine alone.
WANTED = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert")


def mounts(folder: Path) -> list[str]:
    """Volumes for the build, as HOST:BUILD:ro; `folder` takes the file that is mounted as /etc/pip.conf."""
    settings = read(listed())
    found = []
    if certificates := settings.pop("cert", ""):
        found.append(f"{certificates}:/etc/pip-certificates.pem:ro")
        settings["cert"] = "/etc/pip-certificates.pem"
    file = folder / "pip.conf"
    file.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    found.append(f"{file}:/etc/pip.conf:ro")
    places = {
        place for value in settings.values() for place in value.split() if place != settings.get("cert")
    }
    return found + [f"{path}:{path}:ro" for path in sorted(filter(None, map(_folder, places)))]


def listed() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(lines: str) -> dict[str, str]:
    """What `pip config list` says of WANTED; a variable of the environment (`:env:`) goes before files."""
    settings = {}
    for line in sorted(lines.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        name = key.removeprefix(":env:.").rpartition(".")[2]
        if name in WANTED:
            settings[name] = " ".join(ast.literal_eval(value).split())
    return settings


def _folder(place: str) -> str:
    """The folder of this machine that an index or a folder with packages lies in; "": it is elsewhere."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return str(Path(url2pathname(parts.path)).parent)  # its links may lead beside it
    return place if place.startswith("/") else ""
