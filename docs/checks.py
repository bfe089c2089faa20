"""Check the documentation against the code: links, paths, identifiers, settings, commands, metrics and tables.

Reads files only and imports nothing of the project, so it needs neither servers nor settings. Prints one line per
error and exits with 1 if there is any. `make docs` runs it before Sphinx.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
NAME_IN_PATH = re.compile(r"`(\w+)` in\s+`([\w./-]+\.py)`")
REPOSITORY_PATH = re.compile(r"(?:chatstore|moderation|devstack|config|tests|templates|docs|\.github|\.ci)/[\w./-]*")
READ_SETTING = re.compile(r"read_(?:text|choices?|int|float|flag|names|secret|replication|pairs)\(\s*\"([A-Z_]+)\"")
READ_TLS = re.compile(r"read_tls\(\s*\"([A-Z_]+)\"")
OPTION = re.compile(r"\"(--[a-z][a-z-]*)\"")
METRIC = re.compile(r"\"(chatstore_[a-z_]+)\"")
TABLE = re.compile(r"__table_name__ = \"(\w+)\"")
IDENTIFIER = re.compile(r"_?[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}")
WORD = re.compile(r"\w+")
MODEL = re.compile(r"^class (?!Abstract)(\w+)\((?:models\.Model|Abstract\w+)\)", re.MULTILINE)
PUBLIC_NAME = re.compile(r"^    \"(\w+)\",$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| `([A-Z_]+)`", re.MULTILINE)
LEVEL_2 = re.compile(r"^## `?(\w+)`?", re.MULTILINE)

# Settings of a development machine: read by the local stack, not by the settings module.
LOCAL_SETTINGS = {"CHATSTORE_STACK", "CHATSTORE_LOCAL"}
LINE_LENGTH = 120
# Identifiers of Cassandra.
FOREIGN_NAMES = {"READ_TOO_MANY_TOMBSTONES", "commitlog_sync_period"}
# Pages with identifiers of the past, and pages with names that the code composes, which have checks of their own.
UNCHECKED_IDENTIFIERS = {
    "CHANGELOG.md",
    "docs/upgrading.md",
    "docs/reference/metrics.md",
    "docs/reference/settings.md",
}


def list_documents() -> list[Path]:
    """Return the Markdown files of the top level and of docs/."""
    pages = (path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    return [*sorted(ROOT.glob("*.md")), *sorted(pages)]


def check_links(document: Path, text: str) -> Iterator[str]:
    """Yield an error for every relative link whose file does not exist."""
    for match in LINK.finditer(text):
        if not (document.parent / match[1]).exists():
            yield f"broken link: {match[1]}"


def check_paths(text: str) -> Iterator[str]:
    """Yield an error for every path of the repository in backticks that does not exist."""
    for match in CODE.finditer(text):
        if REPOSITORY_PATH.fullmatch(match[1]) and not (ROOT / match[1]).exists():
            yield f"no such file: {match[1]}"


def check_definitions(text: str) -> Iterator[str]:
    """Yield an error for every "`name` in `path`" whose file does not define the function, class or constant."""
    for name, path in NAME_IN_PATH.findall(text):
        file = ROOT / path
        if not file.is_file():
            continue  # check_paths reports it
        code = file.read_text(encoding="utf-8")
        if not re.search(rf"^(?: {{4}})?(?:def|class) {name}\b|^{name}\b[^=\n]*=", code, re.MULTILINE):
            yield f"{path} does not define {name}"


def read_words() -> set[str]:
    """Return every word of the code, its templates and its configuration."""
    folders = ("chatstore", "moderation", "devstack", "tests", "templates")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".html"}]
    files += [ROOT / "Makefile", ROOT / "pyproject.toml"]
    return {word for path in files for word in WORD.findall(path.read_text(encoding="utf-8"))}


def check_identifiers(text: str, words: set[str]) -> Iterator[str]:
    """Yield an error for every identifier in backticks that occurs nowhere in the code."""
    for match in CODE.finditer(text):
        name = match[1].partition("(")[0].removesuffix("_FILE")
        if IDENTIFIER.fullmatch(name) and name not in words | FOREIGN_NAMES:
            yield f"not in the code: {match[1]}"


def check_line_lengths(text: str) -> Iterator[str]:
    """Yield an error for every long line outside tables."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LINE_LENGTH and not line.startswith("|"):
            yield f"line {number} has {len(line)} characters"


