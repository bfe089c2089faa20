"""Single sign-on by OpenID Connect: the authorization code flow of `mozilla_django_oidc`, with PKCE and a nonce.

Of the provider only the issuer is configured; its endpoints come from its discovery document. Besides the signature and
the nonce, which the library checks, a token must be of this issuer and for this client.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import jwt
import requests
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import SuspiciousOperation
from django.db import IntegrityError
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.views import OIDCAuthenticationRequestView

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from moderation.operations.access.single_sign_on import account_of_identity, identity_of

ERRORS = (
    SuspiciousOperation,
    requests.RequestException,
    jwt.PyJWTError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)
"""What the library raises for answers of a provider that are missing or wrong."""

DISCOVERY_SECONDS = 3_600.0
TIMEOUT_SECONDS = 5.0

_ENDPOINTS = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}

_SETTINGS = {
    "OIDC_USE_PKCE": True,
    "OIDC_USE_NONCE": True,
    "OIDC_TIMEOUT": TIMEOUT_SECONDS,
    "OIDC_AUTHENTICATION_CALLBACK_URL": "single_sign_on_callback",
    "OIDC_REDIRECT_ALLOWED_HOSTS": (),
}


class Discovery:
    """Discovery documents by issuer, each kept for an hour."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def read(self, issuer: str) -> Mapping[str, Any]:
        """Return the document. Raises `StoreUnavailable`."""
        with self._lock:
            read_at, document = self._found.get(issuer, (0.0, {}))
            if not document or time.monotonic() - read_at > DISCOVERY_SECONDS:
                document = _fetch(issuer)
                self._found[issuer] = time.monotonic(), document
            return document


_discovery = Discovery()


def is_enabled() -> bool:
    """Return whether single sign-on is configured."""
    return bool(settings.OIDC_ISSUER)


def read_setting(name: str, *default: Any) -> Any:
    """Return what the library calls a setting. Raises `StoreUnavailable` if the provider cannot be reached."""
    if name in _ENDPOINTS:
        return _discovery.read(settings.OIDC_ISSUER)[_ENDPOINTS[name]]
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":
        # The standard's default, if the provider lists no methods.
        methods = _discovery.read(settings.OIDC_ISSUER).get("token_endpoint_auth_methods_supported", ())
        return "client_secret_post" not in methods
    return _SETTINGS[name] if name in _SETTINGS else getattr(settings, name, *default)


class Backend(OIDCAuthenticationBackend):  # type: ignore[misc]
    """Signs in by the code of a provider. Passwords do not concern it, and rights are `PasswordBackend`'s."""

    def __init__(self) -> None:
        # The library's own reads every endpoint, for each sign-in by password too.
        self.UserModel = get_user_model()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("OIDC_"):
            return read_setting(name, None)
        raise AttributeError(name)

    def get_all_permissions(self, user_obj: object, obj: object = None) -> set[str]:
        """Return none: its own would be those of Django's groups, which have no effect."""
        return set()

    get_user_permissions = get_group_permissions = get_all_permissions

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        """Return a setting of the library."""
        return read_setting(attr, *args)

    def authenticate(self, request: HttpRequest | None, *, nonce: str, code_verifier: str | None = None) -> User | None:
        """Return the account of the code in the request. Raises those of `ERRORS`, `Forbidden`, `StoreUnavailable`."""
        found: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        return found

    def get_or_create_user(self, access_token: str, id_token: str, payload: Mapping[str, Any]) -> User:
        """Return the account of a verified token."""
        issuer, client = settings.OIDC_ISSUER, settings.OIDC_RP_CLIENT_ID
        audience = payload.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if payload.get("iss") != issuer or client not in audiences or payload.get("azp", client) != client:
            raise SuspiciousOperation("the token is of another issuer or for another client")
        about = self.get_userinfo(access_token, id_token, payload)
        if about.get("sub") != payload.get("sub"):
            raise SuspiciousOperation("the provider described another person")
        auth_time = payload.get("auth_time")
        self.request.signed_in_there_at = auth_time if isinstance(auth_time, int) else None
        identity = identity_of({**payload, **about}, issuer=issuer)
        try:
            return account_of_identity(identity)
        except IntegrityError:
            # Two first sign-ins at a time: by now the other one has made the account.
            return account_of_identity(identity)

    def retrieve_matching_jwk(self, token: str) -> Any:
        """Return the provider's key of a token. A provider that has only one need not name it."""
        header = jwt.get_unverified_header(token)
        if "kid" in header:
            return super().retrieve_matching_jwk(token)
        answer = requests.get(self.OIDC_OP_JWKS_ENDPOINT, timeout=TIMEOUT_SECONDS)
        answer.raise_for_status()
        keys = [key for key in answer.json()["keys"] if key.get("use", "sig") == "sig"]
        if len(keys) != 1 or keys[0].get("alg", header["alg"]) != header["alg"]:
            raise SuspiciousOperation("the token does not name its key")
        return jwt.PyJWK(keys[0])

    def verify_token(self, token: str, **kwargs: Any) -> Any:
        """Return the content of a token that has a subject and ends."""
        payload = super().verify_token(token, **kwargs)
        if "exp" not in payload:
            raise SuspiciousOperation("the token does not end")
        return payload


class Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]
    """Redirects to the provider."""

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        """Return a setting of the library."""
        return read_setting(attr, *args)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        """Ask for the password there, if the user is to confirm that it is them."""
        return {"prompt": "login", "max_age": "0"} if "again" in request.GET else {}


def _fetch(issuer: str) -> Mapping[str, Any]:
    try:
        answer = requests.get(
            f"{issuer.rstrip('/')}/.well-known/openid-configuration", timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        answer.raise_for_status()
        document: Mapping[str, Any] = answer.json()
        endpoints = [document[name] for name in _ENDPOINTS.values()]
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise StoreUnavailable(_("The identity provider cannot be reached.")) from error
    if document.get("issuer") != issuer or not all(_is_safe(one, issuer) for one in endpoints):
        raise StoreUnavailable(_("The identity provider describes itself as another one."))
    return document


def _is_safe(url: str, issuer: str) -> bool:
    """Return whether an endpoint is on https, or on this machine as the issuer, which the settings check."""
    parts, own = urlsplit(url), urlsplit(issuer)
    return parts.scheme == "https" or (parts.scheme == own.scheme and parts.netloc == own.netloc)
