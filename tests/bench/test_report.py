"""The report of the bench and the selection of parts, tested with parts that measure nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatstore.models.users import User
from tests.bench.__main__ import read_options
from tests.bench.channel_pool import ChannelPool
from tests.bench.parts import list_parts
from tests.bench.report import BOUNDS, PARTS, Figures, Part, Report, run_parts, select_parts
from tests.bench.table import ROWS, table_of


def read(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def make_report(out: Path, *parts: Part) -> Report:
    report = Report(out, head={"size": 20}, parts=[part.name for part in parts])
    report.write()
    return report


def make_part(name: str, *figures: tuple[str, float]) -> Part:
    return Part(name, tuple(key for key, _ in figures), lambda: iter(figures))


def fail_with(error: BaseException, *figures: tuple[str, float]) -> Figures:
    yield from figures
    raise error


def test_the_file_is_written_after_every_part(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    seen: list[dict[str, Any]] = []

    def read_report() -> Figures:
        seen.append(read(out))
        yield "second_figure", 2.0

    parts = [make_part("first", ("first_figure", 1.23456)), Part("second", ("second_figure",), read_report)]
    assert run_parts(parts, make_report(out, *parts)) == 0
    assert seen[0]["first_figure"] == 1.235
    assert seen[0]["missing"] == ["second"]
    assert "second_figure" not in seen[0]
    assert read(out)["second_figure"] == 2.0
    assert read(out)["missing"] == []
    assert set(read(out)["seconds"]) == {"first", "second"}
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_a_failing_part_is_recorded_and_the_others_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bench.json"
    parts = [
        Part("broken", ("early", "late"), lambda: fail_with(ValueError("a node is away"), ("early", 1.0))),
        make_part("whole", ("figure", 3.0)),
    ]
    recovered: list[bool] = []
    assert run_parts(parts, make_report(out, *parts), recover=lambda: recovered.append(True)) == 1
    assert recovered == [True]
    assert read(out)["failed"] == {"broken": "ValueError: a node is away"}
    assert read(out)["early"] == 1.0
    assert read(out)["figure"] == 3.0
    printed = capsys.readouterr()
    assert "broken: FAILED" in printed.out
    assert "a node is away" in printed.err


def test_an_interrupted_bench_leaves_valid_json(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    out.write_text('{"purge_vs_row_deletes": 9, "from": "an older bench"}')

    parts = [
        make_part("first", ("figure", 1.0)),
        Part("stopped", (), lambda: fail_with(KeyboardInterrupt())),
        make_part("last"),
    ]
    with pytest.raises(KeyboardInterrupt):
        run_parts(parts, make_report(out, *parts))
    assert read(out)["figure"] == 1.0
    assert read(out)["missing"] == ["stopped", "last"]
    assert "from" not in read(out)


def test_a_part_measures_what_it_declares(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    part = Part("forgetful", ("one", "other"), lambda: iter([("one", 1.0)]))
    assert run_parts([part], make_report(out, part)) == 1
    assert "other" in read(out)["failed"]["forgetful"]


def test_every_bound_belongs_to_a_figure_of_one_part() -> None:
    parts = list_parts(ChannelPool(User(), 1_000), runs=1)
    declared = [key for part in parts for key in part.figures]
    assert BOUNDS.keys() <= set(declared)
    assert len(declared) == len(set(declared))


def test_only_selects_parts_in_their_order() -> None:
    parts = list_parts(ChannelPool(User(), 1_000), runs=1)
    everything, some = read_options([]), read_options(["--only", "import", "purge", "--runs", "1"])
    assert [part.name for part in select_parts(parts, everything.only)] == list(PARTS)
    assert [part.name for part in select_parts(parts, some.only)] == ["purge", "import"]
    with pytest.raises(SystemExit):
        read_options(["--only", "lunch"])


def test_the_table_names_every_bound_and_what_was_missed() -> None:
    assert BOUNDS.keys() - {key for _, _, key in ROWS} == {"twenty_moderators_confirmed_seconds"}
    lines = list(table_of({"purge_vs_row_deletes": 1.941, "undo_vs_insert": 0.83, "purge_vs_model_deletes": 155.4}))
    assert [line.split("|")[2:4] for line in lines[2:]] == [
        [" 1.94 × the speed ", " at least 2: missed "],
        [" 155 × the speed ", "  "],
        [" 0.83 × the speed ", " at least 0.7 "],
    ]
