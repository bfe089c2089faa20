"""The subjects of the measurement: background operations, and pages as an account with all permissions sees them."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from django.db import connection
from django.test import Client

from chatstore.domain.buckets import bucket_at
from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import MAX_ID
from chatstore.models import ChannelLock, Guild, ReportCase, RoleGrant
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.health import metrics as store_metrics
from chatstore.operations.health import summaries
from chatstore.operations.health.channel_list import COLUMNS
from chatstore.operations.health.heavy_buckets import check_heavy_buckets
from chatstore.operations.jobs import runs
from chatstore.operations.ledger.summaries import count_uncovered, mark_due, note_purge
from chatstore.operations.members import highest_roles
from chatstore.operations.monitoring.checks import check_runs
from moderation.domain.filters import JoinedWithin
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Purge, Step
from moderation.operations import holds
from moderation.operations.access.visibility import ADD_PURGE, may_over_matches
from moderation.operations.erasure import execution as erasure
from moderation.operations.lookup import purge_index
from moderation.operations.preview.matching import Matcher
from moderation.operations.purging import completion, lifecycle, metrics, scheduling, turns, wait_reasons, worker
from moderation.operations.purging.stuck_check import _positions_of, _purges_expected_to_progress
from moderation.operations.raids.detection import check_raids
from moderation.operations.steps import claiming, first_seen, totals
from moderation.operations.undo import expiry
from moderation.operations.undo.requests import undo_until
from tests.scale.filling import FIRST_CHANNEL, FIRST_GUILD, FIRST_USER, SPAMMER

Named = tuple[str, Callable[[], object]]


def background_operations() -> Iterator[Named]:
    """Yield what beat, workers and the monitor do, with its name."""
    large = {state: _largest_purge(state) for state in ("running", "waiting", "undoing", "paused")}
    running, undoing = large["running"], large["undoing"]
    small = Purge.objects.filter(state=PurgeState.QUEUED).latest("id").pk
    token, moderator = uuid.uuid4(), _moderator_of_each_guild()
    yield "poll: expire previews", lifecycle.expire_previews
    yield "poll: due scans", scheduling.due_scans
    yield "poll: due purges", scheduling.due_purges
    yield "poll: joinable purges", scheduling.joinable_purges().exists
    yield "join a purge", turns.join_turn
    yield "poll: due erasures", erasure.due_erasures
    yield "poll: create due runs", lambda: runs.create_due_runs(postgres_now())
    yield "poll: due runs", runs.due_runs
    for name, purge_id in ("large", running), ("undo", undoing), ("small", small):
        yield f"can be joined, {name}", partial(scheduling.can_be_joined, purge_id)
        yield f"has a worker, {name}", partial(scheduling.has_worker, purge_id)
        yield f"claim, {name}", partial(claiming.claim_steps, purge_id, token=token)
        yield f"purges unblocked, {name}", partial(scheduling.unblocked_purges, purge_id)
        yield f"has due steps, {name}", partial(worker.has_due_steps, purge_id)
    yield "claim, all channels locked", partial(_claim_locked, large["waiting"])
    yield "claim, paused", partial(claiming.claim_steps, large["paused"], token=token)
    yield "move a group of steps", partial(_move_group, running)
    yield "release the channels of a group", partial(_release_group, running)
    yield "release 50,000 channels", partial(_release_all, running)
    yield "advance a large purge", partial(completion.advance_purge, running)
    yield "totals, large", lambda: totals.totals_of(Purge.objects.get(id=running))
    yield "wait reason, large", lambda: wait_reasons.wait_of(None, Purge.objects.get(id=running))
    yield "wait reason, waiting", lambda: wait_reasons.wait_of(None, Purge.objects.get(id=large["waiting"]))
    yield "renew leases", partial(_renew_leases, running)
    yield "holds of one channel", lambda: holds.hold_coverage_in([FIRST_CHANNEL + 7])
    yield "holds of a group", lambda: holds.hold_coverage_in(range(FIRST_CHANNEL, FIRST_CHANNEL + 128))
    yield "hold over a small purge", lambda: holds.hold_over_purge(Purge.objects.get(id=small))
    yield "undo period of a small purge", lambda: undo_until(Purge.objects.filter(state=PurgeState.DONE).latest("id"))
    yield "expired undos", expiry.list_expired
    yield "monitor: runs", lambda: check_runs(postgres_now())
    yield "monitor: stuck purges", lambda: _positions_of(_purges_expected_to_progress(postgres_now()))
    yield "monitor: heavy buckets", lambda: _ignoring_store(lambda: check_heavy_buckets(postgres_now()))
    yield "monitor: claim due summaries", lambda: summaries._claim_due(summaries.CHANNELS_PER_BATCH)
    yield "monitor: uncovered deletes", lambda: count_uncovered(postgres_now() - dt.timedelta(days=1))
    yield "mark a group of channels", lambda: mark_due(range(FIRST_CHANNEL, FIRST_CHANNEL + 128))
    yield (
        "last purge of a group",
        lambda: note_purge(small, dict.fromkeys(range(FIRST_CHANNEL, FIRST_CHANNEL + 128), postgres_now())),
    )
    yield "monitor: raids", lambda: _ignoring_store(lambda: check_raids(postgres_now()))
    yield "times of joining for a part of a scan", _read_joins
    yield "deleted messages of authors in their first buckets", _read_first_deleted
    yield "roles of a page", lambda: highest_roles(FIRST_GUILD + 6, range(FIRST_USER, FIRST_USER + 50))
    yield "metrics", lambda: [*_own_metrics()]
    yield "rights over 50,000 buckets", partial(_check_rights, moderator, running)
    yield "rights over 50,000 new buckets", partial(_check_rights_over_new, moderator, small, like=running)
    yield "lookup of a message id", lambda: purge_index.find_parts(_some_message_id())


LIMITS_MS = {"rights over 50,000 buckets": 300.0, "rights over 50,000 new buckets": 300.0}
"""Limits of operations that look at each bucket of a purge once, in a request that a person waits for."""


def _check_rights(moderator: User, purge_id: int) -> None:
    assert may_over_matches(moderator, ADD_PURGE, Purge.objects.get(id=purge_id))


def _check_rights_over_new(moderator: User, purge_id: int, *, like: int) -> None:
    """Check the same of a purge that was just scanned: the statistics know none of its buckets."""
    with connection.cursor() as cursor:
        cursor.execute(
            "/* */ INSERT INTO moderation_manifestbucket (purge_id, channel_id, bucket, count, first_id, last_id, "
            "survivors, authors, plan) SELECT %s, channel_id, bucket, count, first_id, last_id, survivors, authors, "
            "plan FROM moderation_manifestbucket WHERE purge_id = %s ON CONFLICT DO NOTHING",
            [purge_id, like],
        )
    _check_rights(moderator, purge_id)


def _moderator_of_each_guild() -> User:
    """Return an account whose rights have to be compared with each channel's guild: it has a role in each."""
    user, was_made = User.objects.get_or_create(username="scale-moderator", is_staff=True)
    if was_made:
        guilds = [RoleGrant(account=user, role=Role.MODERATOR, guild=guild) for guild in Guild.objects.all()]
        RoleGrant.objects.bulk_create([*guilds, RoleGrant(account=user, role=Role.DIRECT)])
    return user


