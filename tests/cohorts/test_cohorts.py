"""The built-in subject lists are fixed; any other list is read strictly, and refused in one line that says what to do."""

import contextlib
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deep20ray_cohorts
from deep20ray.editions import EDITIONS
from deep20ray.errors import InvalidCohort
from deep20ray.subjects import Cohort, Subject, TrustedSubject, protocol_version
from deep20ray_cohorts import index, load, names, parse

VECTOR = Path(__file__).parents[1] / "vectors" / "cohorts.json"
SUBJECTS = {
    "T-0001": ("Albert Einstein", "person"),
    "T-0002": ("Albert Schweitzer", "person"),
    "T-0003": ("Stephen King", "person"),
    "T-0004": ("Garfield", "fictional_character"),
    "T-0005": ("Achilles", "mythological_figure"),
    "T-0006": ("Genghis Khan", "person"),
    "T-0007": ("Mario", "video_game_character"),
    "T-0008": ("bike pump", "thing"),
    "T-0009": ("spider web", "thing"),
    "T-0010": ("eyebrow", "thing"),
    "T-0011": ("Moon", "thing"),
    "T-0012": ("door handle", "thing"),
}
MEMBERS = {"core-1.0": {1, 2, 3, 4, 5, 6, 7}, "core-1.1": {1, 2, 4, 5, 6, 8, 9, 10, 11, 12}}

GOOD = """
id = "mine"
[[subjects]]
id = "S-1"
category = "thing"
canonical_name = "kettle"
aliases = ["tea kettle"]
description = "A vessel for boiling water. Not a teapot."
reference = "https://example.org/kettle"
[[subjects]]
id = "S-2"
category = "person"
canonical_name = "Ada Lovelace"
description = "The mathematician. Not her mother."
"""


# ---- the two that are built in


def test_the_lists_are_those_of_the_editions() -> None:
    assert names() == tuple(sorted(MEMBERS)) == tuple(f"core-{edition}" for edition in EDITIONS)
    for name, members in MEMBERS.items():
        cohort = load(name)
        assert cohort.id == name
        assert {s.id: (s.trusted.canonical_name, s.category) for s in cohort.subjects} == {
            key: SUBJECTS[key] for key in (f"T-{number:04}" for number in members)
        }
        assert len(cohort.subjects) == EDITIONS[name.removeprefix("core-")].subjects


@pytest.mark.failure_case(20)
def test_every_subject_says_what_it_is_not_and_where_to_read_on() -> None:
    for name in names():
        for subject in load(name).subjects:
            assert re.search(r"\. Not .+\.$", subject.trusted.description), subject.id
            assert re.fullmatch(r"https://\S+", subject.reference)
            assert subject.trusted.aliases


def test_a_subject_of_two_cohorts_is_the_same_subject() -> None:
    one, other = ({s.id: s for s in load(name).subjects} for name in names())
    shared = one.keys() & other.keys()
    assert len(shared) == 5
    assert all(one[key] == other[key] for key in shared)


@pytest.mark.failure_case(12)
def test_no_alias_is_shared_across_the_cohorts() -> None:
    owners: dict[str, str] = {}
    for name in names():
        for subject in load(name).subjects:
            for each in (subject.trusted.canonical_name, *subject.trusted.aliases):
                assert owners.setdefault(each.casefold(), subject.id) == subject.id


def test_the_index_only_grows() -> None:
    """Add a revision at the end of index.json and of tests/vectors/cohorts.json; never edit or remove one."""
    pinned = [tuple(pair) for pair in json.loads(VECTOR.read_text())]
    held = [(entry["cohort"], entry["sha256"]) for entry in index()]
    assert held[: len(pinned)] == pinned
    assert len(held) == len(pinned), "pin the new revision in tests/vectors/cohorts.json too"


def test_built_in_lists_are_what_they_were_pinned_to() -> None:
    for name in names():
        assert load(name).digest == [entry["sha256"] for entry in index() if entry["cohort"] == name][-1]


def test_a_changed_word_is_refused_at_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in names():
        text = deep20ray_cohorts._DATA.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(text.replace("1879-1955", "1879-1956"), encoding="utf-8")
    monkeypatch.setattr(deep20ray_cohorts, "_DATA", tmp_path)
    deep20ray_cohorts._built_in.cache_clear()
    try:
        for name in names():
            with pytest.raises(InvalidCohort, match=r"has changed.*new revision"):
                load(name)
    finally:
        deep20ray_cohorts._built_in.cache_clear()


def test_a_reworded_description_is_a_revision_and_a_new_alias_another_protocol() -> None:
    edition = EDITIONS["1.1"]
    one = parse(GOOD, "a")
    reworded = parse(GOOD.replace("Not a teapot.", "No teapot."), "a")
    renamed = parse(GOOD.replace("tea kettle", "water kettle"), "a")
    assert one.digest != reworded.digest and protocol_version(edition, one) == protocol_version(edition, reworded)
    assert protocol_version(edition, one) != protocol_version(edition, renamed)
    assert len({protocol_version(each, one) for each in EDITIONS.values()}) == len(EDITIONS)


