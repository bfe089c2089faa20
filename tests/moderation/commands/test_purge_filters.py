"""`manage.py purge` accepts every filter, several channels, a guild, and every channel of an author."""

import io
import json
import secrets
from typing import Any

import pytest
from django.core.management import call_command

from chatstore.domain.snowflakes import time_of
from chatstore.gateway import save_member
from chatstore.models import Channel, Guild
from tests.moderation.channels import VICTOR, WILMA, buckets_of, ids_of, make_channel, old_ids, write

IDS = old_ids(60)
BUCKET = buckets_of(IDS)[0]


def run(*options: str) -> tuple[int, Any, str]:
    """Return (exit code, the JSON object or None, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("purge", "--reason", "spam", "--json", "--yes", *options, stdout=out, stderr=err)
    printed = out.getvalue().strip()
    return int(str(ended.value.code)), json.loads(printed) if printed else None, err.getvalue()


@pytest.fixture
def channels() -> list[Channel]:
    """Return two channels with the same messages."""
    made = [make_channel(), make_channel()]
    for channel in made:
        write(channel, IDS[:20], content="free nitro at https://x.example")
        write(channel, IDS[20:40], content="free beer")
        write(channel, IDS[40:], author=WILMA, content="free nitro, says wilma")
    return made


def test_conditions_are_combined_by_all_any_and_not(channels: list[Channel]) -> None:
    named = [option for channel in channels for option in ("--channel", str(channel.pk))]
    code, printed, _ = run(
        *named, "--text", "free", "--any-text", "beer", "--any-has", "link", "--not-author", str(WILMA)
    )
    assert (code, printed["deleted"], printed["state"]) == (0, 80, "done")
    assert [ids_of(channel, BUCKET) for channel in channels] == [IDS[40:], IDS[40:]]


def test_a_guild_is_named_by_its_id(channels: list[Channel]) -> None:
    guild = Guild.objects.create(id=secrets.randbits(60), name="Gophers")
    Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(guild=guild)
    code, printed, _ = run("--guild", str(guild.pk), "--regex", "n.tro", "--author", str(VICTOR))
    assert (code, printed["deleted"]) == (0, 40)


def test_a_raid_is_described_without_regular_expressions(channels: list[Channel]) -> None:
    guild = Guild.objects.create(id=secrets.randbits(60), name="Gophers")
    Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(guild=guild)
    first, second = (str(channel.pk) for channel in channels)
    somewhere = ("--guild", str(guild.pk), "--not-channel", second)
    code, printed, _ = run(*somewhere, "--similar", f"Free   BEER {IDS[20]}!", "--text-any", "wine beer")
    assert (code, printed["deleted"]) == (0, 20)
    assert [ids_of(channel, BUCKET) for channel in channels] == [IDS[:20] + IDS[40:], IDS]
    # Accounts with ids of that time are young, those of the cast are old.
    write(channels[0], [IDS[50] + 1, IDS[51] + 1], author=IDS[49])
    code, printed, _ = run("--channel", first, "--account-days", "1")
    assert (code, printed["deleted"]) == (0, 2)


def test_an_author_alone_is_searched_in_every_channel(channels: list[Channel]) -> None:
    author = secrets.randbits(60)
    for channel in channels:
        write(channel, [IDS[0] + 1], author=author)
    code, printed, _ = run("--author", str(author))
    assert (code, printed["deleted"]) == (0, 2)
    assert [ids_of(channel, BUCKET) for channel in channels] == [IDS, IDS]


def test_what_was_posted_within_minutes_of_joining_is_deleted(channels: list[Channel]) -> None:
    guild = Guild.objects.create(id=secrets.randbits(60), name="Gophers")
    Channel.objects.filter(pk=channels[0].pk).update(guild=guild)
    save_member(guild.pk, WILMA, joined_at=time_of(IDS[50]))
    code, printed, _ = run("--channel", str(channels[0].pk), "--joined-minutes", "1")
    assert (code, printed["deleted"]) == (0, 1)
    assert [ids_of(channel, BUCKET) for channel in channels] == [[i for i in IDS if i != IDS[50]], IDS]


def test_what_was_posted_within_hours_of_the_first_message_is_deleted(channels: list[Channel]) -> None:
    author = secrets.randbits(60)
    write(channels[0], [IDS[20] + 1, IDS[59] + 1], author=author)
    code, printed, _ = run("--channel", str(channels[0].pk), "--first-seen-hours", "1", "--text", "hello")
    assert (code, printed["deleted"]) == (0, 1)
    assert IDS[59] + 1 in ids_of(channels[0], BUCKET)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Nothing is selected"),
        (("--text", "nitro"), "Enter an author"),
        (("--regex", "(a"), "is not valid"),
        (("--account-days", "soon", "--guild", "{guild}"), "not a number of days"),
        (("--joined-minutes", "soon", "--guild", "{guild}"), "not a number of minutes"),
        (("--first-seen-hours", "soon", "--guild", "{guild}"), "not a number of hours"),
        (("--not-channel", "no-such-channel", "--guild", "{guild}"), "There is no channel"),
        (("--regex", ".*", "--guild", "{guild}"), "matches every message"),
        (("--has", "spam", "--guild", "{guild}"), "Use one of: link"),
        (("--everything",), "exactly one channel"),
        (("--channel", "no-such-channel", "--text", "x"), "There is no channel"),
        (("--guild", "5", "--text", "x"), "There is no server “5”"),
    ],
)
def test_invalid_input_is_refused(options: tuple[str, ...], message: str) -> None:
    guild = make_channel(guild="Harbour").guild_id
    code, printed, error = run(*(option.replace("{guild}", str(guild)) for option in options))
    assert (code, printed) == (2, None)
    assert message in error


def test_a_whole_channel_needs_its_own_option(channels: list[Channel]) -> None:
    code, _, error = run("--channel", str(channels[0].pk), "--everything", "--text", "x")
    assert code == 2
    assert "whole channel cannot be combined" in error
    code, printed, _ = run("--channel", str(channels[0].pk), "--everything")
    assert (code, printed["deleted"]) == (0, 60)
    assert [ids_of(channel, BUCKET) for channel in channels] == [[], IDS]