def _read_joins() -> None:
    now = bucket_at(int(time.time() * 1_000))
    keys = [(FIRST_CHANNEL + n, now - n % 3) for n in range(256)]
    Matcher(Selection(guild_id=FIRST_GUILD + 6, where=JoinedWithin(10))).for_buckets(keys)


def _read_first_deleted() -> None:
    bucket = bucket_at(int(time.time() * 1_000))
    authors = range(FIRST_USER, FIRST_USER + 1_000)
    wanted = {(FIRST_CHANNEL + n, bucket - n % 3): dict.fromkeys(authors[n::64], MAX_ID) for n in range(64)}
    first_seen._first_deleted(wanted, {})


def _own_metrics() -> Iterator[object]:
    yield metrics._purges()
    yield store_metrics._findings()
    yield store_metrics._runs()
    yield store_metrics._successes()


def pages() -> Iterator[Named]:
    """Yield the pages, with their URLs."""
    client = _signed_in()
    purge = Purge.objects.filter(is_rewrite=False)
    large, undoing = _largest_purge("running"), _largest_purge("undoing")
    small = purge.filter(state=PurgeState.DONE).latest("id").pk
    ready = purge.filter(state=PurgeState.READY).latest("id").pk
    channel = FIRST_CHANNEL + 77
    cases = {
        "open": ReportCase.objects.open().filter(author_id=SPAMMER).values_list("pk", flat=True)[5],
        "resolved": ReportCase.objects.resolved().filter(author_id=SPAMMER).values_list("pk", flat=True)[50],
    }
    middle = purge.order_by("id")[purge.count() // 2].pk
    urls = [
        "/",
        "/purges/",
        f"/purges/?before={middle}",
        *(f"/purges/?state={state}" for state in ("running", "ready", "done", "undone", "erased", "cancelled")),
        "/purges/?moderator=staff-7",
        f"/purges/?channel={channel}",
        *(f"/purges/{purge_id}/" for purge_id in (large, undoing, small, ready)),
        f"/purges/{large}/?rows=20",
        f"/purges/{large}/live/",
        f"/purges/{ready}/messages/",
        "/holds/",
        "/reports/",
        f"/reports/?after={cases['open']}",
        "/reports/?state=resolved",
        f"/reports/{cases['open']}/",
        f"/reports/{cases['resolved']}/",
        "/sidebar/",
        f"/sidebar/?channel={channel}",
        "/delete/",
        "/delete/suggestions/?kind=people&q=bab",
        "/delete/suggestions/?kind=people&q=x",
        f"/delete/suggestions/?kind=people&q={FIRST_USER + 9}",
        "/delete/suggestions/?kind=channels&q=fedi77",
        f"/delete/suggestions/?kind=channels&q=x&guild={FIRST_GUILD + 1}",
        f"/channels/{channel}/delete/",
        f"/channels/{channel}/",
        f"/channels/{channel}/health/",
        f"/users/{SPAMMER}/",
        f"/users/{FIRST_USER + 5}/",
        f"/users/{SPAMMER}/panel/",
        "/find/?q=bab",
        "/find/?q=Guild 7",
        "/find/?q=fedi77",
        "/find/?q=x",
        "/find/suggestions/?q=bab",
        "/find/suggestions/?q=Guild 7",
        "/find/suggestions/?q=fedi77",
        "/find/suggestions/?q=x",
        f"/find/?q={FIRST_USER + 9}",
        "/maintenance/",
        "/maintenance/live/",
        "/maintenance/runs/",
        "/maintenance/runs/?state=failed",
        "/maintenance/runs/?job=measure&state=failed",
        "/maintenance/jobs/expire/",
        "/health/",
        "/metrics",
        *(f"/health/channels/?sort={sort}{name}" for name in COLUMNS for sort in ("", "-")),
        *(f"/health/channels/?{query}" for query in _table_queries()),
        "/audit/",
        *(f"/audit/?{query}" for query in _audit_queries(channel=channel, purge=small, large=large)),
        f"/audit/{AuditEntry.objects.latest('id').pk}/",
        "/admin/",
        "/admin/moderation/auditentry/",
        "/admin/moderation/auditentry/?action__exact=hold_placed",
        "/admin/moderation/auditentry/?action=hold_placed",
        f"/admin/moderation/auditentry/?q={channel}",
        "/admin/moderation/auditentry/?q=staff-7",
        "/admin/moderation/auditentry/?p=500",
        "/admin/moderation/purge/",
        "/admin/moderation/purge/?state__exact=queued",
        "/admin/moderation/purge/?q=staff-7",
        "/admin/chatstore/channel/",
        "/admin/chatstore/channel/?q=bab",
        "/admin/chatstore/chatuser/",
        "/admin/chatstore/chatuser/?q=bab",
        f"/admin/chatstore/chatuser/?q={FIRST_USER + 9}",
        "/admin/chatstore/guild/",
        f"/admin/chatstore/guild/{FIRST_GUILD + 1}/change/",
        f"/admin/chatstore/channel/{channel}/change/",
    ]
    for url in urls:
        yield f"GET {url}", partial(_get, client, url)


def _table_queries() -> Iterator[str]:
    """Yield queries of the table of all channels: filters that many and few channels meet, and pages in the middle."""
    for column, key in ("tombstones", "500"), ("page", "2500"), ("channel", "fedi"), ("empty", "0.5"):
        yield f"sort=-{column}&after={FIRST_CHANNEL + 7}~{key}"
        yield f"sort={column}&after={FIRST_CHANNEL + 7}~{key}"
    yield "sort=-tombstones&server=Guild 7"
    yield "sort=channel&server=Guild 7"
    yield "sort=-purged&server=Direct messages"
    yield "sort=tombstones&state=tombstones"
    yield "sort=-bytes&state=slow"
    yield "sort=channel&state=heavy&server=Guild 7"
    yield "sort=-page&q=bab"
    yield "sort=-page&q=x"


def _largest_purge(state: str) -> int:
    found = Purge.objects.filter(state=state, selection__guild__isnull=False).exclude(selection__guild=None)
    return found.order_by("-id")[0].pk


def _claim_locked(purge_id: int) -> None:
    with connection.cursor() as cursor:
        # Not measured: neither a SELECT nor an UPDATE by its first word.
        cursor.execute(
            "/* */ INSERT INTO chatstore_channellock (channel_id, job, since) SELECT DISTINCT channel_id, 'purge:1', "
            "now() FROM moderation_step WHERE purge_id = %s ON CONFLICT DO NOTHING",
            [purge_id],
        )
    with suppress(claiming.AllChannelsLocked):
        claiming.claim_steps(purge_id, token=uuid.uuid4())


def _move_group(purge_id: int) -> None:
    token = uuid.uuid4()
    steps = [step for step in claiming.claim_steps(purge_id, token=token) if isinstance(step, Step)]
    claiming.move_steps(steps, StepState.QUARANTINING)


def _release_group(purge_id: int) -> None:
    steps = claiming.claim_steps(purge_id, token=uuid.uuid4())
    Step.objects.filter(pk__in=[step.pk for step in steps]).update(state="counted", lease_until=None, token=None)
    claiming.release_done_channels(steps)


def _release_all(purge_id: int) -> None:
    assert ChannelLock.objects.filter(job=claiming.job_of(purge_id)).count() > 10
    Step.objects.filter(purge_id=purge_id, state="quarantining").update(state="counted", lease_until=None)
    claiming.release_idle_channels(Purge.objects.get(id=purge_id))


def _renew_leases(purge_id: int) -> None:
    token = Step.objects.claimed().filter(purge_id=purge_id).values_list("token", flat=True)[0]
    assert token is not None
    claiming.renew_claims(token)


def _some_message_id() -> int:
    step = Step.objects.filter(purge__confirmed_at__isnull=False).order_by("-purge_id")[0]
    assert step.first_id is not None
    return step.first_id + 5


def _ignoring_store(operation: Callable[[], object]) -> None:
    with suppress(StoreUnavailable):
        operation()


def _signed_in() -> Client:
    user, _was_made = User.objects.get_or_create(username="scale", is_staff=True, is_superuser=True)
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


def _get(client: Client, url: str) -> None:
    response = client.get(url)
    # 503: the page reads messages too, and only Postgres is up.
    assert response.status_code in (200, 302, 503), f"{response.status_code} for {url}"


def _audit_queries(*, channel: int, purge: int, large: int) -> Iterator[str]:
    """Yield each filter of the audit log, and combinations of a frequent one with a rare one."""
    newest = AuditEntry.objects.latest("id")
    day = f"{newest.at:%Y-%m-%d}"
    middle = Purge.objects.order_by("id")[Purge.objects.count() // 2].created_at
    yield f"before={newest.pk - (1 << 55)}"
    yield "person=staff-7"
    yield "action=channel_purged"
    yield "action=hold_placed"
    yield "action=note_added"
    yield f"server={FIRST_GUILD + 7}"
    yield f"channel={channel}"
    yield f"user={FIRST_USER + 100}"
    yield f"purge={purge}"
    yield f"purge={large}"
    yield f"since={day}&until={day}"
    yield f"since={middle:%Y-%m-%d}&until={middle:%Y-%m-%d}"
    yield f"person=staff-7&since={newest.at:%Y-%m}-01"
    yield "person=staff-7&action=hold_placed"
    yield f"server={FIRST_GUILD + 7}&action=hold_placed"
    yield f"server={FIRST_GUILD + 7}&action=note_added"
    yield f"channel={channel}&action=note_added"
    yield f"channel={channel}&message={newest.pk - (1 << 55)}"
