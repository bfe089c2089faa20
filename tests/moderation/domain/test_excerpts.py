"""Lists show the beginning of a message without markdown, in one line."""

from __future__ import annotations

import pytest

from moderation.presentation.excerpts import COVERED, Known, unformatted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("### Rota\n- Monday: **Ines**, __Tomás__", "Rota Monday: Ines, Tomás"),
        ("> quoted\nanswer", "quoted answer"),
        ("Tuesday: ||a surprise||", f"Tuesday: {COVERED}"),
        ("||one | two||", COVERED),
        (r"\||open|| covered||", f"||open{COVERED}"),
        (f"||{'long ' * 100}||.", f"{COVERED}."),
        ("<@71> in <#7>, <@72>, <@&5>, <@&9>", "@Victor 71 in #pier, @user 72, @role 5, @Crew"),
        ("a\u202eb", "a\u202eb"),
        ("```\n$ tide --next lisbon\n```", "$ tide --next lisbon"),
        ("2 * 3 is 6 - or is it?", "2 * 3 is 6 - or is it?"),
        ("a_name_of_a_file.py", "a_name_of_a_file.py"),
        ("Swaps: [list](https://harbour.example/rota)", "Swaps: list (harbour.example)"),
        ("[list] (see https://harbour.example/rota)", "[list] (see https://harbour.example/rota)"),
        ("", ""),
    ],
)
def test_marks_are_left_out(text: str, shown: str) -> None:
    assert unformatted(text, Known(users={71: "Victor 71"}, channels={7: "#pier"}, roles={9: "Crew"})) == shown
