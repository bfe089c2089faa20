"""Open each page in each width and color scheme, check it for faults, and save a screenshot."""

from __future__ import annotations

import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page

from tests.pages.accessibility import SCHEMES, Scheme, violations_of
from tests.pages.serving import Site, browse, in_thread, serve, serve_only_pages, sign_in
from tests.shots.acts import (
    Act,
    click,
    delete_a_message,
    long_after_sign_in,
    make_recovery_codes,
    open_on_localhost,
    press,
    reload_while_open,
    search_for,
    sign_in_with,
    sign_in_with_code,
    submit,
    unfold,
    without_answer,
)
from tests.shots.health import UnhealthyChannel
from tests.shots.maintenance import BROKEN, fake_heartbeats, fill_lists, finish_maintenance_scene, replace_runs
from tests.shots.neighbours import show_activity
from tests.shots.running_purge import begin_now, finish_running_purge
from tests.shots.scene import Scene, arrange_scene
from tests.waiting import LIMIT_SECONDS

WIDTHS = (1440, 1280, 390, 360)
CHECKED_WIDTH = 390
"""A phone's: there targets are closest, and tables turn into cards."""

WIDE = 1200
"""From this width on, the list of channels is beside the page instead of in a drawer."""

BUSIEST_ROLE = "mona"
"""It opens half of the pages, and more."""

HEIGHT = 900
SETTLE_MS = 350
CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
README_FOLDER = Path(__file__).parent / "readme"
FILLED = (
    "after=2024-05-01&has=link&any_words=nitro&similar=Join+now%21&account_days=7&joined_minutes=10&"
    "first_seen_hours=24&none-any_words=news&"
    "pattern=c[0o]ins%3F&either-words=free&either-has=embed&none-reply_to=81&with_pinned=1"
)
NOWHERE = "postgres://unused:x@127.0.0.1:1/nothing"
FOLDER = settings.BASE_DIR / ".local" / "shots"


@dataclass(frozen=True, slots=True)
class Shot:
    """A page to open: the account ("" for anonymous), the path, and the expected status.

    site: which of the sites answers. begins: a purge whose start is set to a few seconds ago. act: what is done once
    the page is open; leads_to: the error status that it gets. is_narrow: only where the channels are in a drawer.
    """

    name: str
    role: str
    path: str
    status: int = 200
    whole: bool = True
    site: str = ""
    begins: int | None = None
    act: Act | None = None
    leads_to: int = 0
    is_narrow: bool = False


ACCOUNT_PAGES = (
    Shot("sign-in", "", "/sign-in/"),
    Shot("account", "mona", "/account/"),
    Shot("second-factor", "mona", "/account/second-factor/"),
    Shot("password", "mona", "/account/password/"),
    Shot("preferences", "mona", "/preferences/"),
)