def check_settings() -> Iterator[str]:
    """Yield an error for every setting that is read and not documented, or documented and not read."""
    code = (ROOT / "chatstore" / "settings.py").read_text(encoding="utf-8")
    read = set(READ_SETTING.findall(code)) | LOCAL_SETTINGS
    for prefix in READ_TLS.findall(code):
        read |= {f"{prefix}_{end}" for end in ("CA", "CERT", "KEY", "CHECK_HOSTNAME")}
    documented = set(FIRST_CELL.findall((REFERENCE / "settings.md").read_text(encoding="utf-8")))
    yield from (f"setting without documentation: {name}" for name in sorted(read - documented))
    yield from (f"documented setting that is not read: {name}" for name in sorted(documented - read))


def check_commands() -> Iterator[str]:
    """Yield an error for every management command or option that is not documented, and for unknown commands."""
    page = (REFERENCE / "commands.md").read_text(encoding="utf-8")
    documented = set(LEVEL_2.findall(page))
    files = [path for path in ROOT.glob("*/management/commands/*.py") if not path.stem.startswith("_")]
    for path in sorted(files):
        if path.stem not in documented:
            yield f"command without documentation: {path.stem}"
        for option in OPTION.findall(path.read_text(encoding="utf-8")):
            if f"`{option}" not in page:
                yield f"option without documentation: {path.stem} {option}"
    for name in sorted(documented - {path.stem for path in files} - {"sync_cassandra"}):
        yield f"documented command that does not exist: {name}"


def check_names(page: str, pattern: re.Pattern[str], files: list[Path], *, what: str) -> Iterator[str]:
    """Yield an error for every name that the pattern finds in the files and that the page does not mention."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    names = {name for path in files for name in pattern.findall(path.read_text(encoding="utf-8"))}
    if not names:
        yield f"no {what} found in the code"
    yield from (f"{what} without documentation: {name}" for name in sorted(names) if not re.search(rf"`{name}\b", text))


def check_everything() -> Iterator[str]:
    """Yield all errors, each with the file it was found in."""
    words = read_words()
    for document in list_documents():
        text = document.read_text(encoding="utf-8")
        name = document.relative_to(ROOT)
        for check in (check_paths, check_definitions, check_line_lengths):
            yield from (f"{name}: {error}" for error in check(text))
        yield from (f"{name}: {error}" for error in check_links(document, text))
        if str(name) not in UNCHECKED_IDENTIFIERS:
            yield from (f"{name}: {error}" for error in check_identifiers(text, words))
    metrics = sorted(ROOT.glob("*/operations/**/metrics.py"))
    models = sorted(ROOT.glob("*/models/*.py"))
    yield from (f"docs/reference/settings.md: {error}" for error in check_settings())
    yield from (f"docs/reference/commands.md: {error}" for error in check_commands())
    yield from (
        f"docs/reference/metrics.md: {error}" for error in check_names("metrics.md", METRIC, metrics, what="metric")
    )
    gateway = [ROOT / "chatstore" / "gateway.py"]
    yield from (
        f"docs/reference/gateway-api.md: {error}"
        for error in check_names("gateway-api.md", PUBLIC_NAME, gateway, what="public name")
    )
    yield from (f"docs/reference/tables.md: {error}" for error in check_names("tables.md", TABLE, models, what="table"))
    yield from (f"docs/reference/tables.md: {error}" for error in check_names("tables.md", MODEL, models, what="model"))


if __name__ == "__main__":
    errors = list(check_everything())
    print(*errors, sep="\n", end="\n" if errors else "", file=sys.stderr)
    sys.exit(1 if errors else 0)
