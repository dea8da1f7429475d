import pytest

from export.version.folders import versions, write_version


def write(text):
    return lambda folder: (folder / "file").write_text(text)


def test_the_next_number_is_taken_and_none_replaced(tmp_path):
    out = tmp_path / "deep" / "model"
    assert write_version(out, write("a")) == out / "1"
    assert write_version(out, write("b")) == out / "2"
    (out / "7").mkdir()
    (out / "notes").mkdir()
    (out / "9").write_text("a file, not a version")
    assert write_version(out, write("c")) == out / "8"
    assert list(versions(out)) == [1, 2, 7, 8]
    assert [(out / n / "file").read_text() for n in "128"] == ["a", "b", "c"]


def test_a_failed_writing_leaves_nothing(tmp_path):
    def fail(folder):
        (folder / "half").write_text("x")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_version(tmp_path / "model", fail)
    assert list(tmp_path.iterdir()) == []
    write_version(tmp_path / "model", write("a"))
    with pytest.raises(OSError, match="No space"):
        write_version(tmp_path / "model", fail)
    assert [p.name for p in (tmp_path / "model").iterdir()] == ["1"]


def test_nothing_is_seen_before_all_is_written(tmp_path):
    def look(folder):
        write("a")(folder)
        assert versions(tmp_path) == {}
        assert folder.name.startswith(".")

    assert write_version(tmp_path, look).stat().st_mode & 0o777 == 0o755


def test_of_two_that_write_at_once_both_get_a_number(tmp_path):
    def another(folder):
        write("slow")(folder)
        write_version(tmp_path, write("quick"))

    def finish(folder, number):
        (folder / "number").write_text(str(number))

    assert write_version(tmp_path, another, finish) == tmp_path / "2"
    assert (tmp_path / "2" / "number").read_text() == "2"
    assert (tmp_path / "1" / "file").read_text() == "quick"


def test_who_takes_a_number_first_keeps_it(tmp_path):
    def finish(folder, number):
        (folder / "number").write_text(str(number))
        if number == 1:
            write_version(tmp_path, write("quick"))

    assert write_version(tmp_path, write("slow"), finish) == tmp_path / "2"
    assert (tmp_path / "2" / "number").read_text() == "2"
    assert (tmp_path / "1" / "file").read_text() == "quick"
