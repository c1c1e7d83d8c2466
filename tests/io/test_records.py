"""Records in a file."""

import pytest

from islab.io.records import append_record, read_records


def test_what_is_added_is_read(tmp_path):
    for number in range(3):
        append_record(tmp_path / "a", {"number": number})
    assert [record["number"] for record in read_records(tmp_path / "a")] == [0, 1, 2]


def test_a_line_cut_short_is_left_out_and_spoils_no_other(tmp_path):
    (tmp_path / "a").write_text('{"number": 0}\n{"num')
    append_record(tmp_path / "a", {"number": 2})
    assert read_records(tmp_path / "a") == [{"number": 0}, {"number": 2}]


def test_no_file_holds_no_records(tmp_path):
    assert read_records(tmp_path / "a") == []


def test_numbers_that_json_does_not_have_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_record(tmp_path / "a", {"number": float("nan")})
