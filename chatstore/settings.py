"""All settings, read from the environment; invalid ones are rejected by name.

Without an external server the local ones of `.local/<CHATSTORE_STACK>` are used, so that a plain `manage.py` works
beside `make run` without exports.
"""

import datetime as dt
import os
import shlex
import sys
from typing import Any
from urllib.parse import quote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django_guid.integrations import CeleryIntegration
from pythonjsonlogger.core import RESERVED_ATTRS

from chatstore import environment
from chatstore.domain.roles import Grant, Role
from chatstore.environment import env
from chatstore.local import layout
from chatstore.local.secrets import path_of_secret, read_or_make_secret

BASE_DIR = layout.PROJECT_ROOT

try:
    STACK = layout.read_stack(os.environ)
except layout.WrongSetting as wrong:
    raise ImproperlyConfigured(str(wrong)) from None

# --- Servers -----------------------------------------------------------------------

_named_database = environment.read_secret("DATABASE_URL")
_named_redis = environment.read_secret("REDIS_URL")
_named_cassandra = environment.read_names("CASSANDRA_CONTACT_POINTS", [])

# Servers that are not set belong to the local stack, which `python -m devstack` starts.
LOCAL_POSTGRES = not _named_database
LOCAL_REDIS = not _named_redis
LOCAL_CASSANDRA = not _named_cassandra


def _local_url(scheme: str, *, user: str, keyword: str, port: int, path: str) -> str:
    password = quote(read_or_make_secret(STACK, keyword), safe="")
    return f"{scheme}://{user}:{password}@127.0.0.1:{port}/{path}"


# Role of this process in the local Postgres. Only `manage.py migrate` is the owner, which may alter tables.
_role = environment.read_text("CHATSTORE_POSTGRES_ROLE", "app")
if _role not in {"app", "owner"}:
    raise ImproperlyConfigured(f"CHATSTORE_POSTGRES_ROLE must be app or owner, not {_role!r}.")

_database_url = environment.check_url(
    "DATABASE_URL",
    _named_database
    or _local_url(
        "postgres",
        user=layout.POSTGRES_OWNER if _role == "owner" else layout.POSTGRES_APPLICATION,
        keyword=f"postgres_{_role}_password",
        port=STACK.ports.postgres,
        path=STACK.database,
    ),
    schemes={"postgres", "postgresql"},
)
REDIS_URL = environment.check_url(
    "REDIS_URL",
    _named_redis
    or _local_url(
        "redis",
        user="",
        keyword="valkey_password",
        port=STACK.ports.valkey,
        path=str(STACK.valkey_database),
    ),
    schemes={"redis", "rediss"},
)

_datacenter = environment.read_text("CASSANDRA_DATACENTER", layout.CASSANDRA_DATACENTER if LOCAL_CASSANDRA else "")
if not _datacenter:
    raise ImproperlyConfigured(
        "CASSANDRA_DATACENTER must name the datacenter nearest to this machine, since CASSANDRA_CONTACT_POINTS is set."
    )

_keyspace = environment.read_text("CASSANDRA_KEYSPACE", STACK.database)
if not (_keyspace.isascii() and _keyspace.isidentifier() and len(_keyspace) <= 48):
    raise ImproperlyConfigured(f"CASSANDRA_KEYSPACE must be letters, digits and underscores, not {_keyspace!r}.")

_cassandra_user = environment.read_text("CASSANDRA_USER", "")
_is_local_user = LOCAL_CASSANDRA and not _cassandra_user