def list_shots(scene: Scene) -> Iterator[Shot]:
    """Yield every page in every state that looks different."""
    channel, day = scene.sample.channel_id, f"{scene.sample.spam_began:%Y-%m-%d}"
    yield from ACCOUNT_PAGES
    yield Shot("home", "mona", "/")
    yield Shot("home-without-rights", "tess", "/")
    yield Shot("timeline", "mona", f"/channels/{channel}/", whole=False)
    yield Shot("timeline-operator", "otto", f"/channels/{channel}/?at={day}", whole=False)
    yield Shot("timeline-spam", "mona", f"/channels/{channel}/?at={day}", whole=False)
    yield Shot("timeline-message", "mona", f"/channels/{channel}/?around={scene.message}#m{scene.message}", whole=False)
    spammed = f"/channels/{scene.done.selection['channels'][0]}/?at={day}"
    yield Shot("timeline-gap", "mona", spammed)
    yield Shot("timeline-purge", "mona", spammed, whole=False, act=click("#messages a[data-panel]"))
    yield Shot("timeline-hostile", "lena", f"/channels/{scene.hostile}/")
    yield Shot("purge-scanning", "mona", f"/purges/{scene.scanning.pk}/")
    yield Shot("purge-ready", "mona", f"/purges/{scene.ready.pk}/")
    yield Shot("purge-waiting", "mona", f"/purges/{scene.waiting.pk}/")
    yield Shot("purge-done", "mona", f"/purges/{scene.done.pk}/")
    yield Shot("undo", "mona", f"/purges/{scene.done.pk}/undo/")
    yield Shot("purge-undone", "mona", f"/purges/{scene.undone.pk}/")
    yield Shot("purge-partly-undone", "mona", f"/purges/{scene.partly.pk}/")
    yield Shot("preview-many", "mona", f"/purges/{scene.many.pk}/")
    yield Shot("manifest", "mona", f"/purges/{scene.many.pk}/messages/")
    yield Shot("manifest-partly-undone", "mona", f"/purges/{scene.partly.pk}/messages/")
    yield from chain(
        _composer_shots(scene, channel),
        _ended_shots(scene),
        _report_shots(scene),
        _raid_shots(scene),
        _approval_shots(scene),
        _controlled_shots(scene),
        _erasing_shots(scene),
        _health_shots(scene.unhealthy),
        _maintenance_shots(scene),
    )
    yield Shot("purge-nothing", "mona", f"/purges/{scene.nothing.pk}/")
    yield Shot("purge-discarded", "mona", f"/purges/{scene.discarded.pk}/")
    emptied, undone_channel = (purge.selection["channels"][0] for purge in (scene.done, scene.undone))
    yield Shot("message-live", "mona", f"/channels/{channel}/{scene.message}/")
    yield Shot("message-removed", "mona", f"/channels/{emptied}/{scene.removed}/")
    yield Shot("message-removed-operator", "otto", f"/channels/{emptied}/{scene.removed}/")
    yield Shot("message-back", "mona", f"/channels/{undone_channel}/{scene.back}/")
    yield Shot("message-unseen", "mona", f"/channels/{channel}/{scene.message + 1}/", status=404)
    yield Shot("message-nowhere", "mona", f"/messages/{scene.message + 1}/", status=404)
    yield Shot("user", "mona", f"/users/{scene.removed_author}/")
    yield Shot("user-bot", "mona", "/users/900000000000000001/")
    yield Shot("purges", "mona", f"/purges/?by={scene.accounts['mona'][0]}")
    yield Shot("purges-none", "mona", "/purges/?by=no-such-user")
    yield Shot("find", "mona", f"/find/?q={scene.sample.victor}")
    yield Shot("find-several", "mona", "/find/?q=harbour")
    yield Shot("find-no-message", "mona", f"/find/?q={scene.message + 1}")
    yield Shot("find-nothing", "mona", "/find/?q=nothing-is-called-that")
    yield Shot("readme-preview", "mona", f"/purges/{scene.ready.pk}/", whole=False)
    yield Shot("readme-timeline", "mona", spammed, whole=False)
    yield Shot("readme-health", "otto", f"/channels/{scene.unhealthy.channel.pk}/health/", whole=False)
    for more in (_error_shots, _scripted_shots):
        yield from more(f"/channels/{channel}/")
    yield from _admin_shots(scene, channel)
    yield from _identity_shots(scene)


