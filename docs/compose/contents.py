"""What is inside the image, as CycloneDX 1.6: its Python packages, Debian packages, and the browser's assets.

    python contents.py COPIED > contents.cdx.json

COPIED: a file with a line "name<TAB>version" for each Debian package of which only programs were copied in.
With the standard library alone, so that what lists the packages brings none. One image, the same bytes.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

VENDORED = Path(__file__).resolve().parents[2] / "static" / "vendor" / "manifest.json"
INSTALLED = "${Package}\t${Version}\n"


def component(kind: str, name: str, version: str, licence: str = "") -> dict[str, Any]:
    """One entry; `kind` is what a package URL (purl) begins with, as in `pkg:deb/debian/libc6@2.36`."""
    purl = f"pkg:{kind}/{quote(name, safe='/')}@{quote(version)}"
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return entry | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def python_packages() -> Iterator[dict[str, Any]]:
    beside = sysconfig.get_path(
        "purelib", vars={"base": sys.base_prefix}
    )  # pip, in the interpreter's own folder
    for found in metadata.distributions(path=[*sys.path, beside]):
        about = found.metadata
        licence = about["License-Expression"] or _classified(about.get_all("Classifier") or [])
        licence = licence or (about["License"] or "").strip().partition("\n")[0]
        name = about["Name"].lower().replace("_", "-").replace(".", "-")
        yield component("pypi", name, found.version, licence)


def _classified(classifiers: list[str]) -> str:
    return " AND ".join(line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::"))


def debian_packages(copied: Path) -> Iterator[dict[str, Any]]:
    command = ["/usr/bin/dpkg-query", "--show", f"--showformat={INSTALLED}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in [*told.splitlines(), *copied.read_text().splitlines()]:
        name, version = line.split("\t")
        yield component("deb/debian", name.partition(":")[0], version)


def browser_assets() -> Iterator[dict[str, Any]]:
    for entry in json.loads(VENDORED.read_text())["packages"]:
        _npm, name, version = entry["source"].split()
        yield component("npm", name, version, entry["licence"])


def contents(copied: Path) -> dict[str, Any]:
    found = [*python_packages(), *debian_packages(copied), *browser_assets()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "hypac", "name": "hypac"}},
        "components": sorted(
            {entry["bom-ref"]: entry for entry in found}.values(), key=lambda e: e["bom-ref"]
        ),
    }


if __name__ == "__main__":
    json.dump(contents(Path(sys.argv[1])), sys.stdout, indent=1, ensure_ascii=False)
    print()
