"""The composer: prefilled fields, the live summary, and the resulting selection."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatstore.domain.roles import Role
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from chatstore.operations.health import channel_list
from moderation.domain.filters import Similar
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, old_ids, write
from tests.pages.conftest import PreviewedPurge
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

UNKNOWN_USER = str(secrets.randbits(60))
"""An id that is not in the member list."""


def read_summary(client: Client, fields: dict[str, Any]) -> str:
    """Return the text of the live summary."""
    answer = client.post("/delete/summary/", fields)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


def select(client: Client, path: str, fields: dict[str, Any]) -> Selection:
    """Return the selection of the purge created by the form."""
    response = client.post(path, fields)
    assert response.status_code == 302, html.unescape(response.content.decode())
    purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))
    return Selection.from_json(purge.selection)


def named_channel() -> Channel:
    return make_channel(name=f"pier-{secrets.token_hex(4)}")


def test_the_summary_names_every_condition_and_runs_no_query(mona: User, sign_in: SignIn) -> None:
    channels = [named_channel(), named_channel()]
    victor = ChatUser.objects.create(pk=secrets.randbits(60), name=f"vic-{secrets.token_hex(4)}")
    fields = {
        "channels": ", ".join(channel.name for channel in channels),
        "authors": victor.name,
        "after": "2024-05-01",
        "has": ["link"],
        "either-words": "free coins",
        "either-bots": "on",
        "none-reply_to": "https://chat.example/channels/5/77/",
    }
    before = Purge.objects.count()
    summary = read_summary(sign_in(mona), fields)
    names = " and ".join(f"#{channel.name}" for channel in channels)
    assert f"All messages by {victor.name} in {names} since 1 May 2024 containing a link" in summary
    assert "(containing the words “free coins” or by bots) and not replying to message 77, except pinned" in summary
    assert Purge.objects.count() == before


def test_a_link_to_a_message_stands_for_its_text(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    (message_id,) = old_ids(1)
    write(channel, [message_id], content="Free  coins")
    link = f"https://discord.com/channels/5/{channel.pk}/{message_id}"
    selected = select(sign_in(mona), f"/channels/{channel.pk}/delete/", {"similar": link})
    assert selected.where == Similar(f"Free  coins {message_id}")
    # A text that ends with a link is compared as it is.
    text = f"Look: {link}"
    assert text[:70] in read_summary(sign_in(mona), {"similar": text, "channels": str(channel.pk)})


def test_unclear_input_is_reported_in_place_of_the_summary(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    assert "Choose who, when or what" in read_summary(client, {"channels": "no-such-channel"})
    assert "There is no user called “Vi”" in read_summary(client, {"authors": "Vi"})
    assert "Enter an author" in read_summary(client, {"words": "coins"})


def test_hostile_names_are_escaped_in_the_summary(mona: User, sign_in: SignIn) -> None:
    name = f"<img src=x onerror=alert(1)>\u202e{secrets.token_hex(3)}"
    author = ChatUser.objects.create(pk=secrets.randbits(60), name=name)
    for fields in ({"authors": str(author.pk)}, {"authors": name}, {"pattern": "(<script>", "words": "</p>"}):
        check_harmless(sign_in(mona).post("/delete/summary/", fields).content.decode())


def test_the_form_input_becomes_exactly_that_selection(mona: User, sign_in: SignIn) -> None:
    channel = named_channel()
    fields = {"channels": f"#{channel.name}", "words": "free coins", "none-authors": "12", "with_pinned": "1"}
    selected = select(sign_in(mona), "/delete/", fields)
    assert selected.channel_ids == (channel.pk,)
    assert selected.as_json()["where"] == {"all": [{"words": "free coins"}, {"not": {"author": ["12"]}}]}
    assert selected.with_pinned


def test_the_preview_explains_how_an_unknown_time_of_joining_is_treated(mona: User, sign_in: SignIn) -> None:
    channel, client = named_channel(), sign_in(mona)
    write(channel, old_ids(2))
    assert "If that is unknown, the message does not match" in client.get(
        f"/channels/{channel.pk}/delete/"
    ).content.decode().replace("\n", " ")
    fields = {"joined_minutes": " 10 "}
    assert "posted within 10 minutes of joining" in read_summary(client, {**fields, "channels": str(channel.pk)})
    for where, state in ((fields, PurgeState.NOTHING_MATCHED), ({"none-joined_minutes": "10"}, PurgeState.READY)):
        response = client.post(f"/channels/{channel.pk}/delete/", where)
        purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))
        scan_purge(purge.pk)
        purge.refresh_from_db()
        assert purge.state == state
        page = client.get(f"/purges/{purge.pk}/").content.decode()
        assert "If it is unknown when an author joined the server" in page
        # The composer is filled in with it again.
        assert (
            'joined_minutes" value="10"'
            in client.get(f"/channels/{channel.pk}/delete/?preview={purge.pk}").content.decode()
        )


def test_the_preview_explains_what_is_kept_if_it_is_in_doubt_when_an_author_was_first_seen(
    mona: User, sign_in: SignIn
) -> None:
    channel, client = named_channel(), sign_in(mona)
    write(channel, old_ids(2), author=secrets.randbits(60))
    fields = {"first_seen_hours": " 24 "}
    assert "posted within 24 hours of the author’s first message anywhere" in read_summary(
        client, {**fields, "channels": str(channel.pk)}
    )
    response = client.post(f"/channels/{channel.pk}/delete/", fields)
    purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))
    scan_purge(purge.pk)
    purge.refresh_from_db()
    assert (purge.state, purge.manifest) == (PurgeState.READY, 1)
    assert "theirs are kept where in" in client.get(f"/purges/{purge.pk}/").content.decode()
    filled = client.get(f"/channels/{channel.pk}/delete/?preview={purge.pk}").content.decode()
    assert 'first_seen_hours" value="24"' in filled


def test_an_author_without_a_channel_means_every_channel_they_posted_in(mona: User, sign_in: SignIn) -> None:
    selected = select(sign_in(mona), "/delete/", {"authors": UNKNOWN_USER})
    assert (selected.channel_ids, selected.guild_id, selected.author_ids) == ((), None, frozenset({int(UNKNOWN_USER)}))


def test_the_accounts_of_a_raid_fit_into_one_field(mona: User, sign_in: SignIn) -> None:
    accounts = [10**18 + secrets.randbits(50) for _ in range(100)]
    ChatUser.objects.bulk_create([ChatUser(pk=account, name=f"raider{account}") for account in accounts])
    selected = select(sign_in(mona), "/delete/", {"authors": ", ".join(map(str, accounts))})
    assert selected.author_ids == frozenset(accounts)


def test_a_whole_guild_is_chosen_by_its_id(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, guild = sign_in(mona), previewed.channel.guild_id
    page = client.get("/delete/", {"guild": str(guild), "author": UNKNOWN_USER}).content.decode()
    assert f'name="guild" value="{guild}"' in page
    assert f'name="authors" value="{UNKNOWN_USER}"' in page
    assert f"All messages by user {UNKNOWN_USER} in all channels of Harbour, except pinned" in page
    assert select(client, "/delete/", {"guild": str(guild), "words": "x"}).guild_id == guild


def test_a_guild_is_chosen_by_its_name_unless_several_have_it(mona: User, sign_in: SignIn) -> None:
    client, name = sign_in(mona), f"Harbour, “{secrets.token_hex(4)}”"
    guild = make_channel(guild=name).guild_id
    assert select(client, "/delete/", {"guild": f" {name.upper()}", "words": "x"}).guild_id == guild
    make_channel(guild=name)
    refused = client.post("/delete/", {"guild": name, "words": "x"})
    assert refused.status_code == 400
    assert "Several servers are called" in refused.content.decode()
    assert html.escape(name) in refused.content.decode()


def test_a_name_with_hidden_characters_is_not_in_the_list_of_servers(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_list, "MAX_GUILDS", 1_000_000)
    name = f"Harbour {secrets.token_hex(4)}"
    make_channel(guild=f"{name}\u202e")
    make_channel(guild=f"{name}, too")
    page = sign_in(mona).get("/delete/").content.decode()
    assert f'<option value="{name}, too">' in page
    assert "\u202e" not in page


def test_a_guild_of_others_is_not_offered_by_its_id(previewed: PreviewedPurge, sign_in: SignIn) -> None:
    elsewhere = Guild.objects.create(pk=secrets.randbits(60), name="Elsewhere")
    Channel.objects.create(pk=secrets.randbits(60), name="talk", guild=elsewhere)
    nora = make_user("nora", group=None)
    give(nora, Role.MODERATOR, guild_id=elsewhere.pk)
    page = sign_in(nora).get("/delete/", {"guild": str(previewed.channel.guild_id)}).content.decode()
    assert "Elsewhere" in page
    assert "Harbour" not in page


def test_the_form_of_a_channel_searches_only_that_channel(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    fields = {"channels": "1, 2", "guild": "3", "words": "coins"}
    assert select(sign_in(mona), f"/channels/{previewed.channel.pk}/delete/", fields).channel_ids == (
        previewed.channel.pk,
    )


def test_the_whole_channel_is_deleted_when_its_name_is_typed(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    fields = {"everything": "1", "channel_name": "#Room"}
    assert select(sign_in(mona), f"/channels/{previewed.channel.pk}/delete/", fields).everything


def test_widening_to_other_channels_keeps_the_form_input(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    fields = {"channels": str(previewed.channel.pk), "words": "coins", "widen": "1"}
    page = sign_in(mona).post("/delete/", fields).content.decode()
    assert f'name="channels" value="{previewed.channel.pk}"' in page
    assert 'name="words" value="coins"' in page
    assert f"All messages in {previewed.channel.full_name} containing the word “coins”, except pinned" in page


def test_only_filled_sections_are_open(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client, path = sign_in(mona), f"/channels/{previewed.channel.pk}/delete/"
    _, _, form = client.get(path).content.decode().partition('class="composer"')
    assert form.count("<details") - 1 == 5  # the strip's table
    assert " open>" not in client.get(path, {"authors": "12", "words": "coins"}).content.decode()
    assert '<details class="more" open>' in client.get(path, {"similar": "coins"}).content.decode()


@pytest.mark.parametrize(
    ("label", "fields"),
    [
        ("Links by new accounts", [r'name="account_days" value="7"', r'name="has" value="link"[^>]*checked']),
        ("First hour after joining", [r'name="joined_minutes" value="60"']),
        (
            "First day of an author, with links",
            [r'name="first_seen_hours" value="24"', r'name="has" value="link"[^>]*checked'],
        ),
        ("Mentions of everyone, last hour", [r'name="any_words"[^>]*value="@everyone @here"', 'value="last hour"']),
    ],
)
def test_a_preset_fills_in_its_conditions(
    label: str, fields: list[str], previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, path = sign_in(mona), f"/channels/{previewed.channel.pk}/delete/"
    preset = re.search(rf'href="(\?[^"]*)"[^>]*>\s*{label}\s*<', client.get(path).content.decode())
    assert preset
    filled = client.get(path + html.unescape(preset[1])).content.decode()
    for field in fields:
        assert re.search(field, filled), field


def test_the_composer_belongs_to_the_purges_of_the_menu(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    for path in ("/delete/", f"/channels/{previewed.channel.pk}/delete/"):
        page = sign_in(mona).get(path).content.decode()
        menu = page.split('<nav class="nav"')[1].split("</nav>")[0]
        assert re.findall(r'href="([^"]+)" aria-current="page"', menu) == ["/purges/"]