# Connection of `chatstore.store`. `tls` is an ssl.SSLContext or None. `commitlog_sync_period_ms`:
# a write may not be on the nodes' disks for this long (Cassandra's default is 10 s); 0: they do
# not sync periodically.
CASSANDRA: dict[str, Any] = {
    "contact_points": _named_cassandra or list(layout.CASSANDRA_HOSTS),
    "port": environment.read_int(
        "CASSANDRA_PORT",
        default=STACK.ports.cassandra if LOCAL_CASSANDRA else 9042,
        minimum=1,
        maximum=65535,
    ),
    "keyspace": _keyspace,
    "user": layout.CASSANDRA_APPLICATION if _is_local_user else _cassandra_user,
    "password": read_or_make_secret(STACK, "cassandra_password")
    if _is_local_user
    else environment.read_secret("CASSANDRA_PASSWORD"),
    "tls": environment.read_tls("CASSANDRA_TLS"),
    "datacenter": _datacenter,
    "replication": environment.read_replication("CASSANDRA_REPLICATION", {_datacenter: 2 if LOCAL_CASSANDRA else 3}),
    "commitlog_sync_period_ms": environment.read_int(
        "CASSANDRA_COMMITLOG_SYNC_PERIOD_MS",
        default=STACK.commitlog_sync_period_ms if LOCAL_CASSANDRA else 10_000,
        minimum=0,
    ),
}
# JMX ports for nodetool: one per local node; external nodes share one.
CASSANDRA_JMX_PORT = environment.read_int("CASSANDRA_JMX_PORT", default=7199, minimum=1, maximum=65535)
CASSANDRA_JMX_PORTS: dict[str, int] = (
    dict(
        zip(
            layout.CASSANDRA_HOSTS,
            (STACK.ports.cassandra_jmx, STACK.ports.cassandra_jmx_2),
            strict=True,
        )
    )
    if LOCAL_CASSANDRA
    else {}
)
CASSANDRA_JMX_USER = layout.JMX_USER if LOCAL_CASSANDRA else None
# Command that maintenance runs for a node; {host} and {port} are replaced. "ssh {host} nodetool" works too.
NODETOOL = environment.read_secret("NODETOOL") or (
    f"{shlex.quote(sys.executable)} -m devstack nodetool {STACK.name} {{host}}"
    if LOCAL_CASSANDRA
    else "nodetool -h {host} -p {port}"
)
# Password files of the local servers, for `manage.py services` and so for other tools. JMX's contains a line of
# user and password, the format of nodetool's -pwf.
PASSWORD_FILES: dict[str, str | None] = {
    "postgres": str(path_of_secret(STACK, f"postgres_{_role}_password")) if LOCAL_POSTGRES else None,
    "redis": str(path_of_secret(STACK, "valkey_password")) if LOCAL_REDIS else None,
    "cassandra": str(path_of_secret(STACK, "cassandra_password")) if _is_local_user else None,
    "jmx": str(path_of_secret(STACK, "jmxremote.password")) if LOCAL_CASSANDRA else None,
}
if CASSANDRA["user"] and not CASSANDRA["password"]:
    raise ImproperlyConfigured("CASSANDRA_USER needs CASSANDRA_PASSWORD.")
if _datacenter not in CASSANDRA["replication"]:
    raise ImproperlyConfigured(f"CASSANDRA_REPLICATION must name {_datacenter} too.")

_cassandra_connection: dict[str, Any] = {
    # Without this, django.setup() would require a running server.
    "lazy_connect": True,
    "retry_connect": True,
    "port": CASSANDRA["port"],
}
if CASSANDRA["tls"]:
    _cassandra_connection["ssl_context"] = CASSANDRA["tls"]

_database: dict[str, Any] = env.db_url_config(_database_url)

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **_database,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # Fail fast when Postgres is unreachable.
        "OPTIONS": {"connect_timeout": 5, **_database.get("OPTIONS", {})},
    },
    # The engine declares the schema; `chatstore.store` uses its own session.
    "cassandra": {
        "ENGINE": "django_cassandra_engine",
        "HOST": ",".join(CASSANDRA["contact_points"]),
        "NAME": CASSANDRA["keyspace"],
        "USER": CASSANDRA["user"],
        "PASSWORD": CASSANDRA["password"],
        "OPTIONS": {
            "replication": {
                "strategy_class": "NetworkTopologyStrategy",
                **CASSANDRA["replication"],
            },
            "connection": _cassandra_connection,
        },
    },
}

# --- The web -----------------------------------------------------------------------

