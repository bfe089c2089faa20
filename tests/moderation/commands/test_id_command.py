"""`manage.py id` decodes an id and says what it names."""

import io

import pytest
from django.core.management import CommandError, call_command

from chatstore.domain.snowflakes import decode_snowflake
from chatstore.models.users import User
from tests.moderation.channels import everything, make_channel, old_ids, preview, write


def decode(text: str) -> str:
    out = io.StringIO()
    call_command("id", text, stdout=out)
    return out.getvalue()


def test_an_id_is_decoded_as_either_kind() -> None:
    lines = decode("2217813737473025833").splitlines()
    assert lines[0] == "row id     2019-05-19 00:00:00.000+00:00, shard 1001, sequence 809"
    expected = decode_snowflake(2_217_813_737_473_025_833)
    assert lines[1].startswith(f"snowflake  {expected.time.isoformat(' ', 'milliseconds')}, worker {expected.worker}, ")
    assert lines[1].endswith(", in the future")


def test_what_an_id_names_is_printed(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(1))
    purge = preview(mona, everything(channel))
    assert f"names      purge: {purge}" in decode(str(purge.pk))
    assert f"names      channel: {channel}" in decode(str(channel.pk))


@pytest.mark.parametrize("text", ["general", "9223372036854775808"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not an ID") as refused:
        decode(text)
    assert refused.value.returncode == 2
