"""A chat user: profile, notes, activity by channel, and purges that affect them; as a page, and beside other pages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from chatstore.domain.controls import show_hidden
from chatstore.domain.snowflakes import time_of
from chatstore.models import Channel, Guild, GuildMember
from moderation.forms import read_cursor
from moderation.operations.access.visibility import ADD_PURGE, Actor, channel_for, guilds_with_channels, may_in
from moderation.operations.holds import holds_of_author
from moderation.operations.lookup.chat_users import GUILDS_SHOWN, ChannelActivity, Profile, profile_of
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.lookup.recent_posts import RecentPosts, recent_posts_of
from moderation.operations.notes import list_notes
from moderation.operations.preview.breakdown import purges_kept_by_holds
from moderation.presentation.activity import ActivitySpan, ActivityStrips, PostsSpan, draw_posts
from moderation.presentation.people import name_unknown
from moderation.views.rows import Writer

Strips = ActivityStrips[ActivitySpan] | ActivityStrips[PostsSpan]

NEW_ACCOUNT = dt.timedelta(days=7)
"""Younger accounts are marked: those of a raid mostly are."""

PANEL_CHANNELS = 6

COUNT_ALL = "count_all"
"""Parameter of the request that the page sends itself where all messages were not counted in time."""

_SPANS: tuple[tuple[str, Promise], ...] = (
    ("last 1 hour", gettext_lazy("Last hour")),
    ("last 1 day", gettext_lazy("Last day")),
    ("", gettext_lazy("All")),
)
"""What the composer's “From” is filled with, and the label."""


class Reach(NamedTuple):
    """Where the user's messages can be deleted. action: URL of the composer for it; guild: its field there."""

    label: str
    place: str
    action: str
    guild: int | None = None


class ServerLine(NamedTuple):
    """A server of a user. member: their membership; None if nothing is known. posts: number of their messages."""

    guild: Guild
    member: GuildMember | None
    posts: int


class ActivityRow(NamedTuple):
    """A channel of a user. runs: periods to draw, none if all messages were counted and none is left there.

    posts: number of their messages, at least. last_at: the time of the last one; None: not known, the period is.
    """

    entry: ChannelActivity
    runs: Sequence[ActivitySpan | PostsSpan]
    posts: int
    last_at: dt.datetime | None