WEB_HOST = environment.read_text("CHATSTORE_WEB_HOST", "127.0.0.1")
BASE_URL = environment.check_url(
    "BASE_URL",
    environment.read_text("BASE_URL", f"http://127.0.0.1:{STACK.ports.web}").rstrip("/"),
    schemes={"http", "https"},
)
_base = urlsplit(BASE_URL)
_base_host = _base.hostname or ""

# Plain HTTP is for this machine only: whatever others can reach requires TLS.
PLAIN_HTTP = _base.scheme == "http"
if PLAIN_HTTP and not (environment.is_loopback(_base_host) and environment.is_loopback(WEB_HOST)):
    raise ImproperlyConfigured(
        "BASE_URL must begin with https:// unless both it and CHATSTORE_WEB_HOST "
        "are addresses of this machine only (127.0.0.1)."
    )

ALLOWED_HOSTS = environment.read_names(
    "ALLOWED_HOSTS", [_base_host, "127.0.0.1", "localhost"] if PLAIN_HTTP else [_base_host]
)
CSRF_TRUSTED_ORIGINS = [f"{_base.scheme}://{_base.netloc}"]

SECRET_KEY = environment.read_secret("SECRET_KEY")
if not SECRET_KEY:
    if not LOCAL_POSTGRES:
        raise ImproperlyConfigured("SECRET_KEY (or SECRET_KEY_FILE) must be set with DATABASE_URL.")
    SECRET_KEY = read_or_make_secret(STACK, "secret_key")
DEBUG = environment.read_flag("DEBUG", default=False)

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = not PLAIN_HTTP
SECURE_HSTS_SECONDS = 0 if PLAIN_HTTP else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not PLAIN_HTTP
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# In Postgres, with the account, so that sessions can be listed and ended.
SESSION_ENGINE = "moderation.sessions"
# Stacks on one host need distinct names, since the port is not part of a cookie's scope.
SESSION_COOKIE_NAME = f"{STACK.database}_session"
CSRF_COOKIE_NAME = f"{STACK.database}_csrf"
# A thousand selected messages, the maximum of one purge, plus the form's own fields.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_020

# Fallback; `chatstore.csp` sends the policy of the request's path.
# Hosts from which pages may load images of messages, when a viewer asks for one; with a port if it is not 443.
MEDIA_HOSTS = environment.check_hosts("MEDIA_HOSTS", environment.read_names("MEDIA_HOSTS", []))

CONTENT_SECURITY_POLICY = {"DIRECTIVES": {"default-src": ["'none'"]}}

INSTALLED_APPS = [
    # The engine must come first: it patches the loading of models.
    "django_cassandra_engine",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "csp",
    "django_celery_beat",
    "django_guid",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "django_otp_webauthn",
    "chatstore.apps.ChatstoreConfig",
    "moderation",
]

MIDDLEWARE = [
    "moderation.audited_requests.IgnoreForeignIds",
    "django_guid.middleware.guid_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "chatstore.csp.CSPByPath",
    "chatstore.caching.NoStore",
    "moderation.audited_requests.NoteAddress",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "moderation.sign_in_stages.RequireSecondFactor",
    "moderation.sessions.NoteUse",
    "moderation.sessions.RequireSignIn",
    "moderation.preferences.ActivatePreferences",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    # Last, and so nearest to the views: turn our errors into pages.
    "moderation.errors.ErrorPages",
    "moderation.views.confirming.ConfirmIdentity",
]

