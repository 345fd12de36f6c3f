"""All settings, each from the environment, with safe defaults. docs/configuration.md lists them."""

import contextlib
import os
from pathlib import Path

from csp.constants import NONE, SELF
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from hypac_site import environment, private_files, worker_memory
from hypac_site.secret_key import secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = environment.folder("HYPAC_VAR", BASE_DIR / "var")

HYPAC_UMASK = environment.umask("HYPAC_UMASK", 0o077)
# Of this process and its children. Static files are for everybody, and may be handed out by another program.
os.umask(0o022 if environment.flag("HYPAC_COLLECT_STATIC") else HYPAC_UMASK)

DEBUG = environment.flag("DJANGO_DEBUG")
HTTPS = environment.flag("HYPAC_HTTPS")
EMBEDDED = not environment.text("DATABASE_URL")

private_files.close(VAR_DIR / "secret_key", HYPAC_UMASK)
SECRET_KEY = secret_key(
    "DJANGO_SECRET_KEY", VAR_DIR / "secret_key", may_create=EMBEDDED or DEBUG, may_be_weak=DEBUG
)
ALLOWED_HOSTS = environment.allowed_hosts("DJANGO_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = environment.names("DJANGO_CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "annotation",  # before auth, whose command `changepassword` it extends
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
    "routing",
]

MIDDLEWARE = [
    "hypac_site.request_middleware.RequestMiddleware",
    "hypac_site.middleware.KeptAnswersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "hypac_site.middleware.BodyLimitMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "hypac_site.middleware.ReaderMiddleware",
    "hypac_site.middleware.NulMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "annotation.people.second_factor.required.SecondFactorMiddleware",
    "annotation.people.attempt_limits.AttemptsMiddleware",
    "axes.middleware.AxesMiddleware",
    "hypac_site.middleware.StatementLimitMiddleware",
    "hypac_site.middleware.GoneMiddleware",
    "routing.common.loss_middleware.LossMiddleware",
    "hypac_site.middleware.OutlineMiddleware",
]

ROOT_URLCONF = "hypac_site.urls"
WSGI_APPLICATION = "hypac_site.wsgi.application"
ASGI_APPLICATION = "hypac_site.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["annotation.templatetags.icons"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "annotation.context_processors.text_size",
                "annotation.context_processors.waiting_work",
                "hypac_site.help.views.help_of_page",
            ],
        },
    },
]

# --- Database -----------------------------------------------------------------------------------------------

