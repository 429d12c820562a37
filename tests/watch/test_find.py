"""What a layout finds below a watched folder, and what it leaves alone."""

from __future__ import annotations

import os

import pytest

from tracker.config import Folder
from tracker.watch.content import BELIEVED_AGE_NS, content_of
from tracker.watch.find import labels_of, listing, root_of

SECOND = 10**9


def made(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def found(root, layout="*", **folder):
    seen = listing(Folder(path=str(root), layout=layout, **folder), root)
    return {str(item.path.relative_to(root)): item.labels for item in seen.items}


def test_the_last_part_of_a_layout_is_a_profile_be_it_file_or_folder(tmp_path):
    made(tmp_path, "gpt/v1/a.json", "gpt/v1/run2/rank0.json", "gpt/v1/run2/rank1.json", "gpt/notes.txt", "readme")
    said = found(tmp_path, "{workload}/{version}/*")
    assert list(said) == ["gpt/v1/a.json", "gpt/v1/run2"]
    assert {(labels.workload, labels.version) for labels in said.values()} == {("gpt", "v1")}


def test_the_layout_goes_before_the_entries_of_the_folder_and_adds_to_them(tmp_path):
    made(tmp_path, "v2-b64/run")
    layout = "{version}-b{config.batch}/*"
    labels = found(tmp_path, layout, workload="gpt", version="v0", config={"batch": "1", "gpus": "8"})["v2-b64/run"]
    assert (labels.workload, labels.version) == ("gpt", "v2")
    assert labels.configuration == {"batch": "64", "gpus": "8"}


def test_hidden_partial_and_describing_files_are_no_profiles(tmp_path):
    made(tmp_path, ".cache/x", ".lock", "a.json", "a.json.part", "a.json.tracker.json", "tracker.json", "b.part/x")
    assert list(found(tmp_path)) == ["a.json"]


def test_links_are_followed_but_not_in_circles_nor_to_nowhere(tmp_path):
    made(tmp_path / "store", "v1/run")
    made(tmp_path / "watched", "gpt/v0/run")
    (tmp_path / "watched/gpt/v1").symlink_to(tmp_path / "store/v1")
    (tmp_path / "watched/gpt/around").symlink_to(tmp_path / "watched")
    (tmp_path / "watched/gpt/self").symlink_to(tmp_path / "watched/gpt")
    (tmp_path / "watched/gpt/v0/gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "watched/gpt/v0/loop").symlink_to(tmp_path / "watched/gpt/v0/loop")
    assert list(found(tmp_path / "watched", "{workload}/{version}/*")) == ["gpt/v0/run", "gpt/v1/run"]


def test_a_folder_that_is_missing_is_a_problem_and_not_an_empty_one(tmp_path):
    seen = listing(Folder(path="x"), tmp_path / "x")
    assert list(seen.unseen.values()) == [f"{tmp_path}/x: cannot be looked into (No such file or directory)"]
    assert seen.may_hold(tmp_path / "x" / "y")


def test_a_folder_inside_that_cannot_be_read_hides_only_what_is_in_it(tmp_path, monkeypatch):
    made(tmp_path, "bert/v1/a", "gpt/v1/b")
    real = os.listdir

    def refuse(path):
        if str(path).endswith("bert"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "listdir", refuse)
    seen = listing(Folder(path="x", layout="{workload}/{version}/*"), tmp_path)
    assert [item.path.name for item in seen.items] == ["b"]
    assert list(seen.unseen) == [tmp_path / "bert"]
    assert seen.workloads == {"bert", "gpt"}
    assert (seen.may_hold(tmp_path / "bert/v1/a"), seen.may_hold(tmp_path / "gpt/v1/c")) == (True, False)


def test_a_name_that_no_database_can_hold_is_reported(tmp_path):
    made(tmp_path, "a.json")
    (tmp_path / os.fsdecode(b"caf\xe9.json")).write_text("x")
    seen = listing(Folder(path="x"), tmp_path)
    assert [item.path.name for item in seen.items] == ["a.json"]
    assert list(seen.unseen.values()) == [f"{tmp_path}/caf\\udce9.json: the name is no UTF-8; rename it"]


def test_a_name_that_no_database_can_hold_is_known_beside_letters_that_stand_behind_it(tmp_path):
    (tmp_path / "caf\udce9（.json").write_text("x")
    seen = listing(Folder(path="x"), tmp_path)
    assert seen.items == []
    assert list(seen.unseen.values()) == [f"{tmp_path}/caf\\udce9（.json: the name is no UTF-8; rename it"]


def test_names_say_the_same_later_and_nothing_where_the_layout_changed():
    folder = Folder(path="x", layout="{workload}/{version}/*")
    assert labels_of(folder, ("gpt", "v1", "run")).version == "v1"
    assert labels_of(folder, ("gpt", "run")) is None
    assert labels_of(folder, ("gpt", ".v1", "run")) is None


def test_a_relative_folder_starts_at_the_settings_file(tmp_path):
    assert root_of(Folder(path="../p/"), tmp_path / "etc" / "tracker.toml") == tmp_path / "p"
    assert root_of(Folder(path="/p"), tmp_path / "tracker.toml").as_posix() == "/p"
    assert root_of(Folder(path="~nobody-here/p"), tmp_path / "tracker.toml") == tmp_path / "~nobody-here" / "p"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "rank0.json").write_text("longer than before"),
        lambda folder: os.utime(folder / "rank0.json", ns=(1, 1)),
        lambda folder: (folder / "rank1.json").write_text("x"),
        lambda folder: (folder / "rank1.json.part").write_text("x"),
        lambda folder: (folder / "deep" / "er").mkdir(parents=True) or (folder / "deep/er/x").write_text("x"),
        lambda folder: (folder / "rank0.json").rename(folder / "rank2.json"),
        lambda folder: (folder / "tracker.json").write_text("{}"),
    ],
    ids=["grows", "time", "new file", "new part", "deep file", "name", "sidecar"],
)
def test_whatever_changes_in_a_profile_changes_its_content(tmp_path, change):
    made(tmp_path, "run/rank0.json")
    before = content_of(tmp_path / "run")
    change(tmp_path / "run")
    assert content_of(tmp_path / "run").digest != before.digest


