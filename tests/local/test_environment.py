"""pip's settings are passed on to uv, which downloads from the same sources with the same certificates."""

import re
from pathlib import Path

from devstack.environment import LOCK, UV_LOCK, find_pip, translate_settings


def test_pip_s_variables_become_uv_s() -> None:
    environ = {"PIP_INDEX_URL": "https://packages.example/simple", "PIP_FIND_LINKS": "/one /two", "PIP_CERT": "/ca.pem"}
    translated = translate_settings([], environ)
    assert translated == environ | {
        "UV_DEFAULT_INDEX": "https://packages.example/simple",
        "UV_FIND_LINKS": "/one,/two",
        "SSL_CERT_FILE": "/ca.pem",
    }


def test_pip_s_files_count_below_its_variables_and_the_later_file_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[global]\nindex-url = https://first.example\ncert = /first.pem\n")
    second.write_text("[global]\ncert = /second.pem\n[install]\nfind-links =\n    /a\n    /b\nno-index = yes\n")
    translated = translate_settings([first, second, tmp_path / "none"], {"PIP_NO_INDEX": "0"})
    assert translated["UV_DEFAULT_INDEX"] == "https://first.example"
    assert translated["SSL_CERT_FILE"] == "/second.pem"
    assert translated["UV_FIND_LINKS"] == "/a,/b"
    assert translated["UV_NO_INDEX"] == "0"


def test_uv_s_own_settings_win() -> None:
    environ = {"PIP_CERT": "/pip.pem", "SSL_CERT_FILE": "/uv.pem", "CURL_CA_BUNDLE": "/curl.pem"}
    assert translate_settings([], environ)["SSL_CERT_FILE"] == "/uv.pem"
    assert translate_settings([], {"CURL_CA_BUNDLE": "/curl.pem"})["SSL_CERT_FILE"] == "/curl.pem"


def test_every_locked_package_has_hashes_and_no_lock_names_an_index() -> None:
    for lock in (LOCK, UV_LOCK):
        text = lock.read_text()
        packages = re.split(r"\n(?=\S)", text.strip())
        assert packages
        assert all("--hash=sha256:" in package for package in packages)
        assert "://" not in text


def test_a_pip_is_there_to_fetch_uv() -> None:
    assert find_pip()[-1].endswith("pip")
