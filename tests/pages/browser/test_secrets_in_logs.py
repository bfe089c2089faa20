"""No log of a web server, a worker or a command contains a password, a code, a cookie, a token or text of a message."""

from __future__ import annotations

import http.cookiejar
import os
import re
import secrets
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.conf import settings

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Purge
from tests.moderation.channels import VICTOR, make_channel, old_ids, write
from tests.pages.second_factors import code_of, set_up, wrong_code
from tests.pages.serving import serve
from tests.planted import secrets_of_the_stack
from tests.waiting import wait_until


class Visitor:
    """A browser without scripts: cookies, forms with their token, redirects."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        self.token = ""

    def get(self, path: str, **headers: str) -> str:
        return self._send(urllib.request.Request(self.url + path, headers=headers))  # noqa: S310  our own URL

    def post(self, path: str, **fields: str) -> str:
        data = urlencode({"csrfmiddlewaretoken": self.token, **fields}).encode()
        headers = {"Referer": self.url + path}
        return self._send(urllib.request.Request(self.url + path, data=data, headers=headers))  # noqa: S310

    def _send(self, request: urllib.request.Request) -> str:
        try:
            with self._opener.open(request, timeout=60) as answer:
                page: str = answer.read().decode()
        except urllib.error.HTTPError as refused:
            page = refused.read().decode()
        if found := re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page):
            self.token = found[1]
        return page

    def cookies(self) -> list[str]:
        return [cookie.value for cookie in self.jar if cookie.value]


def run_command(environ: dict[str, str], *arguments: str) -> str:
    """Run `manage.py`; return its output and its log, whatever its exit code."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], env=environ, cwd=settings.BASE_DIR, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.slow
def test_no_log_contains_a_secret(tmp_path: Path, mona: User) -> None:
    planted: dict[str, str] = {
        name: f"{name.replace(' ', '-')}-{secrets.token_hex(12)}"
        for name in ("password", "wrong password", "content", "next token", "reset token", "metrics token", "webhook")
    }
    mona.set_password(planted["password"])
    mona.save()
    recovery_codes = set_up(mona)
    channel = make_channel()
    write(channel, old_ids(6), content=planted["content"])
    write(channel, old_ids(6, buckets_ago=5), content=planted["content"])
    named = {
        "LOG_FORMAT": "json",
        "METRICS_TOKEN": planted["metrics token"],
        "FINDINGS_WEBHOOK_URL": f"http://127.0.0.1:9/{planted['webhook']}",
        "CONFIRM_ABOVE_MESSAGES": "0",
        "CONFIRM_MINUTES": "1",
    }
    os.environ.update(named)
    try:
        with serve(tmp_path, purpose="incident") as site:
            visitor = Visitor(site.url)
            visit(visitor, mona, planted, recovery_codes, channel_id=channel.pk)
            planted |= {f"cookie {n}": value for n, value in enumerate(visitor.cookies())}
            outputs = commands(site.environ, planted, mona)
    finally:
        for name in named:
            os.environ.pop(name)
    planted |= {f"recovery code {n}": code for n, code in enumerate(recovery_codes)}
    planted |= secrets_of_the_stack()
    logs = {path.name: path.read_text(errors="replace") for path in tmp_path.iterdir()} | outputs
    assert {"web.log", "worker.log"} <= set(logs)
    # The flow has happened, and was logged.
    assert "Task moderation.tasks.run_purge" in logs["worker.log"]
    assert "/sign-in/" in logs["web.log"]
    # As a word: six digits of a code may be part of another number.
    patterns = {name: re.compile(rf"(?<!\w){re.escape(value)}(?!\w)") for name, value in planted.items()}
    found = [f"{name} in {log}" for log, text in logs.items() for name, one in patterns.items() if one.search(text)]
    assert found == []


def visit(visitor: Visitor, mona: User, planted: dict[str, str], recovery_codes: list[str], *, channel_id: int) -> None:
    """Sign in with errors, look at messages, purge, confirm, undo, and call URLs that contain tokens."""
    visitor.get("/sign-in/")
    visitor.post("/sign-in/", username=mona.username, password=planted["wrong password"])
    visitor.post("/sign-in/", username=planted["password"], password=planted["wrong password"])
    visitor.post("/sign-in/", username=mona.username, password=planted["password"])
    planted["wrong code"] = wrong_code(mona)
    visitor.post("/sign-in/code/", code=planted["wrong code"])
    code = code_of(mona)
    planted["code"] = code
    page = visitor.post("/sign-in/code/", code=code)
    assert "Sign out" in page
    planted |= {"csrf token": visitor.token}
    visitor.get(f"/channels/{channel_id}/")
    visitor.get(f"/find/?q={planted['content']}")
    visitor.get(f"/sign-in/?next=/purges/?token={planted['next token']}")
    visitor.get(f"/purges/?state={planted['reset token']}")
    visitor.get("/metrics", Authorization=f"Bearer {planted['metrics token']}")
    visitor.get("/metrics", Authorization=f"Bearer {planted['reset token']}")
    visitor.post("/account/password/", old_password=planted["wrong password"], new_password1="x", new_password2="y")
    visitor.post("/account/recovery-codes/", code=recovery_codes[0])
    visitor.get(f"/channels/{channel_id}/delete/")
    visitor.post(f"/channels/{channel_id}/delete/", words=planted["content"], pattern="(")
    visitor.post(f"/channels/{channel_id}/delete/", authors=str(VICTOR), words=planted["content"])
    purge = Purge.objects.filter(moderator=mona).latest("id")
    wait_until(lambda: Purge.objects.get(pk=purge.pk).state == PurgeState.READY)
    shown = visitor.get(f"/purges/{purge.pk}/")
    manifest_hash = re.search(r'name="manifest_hash"\s+value="([0-9a-f]+)"', shown)
    assert manifest_hash
    fields = {"manifest_hash": manifest_hash[1], "reason": "spam"}
    visitor.post(f"/purges/{purge.pk}/confirm/", **fields, confirm_secret=planted["wrong password"])
    code = code_of(mona)
    planted["second code"] = code
    visitor.post(f"/purges/{purge.pk}/confirm/", **fields, confirm_secret=code)
    wait_until(lambda: Purge.objects.get(pk=purge.pk).state == PurgeState.DONE)
    visitor.get(f"/channels/{channel_id}/{old_ids(6)[0]}/")
    visitor.get(f"/purges/{purge.pk}/undo/")
    visitor.post(f"/purges/{purge.pk}/undo/", reason="appeal")
    wait_until(lambda: Purge.objects.get(pk=purge.pk).state == PurgeState.UNDONE)


def commands(environ: dict[str, str], planted: dict[str, str], mona: User) -> dict[str, str]:
    """Run commands on the same messages, right and wrong; return their output by a name."""
    purge = ("purge", "--author", str(VICTOR), "--reason", "spam", "--as", mona.username, "--yes")
    return {
        "purge of nothing": run_command(environ, *purge, "--channel", "no-such-channel"),
        "second_factor_reset": run_command(environ, "second_factor_reset", mona.username),
        "services": run_command(environ, "services", "--json"),
        "audit_verify": run_command(environ, "audit_verify", "--after", str(2**62)),
        "a wrong setting": run_command(environ | {"METRICS_TOKEN_FILE": planted["metrics token"]}, "check"),
    }