def _admin_shots(scene: Scene, channel: int) -> Iterator[Shot]:
    yield Shot("admin", "ada", "/admin/")
    yield Shot("admin-refused", "tess", "/admin/", status=403)
    yield Shot("admin-accounts", "ada", "/admin/auth/user/", whole=False)
    yield Shot("admin-account-new", "ada", "/admin/auth/user/add/")
    yield Shot("admin-account", "ada", f"/admin/auth/user/{scene.protected_id}/change/")
    yield Shot("admin-account-history", "ada", f"/admin/auth/user/{scene.protected_id}/history/")
    yield Shot("admin-guilds", "ada", "/admin/chatstore/guild/", whole=False)
    yield Shot("admin-guild-new", "ada", "/admin/chatstore/guild/add/")
    yield Shot("admin-guild", "ada", f"/admin/chatstore/guild/{scene.raided_guild}/change/")
    yield Shot("admin-channels", "ada", "/admin/chatstore/channel/", whole=False)
    yield Shot("admin-channel-new", "ada", "/admin/chatstore/channel/add/")
    yield Shot("admin-channel", "ada", f"/admin/chatstore/channel/{channel}/change/")
    yield Shot("admin-users", "ada", "/admin/chatstore/chatuser/", whole=False)
    yield Shot("admin-user", "ada", f"/admin/chatstore/chatuser/{scene.sample.victor}/change/")
    yield Shot("admin-purges", "ada", "/admin/moderation/purge/", whole=False)
    yield Shot("admin-purge", "ada", f"/admin/moderation/purge/{scene.done.pk}/change/")
    yield Shot("admin-raid-settings", "ada", "/admin/moderation/raidsettings/", whole=False)
    yield Shot("admin-raid-settings-new", "ada", "/admin/moderation/raidsettings/add/")
    yield Shot("admin-audit", "ada", "/admin/moderation/auditentry/", whole=False)
    open_first = click("#result_list tr:first-child a[href*='/change/']")
    yield Shot("admin-audit-entry", "ada", "/admin/moderation/auditentry/?action=purge_confirmed", act=open_first)


def _identity_shots(scene: Scene) -> Iterator[Shot]:
    """Yield the steps of signing in, and what comes before an act that others cannot undo. The last ones write."""
    yield Shot("sign-in-wrong", "", "/sign-in/", act=sign_in_with((scene.protected[0], "wrong")))
    yield Shot("sign-in-code", "", "/sign-in/", act=sign_in_with(scene.protected))
    yield Shot("sign-in-set-up", "", "/sign-in/", site="strict", act=sign_in_with(scene.accounts["mona"]))
    yield Shot("account-protected", "protected", "/account/")
    yield Shot("passkey-new", "protected", "/account/", act=open_on_localhost("/account/passkeys/add/"))
    yield Shot("recovery-codes", "protected", "/account/", act=make_recovery_codes(scene.protected[0]))
    yield Shot("account-of-other", "ada", f"/account/{scene.protected_id}/reset-second-factor/")
    lift = long_after_sign_in(scene.accounts["lena"][0], submit("form[action$='/lift/']", reason="The case is closed"))
    yield Shot("confirm-identity", "lena", "/holds/", act=lift, leads_to=403)
    restored = f"/channels/{scene.undone.selection['channels'][0]}/?at={scene.sample.spam_began:%Y-%m-%d}"
    yield Shot("message-deleted", "mona", restored, whole=False, act=delete_a_message)


def _composer_shots(scene: Scene, channel: int) -> Iterator[Shot]:
    yield Shot("compose", "mona", f"/channels/{channel}/delete/?authors=Victor")
    yield Shot("compose-empty", "mona", "/delete/")
    yield Shot("compose-filled", "mona", f"/delete/?{FILLED}&channels={channel}&authors={scene.sample.victor}")
    yield Shot("compose-changed", "mona", f"/delete/?preview={scene.ready.pk}")


def _ended_shots(scene: Scene) -> Iterator[Shot]:
    yield Shot("purge-zoomed", "mona", f"/purges/{scene.partly.pk}/?zoom=month")
    yield Shot("purges-deleted", "mona", "/purges/?view=deleted")


def _report_shots(scene: Scene) -> Iterator[Shot]:
    yield Shot("reports", "mona", "/reports/")
    yield Shot("report", "mona", f"/reports/{scene.reported}/")
    yield Shot("report-own", "mona", f"/reports/{scene.reported_own}/")
    yield Shot("report-claimed", "mona", f"/reports/{scene.reported_claimed}/")
    yield Shot("report-decided", "mona", f"/reports/{scene.decided}/?done={scene.decided}")
    yield Shot("reports-resolved", "mona", "/reports/?state=resolved")


