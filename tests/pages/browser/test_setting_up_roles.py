"""An administrator sets up three servers with six people as README's "Roles" says, within ten minutes by hand.

Counts clicks and filled-in fields, and prints the minutes that they take a person who reads README first.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Locator, Page, expect

from chatstore.models import Channel, Guild
from tests.chatstore.channels import fresh_id
from tests.pages.second_factors import PASSWORD
from tests.pages.serving import Site, browse, create_account, sign_in
from tests.planted import plant

READING_SECONDS = 120
"""The section of README, and the texts of the pages."""

CLICK_SECONDS, FIELD_SECONDS = 4, 7
"""A click with finding its target and waiting for the page; a field with finding it and typing, or pasting an ID."""

MAX_SECONDS = 600

LAST_DAY = "2040-03-31"


@dataclass(slots=True)
class Hands:
    """What the administrator does by hand."""

    clicks: int = 0
    fields: int = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def fill(self, target: Locator, text: str) -> None:
        target.fill(text)
        self.fields += 1

    def choose(self, target: Locator, label: str) -> None:
        target.select_option(label=label)
        self.fields += 1

    @property
    def seconds(self) -> int:
        """The time that all of it takes."""
        return READING_SECONDS + CLICK_SECONDS * self.clicks + FIELD_SECONDS * self.fields


@dataclass(frozen=True, slots=True)
class World:
    """Unique names of servers, channels by server, and people."""

    servers: dict[str, dict[str, int]]
    mia: str
    max: str
    lea: str
    ann: str
    oli: str
    cas: str


def name_world() -> World:
    mark = secrets.token_hex(3)
    servers = {
        f"{server} {mark}": {f"{channel}-{mark}": fresh_id() for channel in channels}
        for server, channels in (
            ("Harbour", ("pier",)),
            ("Quarry", ("stone",)),
            ("Orchard", ("support", "orchard-staff")),
        )
    }
    return World(servers, *(f"{name}-{mark}" for name in ("mia", "max", "lea", "ann", "oli", "cas")))


def register_servers(page: Page, hands: Hands, world: World) -> None:
    """Register servers and their channels under "Admin"."""
    hands.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Admin"))
    hands.click(page.locator('a[href="/admin/chatstore/guild/add/"]').first)
    for number, (name, channels) in enumerate(world.servers.items()):
        hands.fill(page.locator("#id_id"), str(fresh_id()))
        hands.fill(page.locator("#id_name"), name)
        hands.fill(page.get_by_label("New channels"), "\n".join(f"{pk} {channel}" for channel, pk in channels.items()))
        is_last = number == len(world.servers) - 1
        hands.click(page.locator('[name="_save"]' if is_last else '[name="_addanother"]'))
    expect(page.get_by_text("was added successfully")).to_be_visible()
    hands.click(page.get_by_text("Back to the channels"))
    expect(page.locator("details.account")).to_be_visible()


def invite(
    page: Page, hands: Hands, people: str, role: str, *, server: str = "", channels: str = "", until: str = ""
) -> list[str]:
    """Invite people by the form, copy and return their links, and open the form again."""
    form = page.get_by_role("region", name="Invite new people")
    hands.fill(form.get_by_label("People"), people)
    hands.choose(form.get_by_label("Role"), role)
    for label, text in (("Server", server), ("Only in these channels", channels), ("Last day", until)):
        if text:
            hands.fill(form.get_by_label(label), text)
    hands.click(form.get_by_role("button", name="Create invitations"))
    shown = page.locator(".invitation-link")
    expect(shown).to_have_count(len(people.splitlines()))
    for button in shown.get_by_role("button", name="Copy").all():
        hands.click(button)
    links = shown.locator("code").all_inner_texts()
    for link in links:
        plant("token of an invitation", link.partition("token=")[2])
    hands.click(page.get_by_role("link", name="Invite more people"))
    return links


def set_up(page: Page, hands: Hands, world: World) -> dict[str, str]:
    """Invite the six people and set the limits of one server; return the links by person."""
    harbour, quarry, orchard = world.servers
    hands.click(page.locator("details.account summary"))
    hands.click(page.locator(".account-menu").get_by_role("link", name="Roles"))
    # Sorted by name, as the links are.
    both = sorted((world.max, world.mia))
    links = dict(zip(both, invite(page, hands, "\n".join(both), "Moderator", server=harbour), strict=True))
    (links[world.lea],) = invite(page, hands, world.lea, "Lead", server=quarry, until=LAST_DAY)
    (links[world.ann],) = invite(page, hands, world.ann, "Auditor", server=orchard)
    (links[world.oli],) = invite(page, hands, world.oli, "Operator")
    support, _staff_channel = world.servers[orchard]
    (links[world.cas],) = invite(page, hands, world.cas, "Moderator", server=orchard, channels=support)
    give = page.get_by_role("region", name="Give a role")
    hands.fill(give.get_by_label("Person"), world.max)
    hands.choose(give.get_by_label("Role"), "Moderator")
    hands.fill(give.get_by_label("Server"), quarry)
    hands.click(give.get_by_role("button", name="Give role"))
    hands.click(page.get_by_role("link", name="Limits"))
    limits = page.get_by_role("region", name="Set limits")
    hands.choose(limits.get_by_label("Role"), "Moderator")
    hands.fill(limits.get_by_label("Server"), harbour)
    for label, number in (("Messages per purge without approval", "500"), ("Purges per hour", "20")):
        hands.fill(limits.get_by_label(label), number)
    hands.click(limits.get_by_role("button", name="Save limits"))
    expect(limits.get_by_label("Purges per hour")).to_have_value("")
    return links


@contextmanager
def accept(browser: Browser, link: str) -> Iterator[Page]:
    """Open a link in a browser of its owner, set the password, and yield Home."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Set password and sign in").click()
    expect(page.locator("details.account")).to_be_visible()
    yield page
    context.close()