ROOT_URLCONF = "chatstore.urls"
WSGI_APPLICATION = "chatstore.wsgi.application"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign_in"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# The admin uses the other pages' colors, corners and logo; admin.css does what no setting can.
UNFOLD = {
    "SITE_TITLE": "Chatstore admin",
    "SITE_HEADER": "Chatstore",
    "SITE_URL": "/",
    "SITE_ICON": lambda request: static("moderation/mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("moderation/mark.svg")}],
    "STYLES": [lambda request: static("moderation/admin.css")],
    "SCRIPTS": [lambda request: static("moderation/admin.js")],
    "BORDER_RADIUS": "8px",
    "COLORS": {
        # Ground, lines and text: of the light scheme from the top on, of the dark one from the end on.
        "base": {
            "50": "#f6f6f3",
            "100": "#eeeeea",
            "200": "#deded8",
            "300": "#c3c4c0",
            "400": "#8d919b",
            "500": "#666972",
            "600": "#54575f",
            "700": "#474b55",
            "800": "#30333b",
            "900": "#1a1c21",
            "950": "#121317",
        },
        "font": {
            "subtle-light": "#54575f",
            "subtle-dark": "#a7acb7",
            "default-light": "#1b1c20",
            "default-dark": "#e8e9ed",
            "important-light": "#1b1c20",
            "important-dark": "#e8e9ed",
        },
        "primary": {
            "50": "#eef0fd",
            "100": "#e1e5fb",
            "200": "#c7cef7",
            "300": "#9fb1ff",
            "400": "#7d92f5",
            "500": "#5067de",
            "600": "#3148c8",
            "700": "#2438a6",
            "800": "#1f2f86",
            "900": "#1c2a6c",
            "950": "#121a44",
        },
    },
}

# The first refuses attempts during a pause, the second checks passwords.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "moderation.sign_in.PasswordBackend"]

# Single sign-on by OpenID Connect, off without an issuer. Its endpoints come from its discovery document.
OIDC_ISSUER = environment.read_text("OIDC_ISSUER", "")
OIDC_RP_CLIENT_ID = environment.read_text("OIDC_CLIENT_ID", "")
OIDC_RP_CLIENT_SECRET = environment.read_secret("OIDC_CLIENT_SECRET")
OIDC_RP_SIGN_ALGO = environment.read_choice("OIDC_ALGORITHM", default="RS256", choices=("RS256", "ES256"))
OIDC_RP_SCOPES = " ".join(environment.read_names("OIDC_SCOPES", ["openid", "email", "profile"]))
OIDC_GROUPS_CLAIM = environment.read_text("OIDC_GROUPS_CLAIM", "groups")
# Groups of the provider, and the role that each gives.
try:
    OIDC_ROLES = [(theirs, Grant.parse(given)) for theirs, given in environment.read_pairs("OIDC_ROLES")]
except ValueError as error:
    raise ImproperlyConfigured(f"OIDC_ROLES must look like mods=moderator, leads=lead@1234: {error}.") from None
# The provider asks for a second factor itself.
OIDC_PASSES_SECOND_FACTOR = environment.read_flag("OIDC_PASSES_SECOND_FACTOR", default=False)
OIDC_NAME = environment.read_text("OIDC_NAME", "single sign-on")
if OIDC_ISSUER:
    environment.check_url("OIDC_ISSUER", OIDC_ISSUER, schemes={"https", "http"})
    if OIDC_ISSUER.startswith("http:") and not environment.is_loopback(urlsplit(OIDC_ISSUER).hostname or ""):
        raise ImproperlyConfigured("OIDC_ISSUER must begin with https://.")
    if not (OIDC_RP_CLIENT_ID and OIDC_RP_CLIENT_SECRET and OIDC_ROLES):
        raise ImproperlyConfigured("OIDC_ISSUER needs OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_ROLES.")
    AUTHENTICATION_BACKENDS.insert(1, "moderation.single_sign_on.Backend")

# Failed sign-ins to one account from one address before that address has to pause, and for how long. Another address
# is not affected, so nobody can lock a moderator out.
SIGN_IN_ATTEMPTS = environment.read_int("SIGN_IN_ATTEMPTS", default=5, minimum=1)
SIGN_IN_PAUSE_MINUTES = environment.read_int("SIGN_IN_PAUSE_MINUTES", default=15, minimum=1)
# Proxies before the web server, whose last entries in X-Forwarded-For are believed. 0: the header is ignored.
TRUSTED_PROXIES = environment.read_int("TRUSTED_PROXIES", default=0, minimum=0, maximum=10)
# Failed sign-ins from one address, to whatever accounts, before it has to pause for all; 0: any number. https needs a
# proxy. While it is not named, every client has its address, and a stranger's failures would lock everyone out.
SIGN_IN_ATTEMPTS_PER_ADDRESS = environment.read_int(
    "SIGN_IN_ATTEMPTS_PER_ADDRESS", default=50 if TRUSTED_PROXIES or PLAIN_HTTP else 0, minimum=0
)

AXES_HANDLER = "moderation.sign_in_attempts.AttemptsHandler"
AXES_FAILURE_LIMIT = SIGN_IN_ATTEMPTS
AXES_COOLOFF_TIME = dt.timedelta(minutes=SIGN_IN_PAUSE_MINUTES)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Attempts during a pause do not prolong it.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "chatstore.client_address.attempts_address"
AXES_LOCKOUT_CALLABLE = "moderation.views.session.too_many_attempts"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
# Fields of forms that are not stored with an attempt, besides passwords.
AXES_SENSITIVE_PARAMETERS = [
    *("code", "confirm_secret", "passkey", "state", "csrfmiddlewaretoken"),
    *("old_password", "new_password1", "new_password2", "password_again"),
]

# Roles whose accounts must have a second factor: they set one up at their next sign-in.
SECOND_FACTOR_ROLES = environment.read_choices("SECOND_FACTOR_ROLES", [role.value for role in Role])
# How long the link of an invitation is valid.
INVITATION_HOURS = environment.read_int("INVITATION_HOURS", default=72, minimum=1)
# How long a password or a code is good for acts that take a confirmation, and from how many messages on a purge does.
CONFIRM_MINUTES = environment.read_int("CONFIRM_MINUTES", default=15, minimum=1)
CONFIRM_ABOVE_MESSAGES = environment.read_int("CONFIRM_ABOVE_MESSAGES", default=10_000, minimum=0)
# Name of this installation in authenticator apps.
OTP_TOTP_ISSUER = "Chatstore" if PLAIN_HTTP else f"Chatstore {_base_host}"

# Passkeys belong to a domain, which an address is not: on a development machine they work on http://localhost only.
_passkey_host = "localhost" if PLAIN_HTTP else _base_host
OTP_WEBAUTHN_RP_ID = _passkey_host
OTP_WEBAUTHN_RP_NAME = OTP_TOTP_ISSUER
OTP_WEBAUTHN_ALLOWED_ORIGINS = [f"{_base.scheme}://{_passkey_host}{f':{_base.port}' if _base.port else ''}"]
# Only after the password.
OTP_WEBAUTHN_ALLOW_PASSWORDLESS_LOGIN = False

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# An account without preferences reads in its browser's language, if it is one of these, and in UTC.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["moderation.presentation.locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = STACK.folder / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# A request's id is in its answer, in its lines of the log, in the tasks that it enqueues, and in the audit log.
DJANGO_GUID = {"GUID_HEADER_NAME": "X-Request-ID", "INTEGRATIONS": [CeleryIntegration()]}

LOG_FORMAT = environment.read_choice("LOG_FORMAT", default="plain", choices=("plain", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "django_guid.log_filters.CorrelationId", "correlation_id_field": "request_id"},
    },
    "formatters": {
        "plain": {"format": "{asctime} {levelname} {name} {request_id}: {message}", "style": "{"},
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "format": "{asctime}{levelname}{name}{request_id}{message}",
            "style": "{",
            # Django adds the request with its query, and Celery the arguments of a task.
            "reserved_attrs": [*RESERVED_ATTRS, "request", "data"],
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["request_id"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # The driver logs each lost connection at length; the store logs what matters.
        "cassandra": {"level": "CRITICAL"},
        # It logs each id that it makes.
        "django_guid": {"level": "WARNING"},
        # It logs each failed sign-in, which the audit log records, with what was typed as the name: maybe a password.
        "axes": {"level": "ERROR"},
    },
}

# --- Celery: wakes workers up; the queue itself is in Postgres -----------------------

# Seconds between beat's polls of Postgres for due work.

BEAT_POLL_SECONDS = environment.read_int("BEAT_POLL_SECONDS", default=10, minimum=1)

# Unconsumed wake-up tasks expire after six polls: a night without workers would accumulate thousands.
WAKEUP_EXPIRES_SECONDS = 6 * BEAT_POLL_SECONDS

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# A purge's task runs for minutes: prefetched tasks would wait behind it.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BEAT_SCHEDULER = "chatstore.beat:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "poll due purges": {
        "task": "moderation.tasks.poll_due_purges",
        "schedule": BEAT_POLL_SECONDS,
        # Expired messages are harmless; the next poll enqueues the work again. django-celery-beat's name of the
        # option: it silently drops Celery's own `expires`.
        "options": {"expire_seconds": BEAT_POLL_SECONDS},
    },
    "link audit entries": {
        "task": "moderation.tasks.link_audit_entries",
        "schedule": BEAT_POLL_SECONDS,
        "options": {"expire_seconds": BEAT_POLL_SECONDS},
    },
    "poll due runs": {
        "task": "chatstore.tasks.poll_due_runs",
        "schedule": BEAT_POLL_SECONDS,
        "options": {"expire_seconds": BEAT_POLL_SECONDS, "queue": "maintenance"},
    },
}
# A worker without `--queues` processes purges and previews. A repair takes hours: maintenance has its own queue and
# workers, so that purges never wait behind it.
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {"celery": {}, "previews": {}}
CELERY_TASK_ROUTES = {
    "moderation.tasks.scan_purge": {"queue": "previews"},
    "moderation.tasks.join_scan": {"queue": "previews"},
    "chatstore.tasks.work_on_run": {"queue": "maintenance"},
}

