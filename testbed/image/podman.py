"""Podman with a storage of its own, so that nothing of this machine's is seen or left behind."""

import json
import re
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any

NEEDED = ("podman", "runc", "catatonit", "debootstrap", "caddy", "docker-compose", "git")
PACKAGES_OF_BASE = ["python3", "python3-pip", "python3-venv", "ca-certificates", "netbase", "tzdata"]

KEEPS_NOTHING = """\
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Keep-Downloaded-Packages "false";
"""


class ImageError(RuntimeError):
    """Something that the image promises does not hold, or it cannot be built here."""


def say(line: str) -> None:
    print(line, flush=True)


class Podman:
    """`storage` has layers, containers and volumes; `folder` is for files of all others here."""

    def __init__(self, folder: Path, storage: Path) -> None:
        self.folder = folder
        self.command = [
            *("podman", "--root", str(storage / "graph"), "--runroot", str(storage / "run")),
            *("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none"),
        ]

    def __call__(self, *arguments: str, **options: Any) -> str:
        """Run a command of Podman to its end; returns what it printed."""
        return run([*self.command, *arguments], **options)

    def clear(self) -> None:
        """Leave images alone."""
        self("rm", "--all", "--force", check=False)
        self("volume", "rm", "--all", "--force", check=False)

    def base(self, dockerfile: Path) -> str:
        """In place of the image that the Dockerfile begins with, one of its name of Debian's packages."""
        name = re.findall(r"(?m)^FROM (\S+:\S+)", dockerfile.read_text())[0]
        if f"localhost/{name}" in self("image", "list", "--format", "{{.Repository}}:{{.Tag}}").split():
            return name  # of a time before
        suite = name.rpartition("-")[2]
        tree = self.folder / "base"
        shutil.rmtree(tree, ignore_errors=True)
        included = ",".join(PACKAGES_OF_BASE)
        run(["debootstrap", "--variant=minbase", f"--include={included}", suite, str(tree)])
        _as_slim(tree, suite)
        archive = self.folder / "base.tar"
        run(["tar", "--create", "--file", str(archive), "--directory", str(tree), "."])
        self("import", str(archive), f"localhost/{name}")
        shutil.rmtree(tree)
        archive.unlink()
        return name

    def build(self, root: Path, tag: str, volumes: list[str]) -> None:
        given = [part for volume in volumes for part in ("--volume", volume)]
        folder = root / "docs/compose"
        self(
            *("build", "--isolation", "chroot", "--network", "host", "--pull-never", "--target", "app"),
            *("--ignorefile", str(folder / "Dockerfile.dockerignore"), "--file", str(folder / "Dockerfile")),
            *("--tag", tag, *given, str(root)),
        )

    def size(self, name: str) -> int:
        """Bytes on the disk, all layers together."""
        return int(json.loads(self("image", "inspect", name))[0]["Size"])

    def options(self, service: dict[str, Any], environment: dict[str, str], state: str) -> list[str]:
        """What Compose would start the service with, but for the network, which is this machine's own."""
        options = ["--network", "host", *limits()]
        options += [f"--cap-drop={name}" for name in service["cap_drop"]]
        options += [f"--security-opt={text.removesuffix(':true')}" for text in service["security_opt"]]
        if service["init"]:
            options.append("--init")
        if service.get("read_only"):
            options += ["--read-only", "--read-only-tmpfs=false"]
        for volume in service["volumes"]:
            options += ["--volume", volume.replace("state:", f"{state}:")]
        for name, value in environment.items():
            options += ["--env", f"{name}={value}"]
        return options


def _as_slim(tree: Path, suite: str) -> None:
    """As the slim images of Python are: no documentation, no lists, `python` and `pip` as one's own."""
    for path in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"):
        shutil.rmtree(tree / path, ignore_errors=True)
    for path in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(tree / path, ignore_errors=True)
        (tree / path / "partial").mkdir(parents=True)
    for path in tree.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        path.unlink()
    for name in ("python", "python3"):
        (tree / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    (tree / "etc/apt/apt.conf.d/clean").write_text(KEEPS_NOTHING)
    lines = [
        f"deb http://deb.debian.org/debian {suite} main",
        f"deb http://deb.debian.org/debian {suite}-updates main",
        f"deb http://deb.debian.org/debian-security {suite}-security main",
    ]
    (tree / "etc/apt/sources.list").write_text("\n".join(lines) + "\n")


def run(command: list[str], *, check: bool = True, code: bool = False, **options: Any) -> str:
    """What the command printed (`code`: its exit code instead). Raises ImageError with its last lines."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    if check and done.returncode != 0:
        raise ImageError(f"{' '.join(command)[:300]}\n{(done.stdout + done.stderr)[-6000:]}")
    return str(done.returncode) if code else done.stdout


def limits() -> list[str]:
    """Podman asks for more open files and processes than root may have where it lacks a capability for it."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return ["--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=4096:4096"]


def missing() -> list[str]:
    return [program for program in NEEDED if shutil.which(program) is None]
