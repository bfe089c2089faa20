"""Configuration of Sphinx. `make docs` builds the site without any network access."""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

project = "Chatstore"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True
# Every heading down to the third level can be linked to; a link to a missing heading is a warning, and so an error.
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = f"Chatstore {release}"
# No footer with a copyright holder: the licence names none.
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

TOP_LEVEL_PAGES = {
    "architecture": "ARCHITECTURE.md",
    "changelog": "CHANGELOG.md",
    "code-of-conduct": "CODE_OF_CONDUCT.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
}
"""Pages of the site whose text is a file of the repository's top level."""


def read_top_level_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the text of such a page by the file's, with its links adapted to the site."""
    if docname not in TOP_LEVEL_PAGES:
        return
    file = ROOT / TOP_LEVEL_PAGES[docname]
    app.env.note_dependency(str(file))
    text = file.read_text(encoding="utf-8").replace("](docs/", "](").replace("[Apache-2.0](LICENSE)", "Apache-2.0")
    for name, other in TOP_LEVEL_PAGES.items():
        text = text.replace(f"]({other}", f"]({name}.md")
    source[0] = text


def setup(app: Sphinx) -> None:
    """Register the handler above."""
    app.connect("source-read", read_top_level_page)