# --- Monitoring: findings, and who is notified of them -------------------------------------------------

# Seconds between runs of the monitor checks (by one worker at a time); 0 disables them in this process.
MONITOR_INTERVAL_SECONDS = environment.read_int("MONITOR_INTERVAL_SECONDS", default=60, minimum=0)
# The URL is a secret: it is all that is needed to post to the webhook.
FINDINGS_WEBHOOK_URL = environment.read_secret("FINDINGS_WEBHOOK_URL")
if FINDINGS_WEBHOOK_URL:
    environment.check_url("FINDINGS_WEBHOOK_URL", FINDINGS_WEBHOOK_URL, schemes={"http", "https"})
FINDINGS_MAIL_TO = environment.read_names("FINDINGS_MAIL_TO", [])
# smtp://host:25, or smtp+tls://user:password@host:587.
_mail = env.email_url_config(
    environment.check_url(
        "EMAIL_URL",
        environment.read_secret("EMAIL_URL") or "smtp://127.0.0.1:25",
        schemes={"smtp", "smtps", "smtp+tls", "smtp+ssl"},
    )
)
EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_HOST"], _mail["EMAIL_PORT"] or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"] or "", _mail["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.get("EMAIL_USE_TLS", False), _mail.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environment.read_text("MAIL_FROM", f"chatstore@{_base_host}")
# File to which the nightly job appends the newest hash of the audit log; best on another machine.
AUDIT_ANCHOR_PATH = environment.read_text("AUDIT_ANCHOR_PATH", "")
# Days after which entries of the audit log are moved to signed archive files; 0: they are kept forever.
AUDIT_RETENTION_DAYS = environment.read_int("AUDIT_RETENTION_DAYS", default=0, minimum=0)
AUDIT_ARCHIVE_DIR = environment.read_text("AUDIT_ARCHIVE_DIR", "")
AUDIT_ARCHIVE_KEY = environment.read_secret("AUDIT_ARCHIVE_KEY")
# Keys that signed older archives, one a line: they verify these still.
AUDIT_ARCHIVE_KEY_FALLBACKS = environment.read_secret("AUDIT_ARCHIVE_KEY_FALLBACKS").splitlines()
if AUDIT_RETENTION_DAYS and not (AUDIT_ARCHIVE_DIR and len(AUDIT_ARCHIVE_KEY) >= 32):
    raise ImproperlyConfigured(
        "AUDIT_RETENTION_DAYS needs AUDIT_ARCHIVE_DIR and an AUDIT_ARCHIVE_KEY of at least 32 characters."
    )
if any(len(key) < 32 for key in AUDIT_ARCHIVE_KEY_FALLBACKS):
    raise ImproperlyConfigured("AUDIT_ARCHIVE_KEY_FALLBACKS must have keys of at least 32 characters, one a line.")
if 0 < AUDIT_RETENTION_DAYS < 90:
    raise ImproperlyConfigured("AUDIT_RETENTION_DAYS must be at least 90: purges of the last weeks refer to entries.")
# Token that a scraper of /metrics sends as "Authorization: Bearer …"; without it only operators have access.
METRICS_TOKEN = environment.read_secret("METRICS_TOKEN")

# The test servers are never repaired.
_is_repaired = not (LOCAL_CASSANDRA and STACK.for_tests)
# At 80 % of gc_grace without a repair, raise it to ten days until the next repair; otherwise a page offers to.
GC_GRACE_RAISE_BY_ITSELF = environment.read_flag("GC_GRACE_RAISE_BY_ITSELF", default=LOCAL_CASSANDRA and _is_repaired)
# Nodes that the nightly repair repairs at a time; two only if no node has replicas of both.
REPAIR_NODES_AT_ONCE = environment.read_int("REPAIR_NODES_AT_ONCE", default=1, minimum=1)
# Whether purges wait for a repair once gc_grace has passed without one.
PURGES_WAIT_FOR_REPAIR = environment.read_flag("PURGES_WAIT_FOR_REPAIR", default=_is_repaired)

# --- Health: thresholds at which a partition needs attention -------------------------------------------

# Cassandra warns at 1,000 tombstones in a read and aborts the read at 100,000.
HEALTH_WARN_TOMBSTONES = environment.read_int("HEALTH_WARN_TOMBSTONES", default=1_000, minimum=1)
HEALTH_ALARM_TOMBSTONES = environment.read_int("HEALTH_ALARM_TOMBSTONES", default=50_000, minimum=1)
# Partitions should stay below 100 MB.
HEALTH_WARN_BYTES = environment.read_int("HEALTH_WARN_BYTES", default=50_000_000, minimum=1)
HEALTH_ALARM_BYTES = environment.read_int("HEALTH_ALARM_BYTES", default=100_000_000, minimum=1)
# Time limit of the nightly probes; the next ones start with the remaining channels.
PROBE_SECONDS = environment.read_int("PROBE_SECONDS", default=900, minimum=1)

# Limits of the nightly ledger reconciliation; the remaining buckets are read the next night.
BOOKKEEPING_SECONDS = environment.read_int("BOOKKEEPING_SECONDS", default=1_800, minimum=1)
BOOKKEEPING_BUCKETS = environment.read_int("BOOKKEEPING_BUCKETS", default=20_000, minimum=1)

# --- Limits of a gateway's messages: Discord's own by default -------------------------

# Discord allows 2,000 to most users and 4,000 to paying ones.
MESSAGE_MAX_CHARACTERS = environment.read_int("MESSAGE_MAX_CHARACTERS", default=4_000, minimum=1)
# Of a webhook's name, and of a reaction's emoji.
MESSAGE_MAX_NAME_CHARACTERS = environment.read_int("MESSAGE_MAX_NAME_CHARACTERS", default=80, minimum=1)
MESSAGE_MAX_EMBEDS = environment.read_int("MESSAGE_MAX_EMBEDS", default=10, minimum=0)
# Of all embeds of a message: titles, descriptions, fields, footers and authors.
MESSAGE_MAX_EMBED_CHARACTERS = environment.read_int("MESSAGE_MAX_EMBED_CHARACTERS", default=6_000, minimum=0)
# Of a whole message. A page has fifty, a batch of a purge a hundred.
MESSAGE_MAX_BYTES = environment.read_int("MESSAGE_MAX_BYTES", default=262_144, minimum=1)

# --- Reading and purging -------------------------------------------------------------

# A page that is not full by then is returned as it is, with "looked back to <date>".
PAGE_DEADLINE_SECONDS = environment.read_float("PAGE_DEADLINE_SECONDS", default=1.0, above=0)
# Set to false for tables that other programs write to as well: buckets without a ledger row are read then.
CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN = environment.read_flag("CHATSTORE_NO_ROW_MEANS_NEVER_WRITTEN", default=True)
# A killed worker's step is taken over after this time. Renewals are frequent enough that a live worker
# does not lose its step to one missed renewal or a pause of the machine.
PURGE_LEASE_SECONDS = environment.read_int("PURGE_LEASE_SECONDS", default=30, minimum=2)
PURGE_LEASE_RENEW_SECONDS = environment.read_int("PURGE_LEASE_RENEW_SECONDS", default=5, minimum=1)
if PURGE_LEASE_RENEW_SECONDS * 2 > PURGE_LEASE_SECONDS:
    raise ImproperlyConfigured("PURGE_LEASE_RENEW_SECONDS must be at most half of PURGE_LEASE_SECONDS.")
# Idle workers join a purge while fewer than this process it; 0: all join.
PURGE_WORKERS = environment.read_int("PURGE_WORKERS", default=0, minimum=0)
# Rate limit of all purges together, shared by the processes that execute them.
PURGE_STATEMENTS_PER_SECOND = environment.read_int("PURGE_STATEMENTS_PER_SECOND", default=60_000, minimum=1)
# While users read pages, background work sleeps this many times its own running time.
PURGE_THROTTLE_FACTOR = environment.read_int("PURGE_THROTTLE_FACTOR", default=8, minimum=0)
# Half of the 1,000 tombstones in a read at which Cassandra warns.
PURGE_TOMBSTONE_BUDGET = environment.read_int("PURGE_TOMBSTONE_BUDGET", default=500, minimum=2)
# Ids of the last hour are deleted row by row up to this count; a read is aborted at 100,000 tombstones.
PURGE_LATER_TOMBSTONES = environment.read_int("PURGE_LATER_TOMBSTONES", default=40_000, minimum=1, maximum=90_000)
# Covers 5 s of clock skew and 4 s of retries; a lower value would lose messages that users write.
CLOCK_SKEW_SECONDS = environment.read_int("CLOCK_SKEW_SECONDS", default=10, minimum=10)
# An archive that unpacks to more than this many times its size is rejected: exports unpack to ten times their
# size, and deflate reaches at most a thousand.
IMPORT_ARCHIVE_RATIO = environment.read_int("IMPORT_ARCHIVE_RATIO", default=200, minimum=1)
# Total unpacked size of one import's archives; a member beyond it is rejected.
IMPORT_ARCHIVE_BYTES = environment.read_int(
    "IMPORT_ARCHIVE_BYTES", default=100_000_000_000, minimum=1, maximum=2**63 - 1
)
# Days in which a purge can be undone; the quarantine's rows expire a day later.
QUARANTINE_DAYS = environment.read_int("QUARANTINE_DAYS", default=30, minimum=1, maximum=30)
# Offered wherever a purge asks for its reason, separated by commas; empty: "Raid clean-up", "Spam" and others.
REASON_TEMPLATES = environment.read_names("REASON_TEMPLATES", default=[])

# --- Pruning: for how many days rows of Postgres are kept that only document the past -----------------

# Steps and manifest of a preview that was not confirmed. A preview expires after a day.
PREVIEW_DAYS = environment.read_int("PREVIEW_DAYS", default=7, minimum=2)
# Manifest of a purge that can no longer be undone: the counts by author and bucket.
MANIFEST_DAYS = environment.read_int("MANIFEST_DAYS", default=365, minimum=31)
# Runs of maintenance jobs. The last 30 of each job are always kept.
RUN_DAYS = environment.read_int("RUN_DAYS", default=90, minimum=7)