def _raid_shots(scene: Scene) -> Iterator[Shot]:
    notify = reload_while_open(scene.raid_finding, ".page-notice.critical")
    report = reload_while_open(scene.raid_finding, "form[action$='/dismiss/']")
    before = without_answer(scene.asking.pk, report)
    yield Shot("raid-notice", "mona", "/", whole=False, act=notify)
    yield Shot("raid", "mona", f"/raids/{scene.raided}/", act=report)
    in_panel = click(".card > .account-lines a[data-panel]")
    yield Shot("raid-user", "mona", f"/raids/{scene.raided}/", whole=False, act=in_panel)
    yield Shot("readme-raid", "mona", f"/raids/{scene.raided}/", whole=False, act=before)
    yield Shot("raid-settings", "ada", f"/guilds/{scene.raided_guild}/raid-settings/")
    yield Shot("user-raider", "mona", f"/users/{scene.raider}/")
    yield Shot("raid-none", "mona", f"/raids/{scene.sample.channel_id}/")
    yield Shot("timeline-raided", "mona", f"/channels/{scene.raided}/", whole=False, act=notify)


def _approval_shots(scene: Scene) -> Iterator[Shot]:
    yield Shot("approval-own", "mona", f"/purges/{scene.asking.pk}/")
    yield Shot("approval", "lena", f"/purges/{scene.asking.pk}/")
    yield Shot("home-lead", "lena", "/")
    yield Shot("purges-lead", "lena", "/purges/")
    yield Shot("limits", "ada", "/roles/limits/")
    yield Shot("invitation", "", f"/invitation/?token={scene.invitation}")


def _error_shots(channel: str) -> Iterator[Shot]:
    yield Shot("error-400", "mona", f"{channel}?at=2999-01-01", status=400)
    yield Shot("error-403", "tess", channel, status=403)
    yield Shot("error-404", "mona", "/channels/1/", status=404)
    yield Shot("error-no-page", "mona", "/nowhere/", status=404)
    yield Shot("error-500", "mona", "/", status=500, site="no postgres")
    yield Shot("error-503", "mona", channel, status=503, site="no cassandra")
    yield Shot("home-cassandra-down", "mona", "/", site="no cassandra")
    yield Shot("cluster-cassandra-down", "otto", "/health/", site="no cassandra")


def _scripted_shots(channel: str) -> Iterator[Shot]:
    yield Shot("timeline-user", "mona", channel, whole=False, act=click("#messages a.author"))
    yield Shot("timeline-selected", "mona", channel, whole=False, act=click("#messages .select-input"))
    yield Shot("keys", "mona", channel, whole=False, act=press("?"))
    yield Shot("menu", "ada", "/preferences/", whole=False, act=click(".account > summary"))
    yield Shot("drawer", "mona", channel, whole=False, act=click("[popovertarget='side']"), is_narrow=True)
    actions = click("[popovertarget='channel-actions']")
    yield Shot("timeline-actions", "mona", channel, whole=False, act=actions, is_narrow=True)
    yield Shot("search-suggestions", "mona", "/", whole=False, act=search_for("gen"))


def _health_shots(unhealthy: UnhealthyChannel) -> Iterator[Shot]:
    yield Shot("cluster-health", "otto", "/health/")
    yield Shot("channel-table", "otto", "/health/channels/")
    yield Shot("channel-table-filtered", "otto", "/health/channels/?sort=-tombstones&server=Northside+Makers")
    channel = f"/channels/{unhealthy.channel.pk}/health/"
    yield Shot("channel-health", "otto", channel)
    yield Shot("channel-health-bucket", "otto", f"{channel}{unhealthy.dead}/")
    yield Shot("channel-health-purged", "otto", f"{channel}{unhealthy.purged}/")
    yield Shot("channel-health-unknown", "otto", f"{channel}{unhealthy.unknown}/")
    yield Shot("channel-health-admin", "ada", f"/admin/chatstore/channel/{unhealthy.channel.pk}/change/")


def _controlled_shots(scene: Scene) -> Iterator[Shot]:
    for name, purge in (("behind", scene.behind), ("failed", scene.failed), ("paused", scene.paused)):
        yield Shot(f"purge-{name}", "mona", f"/purges/{purge.pk}/")
    running = scene.running.pk
    yield Shot("purge-running", "mona", f"/purges/{running}/", begins=running)
    yield Shot("readme-running", "mona", f"/purges/{running}/", whole=False, begins=running)


