"""Wherever a reason is asked for, the field is the same and templates fill it in."""

import re
from pathlib import Path

import pytest
from django.conf import settings as configured
from django.template import engines
from pytest_django import Settings

pytestmark = pytest.mark.unit

TEMPLATES = Path(configured.BASE_DIR) / "templates"


def render(kind: str, **context: str) -> str:
    source = "{% load reasons %}{% reason_field kind 'Such as' value=value %}"
    return str(engines["django"].from_string(source).render({"kind": kind, "value": "", **context}))


def offered(html: str) -> list[str]:
    return re.findall(r'data-fill="reason">([^<]*)</button>', html)


def test_a_purge_has_templates_that_the_installation_can_replace(settings: Settings) -> None:
    assert offered(render("purge")) == ["Raid clean-up", "Spam", "Request of the author", "Illegal content"]
    settings.REASON_TEMPLATES = ["Rule 3", "<b>Rule 4"]
    assert offered(render("purge")) == ["Rule 3", "&lt;b&gt;Rule 4"]
    assert "Rule 3" not in render("undo")


def test_what_was_typed_is_kept_and_escaped() -> None:
    assert ">&lt;/textarea&gt;&lt;b&gt;</textarea>" in render("hold", value="</textarea><b>")


def test_no_template_has_a_required_field_for_a_reason_of_its_own() -> None:
    required = re.compile(r'name="reason"\s+required')
    found = [path.name for path in TEMPLATES.rglob("*.html") if required.search(path.read_text(encoding="utf-8"))]
    assert found == ["_reason.html"]