# ---- any other list


def test_a_list_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD, encoding="utf-8")
    kettle, ada = load(str(path)).subjects
    assert kettle == Subject(
        "S-1", "thing", "https://example.org/kettle", TrustedSubject("kettle", ("tea kettle",), "A vessel for boiling water. Not a teapot.")
    )
    assert (ada.trusted.aliases, ada.reference) == ((), "")


BAD = {
    "not TOML": (GOOD.replace('id = "mine"', "id = mine"), "not valid TOML"),
    "a key twice": (GOOD.replace('id = "mine"', 'id = "mine"\nid = "mine"'), "not valid TOML"),
    "nested without end": ("x = " + "[" * 50_000, "nested too deep"),
    "empty": ("", "Field required"),
    "no subjects": ('id = "mine"\nsubjects = []', "subjects"),
    "unknown key above": ('colour = "red"\n' + GOOD, "colour: unknown key"),
    "unknown key below": (GOOD.replace('category = "person"', 'category = "person"\nhint = "she counts"'), "subjects.1.hint: unknown key"),
    "missing description": (GOOD.replace('description = "The mathematician. Not her mother."', ""), "subjects.1.description"),
    "a number for a name": (GOOD.replace('"Ada Lovelace"', "1815"), "subjects.1.canonical_name"),
    "a text for a list": (GOOD.replace('["tea kettle"]', '"tea kettle"'), "subjects.0.aliases"),
    "blank name": (GOOD.replace('"Ada Lovelace"', '"  "'), "S-2"),
    "blank description": (GOOD.replace('"The mathematician. Not her mother."', '" "'), "S-2"),
    "blank alias": (GOOD.replace('["tea kettle"]', '["tea kettle", ""]'), "alias is blank"),
    "long name": (GOOD.replace("Ada Lovelace", "a" * 201), "200"),
    "long description": (GOOD.replace("Not her mother.", "x" * 2_001), "2,000"),
    "line break in a name": (GOOD.replace("Ada Lovelace", "Ada\\nLovelace"), "line break"),
    "control character in an alias": (GOOD.replace('"tea kettle"', '"tea\\u0007kettle"'), "control character"),
    "bad id": (GOOD.replace('"S-2"', '"../S-2"'), "id starts with"),
    "bad category": (GOOD.replace('"person"', '"A Person"'), "lower-case label"),
    "bad cohort id": (GOOD.replace('"mine"', '"Mine!"'), "cohort id"),
    "id twice": (GOOD.replace('"S-2"', '"S-1"'), "S-1 stands twice"),
    "name twice in one subject": (GOOD.replace('["tea kettle"]', '["Kettle"]'), "stands twice among its names"),
    "alias twice": (GOOD.replace('["tea kettle"]', '["tea kettle", "Tea  Kettle"]'), "stands twice among its names"),
    "alias of two": (GOOD.replace('["tea kettle"]', '["ada LOVELACE"]'), "names both S-1 and S-2"),
    "reference that runs": (GOOD.replace("https://example.org/kettle", "javascript:alert(1)"), "https://"),
    "reference without a host": (GOOD.replace("https://example.org/kettle", "https:///kettle"), "https://"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_list_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    text, expected = BAD[case]
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidCohort) as caught:
        load(str(path))
    message = str(caught.value)
    assert expected in message and str(path) in message and "\n" not in message
    assert caught.value.exit_code == 2


@pytest.mark.failure_case(12)
def test_aliases_collide_whatever_their_unicode_form() -> None:
    decomposed = GOOD.replace('"tea kettle"', '"Temu\\u0308jin"').replace('"Ada Lovelace"', '"TEMÜJIN"')
    with pytest.raises(InvalidCohort, match="names both S-1 and S-2"):
        parse(decomposed, "mine")


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe, folder, binary, big = (tmp_path / name for name in ("pipe", "folder", "binary.toml", "big.toml"))
    os.mkfifo(pipe)
    folder.mkdir()
    binary.write_bytes(b"id = '\xff'")
    big.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    for path, expected in [
        (pipe, "not a file"),
        (folder, "not a file"),
        (binary, "not UTF-8"),
        (big, "4 MiB"),
        (tmp_path / "absent", "core-1.0, core-1.1"),
        ("nul\0byte", "no file can have this name"),
        ("x" * 5_000, "can't be read"),
        ("", "not a file"),
    ]:
        with pytest.raises(InvalidCohort) as caught:
            load(str(path))
        assert expected in str(caught.value) and "\n" not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for source in (text, GOOD + text, GOOD.replace("kettle", text)):
        with contextlib.suppress(InvalidCohort):
            assert isinstance(parse(source, "mine"), Cohort)


def test_subjects_keep_their_order_in_the_digest() -> None:
    cohort = parse(GOOD, "mine")
    assert Cohort("mine", cohort.subjects[::-1]).digest != cohort.digest
