"""Variables of the environment: what is refused, with the name of the variable and no secret in the words."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from hypac_site import environment, secret_key
from hypac_site.supervisor import ServeError, require_free_port

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, own: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`manage.py` with these variables of its own."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )


class TestCacheUrl:
    @pytest.mark.parametrize(
        ("own", "broker", "found"),
        [
            ("", "redis://a:6379/0", "redis://a:6379/0"),
            ("", "rediss://a:6379/0", "rediss://a:6379/0"),
            ("redis://b:6379/1", "redis://a:6379/0", "redis://b:6379/1"),
            ("", "amqp://a", ""),
            ("", "", ""),
        ],
    )
    def test_the_broker_serves_where_it_is_a_redis(self, own, broker, found, monkeypatch) -> None:
        monkeypatch.setenv("HYPAC_CACHE_URL", own)
        assert environment.cache_url("HYPAC_CACHE_URL", broker) == found

    def test_nothing_but_a_redis(self, monkeypatch) -> None:
        monkeypatch.setenv("HYPAC_CACHE_URL", "memcached://user:hunter2@host")
        with pytest.raises(ImproperlyConfigured, match="HYPAC_CACHE_URL") as caught:
            environment.cache_url("HYPAC_CACHE_URL", "")
        assert "hunter2" not in str(caught.value)


def test_a_short_token_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_METRICS_TOKEN", "hunter2")
    with pytest.raises(ImproperlyConfigured, match="HYPAC_METRICS_TOKEN") as caught:
        environment.bearer_token("HYPAC_METRICS_TOKEN")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("HYPAC_METRICS_TOKEN", "")
    assert environment.bearer_token("HYPAC_METRICS_TOKEN") == ""


@pytest.mark.parametrize(
    "key", ["x", "a" * 64, "ab" * 32, "0123456789" * 4, "django-insecure-" + "0123456789" * 5]
)
class TestAKeyThatCanBeGuessed:
    def test_is_refused_with_how_to_make_one(self, key, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("DJANGO_SECRET_KEY", key)
        with pytest.raises(ImproperlyConfigured, match=r"DJANGO_SECRET_KEY .*token_urlsafe") as caught:
            secret_key.secret_key("DJANGO_SECRET_KEY", tmp_path / "key", may_create=True)
        assert key not in str(caught.value) or key == "x"

    def test_does_for_development(self, key, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("DJANGO_SECRET_KEY", key)
        given = {"may_create": True, "may_be_weak": True}
        assert secret_key.secret_key("DJANGO_SECRET_KEY", tmp_path / "key", **given) == key

    def test_is_refused_in_the_file_too(self, key, monkeypatch, tmp_path) -> None:
        monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)
        (tmp_path / "key").write_text(key)
        with pytest.raises(ImproperlyConfigured, match="Remove the file"):
            secret_key.secret_key("DJANGO_SECRET_KEY", tmp_path / "key", may_create=True)


def test_a_site_with_a_key_of_one_character_does_not_start(tmp_path: Path) -> None:
    own = {"HYPAC_VAR": str(tmp_path), "DJANGO_SECRET_KEY": "x"}
    done = command("check", own=own)
    assert done.returncode != 0
    assert "DJANGO_SECRET_KEY can be guessed" in done.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", ["no such table", "The database is empty: run manage.py migrate", "HYPAC_VAR names the folder"]),
        ("postgres://a:secret@127.0.0.1:1/b", ["refused", "see DATABASE_URL, and whether it runs"]),
    ],
)
def test_a_command_without_its_database_says_what_is_missing(tmp_path: Path, url: str, words) -> None:
    done = command(
        "deliver", "project", "1", "--user", "owner", own={"HYPAC_VAR": str(tmp_path), "DATABASE_URL": url}
    )
    assert done.returncode == 1
    assert all(one in done.stderr for one in words), done.stderr
    assert not any(one in done.stderr for one in ("Traceback", "secret"))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("DATABASE_URL", "oracle://user:hunter2@host/x", "write postgresql://"),
        ("DATABASE_URL", "hypac-hunter2", "write postgresql://"),
        ("DATABASE_URL", "sqlite://hypac.sqlite3", "sqlite:////srv"),
        ("DATABASE_URL", "postgresql://a:hun/hunter2@host/x", "%2F for /"),
        ("DATABASE_URL", "postgresql://a:hunter2@host:99999/x", "cannot be read"),
        ("HYPAC_VAR", str(ROOT / "manage.py"), "is a file. Name a folder"),
        ("HYPAC_VAR", str(ROOT / "manage.py" / "var"), "manage.py is a file. Name a folder"),
        ("HYPAC_TIME_ZONE", "Mars/Base", "Mars/Base' is no time zone"),
        ("HYPAC_TIME_ZONE", "Europe/Berlinn", "Write one as Europe/Berlin."),
        ("HYPAC_LOG_LEVEL", "LOUD", "Write DEBUG, INFO"),
        ("HYPAC_COOKIE_PREFIX", "a;b", "letters and digits"),
        ("DJANGO_ALLOWED_HOSTS", "http://labels.example.org", "without https:// and port"),
        ("DJANGO_ALLOWED_HOSTS", "labels.example.org:8000", "without https:// and port"),
        ("CELERY_BROKER_URL", "hunter2", "write redis://"),
        ("HYPAC_ADDRESS", "https://[x", "without a path"),
        ("HYPAC_ADDRESS", "https://a:hunter2@x.org", "without a path"),
        ("HYPAC_OIDC_ISSUER", "https://[x", "write https://id"),
        ("HYPAC_TOKEN_DAYS", "-5", "the least is 1"),
        ("HYPAC_REQUEST_STATEMENT_SECONDS", "-1", "the least is 0"),
        ("HYPAC_COOKIE_PREFIX", "__Host", "letters and digits"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_in_one_line(tmp_path, variable, value, words) -> None:
    done = command("check", own={"HYPAC_VAR": str(tmp_path), "DATABASE_URL": "", variable: value})
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(variable)
    assert words in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DATABASE_URL", "POSTGRESQL://a:b%2Fc@host/x"),
        ("DATABASE_URL", "sqlite://:memory:"),
        ("HYPAC_LOG_LEVEL", "warn"),
        ("HYPAC_TIME_ZONE", "posix/Europe/Paris"),
        ("HYPAC_STATIC_ROOT", "/proc/1/root/somewhere"),  # which few may enter
    ],
)
def test_what_worked_before_is_still_taken(monkeypatch, tmp_path, variable: str, value: str) -> None:
    read = {
        "DATABASE_URL": lambda: environment.database(variable, "")["ENGINE"],
        "HYPAC_LOG_LEVEL": lambda: environment.log_level(variable),
        "HYPAC_TIME_ZONE": lambda: environment.time_zone(variable),
        "HYPAC_STATIC_ROOT": lambda: environment.folder(variable, tmp_path),
    }
    monkeypatch.setenv(variable, value)
    assert read[variable]()


def test_a_port_that_there_is_not_is_told() -> None:
    with pytest.raises(ServeError, match=r"Port 99999 .* Choose another"):
        require_free_port("127.0.0.1", 99999)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_VAR names the folder"):
        secret_key.secret_key("DJANGO_SECRET_KEY", Path("/proc/nothing/secret_key"), may_create=True)


def test_an_empty_folder_is_the_default_and_not_where_one_stands(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HYPAC_VAR", "")
    assert environment.folder("HYPAC_VAR", tmp_path / "var") == tmp_path / "var"


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "hypac.sqlite3").write_bytes(b"no database" * 1000)
    done = command(
        "deliver", "project", "1", "--user", "owner", own={"HYPAC_VAR": str(tmp_path), "DATABASE_URL": ""}
    )
    assert done.returncode == 1
    assert f"{tmp_path / 'hypac.sqlite3'} cannot be read as a database (file is not" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_makes_the_tables_keeps_its_own_error(tmp_path: Path) -> None:
    """What is missing is what it would make: to be told to run it helps nobody."""
    done = command(
        "migrate",
        "--skip-checks",
        own={"HYPAC_VAR": str(tmp_path), "DATABASE_URL": "postgres://a:b@127.0.0.1:1/c"},
    )
    assert done.returncode == 1
    assert "OperationalError" in done.stderr
    assert "see DATABASE_URL" not in done.stderr


def test_processes_that_start_together_make_one_key(monkeypatch, tmp_path: Path) -> None:
    """The file is never there and empty: whoever is slower reads the whole key of the other."""
    monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)
    file = tmp_path / "var" / "key"
    link = os.link

    def beaten(part: Path, target: Path) -> None:
        target.write_text("of the quicker process " + "0123456789" * 5)
        link(part, target)

    monkeypatch.setattr(os, "link", beaten)
    assert secret_key.secret_key("DJANGO_SECRET_KEY", file, may_create=True).startswith("of the quicker")
    assert [path.name for path in file.parent.iterdir()] == ["key"]


def test_processes_of_two_containers_do_not_write_into_one_file(monkeypatch, tmp_path: Path) -> None:
    """Each is process 1 in its container, and they have one volume: the second begins when the first is done
    with its own, and has not removed it yet."""
    monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    file = tmp_path / "key"
    link, keys = os.link, []

    def slowly(part: Path, target: Path) -> None:
        link(part, target)
        if not keys:
            keys.append(target.read_text())
            secret_key._make_secret(target)

    monkeypatch.setattr(os, "link", slowly)
    assert secret_key.secret_key("DJANGO_SECRET_KEY", file, may_create=True) == keys[0]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_key_is_made_where_files_have_no_links(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)

    def none(part: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    file = tmp_path / "key"
    key = secret_key.secret_key("DJANGO_SECRET_KEY", file, may_create=True)
    secret_key._make_secret(file)  # another process, slower
    assert secret_key.secret_key("DJANGO_SECRET_KEY", file, may_create=True) == key
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("key", ["A" * 43 + "=", "AB" * 21 + "A="])
def test_an_encryption_key_of_few_characters_is_refused(key, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_ENCRYPTION_KEYS", key)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_ENCRYPTION_KEYS: key 1"):
        environment.encryption_keys("HYPAC_ENCRYPTION_KEYS")


def test_a_token_of_few_characters_is_refused(monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_METRICS_TOKEN", "ab" * 20)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_METRICS_TOKEN"):
        environment.bearer_token("HYPAC_METRICS_TOKEN")


def test_one_of_some_values(monkeypatch) -> None:
    monkeypatch.delenv("HYPAC_LOG_FORMAT", raising=False)
    assert environment.one_of("HYPAC_LOG_FORMAT", ("text", "json")) == "text"
    monkeypatch.setenv("HYPAC_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="none of text, json"):
        environment.one_of("HYPAC_LOG_FORMAT", ("text", "json"))


def test_two_variables_move_everything(tmp_path: Path) -> None:
    """From SQLite, messages as files and a memory of each process to PostgreSQL and Redis."""
    show = """