def test_hidden_files_and_what_lies_behind_links_to_folders_are_no_content(tmp_path):
    made(tmp_path, "run/rank0.json", "other/x")
    before = content_of(tmp_path / "run")
    (tmp_path / "run/.rank1.json.Xy12").write_text("of rsync")
    (tmp_path / "run/link").symlink_to(tmp_path / "other")
    (tmp_path / "run/around").symlink_to(tmp_path / "run")
    (tmp_path / "run/nowhere").symlink_to(tmp_path / "nowhere")
    assert content_of(tmp_path / "run").digest == before.digest


def test_a_folder_without_a_whole_file_holds_nothing(tmp_path):
    made(tmp_path, "run/rank0.json.part", "run/.hidden", "run/tracker.json", "a.tracker.json")
    assert content_of(tmp_path / "run") is None
    assert content_of(tmp_path / "gone") is None
    assert content_of(tmp_path / "a") is None


def test_the_sidecar_of_a_file_is_part_of_its_profile(tmp_path):
    made(tmp_path, "a.json")
    before = content_of(tmp_path / "a.json")
    made(tmp_path, "a.json.tracker.json")
    assert content_of(tmp_path / "a.json").digest != before.digest


def test_only_what_was_left_alone_for_long_is_old_on_the_first_look(tmp_path):
    made(tmp_path, "run/rank0.json")
    os.utime(tmp_path / "run/rank0.json", ns=(SECOND, SECOND))  # a time that was set; it was written just now
    content = content_of(tmp_path / "run")
    written = content.touched_ns
    assert content.written_ns == SECOND
    assert content.still_since_ns(written + BELIEVED_AGE_NS - 1) == written + BELIEVED_AGE_NS - 1
    assert content.still_since_ns(written + BELIEVED_AGE_NS) == written
    assert content.still_since_ns(written - 5) == written - 5  # it lies in the future: some clock is wrong
