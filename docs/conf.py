"""Configuration of Sphinx. `make docs` builds the site without any network access."""

import tomllib
from pathlib import Path

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
html_title = f"Chatstore {release}"
# No footer with the name of an author or a copyright holder: the licence names none.
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
