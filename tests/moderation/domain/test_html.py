"""Lists that functions build: every value is escaped, and URLs are those of the routes."""

import pytest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st

from moderation.presentation.html import fill, fill_each, fill_named, join
from moderation.presentation.page_urls import url_of

texts = st.text(st.sampled_from("<>&\"'{}%a é\u202e"), max_size=12)


@given(texts, texts)
def test_values_are_escaped_as_django_escapes_them(one: str, other: str) -> None:
    expected = format_html('<a title="{}">{}</a>', one, other)
    assert fill('<a title="{}">{}</a>', one, other) == expected
    assert fill_each('<a title="{}">{}</a>', [(one, other)]) == expected
    assert fill_named('<a title="%(one)s">%(other)s</a>', one=one, other=other) == expected
    assert join((one, other)) == format_html("{}{}", one, other)


@given(texts)
def test_what_is_html_already_is_not_escaped_again(text: str) -> None:
    inner = fill("<b>{}</b>", text)
    assert fill("<i>{}</i>", inner) == f"<i>{inner}</i>"
    assert isinstance(join((inner, text)), SafeString)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("timeline", (1,)),
        ("timeline", (-5,)),
        ("message", (2**62, 2**63 - 1)),
        ("message", (11111111111111111, 22222222222222222)),
        ("message", (22222222222222222, 11111111111111111)),
        ("user", (3,)),
        ("purge", (4,)),
    ],
)
def test_urls_are_those_of_the_routes(name: str, ids: tuple[int, ...]) -> None:
    assert url_of(name, *ids) == reverse(name, args=ids)
