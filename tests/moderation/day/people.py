"""A moderator at the pages: selects, reads the preview, confirms, and waits until the page shows the end."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.test import Client

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import undo_totals_of
from tests.moderation.day.community import Community, Posted, ids_of
from tests.waiting import wait_until

_HASH = re.compile(r'name="manifest_hash" value="([0-9a-f]{64})"')

Form = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class Order:
    """A purge to make: the fields of the form at a URL, and exactly what it must delete."""

    title: str
    url: str
    form: Form
    expected: frozenset[Posted]


@dataclass(frozen=True, slots=True)
class Finished:
    """A purge that has ended, with the seconds of its preview, and from its confirmation on."""

    order: Order
    purge: Purge
    preview_seconds: float
    purge_seconds: float


class Moderator:
    """An account at its browser."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.client = Client()
        self.client.force_login(user)

    def purge(self, order: Order) -> Finished:
        """Select, preview, confirm and wait; check the counts of the pages and of the steps."""
        began = time.monotonic()
        purge = self.preview(order)
        page = f"/purges/{purge.pk}/"
        shown = self.client.get(page).content.decode()
        previewed = time.monotonic()
        count = len(order.expected)
        assert (purge.state, purge.manifest) == (PurgeState.READY, count), order.title
        assert f"Delete {count:,} message" in shown, order.title
        manifest_hash = _HASH.search(shown)
        assert manifest_hash is not None
        self.post(f"{page}confirm/", {"reason": order.title, "manifest_hash": manifest_hash[1]})
        self._wait_while(purge, PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.WAITING)
        ended = time.monotonic()
        total = totals_of(purge)
        assert (purge.state, total.deleted, total.already_gone) == (PurgeState.DONE, count, 0), (order.title, total)
        assert self.client.get(page).status_code == 200
        return Finished(order, purge, previewed - began, ended - previewed)

    def preview(self, order: Order) -> Purge:
        """Post the form; return the purge once it is scanned."""
        purge = Purge.objects.get(pk=int(self.post(order.url, order.form).split("/")[2]))
        self._wait_while(purge, PurgeState.SCANNING)
        return purge

    def undo(self, finished: Finished, *, channel_id: int | None = None) -> tuple[frozenset[Posted], float]:
        """Undo a purge, or its part in one channel; return what must be restored, and the seconds it took."""
        part = frozenset(m for m in finished.order.expected if channel_id in (None, m.channel_id))
        began = time.monotonic()
        self.post(
            f"/purges/{finished.purge.pk}/undo/",
            {"reason": "Appeal accepted"} | ({} if channel_id is None else {"channel": str(channel_id)}),
        )
        self._wait_while(finished.purge, PurgeState.UNDOING)
        taken = time.monotonic() - began
        total = undo_totals_of(finished.purge.undos.get())
        assert (total.requested, total.restored) == (len(part), len(part)), total
        return part, taken

    def post(self, url: str, form: Form, *, status: int = 302) -> str:
        """Post a form, which must have this status; return the URL that it redirects to."""
        answer = self.client.post(url, form)
        assert answer.status_code == status, answer.content.decode()
        return str(answer.headers.get("Location", ""))

    def _wait_while(self, purge: Purge, *states: PurgeState) -> None:
        def is_past() -> bool:
            purge.refresh_from_db()
            return purge.state not in states

        wait_until(is_past)


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders on the community's live messages."""

    community: Community
    live: frozenset[Posted]

    def selected(self, channel: str, *, page: int = 0, count: int = 10) -> Order:
        """Select the newest messages of a channel, or those of an older page."""
        here = sorted(self._in(channel), key=lambda message: message.message_id, reverse=True)
        chosen = here[page * 50 :][:count]
        form = {"selected": "1", "message_id": [str(message.message_id) for message in chosen]}
        return Order(f"{len(chosen)} selected in {channel}", self._form_of(channel), form, frozenset(chosen))

    def by(self, author: int, channel: str | None = None) -> Order:
        """Select an author's messages, in one channel or wherever they posted."""
        author_id = self.community.author(author)
        found = frozenset(message for message in self._in(channel) if message.author == author_id)
        title = f"author {author}" + (f" in {channel}" if channel else " everywhere")
        return Order(title, self._form_of(channel), {"authors": str(author_id)}, found)

    def links_by(self, author: int) -> Order:
        """Select an author's messages with a link in the guild."""
        found = frozenset(m for m in self.by(author).expected if "l" in m.has)
        form = {"guild": str(self.community.guild_id), "authors": str(self.community.author(author)), "has": ["link"]}
        return Order(f"links of author {author}", "/delete/", form, found)

    def attachments_in(self, channel: str) -> Order:
        """Select a channel's messages with attachments, except those of its most active author."""
        kept = self.community.author(1)
        found = frozenset(m for m in self._in(channel) if "a" in m.has and m.author != kept)
        form = {"has": ["attachment"], "none-authors": str(kept)}
        return Order(f"attachments in {channel}", self._form_of(channel), form, found)

    def advertisements(self) -> Order:
        """Select the messages of the whole guild that contain a word."""
        found = frozenset(message for message in self.live if message.is_advertisement)
        return Order(
            "a word in the guild", "/delete/", {"guild": str(self.community.guild_id), "words": "Giveaway"}, found
        )

    def whole(self, channel: str) -> Order:
        """Select a whole channel, whose name is typed."""
        form = {"everything": "1", "channel_name": channel}
        return Order(f"all of {channel}", self._form_of(channel), form, frozenset(self._in(channel)))

    def _form_of(self, channel: str | None) -> str:
        return f"/channels/{self.community.channels[channel]}/delete/" if channel else "/delete/"

    def _in(self, channel: str | None) -> list[Posted]:
        place = self.community.channels[channel] if channel else None
        return [message for message in self.live if place in (None, message.channel_id)]


def assert_live(community: Community, live: frozenset[Posted]) -> None:
    """Check that exactly these messages are there."""
    found, expected = community.read_live(), ids_of(live)
    assert found == expected, f"{len(found - expected)} are there that are deleted, {len(expected - found)} are missing"