@require_safe
@permission_required("chatstore.view_chatuser", raise_exception=True)
def chat_user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show a chat user. `notes_before` pages the notes."""
    return show_user(request, user_id)


def show_user(request: HttpRequest, user_id: int, *, error_message: str = "") -> HttpResponse:
    """Render the page. error_message: why the note that was posted was refused."""
    context = _describe(request, user_id, here=None)
    context |= {"error_message": error_message, "typed": request.POST}
    profile: Profile = context["profile"]
    context["strips"] = strips = _draw_strips(profile, context["recent"])
    context["rows"] = _activity_rows(profile, context["recent"], strips)
    context["purgeable"] = _purgeable_guilds(request.user, context["servers"], context["recent"])
    return render(request, "moderation/user/user.html", context, status=400 if error_message else 200)


@require_safe
@permission_required("chatstore.view_chatuser", raise_exception=True)
def user_panel(request: HttpRequest, user_id: int) -> HttpResponse:
    """Return the fragment that shows a chat user beside a page. `channel`: the channel of that page, if it has one."""
    channel_id = read_cursor(request.GET, "channel")
    here = None if channel_id is None else channel_for(request.user, channel_id)
    return render(request, "moderation/user/_panel.html", _describe(request, user_id, here=here))


def _describe(request: HttpRequest, user_id: int, *, here: Channel | None) -> dict[str, Any]:
    profile = profile_of(request.user, user_id)
    name = show_hidden(str(profile.user)) if profile.user else name_unknown(user_id)
    made_at, counts_all = profile.made_at, COUNT_ALL in request.GET
    recent = recent_posts_of(request.user, user_id, counts_all=counts_all)
    kept = purges_kept_by_holds(user_id, [matched.listed.purge for matched in profile.purges])
    are_all_kept = bool(kept) and len(kept) == profile.purge_count
    shown, servers = profile.activity[:PANEL_CHANNELS], _servers_of(profile, recent)
    return {
        "profile": profile,
        "who": Writer(user_id, name, is_bot=bool(profile.user and profile.user.is_bot), is_webhook=False),
        "is_new": made_at is not None and timezone.now() - made_at < NEW_ACCOUNT,
        "held": holds_of_author(request.user, user_id),
        "kept_by_holds": kept,
        "are_all_kept": are_all_kept,
        "notes": list_notes(request.user, user_id, before=read_cursor(request.GET, "notes_before")),
        "recent": recent,
        "users": recent.users,
        "mentioned": name_mentioned(
            request.user,
            (message for _, message in recent.newest),
            channels=(channel for channel, _ in recent.newest),
        ),
        "oldest_at": _oldest_at(profile, recent),
        # Then the page requests itself once more, with all messages counted.
        "counting": "" if recent.is_whole or counts_all else f"{request.path}?{_with_count_all(request)}",
        "channels": [
            (entry, recent.by_channel.get(entry.channel.pk, 0), recent.all_by_channel.get(entry.channel.pk, 0))
            for entry in shown
        ],
        "servers": servers[:GUILDS_SHOWN],
        "more_servers": max(len(servers) - GUILDS_SHOWN, 0),
        # The index has a channel until the bookkeeping of the night, also if a purge has deleted all messages there.
        "channel_count": len(recent.all_by_channel)
        if recent.is_whole
        else len(profile.activity) + profile.more_channels,
        "has_all_channels": recent.is_whole or profile.searched_back_to is None,
        "reaches": _reaches(request.user, here),
        "spans": _spans(recent),
    }


def _with_count_all(request: HttpRequest) -> str:
    query = request.GET.copy()
    query[COUNT_ALL] = "1"
    return query.urlencode()


def _oldest_at(profile: Profile, recent: RecentPosts) -> dt.datetime | None:
    """Return when the user's oldest message was posted if it is of the days in which they were first seen, or None.

    Otherwise older ones are deleted, of which only the days are known.
    """
    at, days = recent.oldest_at, profile.first_seen
    return at if at and days and days[0] <= at.astimezone(dt.UTC).date() <= days[1] else None


def _draw_strips(profile: Profile, recent: RecentPosts) -> Strips | None:
    """Draw the messages if all were read, or else the periods in which there are some."""
    if not recent.is_whole:
        return profile.strips
    shown = {entry.channel.pk for entry in profile.activity}
    posted = {channel_id: ids for channel_id, ids in recent.ids_by_channel.items() if channel_id in shown}
    return draw_posts(posted, now=timezone.now())


def _activity_rows(profile: Profile, recent: RecentPosts, drawn: Strips | None) -> list[ActivityRow]:
    """Return the channels with the periods to draw.

    A period stays in the index until the bookkeeping of the night finds that a purge has emptied it.
    """
    strips = drawn.strips if drawn else {}
    may_have = {entry.channel.pk for entry in profile.activity}
    if recent.is_whole:
        may_have &= recent.all_by_channel.keys()
    last = {channel_id: time_of(last_id) for channel_id, last_id in recent.last_ids.items()}
    return [
        ActivityRow(
            entry,
            strips.get(entry.channel.pk, ()) if entry.channel.pk in may_have else (),
            recent.all_by_channel.get(entry.channel.pk, 0),
            last.get(entry.channel.pk),
        )
        for entry in profile.activity
    ]


def _servers_of(profile: Profile, recent: RecentPosts) -> list[ServerLine]:
    """Return the servers of a user: those that they joined, and others in which they posted, most messages first."""
    lines = [ServerLine(each.guild, each, recent.by_guild.get(each.guild_id, 0)) for each in profile.memberships]
    others = set(profile.guilds) - {each.guild for each in profile.memberships}
    posted = [ServerLine(guild, None, recent.by_guild.get(guild.pk, 0)) for guild in others]
    return [*lines, *sorted(posted, key=lambda line: (-line.posts, str(line.guild), line.guild.pk))]


def _purgeable_guilds(user: Actor, servers: Sequence[ServerLine], recent: RecentPosts) -> set[int]:
    """Return the guilds that have, or may have, messages that the viewer may delete."""
    posted = [line.guild.pk for line in servers if line.posts or not recent.is_whole]
    return set(guilds_with_channels(user, ADD_PURGE).filter(pk__in=posted).order_by().values_list("pk", flat=True))


def _spans(recent: RecentPosts) -> list[tuple[str, Promise, bool]]:
    """Return the times that are offered, and whether no message of the user in any channel is known to be of it."""
    counts = (
        (recent.in_hour, recent.is_complete),
        (recent.in_day, recent.is_complete),
        (recent.in_all, recent.is_whole),
    )
    return [
        (after, label, is_known and count == 0)
        for (after, label), (count, is_known) in zip(_SPANS, counts, strict=True)
    ]


def _reaches(user: Actor, here: Channel | None) -> list[Reach]:
    """Return the places that are offered, the narrowest first. here: left out if the viewer may not delete there."""
    everywhere = reverse("compose_everywhere")
    reaches = [Reach(gettext("Everywhere"), "", everywhere)]
    if here is None or not may_in(user, ADD_PURGE, here):
        return reaches
    if here.guild is not None:
        reaches.insert(0, Reach(gettext("This server"), show_hidden(here.guild.name), everywhere, here.guild.pk))
    return [Reach(gettext("Here"), show_hidden(here.full_name), reverse("compose", args=[here.pk])), *reaches]