def status_of(page: Page, path: str) -> int:
    return page.request.get(path, max_redirects=0).status


def test_three_servers_with_six_people_are_set_up_within_ten_minutes(site: Site) -> None:
    world, hands, ada = name_world(), Hands(), create_account("ada")
    with browse() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        sign_in(page, site, ada)
        hands.clicks, hands.fields = hands.clicks + 1, hands.fields + 2
        register_servers(page, hands, world)
        links = set_up(page, hands, world)
        print(f"{hands.clicks} clicks, {hands.fields} fields, about {hands.seconds / 60:.1f} minutes by hand")

        listed = page.request.get(f"{site.url}/roles/?account={world.max}").text()
        assert [server for server in world.servers if re.search(rf"<bdi>{server}</bdi>", listed)] == [*world.servers][
            :2
        ]
        everything = {pk: server for server, channels in world.servers.items() for pk in channels.values()}
        harbour, quarry, orchard = world.servers
        channels_of = {
            world.mia: {harbour}, world.max: {harbour, quarry}, world.lea: {quarry}, world.ann: {orchard},
            world.oli: {harbour, quarry, orchard},
        }  # fmt: skip
        support, _staff_channel = world.servers[orchard].values()
        for person, link in links.items():
            with accept(browser, link) as own:
                seen = {pk for pk in everything if status_of(own, f"{site.url}/channels/{pk}/") == 200}
                hidden = {status_of(own, f"{site.url}/channels/{pk}/") for pk in everything.keys() - seen}
                assert hidden <= {404}
                if person == world.cas:
                    assert seen == {support}
                else:
                    assert {everything[pk] for pk in seen} == channels_of[person]
                assert (status_of(own, f"{site.url}/audit/") == 200) is (person in (world.lea, world.ann))
                assert (status_of(own, f"{site.url}/health/") == 200) is (person == world.oli)
                may_delete = status_of(own, f"{site.url}/delete/") == 200
                assert may_delete is (person in (world.mia, world.max, world.lea, world.cas))
                assert status_of(own, f"{site.url}/roles/") == (200 if person == world.ann else 403)
    assert hands.seconds <= MAX_SECONDS


def test_they_are_set_up_by_command_too(site: Site) -> None:
    world = name_world()
    (harbour, quarry, orchard) = world.servers
    for name, channels in world.servers.items():
        guild = Guild.objects.create(pk=fresh_id(), name=name)
        Channel.objects.bulk_create(Channel(pk=pk, guild=guild, name=channel) for channel, pk in channels.items())
    support, _staff_channel = world.servers[orchard]
    for person, *role in (
        (world.mia, "moderator", "--guild", harbour),
        (world.max, "moderator", "--guild", harbour),
        (world.lea, "lead", "--guild", quarry, "--until", LAST_DAY),
        (world.ann, "auditor", "--guild", orchard),
        (world.oli, "operator"),
        (world.cas, "moderator", "--guild", orchard, "--channel", support),
    ):
        assert f"{site.url}/invitation/?token=" in site.manage("invite", person, *role)
    site.manage("role", "give", world.max, "moderator", "--guild", quarry)
    lines = [line for line in site.manage("role", "list").splitlines() if world.mia[4:] in line]
    assert len(lines) == 7
    places = {(words[1], words[2]): words[3] for line in lines if (words := re.split(r"  +", line))}
    assert places[world.cas, "moderator"].endswith(f"({support})")
    assert places[world.oli, "operator"] == "whole installation"
    assert sum(world.max in line for line in lines) == 2
