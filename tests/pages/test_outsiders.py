"""A role in one guild gets the same response for objects of another guild as for those that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from django.test import Client

from tests.moderation.channels import old_ids
from tests.pages.access_table import CASES
from tests.pages.fuzzed_objects import Planted, planted_objects
from tests.pages.visitors import visitor_from_elsewhere

OUTSIDERS = ("moderator elsewhere", "lead elsewhere", "auditor elsewhere", "admin elsewhere")

NAMED = ("guild", "channel", "message", "purge", "audit", "case", "user")
"""Placeholders of the table of routes that name an object of a guild."""

FORMS = (
    "POST holds/{hold}/lift/ reason=x",
    "POST holds/ reason=x&channel={channel}",
    "POST holds/ reason=x&message=/channels/{channel}/{message}/",
    "POST notes/{note}/delete/",
    "POST users/1/notes/ text=x&link=/channels/{channel}/{message}/",
    "POST users/1/notes/ text=x&link=/purges/{purge}/",
    "POST delete/filters/{filter}/delete/",
    "GET delete/?filter={filter}",
    "GET delete/?purge={purge}",
    "GET delete/?channels={channel}",
    "GET delete/suggestions/?kind=channel&q={channel}",
    "GET delete/suggestions/?kind=channel&guild={guild}&q=a",
    "POST delete/ channels={channel}&all-authors=1",
    "POST delete/ guild={guild}&all-authors=1",
    "POST delete/summary/ channels={channel}&all-authors=1",
    "POST delete/matches/ guild={guild}&all-authors=1",
    "POST delete/matches/ channels={channel}&all-authors=1&all-similar=/channels/{channel}/{message}/",
    "POST delete/counts/ channels={channel}&people=1",
    "GET purges/{purge}/?days=1",
    "GET purges/{purge}/live/?version=1",
    "POST purges/{purge}/approval/approve/ approval={approval}",
    "POST purges/{purge}/approval/reject/ approval={approval}&reason=x",
    "POST purges/{purge}/approval/withdraw/ approval={approval}",
    "POST purges/{purge}/erase/ reason=x",
    "POST purges/{purge}/undo/ reason=x",
    "POST purges/{purge}/discard/",
    "GET audit/?purge={purge}",
    "GET audit/?channel={channel}",
    "GET audit/?channel={channel}&message={message}",
    "GET audit/?server={guild}",
    "GET audit/export.csv?purge={purge}",
    "POST roles/ person=nobody&role=moderator&server={guild}",
    "POST roles/ person=nobody&role=moderator&channels={channel}",
    "POST roles/invite/ people=nora&role=moderator&server={guild}",
    "POST roles/invite/ people=nora&role=moderator&channels={channel}",
    "POST roles/{grant}/take/",
    "GET roles/limits/?edit={limits}",
    "POST roles/limits/ role=moderator&server={guild}&purges_per_hour=5",
    "GET find/?q={channel}",
    "GET find/?q={purge}",
    "GET find/?q={guild}",
    "GET find/?q=/channels/{channel}/{message}/",
    "GET find/suggestions/?q={channel}",
    "GET find/suggestions/?q={purge}",
    "GET find/suggestions/?q={guild}",
    "GET reports/?after={case}",
    "POST reports/{case}/claim/",
    "POST reports/{case}/resolve/ resolution=kept",
    "POST raids/{channel}/dismiss/",
    "POST findings/{finding}/acknowledge/",
    "GET users/1/panel/?channel={channel}",
    "POST channels/{channel}/delete-message/ message_id={message}",
)
"""Requests with fields that name one. Method, URL, and the fields of the form."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    with planted_objects(tmp_path_factory.mktemp("archives")) as planted:
        yield planted


@pytest.fixture(scope="module", params=["awaiting", "approved"])
def hidden(request: pytest.FixtureRequest, planted: Planted) -> dict[str, int]:
    """Ids of objects of another guild; once with a purge that awaits its approval, once with one that has ended."""
    names, asked = planted.names, ("awaiting", "rejected", "approved").index(request.param)
    return {
        "guild": names["planted_guild"],
        "channel": names["raided"],
        "message": old_ids(20)[-1],
        "purge": names[request.param],
        "approval": names["approval"][asked],
        "audit": names["about_approval"],
        "case": names["reported"],
        "user": names["member"],
        "hold": names["hold_id"],
        "note": names["note_id"],
        "filter": names["filter_id"],
        "grant": names["given"],
        "limits": names["limits_id"],
        "finding": names["finding_id"],
    }


def requests() -> list[tuple[str, str, str]]:
    """Return method, URL and form of all requests that name an object of a guild."""
    listed = [(method, url, "") for _, method, url, _ in CASES if any(f"{{{name}}}" in url for name in NAMED)]
    for line in FORMS:
        method, _, rest = line.partition(" ")
        url, _, form = rest.partition(" ")
        listed.append((method, url, form))
    return listed


_RANDOM = re.compile(r'csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"')


def ask(client: Client, method: str, url: str, form: str, names: Mapping[str, object]) -> tuple[int, str]:
    """Return the status of an answer and its text, without numbers: it may repeat the ids, and tell their time."""
    path = "/" + url.format(**names)
    if method == "POST":
        answer = client.post(path, form.format(**names), content_type="application/x-www-form-urlencoded")
    else:
        answer = client.get(path)
    body = (answer.getvalue() if answer.streaming else answer.content).decode()
    return answer.status_code, re.sub(r"\d+", "#", _RANDOM.sub("", body))


@pytest.mark.parametrize("outsider", OUTSIDERS)
def test_an_outsider_cannot_tell_what_exists(outsider: str, planted: Planted, hidden: Mapping[str, int]) -> None:
    client = visitor_from_elsewhere()
    client.force_login(planted.outsiders[outsider])
    known = {"chatuser": 1, "invitation": "none"}
    # Ids of the same time, which pages may tell.
    nothing = {name: value + 1 if value > 2**40 else 2**31 - 5 for name, value in hidden.items()}
    wrong = []
    for method, url, form in requests():
        seen, absent = (ask(client, method, url, form, {**known, **ids}) for ids in (hidden, nothing))
        if seen != absent:
            wrong.append(f"{method} {url} {form}: {seen[0]}, and for nothing {absent[0]}: {_difference(seen, absent)}")
    assert wrong == []
    assert planted.is_untouched()


def _difference(seen: tuple[int, str], absent: tuple[int, str]) -> str:
    """Return the first line that differs."""
    pairs = zip(seen[1].splitlines(), absent[1].splitlines(), strict=False)
    return next((f"{one.strip()!r}, {other.strip()!r}" for one, other in pairs if one != other), "")