import django; django.setup()
from django.conf import settings as s
from hypac_site.celery import app
print(s.DATABASES["default"]["ENGINE"], app.conf.broker_url.split(":")[0], s.CACHES["default"]["BACKEND"])
"""

    def shown(**variables: str) -> list[str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL",)}
        own = {"HYPAC_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
        done = subprocess.run(
            [sys.executable, "-c", show],
            cwd=ROOT,
            env={**kept, **own, "PYTHONPATH": str(ROOT), **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert shown() == [
        "django.db.backends.sqlite3",
        "filesystem",
        "django.core.cache.backends.locmem.LocMemCache",
    ]
    moved = shown(DATABASE_URL="postgres://u@host/d", CELERY_BROKER_URL="redis://host:6379/0")
    assert moved == ["django.db.backends.postgresql", "redis", "hypac_site.cache.SoftRedisCache"]


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("smtp://mail.example.org", ("mail.example.org", 587, "", "", True, False)),
        ("smtps://a%40b:p%2Fw@mail.example.org", ("mail.example.org", 465, "a@b", "p/w", False, True)),
        ("smtp://localhost:25?tls=no", ("localhost", 25, "", "", False, False)),
    ],
)
def test_a_mail_server_is_named_by_an_address(url, found, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_MAIL_URL", url)
    made = environment.mail_settings(
        environment.mail_url("HYPAC_MAIL_URL"), "hypac@example.org", "https://labels.example.org"
    )
    names = ("HOST", "PORT", "HOST_USER", "HOST_PASSWORD", "USE_TLS", "USE_SSL")
    assert tuple(made[f"EMAIL_{name}"] for name in names) == found


@pytest.mark.parametrize(
    "url", ["mail.example.org", "http://x", "smtp://", "smtp://x:y@h:port", "smtp://h/x", "smtp://h?x"]
)
def test_what_names_no_mail_server_is_refused_without_its_password(url, monkeypatch) -> None:
    monkeypatch.setenv("HYPAC_MAIL_URL", url)
    with pytest.raises(ImproperlyConfigured, match="HYPAC_MAIL_URL: write smtp://") as refused:
        environment.mail_url("HYPAC_MAIL_URL")
    assert "x:y" not in str(refused.value)


def test_mail_needs_a_sender_and_the_sites_address(monkeypatch) -> None:
    with pytest.raises(ImproperlyConfigured, match="HYPAC_ADDRESS"):
        environment.mail_settings("smtp://localhost", "hypac@example.org", "")
    monkeypatch.setenv("HYPAC_ADDRESS", "https://labels.example.org/path")
    with pytest.raises(ImproperlyConfigured, match="without a path"):
        environment.site_address("HYPAC_ADDRESS")


@pytest.mark.parametrize(
    "url",
    ["https://id.example.org/realms/team", "https://team.eu.auth0.com/", "http://localhost:8080/realms/a"],
)
def test_a_provider_is_named_as_in_its_tokens(monkeypatch, url):
    monkeypatch.setenv("HYPAC_OIDC_ISSUER", url)
    assert environment.issuer("HYPAC_OIDC_ISSUER") == url
    monkeypatch.setenv("HYPAC_OIDC_ISSUER", f"{url.rstrip('/')}/.well-known/openid-configuration")
    assert environment.issuer("HYPAC_OIDC_ISSUER") == url.rstrip("/")


@pytest.mark.parametrize(
    "url", ["id.example.org", "http://id.example.org", "https://", "https://id.example.org?a=1"]
)
def test_a_provider_without_tls_or_a_host_is_refused(monkeypatch, url):
    monkeypatch.setenv("HYPAC_OIDC_ISSUER", url)
    with pytest.raises(ImproperlyConfigured, match=r"HYPAC_OIDC_ISSUER=.*write https://"):
        environment.issuer("HYPAC_OIDC_ISSUER")


def test_roles_of_groups_are_read_from_json(monkeypatch):
    given = '{"CN=Labellers,OU=Lab": {"reviews": "annotator", "mails": "viewer"}}'
    monkeypatch.setenv("HYPAC_OIDC_GROUPS", given)
    assert environment.group_roles("HYPAC_OIDC_GROUPS") == {
        "CN=Labellers,OU=Lab": {"reviews": "annotator", "mails": "viewer"}
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("labellers=reviews", "is no JSON"),
        ('["labellers"]', "write"),
        ('{"labellers": "annotator"}', "group 'labellers': write"),
        (
            '{"labellers": {"reviews": "boss"}}',
            "one of the roles owner, manager, reviewer, annotator, viewer",
        ),
    ],
)
def test_roles_of_groups_that_cannot_be_read_are_refused(monkeypatch, given, told):
    monkeypatch.setenv("HYPAC_OIDC_GROUPS", given)
    with pytest.raises(ImproperlyConfigured, match=told):
        environment.group_roles("HYPAC_OIDC_GROUPS")
