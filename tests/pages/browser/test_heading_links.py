"""The headings of a list's lines that are links look like links, everywhere alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.serving import browse

CSS = Path(__file__).parents[3] / "moderation/static/moderation/app.css"

LINES = """
<ul>
  <li class="purge-line"><span><a class="title" href="#">Purge by Mona</a> · deleted</span></li>
  <li class="purge-line"><span class="spread"><a class="title" href="#">Probe</a></span></li>
  <li class="board-line"><span class="spread"><a class="title" href="#">Repair</a></span></li>
</ul>
<table class="jobs"><tr><th scope="row"><a class="title" href="#">Repair</a></th></tr></table>
<p class="purge-line"><span class="title">Rewrite of the bucket</span></p>"""

READ_LOOK = """titles => titles.map(title => {
  const style = getComputedStyle(title)
  return [style.textDecorationLine, style.textDecorationColor, style.color, style.fontWeight].join(" ")
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_of_headings_are_underlined_and_look_alike(scheme: str) -> None:
    with browse() as browser:
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_content(LINES)
        page.add_style_tag(content=CSS.read_text())
        links = page.locator("a.title")
        looks = links.evaluate_all(READ_LOOK)
        assert len(looks) == 4
        assert len(set(looks)) == 1
        assert looks[0].startswith("underline ")
        (other,) = page.locator("span.title").evaluate_all(READ_LOOK)
        assert other.startswith("none ")
        edge = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--control')")
        page.evaluate("color => { document.body.style.color = color }", edge)
        quiet = page.evaluate("getComputedStyle(document.body).color")
        assert quiet in looks[0]
        links.first.hover()
        assert quiet not in links.evaluate_all(READ_LOOK)[0]