def _erasing_shots(scene: Scene) -> Iterator[Shot]:
    yield Shot("holds", "lena", "/holds/")
    yield Shot("roles", "ada", "/roles/")
    yield Shot("roles-of-one", "aron", f"/roles/?account={scene.accounts['mona'][0]}&past=1")
    yield Shot("purge-held", "mona", f"/purges/{scene.limited_by_hold.pk}/")
    yield Shot("user-held", "lena", f"/users/{scene.held_user}/")
    yield Shot("purge-erase-request", "ada", f"/purges/{scene.partly.pk}/")
    yield Shot("purge-erase-ask", "ada", f"/purges/{scene.done.pk}/", act=unfold("details.danger"))
    yield Shot("purge-erasing", "mona", f"/purges/{scene.erased.pk}/")
    yield Shot("home-admin", "ada", "/")
    yield Shot("home-auditor", "aron", "/")
    yield Shot("audit", "ada", "/audit/")
    yield Shot("audit-purge", "ada", f"/audit/?purge={scene.done.pk}")
    yield Shot(
        "audit-entry", "ada", f"/audit/?purge={scene.done.pk}&action=purge_confirmed", act=click(".audit-action")
    )
    yield Shot("message-erased", "mona", f"/channels/{scene.erased.selection['channels'][0]}/{scene.erased_message}/")


def _maintenance_shots(scene: Scene) -> Iterator[Shot]:
    yield Shot("home-operator", "otto", "/")
    yield Shot("maintenance", "otto", "/maintenance/")
    yield Shot("maintenance-job", "otto", "/maintenance/jobs/repair/")
    yield Shot("maintenance-job-broken", "otto", f"/maintenance/jobs/{BROKEN}/")
    yield Shot("maintenance-job-wrong", "otto", "/maintenance/jobs/repair/?cron=99+2+*+*+*&zone=UTC&is_enabled=1")
    yield Shot("maintenance-runs", "otto", "/maintenance/runs/?job=repair")
    yield Shot("maintenance-runs-none", "otto", "/maintenance/runs/?since=2999-01-01")
    for name in ("failed", "running", "done"):
        yield Shot(f"run-{name}", "otto", f"/maintenance/runs/{getattr(scene.maintenance, name)}/")


def take_shots(
    sites: Mapping[str, Site], scene: Scene, shots: Sequence[Shot], *, widths: Sequence[int], only_check: bool
) -> list[str]:
    """Open the pages in each width and scheme; print their faults, one line each, and return them.

    sites: by name; the one without a name has a worker. only_check: without screenshots.
    """
    faults: list[str] = []
    with browse() as browser:
        for width in widths:
            contexts: dict[str, BrowserContext] = {}
            for shot in shots:
                if shot.is_narrow and width >= WIDE:
                    continue
                if shot.role not in contexts:
                    contexts[shot.role] = _open_context(browser, sites[""], scene, shot.role, width=width)
                page = contexts[shot.role].new_page()
                label = f"{shot.name}-{width}"
                found = _take(page, sites[shot.site], shot, "" if only_check else label)
                for fault in found:
                    print(f"{label}: {fault}", flush=True)
                faults += found
                page.close()
            for context in contexts.values():
                context.close()
    return faults


def _open_context(browser: Browser, site: Site, scene: Scene, role: str, *, width: int) -> BrowserContext:
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, reduced_motion="reduce")
    context.set_default_timeout(LIMIT_SECONDS * 1_000)
    page = context.new_page()
    if role == "protected":
        sign_in_with_code(page, site, scene.protected)
    elif role:
        sign_in(page, site, scene.accounts[role])
    page.close()
    return context


