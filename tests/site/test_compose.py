"""docs/compose agrees with code and docs/configuration.md.

tests/services/test_production.py starts its processes, testbed/image its containers.
"""

import re
import sys
from pathlib import Path

import pytest

from testbed import compose

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docs" / "compose"
TEXT = (COMPOSE / "compose.yaml").read_text()
SERVICES = compose.services(ROOT)
OWN = [name for name, service in SERVICES.items() if str(service["image"]).startswith("hypac")]
# What is read from the environment, wherever that is.
READ = re.compile(r"\b(?:HYPAC|DJANGO|CELERY|WEB|DATABASE)_[A-Z0-9_]+\b")
CODE = "\n".join(path.read_text() for path in sorted((ROOT / "hypac_site").glob("*.py")))
DOCUMENTED = set(re.findall(r"`([A-Z0-9_]+)`", (ROOT / "docs" / "configuration.md").read_text()))


@pytest.mark.parametrize("service", OWN)
def test_every_variable_is_one_of_ours_and_documented(service: str) -> None:
    for name in SERVICES[service]["environment"]:
        assert f'"{name}"' in CODE or name == "WEB_CONCURRENCY", f"{name} is read by nothing"
        assert name in DOCUMENTED, f"{name} is not in docs/configuration.md"


def test_every_setting_is_documented() -> None:
    readers = (
        "text|flag|integer|names|hosts|encryption_keys|secret_key|bearer_token|one_of|cache_url|rate|umask"
    )
    calls = rf'(?:{readers})\(\s*"'
    read = set(re.findall(calls + r'([A-Z0-9_]+)"', CODE))
    assert "HYPAC_METRICS_TOKEN" in read
    assert sorted(read - DOCUMENTED) == []


def test_what_is_to_be_filled_in_is_in_the_example() -> None:
    wanted = set(re.findall(r"\$\{([A-Z0-9_]+)", TEXT))
    example = (COMPOSE / ".env.example").read_text()
    assert set(re.findall(r"(?m)^([A-Z0-9_]+)=", example)) == wanted
    for secret in ("DJANGO_SECRET_KEY", "HYPAC_ENCRYPTION_KEYS", "POSTGRES_PASSWORD"):
        assert f"${{{secret}:?" in TEXT, f"it must not start without {secret}"
        assert f"\n{secret}=\n" in example, "no secret that others know"


def test_images_are_pinned() -> None:
    dockerfile = (COMPOSE / "Dockerfile").read_text()
    images = [str(service["image"]) for name, service in SERVICES.items() if name not in OWN]
    bases = [base for base in re.findall(r"(?m)^FROM (\S+)", dockerfile) if base != "app"]
    assert len(set(bases)) == 1
    assert len(images) == 3
    for image in images + bases:
        assert re.search(r":\d+\.\d+(\.\d+)?(-[a-z-]+)?$", image), image


def test_commands_and_files_exist() -> None:
    for name in OWN:
        program = SERVICES[name]["command"][0]
        assert Path(sys.executable).with_name(program).exists(), program
        assert SERVICES[name]["build"]["target"] in ("app", "gpu")
        assert (COMPOSE / SERVICES[name]["build"]["context"] / SERVICES[name]["build"]["dockerfile"]).exists()
    kept = re.findall(r"(?m)^!(\S+)$", (COMPOSE / "Dockerfile.dockerignore").read_text())
    assert [name for name in kept if not (ROOT / name).exists()] == []
    assert {"annotation", "hypac_site", "routing", "templates", "static", "locale", "docs"} <= set(kept)


def test_every_queue_has_a_worker() -> None:
    from hypac_site.supervisor import QUEUES

    served = {
        command[command.index("-Q") + 1]
        for command in (service.get("command", []) for service in SERVICES.values())
        if "-Q" in command
    }
    assert served == set(QUEUES.split(","))


def test_only_the_proxy_can_be_reached_from_outside() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    for name in ("postgres", "redis"):
        assert SERVICES[name]["networks"] == ["inside"]
    caddyfile = (COMPOSE / "Caddyfile").read_text()
    assert "@inside path /metrics /readyz /healthz\n\trespond @inside 404" in caddyfile


@pytest.mark.parametrize("service", sorted(set(OWN) - {"worker-gpu"}))
def test_only_two_volumes_can_be_written(service: str) -> None:
    entry = SERVICES[service]
    assert (entry["read_only"], entry["cap_drop"]) == (True, ["ALL"])
    assert entry["volumes"] == ["state:/var/lib/hypac", "/tmp"]  # noqa: S108 - of the container


def test_mail_and_sign_on_reach_every_process() -> None:
    wanted = set(re.findall(r'"(HYPAC_(?:MAIL|OIDC)_[A-Z_]+|HYPAC_ADDRESS|HYPAC_LOCAL_LOGIN)"', CODE))
    # Which most sites leave as they are.
    wanted -= {"HYPAC_OIDC_GROUPS_CLAIM", "HYPAC_OIDC_SESSION_HOURS", "HYPAC_OIDC_TOKEN_DAYS"}
    for service in ("web", "worker"):
        assert sorted(wanted - set(SERVICES[service]["environment"])) == []
