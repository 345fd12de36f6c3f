"""Give readers of foreign bytes hostile ones, each for a while, in a process of its own.

    python -m testbed.fuzz [--seconds 120] [--seed 1] [TARGET ...]
    python -m testbed.fuzz --replay FILE [TARGET]

What fails is made small, printed, and kept in var/fuzz/<target>/, where --replay finds it again.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "var" / "fuzz"
HANGS_AFTER = 120
"""Seconds for one input, by the clock: what a library does in C can be ended from outside alone."""


def main() -> int:
    options = _parser().parse_args()
    if not options.child:
        return _replay(options) if options.replay else _all(options)
    return _one(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="readers; all where none is named")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each target (120)")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="read this file once more")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


# --- In the process that waits ---


def _all(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as state:
        _set_up(state)
        from testbed.fuzz.readers import TARGETS

        if options.list:
            print("\n".join(TARGETS))
            return 0
        if unknown := [name for name in options.targets if name not in TARGETS]:
            print(f"There is no target {unknown[0]}; there are: {', '.join(TARGETS)}.", file=sys.stderr)
            return 2
        outcomes = [_watched(name, options) for name in options.targets or TARGETS]
    return max(outcomes)


def _watched(name: str, options: argparse.Namespace) -> int:
    """Run one target; what it was reading when it died, or for too long, is kept."""
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "testbed.fuzz", "--child", name]
    command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    current = folder / "current"
    current.write_bytes(b"")
    with subprocess.Popen(command, cwd=ROOT) as child:
        while child.poll() is None:
            time.sleep(0.5)
            if time.time() - current.stat().st_mtime > HANGS_AFTER:
                child.kill()
    if child.returncode in (0, 1):
        current.unlink()
        return child.returncode
    kept = current.rename(folder / f"killed-{int(time.time())}")
    print(f"{name}: the process ended with {child.returncode}; it was reading {kept.relative_to(ROOT)}")
    return 1


# --- In the process that reads ---


def _set_up(state: str) -> None:
    """Settings of an installation that is none, and no database."""
    for variable in list(os.environ):
        if variable.startswith(("CELERY_", "DJANGO_", "HYPAC_", "DATABASE_URL")):
            del os.environ[variable]
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
        "DJANGO_SECRET_KEY": "of an installation that there is not, " + "0123456789" * 3,
        "HYPAC_VAR": state,
        "HYPAC_LOG_LEVEL": "CRITICAL",
    }
    sys.path[:0] = [str(ROOT / "clients" / "verify")]
    import django

    django.setup()


def _one(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as state:
        _set_up(state)
        from testbed.fuzz.loop import fuzzed
        from testbed.fuzz.readers import TARGETS

        target = TARGETS[options.targets[0]]
        folder = KEPT / target.name
        outcome = fuzzed(
            target, seconds=options.seconds, seed=options.seed, before=(folder / "current").write_bytes
        )
    for finding in outcome.findings:
        kept = folder / finding.name
        kept.write_bytes(finding.data)
        _say(f"{finding.trace}\n{finding.data[:300]!r}")
        _say(f"{target.name}: {finding.error}\n  {kept.relative_to(ROOT)}")
    found = f"{outcome.kept} reached something new, {len(outcome.findings)} failed"
    _say(f"{target.name}: {outcome.runs:,} inputs, {found}")
    return bool(outcome.findings)


def _say(words: str) -> None:
    """Whatever is quoted."""
    print(words.encode("utf-8", "backslashreplace").decode(), flush=True)


def _replay(options: argparse.Namespace) -> int:
    path = options.replay.resolve()
    name = options.targets[0] if options.targets else path.parent.name
    with tempfile.TemporaryDirectory() as state:
        _set_up(state)
        from testbed.fuzz.loop import replayed
        from testbed.fuzz.readers import TARGETS

        finding = replayed(TARGETS[name], path.read_bytes())
    _say(finding.trace if finding else f"{name}: it is read, or refused, as it should be")
    return bool(finding)


if __name__ == "__main__":
    sys.exit(main())