def _take(page: Page, site: Site, shot: Shot, label: str) -> list[str]:
    """Open the page once, and return its faults in each color scheme. label: begins the names of its screenshots."""
    faults: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        # The browser reports an expected error status as a failed load.
        expected = [f"status of {status}" for status in (shot.status, shot.leads_to) if status >= 400]
        is_expected = any(text in message.text for text in expected)
        if message.type in ("error", "warning") and not is_expected:
            faults.append(f"console {message.type}: {message.text[:300]}")

    page.on("console", listen)
    page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
    if shot.begins is not None:
        in_thread(begin_now, shot.begins)
    response = page.goto(site.url + shot.path)
    if shot.act:
        try:
            shot.act(page)
        except Error as error:
            faults.append(f"the act failed: {error.message}")
        page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLE_MS)
    if response is None or response.status != shot.status:
        faults.append(f"status {response.status if response else None}, not {shot.status}")
    if label:
        # Before the checks, which scroll.
        for scheme in SCHEMES:
            _show_in(scheme, page, shot)
            page.screenshot(path=FOLDER / f"{label}-{scheme}.png", full_page=shot.whole)
    for scheme, rules in SCHEMES.items():
        _show_in(scheme, page, shot)
        faults += [f"{scheme}: {fault}" for fault in (*page.evaluate(CHECKS), *violations_of(page, only=rules))]
    return faults


def _show_in(scheme: Scheme, page: Page, shot: Shot) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    if shot.path.startswith("/admin/"):
        # Unfold reads the color scheme when a page loads.
        page.reload()
        page.wait_for_timeout(SETTLE_MS)


def _split(shots: Sequence[Shot]) -> list[list[Shot]]:
    """Split in two: a browser uses one processor. The pages of a role keep their order, since some of them write."""
    parts: list[list[Shot]] = [[], []]
    for shot in shots:
        parts[shot.role == BUSIEST_ROLE].append(shot)
    return parts


def keep_readme_pictures() -> None:
    """Copy the wide, light screenshots for the README. Only run by `python -m tests.shots readme`."""
    for picture in FOLDER.glob("readme-*-1280-light.png"):
        name = picture.name.removeprefix("readme-").removesuffix("-1280-light.png")
        shutil.copyfile(picture, README_FOLDER / f"{name}.png")


def _read(arguments: Sequence[str]) -> Namespace:
    parser = ArgumentParser(prog="python -m tests.shots", description="Take and check screenshots of pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginning of a screenshot's name; by default all")
    parser.add_argument("--check", action="store_true", help="only check the pages")
    parser.add_argument("--width", type=int, action="append", metavar="PX", help="width of the window, repeatable")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Take the screenshots and print every fault; return 1 if there is any. With `--check` there are no screenshots."""
    options = _read(arguments)
    only_check, wanted = options.check, options.names
    widths = options.width or ([CHECKED_WIDTH] if only_check else [*WIDTHS])
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        replace_runs()
        if not only_check:
            # Its figures are in the pictures of health.
            call_command("repair")
        scene = arrange_scene(Path(folder))
        with (
            serve(Path(folder)) as site,
            serve_only_pages(Path(folder), CASSANDRA_PORT="1", REDIS_URL=site.environ["REDIS_URL"]) as no_cassandra,
            serve_only_pages(Path(folder), DATABASE_URL=NOWHERE, SECRET_KEY="of-the-pictures") as no_postgres,
            serve_only_pages(Path(folder), SECOND_FACTOR_ROLES="moderator") as strict,
        ):
            fake_heartbeats(site)
            fill_lists(site)
            show_activity(site, scene.neighbours, raided=scene.raided)
            sites = {"": site, "no cassandra": no_cassandra, "no postgres": no_postgres, "strict": strict}
            take = partial(take_shots, sites, scene, widths=widths, only_check=only_check)
            shots = [shot for shot in list_shots(scene) if not wanted or shot.name.startswith(tuple(wanted))]
            # What the pages of one role do shows on those of others, so not in pictures.
            parts = _split(shots) if only_check else [shots]
            # Playwright's event loop and Django's connections cannot share a thread.
            with ThreadPoolExecutor(len(parts)) as threads:
                faults = [*chain.from_iterable(threads.map(take, parts))]
        finish_maintenance_scene(scene.maintenance)
        finish_running_purge(scene.running)
    if wanted == ["readme"]:
        keep_readme_pictures()
    where = "" if only_check else f" The screenshots are in {FOLDER.relative_to(settings.BASE_DIR)}."
    print(f"{len(faults)} faults found.{where}" if faults else f"No faults found.{where}")
    return 1 if faults else 0
