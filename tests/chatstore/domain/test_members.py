"""Members of guilds as a gateway passes them: what is refused, and what replaces what."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatstore.domain.errors import BadInput
from chatstore.domain.members import (
    MAX_ROLES,
    Member,
    MemberRole,
    check_icon_url,
    check_member,
    roles_as_json,
    roles_from_json,
)

NOW = dt.datetime(2026, 5, 3, 12, tzinfo=dt.UTC)
CREW = MemberRole("Crew", "#1ac2b5")

members = st.builds(
    Member,
    st.just(7),
    st.none() | st.integers(0, 5).map(lambda days: NOW - dt.timedelta(days=days)),
    st.none() | st.lists(st.sampled_from([CREW, MemberRole("Captain")]), max_size=2).map(tuple),
)


@pytest.mark.parametrize(
    "wrong",
    [
        Member(2**63),
        Member(True),
        Member(7, joined_at=NOW.replace(tzinfo=None)),
        Member(7, joined_at=NOW + dt.timedelta(hours=1)),
        Member(7, joined_at=dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14)))),
        Member(7, roles=(CREW,) * (MAX_ROLES + 1)),
        Member(7, roles=(MemberRole(" "),)),
        Member(7, roles=(MemberRole("a\x00b"),)),
        Member(7, roles=(MemberRole("\ud800"),)),
        Member(7, roles=(MemberRole("x" * 101),)),
        Member(7, roles=(MemberRole("Crew", "red"),)),
        Member(7, roles=(MemberRole("Crew", "#12345"),)),
    ],
)
def test_a_member_that_cannot_be_stored_is_refused(wrong: Member) -> None:
    with pytest.raises(BadInput):
        check_member(wrong, now=NOW)


@pytest.mark.parametrize("roles", ["Crew", ["Crew"], ("Crew",), ({"name": "Crew"},)])
def test_roles_of_another_type_are_refused(roles: Any) -> None:
    with pytest.raises(BadInput):
        check_member(Member(7, roles=roles), now=NOW)


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.example/a.png",
        "javascript:alert(1)",
        "https://a b",
        "https://a\n",
        "https://ä.example",
        7,
        "x" * 501,
    ],
)
def test_an_icon_has_an_https_url(url: Any) -> None:
    with pytest.raises(BadInput):
        check_icon_url(url)
    assert check_icon_url("https://cdn.example/icons/1/a.png?size=512")
    assert check_icon_url("") == ""


@given(st.lists(members, min_size=1, max_size=5))
def test_the_newest_join_is_known_in_any_order_and_what_is_unknown_replaces_nothing(
    seen: list[Member],
) -> None:
    known = None
    for member in seen:
        known = member.with_earlier(known)
    assert known is not None
    joins = [member.joined_at for member in seen if member.joined_at is not None]
    assert known.joined_at == max(joins, default=None)
    assert known.roles == next((member.roles for member in reversed(seen) if member.roles is not None), None)


def test_roles_are_read_as_they_were_stored() -> None:
    assert roles_from_json(roles_as_json([CREW, MemberRole("Guest")])) == (CREW, MemberRole("Guest"))
    assert roles_from_json(None) == ()
