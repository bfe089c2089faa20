"""The audit of the dependencies finds what is not locked, not as recorded, or known to be vulnerable."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.version import Version

from devstack.dependency_audit import check_advisories, check_installed, lies_between, main, read_lock
from devstack.environment import LOCK

pytestmark = pytest.mark.unit

HASH = f"    --hash=sha256:{'0' * 64}"


def lock(folder: Path, text: str) -> tuple[dict[str, str], list[str]]:
    (folder / "some.lock").write_text(text)
    return read_lock(folder / "some.lock")


def install(folder: Path, name: str, version: str, *, content: str = "x = 1\n") -> Distribution:
    """Make an installed package with one file, whose record is of `x = 1`."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    record = f"{name}.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6\n{info.name}/RECORD,,\n"
    (info / "RECORD").write_text(record)
    (folder / f"{name}.py").write_text(content)
    return Distribution.at(info)


def test_the_lock_of_the_project_is_right_and_installed() -> None:
    locked, problems = read_lock(LOCK)
    assert not problems
    assert "django" in locked
    assert list(check_installed(locked, list(distributions()))) == []


def test_a_package_without_an_exact_version_or_hashes_is_named(tmp_path: Path) -> None:
    text = f"a==1.0 \\\n{HASH}\nb>=2 \\\n{HASH}\nc==1\nd @ file:///d.whl\n--index-url https://index.example\n"
    locked, problems = lock(tmp_path, text)
    assert locked == {"a": "1.0"}
    assert problems == [
        "some.lock: not an exact version: b>=2",
        "some.lock: c has no SHA-256 hashes",
        "some.lock: not an exact version: d @ file:///d.whl",
        "some.lock: not an exact version: --index-url https://index.example",
    ]


def test_a_package_for_other_platforms_is_not_expected(tmp_path: Path) -> None:
    assert lock(tmp_path, f"a==1.0 ; sys_platform == 'nothing' \\\n{HASH}\n") == ({}, [])


def test_what_is_installed_beside_the_lock_is_named(tmp_path: Path) -> None:
    extra, other = install(tmp_path, "extra", "1.0"), install(tmp_path, "other", "2.0")
    assert list(check_installed({"other": "2.1", "gone": "3"}, [extra, other])) == [
        "extra 1.0 is installed, but not locked",
        "gone 3 is locked, but not installed",
        "other 2.0 is installed, but 2.1 is locked",
    ]


def test_an_installed_file_that_was_changed_is_named(tmp_path: Path) -> None:
    changed = install(tmp_path, "thing", "1.0", content="x = 2\n")
    assert list(check_installed({"thing": "1.0"}, [changed])) == ["thing: thing.py was changed"]
    (tmp_path / "thing.py").write_text("x = 1\n")
    assert list(check_installed({"thing": "1.0"}, [changed])) == []


def test_an_advisory_about_a_locked_version_is_named(tmp_path: Path) -> None:
    affected = {"package": {"ecosystem": "PyPI", "name": "Some.Thing"}, "versions": ["1.0"]}
    record = {"id": "TEST-1", "details": "It is\nvulnerable.", "affected": [affected]}
    (tmp_path / "one.json").write_text(json.dumps(record))
    (tmp_path / "two.yaml").write_text(json.dumps(record | {"id": "TEST-2", "withdrawn": "2026-01-01"}))
    (tmp_path / "README.md").write_text("no record")
    assert list(check_advisories({"some-thing": "1.0", "b": "1.0"}, tmp_path)) == [
        "Some.Thing 1.0: TEST-1 It is vulnerable."
    ]
    assert list(check_advisories({"some-thing": "1.1"}, tmp_path)) == []


def test_a_folder_without_advisories_is_a_problem(tmp_path: Path) -> None:
    assert list(check_advisories({"a": "1"}, tmp_path)) == [f"{tmp_path} has no advisories"]


@pytest.mark.parametrize(
    ("version", "is_inside"),
    [("1.9", False), ("2.0", True), ("2.0.3", True), ("2.0.4", False), ("3.0", True), ("3.1", True), ("3.2", False)],
)
def test_a_range_begins_and_ends_at_its_events(version: str, is_inside: bool) -> None:
    events = [{"introduced": "3.0"}, {"introduced": "2.0"}, {"last_affected": "3.1"}, {"fixed": "2.0.4"}]
    assert lies_between(Version(version), events) is is_inside


def test_it_says_that_advisories_were_not_checked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADVISORIES", raising=False)
    assert main() == 0
    assert "advisories not checked" in capsys.readouterr().out