DATABASES = {
    "default": environment.database(
        "DATABASE_URL",
        f"sqlite:///{VAR_DIR / 'hypac.sqlite3'}",
        conn_max_age=environment.integer("HYPAC_DB_CONN_MAX_AGE", 60),
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Readers and one writer side by side (WAL); a writer takes its lock at the start, so that it waits for
    # another one instead of failing half-way with "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 30,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
    Path(str(DATABASES["default"]["NAME"])).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.close_database(Path(str(DATABASES["default"]["NAME"])), HYPAC_UMASK)
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # PostgreSQL takes the queue's looks at single rows for large work and compiles them (JIT): 0.3 s for what
    # runs in a millisecond. And it ends the session of a process that froze inside a transaction, or whose
    # host went away: its locks would keep others from its work for hours. Options in the address go first.
    options = "-c jit=off -c idle_in_transaction_session_timeout=120000"
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("options", options)
    DATABASES["default"]["OPTIONS"].setdefault("connect_timeout", 10)
# A statement of a web request is ended after so long; 0: never.
HYPAC_REQUEST_STATEMENT_SECONDS = environment.integer("HYPAC_REQUEST_STATEMENT_SECONDS", 30)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- What web processes share -------------------------------------------------------------------------------

# How often an address asked for open pages, marks beside names, counters of /metrics: nothing that may not be
# lost. Without Redis each process counts for itself, which is right for the one process of `manage.py serve`.
HYPAC_CACHE_URL = environment.cache_url("HYPAC_CACHE_URL", environment.text("CELERY_BROKER_URL"))
if HYPAC_CACHE_URL:
    CACHES = {
        "default": {
            "BACKEND": "hypac_site.cache.SoftRedisCache",
            "LOCATION": HYPAC_CACHE_URL,
            "KEY_PREFIX": "hypac-cache",
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        }
    }
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# --- Jobs ---------------------------------------------------------------------------------------------------

CELERY_BROKER_URL = environment.broker_url("CELERY_BROKER_URL") or "filesystem://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# A worker takes one message for each job that it does, and is done with it only at the end: so no message
# waits behind a long job of one worker while another is idle. A message that comes twice does nothing.
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A message whose worker was killed is not sent again at once: a job that kills its workers would go round and
# round. The reconciler takes it up, and counts.
CELERY_TASK_REJECT_ON_WORKER_LOST = False
# A worker waits for its broker for ever, and goes on meanwhile with the job that it has.
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_BEAT_SCHEDULE = {
    "reconcile-jobs": {
        "task": "annotation.reconcile_jobs",
        "schedule": 15.0,
        # Of what was sent while no worker was there, the newest is enough.
        "options": {"expires": 60},
    }
}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
with contextlib.suppress(OSError):  # only beat needs the folder here, and says so where it cannot be made
    VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
private_files.close(VAR_DIR, HYPAC_UMASK)
if CELERY_BROKER_URL.startswith("filesystem://"):
    BROKER_DIR = VAR_DIR / "broker"
    for folder in ("messages", "control"):
        (BROKER_DIR / folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT = "hypac_site.folder_broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_DIR / "messages"),
        "data_folder_out": str(BROKER_DIR / "messages"),
        "control_folder": str(BROKER_DIR / "control"),
        "polling_interval": 0.05,
    }
elif CELERY_BROKER_URL.startswith(("redis", "sentinel")):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # After so long Redis hands a message to another worker too, which drops it while the job is alive.
        "visibility_timeout": 3600,
        # A host that does not answer fails in seconds, one that refuses at once: a page that announces a job
        # waits no longer for it, and the reconciler does it again.
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0.2,
        "socket_connect_timeout": 3,
        "socket_timeout": 10,
        "socket_keepalive": True,
    }
# A job whose heartbeat is older than this is taken to have lost its worker; it is then started again, in all
# at most so many times.
HYPAC_JOB_STALE_SECONDS = environment.integer("HYPAC_JOB_STALE_SECONDS", 60, least=1)
HYPAC_JOB_MAX_ATTEMPTS = environment.integer("HYPAC_JOB_MAX_ATTEMPTS", 5, least=1)
# For how many days it is kept what models wrote word by word, what people wrote and did not send in time, and
# what was done; None: for ever (annotation/retention.py).
HYPAC_RETAIN_RAW_OUTPUT_DAYS = environment.days("HYPAC_RETAIN_RAW_OUTPUT_DAYS")
HYPAC_RETAIN_DRAFTS_DAYS = environment.days("HYPAC_RETAIN_DRAFTS_DAYS")
HYPAC_RETAIN_AUDIT_DAYS = environment.days("HYPAC_RETAIN_AUDIT_DAYS")
# Of each process of a worker; 0: no limit.
HYPAC_WORKER_MEMORY_MB = environment.integer("HYPAC_WORKER_MEMORY_MB", worker_memory.default_megabytes())
CELERY_WORKER_MAX_MEMORY_PER_CHILD = worker_memory.most_resident(HYPAC_WORKER_MEMORY_MB)

# Losses of one's own that plans may name, "package.module:attribute": code that this server then runs.
HYPAC_LOSSES = environment.names("HYPAC_LOSSES")
# The server that gives embeddings for the loss `cosine_distance`: the part of its address before
# "/embeddings", the model to be asked for, and a key if it wants one.
HYPAC_EMBEDDINGS_URL = environment.text("HYPAC_EMBEDDINGS_URL")
HYPAC_EMBEDDINGS_MODEL = environment.text("HYPAC_EMBEDDINGS_MODEL")
HYPAC_EMBEDDINGS_KEY = environment.text("HYPAC_EMBEDDINGS_KEY")

# --- Other servers ------------------------------------------------------------------------------------------

# Addresses that people enter never lead into the network of this server, apart from these: "host" or
# "host:port".
HYPAC_PRIVATE_HOSTS = environment.hosts("HYPAC_PRIVATE_HOSTS")
# The Hugging Face Hub, or a server that speaks its API, from which people take data sets and to which they
# deliver; "" for none. It is asked only where somebody connects a project to a data set there.
HYPAC_HUB_ENDPOINT = environment.text("HYPAC_HUB_ENDPOINT", "https://huggingface.co").rstrip("/")
# Public beacons that the draw of a run may come from (routing/runs/beacons.py), or mirrors of them.
HYPAC_DRAND_URL = environment.text("HYPAC_DRAND_URL", "https://api.drand.sh").rstrip("/")
HYPAC_NIST_BEACON_URL = environment.text(
    "HYPAC_NIST_BEACON_URL", "https://beacon.nist.gov/beacon/2.0"
).rstrip("/")
# Letters to people (docs/configuration.md): the mail server, "smtp://user:password@host:587" (with STARTTLS)
# or "smtps://..."; from whom; the address of this site, which the links in letters begin with. Empty: none.
HYPAC_MAIL_URL = environment.mail_url("HYPAC_MAIL_URL")
HYPAC_MAIL_FROM = environment.text("HYPAC_MAIL_FROM")
HYPAC_ADDRESS = environment.site_address("HYPAC_ADDRESS")
globals().update(environment.mail_settings(HYPAC_MAIL_URL, HYPAC_MAIL_FROM, HYPAC_ADDRESS))
# The first encrypts stored keys of such servers, all decrypt (annotation/outside/secrets.py).
HYPAC_ENCRYPTION_KEYS = environment.encryption_keys("HYPAC_ENCRYPTION_KEYS")

# --- People and their sessions ------------------------------------------------------------------------------

AUTH_USER_MODEL = "annotation.User"
# Who may make projects: "everybody" who has an account, or "staff" and administrators.
HYPAC_PROJECT_MAKERS = environment.one_of("HYPAC_PROJECT_MAKERS", ("everybody", "staff"))
# Counted first, before anything is looked up or hashed.
AUTHENTICATION_BACKENDS = [
    "annotation.people.attempt_limits.CountingBackend",
    "axes.backends.AxesStandaloneBackend",
    "annotation.people.log_in.PasswordBackend",
    "annotation.people.log_in.SignOnBackend",
]
# Logging in by an OpenID Connect provider (annotation/people/sign_on.py); empty: by password alone.
HYPAC_OIDC_ISSUER = environment.issuer("HYPAC_OIDC_ISSUER")
HYPAC_OIDC_CLIENT_ID = environment.text("HYPAC_OIDC_CLIENT_ID")
HYPAC_OIDC_CLIENT_SECRET = environment.text("HYPAC_OIDC_CLIENT_SECRET")
if HYPAC_OIDC_ISSUER and not HYPAC_OIDC_CLIENT_ID:
    raise ImproperlyConfigured("HYPAC_OIDC_ISSUER is set: set HYPAC_OIDC_CLIENT_ID, too.")
# What people call it: "Log in with ...".
HYPAC_OIDC_NAME = environment.text("HYPAC_OIDC_NAME", "single sign-on")
HYPAC_OIDC_SCOPES = environment.text("HYPAC_OIDC_SCOPES", "openid profile email")
# Roles in projects by groups of the provider: {"group": {"project": "role"}}, and in which claim they stand.
HYPAC_OIDC_GROUPS = environment.group_roles("HYPAC_OIDC_GROUPS")
HYPAC_OIDC_GROUPS_CLAIM = environment.text("HYPAC_OIDC_GROUPS_CLAIM", "groups")
# How long a session lasts that began there, and a token after the last such log-in: who is gone there has no
# way in here for longer.
HYPAC_OIDC_SESSION_HOURS = environment.integer("HYPAC_OIDC_SESSION_HOURS", 10, least=1)
HYPAC_OIDC_TOKEN_DAYS = environment.integer("HYPAC_OIDC_TOKEN_DAYS", 7, least=1)
# Who may log in by password: "everybody" who has one, "staff" and administrators, or "nobody".
HYPAC_LOCAL_LOGIN = environment.one_of("HYPAC_LOCAL_LOGIN", ("everybody", "staff", "nobody"))
if HYPAC_LOCAL_LOGIN != "everybody" and not HYPAC_OIDC_ISSUER:
    raise ImproperlyConfigured(f"HYPAC_LOCAL_LOGIN={HYPAC_LOCAL_LOGIN}: set HYPAC_OIDC_ISSUER, too.")
# Of whom a second step of the log-in is required, besides the password: "none", "administrators" (and staff),
# "managers" (owners and those, too), or "everyone" who has a password here.
HYPAC_REQUIRE_SECOND_FACTOR = environment.one_of(
    "HYPAC_REQUIRE_SECOND_FACTOR", ("none", "administrators", "managers", "everyone")
)
PASSWORD_HASHERS = ["annotation.people.hashing.OneAtATimeHasher", *global_settings.PASSWORD_HASHERS[1:]]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "project_list"
LOGOUT_REDIRECT_URL = "login"
PASSWORD_RESET_TIMEOUT = 24 * 3600  # of a link for a new password, in seconds
# Attempts at passwords (annotation/people/attempt_limits.py): of one address or one person, and in all: of
# strangers, of known devices, of people who are logged in; empty: as many as anybody likes.
HYPAC_LOGIN_RATES = {
    "address": environment.rate("HYPAC_LOGIN_ADDRESS_RATE", "20/min"),
    "all": environment.rate("HYPAC_LOGIN_RATE", "60/min"),
}
AXES_FAILURE_LIMIT = environment.integer("HYPAC_LOGIN_FAILURE_LIMIT", 10, least=1)
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "annotation.people.attempt_limits.locked"
AXES_CLIENT_IP_CALLABLE = "annotation.people.attempt_limits.asker_for_axes"
AXES_VERBOSE = False

# --- Files --------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = environment.folder("HYPAC_STATIC_ROOT", VAR_DIR / "static")
MEDIA_ROOT = VAR_DIR / "media"
WHITENOISE_USE_FINDERS = True
_collected = environment.flag("HYPAC_COLLECT_STATIC") or (STATIC_ROOT / "staticfiles.json").exists()
STORAGES = {
    # A folder, or an S3-compatible store (HYPAC_S3_BUCKET), which several hosts can share.
    "default": environment.file_storage(),
    "staticfiles": {
        "BACKEND": "hypac_site.static_files.StaticFiles"
        if _collected and not DEBUG
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
        "OPTIONS": {"file_permissions_mode": 0o644, "directory_permissions_mode": 0o755},
    },
}
# Caps on what one upload may hold; each is checked before its content is read further.
HYPAC_MAX_UPLOAD_BYTES = environment.integer("HYPAC_MAX_UPLOAD_BYTES", 2 * 1024**3, least=1)
HYPAC_MAX_IMPORT_ROWS = environment.integer("HYPAC_MAX_IMPORT_ROWS", 5_000_000, least=1)
HYPAC_MAX_CELL_CHARACTERS = environment.integer("HYPAC_MAX_CELL_CHARACTERS", 1_000_000, least=1)
HYPAC_MAX_IMAGE_BYTES = environment.integer("HYPAC_MAX_IMAGE_BYTES", 20 * 1024**2, least=1)
HYPAC_MAX_IMAGE_PIXELS = environment.integer("HYPAC_MAX_IMAGE_PIXELS", 50_000_000, least=1)
# What becomes of an upload; annotation/imports/limits.py states the rest.
HYPAC_MAX_INPUT_RATIO = environment.integer("HYPAC_MAX_INPUT_RATIO", 200, least=1)
HYPAC_MAX_UNPACKED_BYTES = environment.integer("HYPAC_MAX_UNPACKED_BYTES", 32 * 1024**3, least=1)
HYPAC_MAX_IMPORT_CHARACTERS = environment.integer("HYPAC_MAX_IMPORT_CHARACTERS", 20_000_000_000, least=1)
HYPAC_MAX_IMPORT_SECONDS = environment.integer("HYPAC_MAX_IMPORT_SECONDS", 6 * 3600, least=1)
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024**2
FILE_UPLOAD_PERMISSIONS = 0o666 & ~HYPAC_UMASK
# Only model files that the person who runs the server put into this folder can be loaded by the `sklearn`
# backend: unpickling a file runs code, so a path from the browser is never opened.
HYPAC_SKLEARN_MODELS = environment.folder("HYPAC_SKLEARN_MODELS", VAR_DIR / "models")
# Folders with model files for the `vllm` backend, and the models of the hub that it may fetch besides: names,
# "*" for any part of one.
HYPAC_VLLM_MODELS = environment.folder("HYPAC_VLLM_MODELS", VAR_DIR / "llm")
HYPAC_VLLM_HUB = environment.names("HYPAC_VLLM_HUB")

# --- Browser security ---------------------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
# Browsers keep cookies by host, whatever the port: of two sites on one host one needs other names.
HYPAC_COOKIE_PREFIX = environment.cookie_prefix("HYPAC_COOKIE_PREFIX")
SESSION_COOKIE_NAME = f"{HYPAC_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{HYPAC_COOKIE_PREFIX}csrftoken"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked by programs beside the server
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
HYPAC_BEHIND_PROXY = environment.flag("HYPAC_BEHIND_PROXY")
if HYPAC_BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotation.people.authentication.TokenAuthentication",
        "annotation.people.authentication.SessionAuthentication",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["annotation.common.api.throttling.ApiLimit"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["annotation.common.api.parsing.ShallowJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "annotation.common.api.schema.HypacSchema",
    # `format` is a parameter of our own; what an answer is made of, the header Accept says.
    "URL_FORMAT_OVERRIDE": None,
}
# Requests to the API in a time, as "600/min"; empty: as many as anybody likes. A whole office may share one
# address.
HYPAC_API_RATES = {
    "user": environment.rate("HYPAC_API_RATE", "1200/min"),
    "queue": environment.rate("HYPAC_API_QUEUE_RATE", "2400/min"),
    "anonymous": environment.rate("HYPAC_API_ANONYMOUS_RATE", "600/min"),
    "wrong_tokens": environment.rate("HYPAC_API_WRONG_TOKEN_RATE", "30/min"),
}
HYPAC_TOKEN_DAYS = environment.integer("HYPAC_TOKEN_DAYS", 90, least=1)
HYPAC_TOKEN_MAX_DAYS = environment.integer("HYPAC_TOKEN_MAX_DAYS", 365, least=1)
# Its own table stays away, as another model takes its place: its migrations would make it all the same.
MIGRATION_MODULES = {"knox": None}
KNOX_TOKEN_MODEL = "annotation.ApiToken"  # noqa: S105
# The beginning tells people, and programs that look for leaked secrets, what it is.
REST_KNOX = {"AUTH_HEADER_PREFIX": "Token", "TOKEN_PREFIX": "hypac_"}
SPECTACULAR_SETTINGS = {
    "TITLE": "HyPAC",
    "VERSION": "1",
    "DESCRIPTION": "What the pages do, for programs: data in and out, models, plans, labelling, deliveries.",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "SERVE_INCLUDE_SCHEMA": False,
    # A field that only answers have is not asked for in a request, and the other way round.
    "COMPONENT_SPLIT_REQUEST": True,
    "PATH_CONVERTER_OVERRIDES": {"row": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}},
    # Values to choose from stand where they are used: no names for them, and none that clash.
    "POSTPROCESSING_HOOKS": ["annotation.common.api.schema.name_problems"],
}

# --- Language and time --------------------------------------------------------------------------------------

# Of what workers store, such as the errors of jobs, and of pages whose reader asks for no language below.
LANGUAGE_CODE = "en"
# Each named in itself, so that whoever reads no other finds it. CONTRIBUTING.md says how to add one.
LANGUAGES = [("en", "English"), ("fr", "Français")]
LOCALE_PATHS = [BASE_DIR / "locale"]
# Of readers whose browser has not told its own yet (static/site.js does).
TIME_ZONE = environment.time_zone("HYPAC_TIME_ZONE")
USE_I18N = True
USE_TZ = True

# --- What can be watched ------------------------------------------------------------------------------------

# Whoever asks for /metrics has to show it; there is no such page while it is empty.
# Named by /.well-known/security.txt.
HYPAC_SECURITY_CONTACT = environment.contact("HYPAC_SECURITY_CONTACT")
HYPAC_METRICS_TOKEN = environment.bearer_token("HYPAC_METRICS_TOKEN")
HYPAC_LOG_FORMAT = environment.one_of("HYPAC_LOG_FORMAT", ("text", "json"))
# One line for each request.
HYPAC_LOG_REQUESTS = environment.flag("HYPAC_LOG_REQUESTS")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "hypac_site.logs.TextFormatter"},
        "json": {"()": "hypac_site.logs.JsonFormatter"},
    },
    "filters": {
        "hide_tokens": {"()": "hypac_site.logs.HideTokens"},
        "refusals_in_a_line": {"()": "hypac_site.logs.RefusalsInALine"},
        "place": {"()": "hypac_site.logs.Place"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": HYPAC_LOG_FORMAT,
            "filters": ["hide_tokens", "refusals_in_a_line", "place"],
        }
    },
    "root": {"handlers": ["console"], "level": environment.log_level("HYPAC_LOG_LEVEL")},
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("axes", "fido2", "httpx", "httpcore")},
        # Says that a process of a worker was killed. Celery gives it a handler of its own where it has none.
        "multiprocessing": {"handlers": ["console"], "propagate": False},
    },
}
