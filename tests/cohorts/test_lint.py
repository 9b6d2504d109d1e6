"""Each fault of a subject list is found and named once, and a sound list has none."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import deep20ray_cohorts
from deep20ray.errors import InvalidCohort
from deep20ray_cohorts import Entry, load, parse, read_entries
from deep20ray_cohorts.lint import Finding, Kind, Severity, lint
from deep20ray_cohorts.writing import template

KEYWORDS = Path(__file__).parents[3] / "shared" / "data" / "kaggle-llm20q" / "keywords-1.14.15.json"
SHOWN = {"the guide": "- thing: an object, such as a kettle of fish", "the rules": "Ask, or guess a Café."}


def entry(id_: str = "S-1", name: str = "teapot", *aliases: str, **other: str) -> Entry:
    whole = {"category": "thing", "description": "A vessel. Not a pot.", "reference": "https://example.org/"} | other
    return Entry(id=id_, canonical_name=name, aliases=aliases, **whole)


def kinds(*entries: Entry) -> list[tuple[Kind, tuple[str, ...]]]:
    return [(finding.kind, finding.subjects) for finding in lint("mine", entries, SHOWN)]


def test_the_built_in_lists_have_no_fault() -> None:
    for name in deep20ray_cohorts.names():
        id_, entries = read_entries(name)
        assert id_ == name and not lint(id_, entries, SHOWN)


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([entry(), entry("S-2", "Teapot")], [(Kind.DOUBLED_SUBJECT, ("S-1", "S-2"))]),
        ([entry(), entry("S-2", "cup", "TEApot", "teapot")], [(Kind.COLLISION, ("S-1", "S-2")), (Kind.DOUBLED_NAME, ("S-2",))]),
        ([entry("S-1", "cup", "athens"), entry("S-2", "mug", "Athens")], [(Kind.COLLISION, ("S-1", "S-2"))]),
        ([entry("S-1", "Lüneburg"), entry("S-2", "Luneburg")], [(Kind.TWINS, ("S-1", "S-2"))]),
        ([entry("S-1", "air-conditioner"), entry("S-2", "Air Conditioner")], [(Kind.TWINS, ("S-1", "S-2"))]),
        ([entry("S-1", "Temüjin", "Temujin", "TEMUJIN  ")], [(Kind.DOUBLED_NAME, ("S-1",))]),
        ([entry("S-1", "pot", "Kettle")], [(Kind.SHOWN, ("S-1",))]),
        ([entry("S-1", "cafe")], [(Kind.SHOWN, ("S-1",))]),
        ([entry("S-1", "video game", category="video_game_character")], [(Kind.SHOWN, ("S-1",))]),
        ([entry("S-1", "cat")], []),
        ([entry("S-1", "so\u200bck")], [(Kind.UNSEEN, ("S-1",))]),
        ([entry(), entry("S-1", "cup")], [(Kind.DOUBLED_ID, ("S-1",))]),
        ([entry(category="Thing")], [(Kind.MALFORMED, ("S-1",))]),
        ([entry("S-1", "  ")], [(Kind.MALFORMED, ("S-1",))]),
        ([entry("S-1", "cup", "a\nb")], [(Kind.MALFORMED, ("S-1",))]),
        ([entry(description="")], [(Kind.MALFORMED, ("S-1",))]),
        ([entry(reference="")], [(Kind.NO_REFERENCE, ("S-1",))]),
        ([entry(description="A vessel for tea.")], [(Kind.NO_BOUNDS, ("S-1",))]),
        ([entry("S-1", "!"), entry("S-2", "?")], []),
    ],
)
def test_a_fault_is_found_by_its_kind(entries: list[Entry], found: list[tuple[Kind, tuple[str, ...]]]) -> None:
    assert kinds(*entries) == found


def test_errors_come_first_and_each_says_what_to_do() -> None:
    found = lint("mine", [entry(reference=""), entry("S-2", "Kettle"), entry("S-3", "teapot")], SHOWN)
    assert [finding.severity for finding in found] == [Severity.ERROR, Severity.ERROR, Severity.WARNING]
    assert found[1] == Finding(Kind.SHOWN, ("S-2",), "'Kettle' stands in the guide, which its Guesser reads")


names_ = st.text(st.sampled_from("aAäe\u0301b -"), min_size=1, max_size=4)


@example([["-"], ["- "]])
@example([["-", "- "]])
@given(st.lists(st.lists(names_, min_size=1, max_size=3), min_size=1, max_size=5))
def test_what_loads_has_no_clash_and_what_clashes_does_not_load(lists: list[list[str]]) -> None:
    """The loader's own rule of equal names and the lint's agree, in both directions."""
    entries = [entry(f"S-{number}", *names) for number, names in enumerate(lists)]
    text = "".join(f"[[subjects]]\n{_toml(each)}" for each in entries)
    clashes = {Kind.DOUBLED_SUBJECT, Kind.COLLISION, Kind.MALFORMED, Kind.DOUBLED_NAME}
    found = lint("mine", entries, {})
    try:
        parse(f'id = "mine"\n{text}', "x")
    except InvalidCohort:
        assert clashes & {finding.kind for finding in found}
    else:
        assert not clashes & {finding.kind for finding in found}


def _toml(each: Entry) -> str:
    fields = each.model_dump() | {"aliases": list(each.aliases)}
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())


def test_real_keywords_hold_the_faults_that_are_known_of_them(tmp_path: Path) -> None:
    if not KEYWORDS.exists():
        pytest.skip("the recorded keyword list isn't on this machine")
    groups = json.loads(KEYWORDS.read_text())
    rows = [(group["category"].rstrip("s"), word["keyword"], word["alts"]) for group in groups for word in group["words"]]
    assert len(rows) == 1142
    entries = [entry(f"K-{n:04}", name, *alts, category=category) for n, (category, name, alts) in enumerate(rows)]
    found = lint("keywords", entries, {})
    count = Counter(finding.kind for finding in found)
    athens = [finding for finding in found if "'athens" in finding.detail.casefold() and len(finding.subjects) > 1]
    assert athens and all(finding.severity is Severity.ERROR for finding in athens)
    assert count == {Kind.DOUBLED_SUBJECT: 13, Kind.COLLISION: 3, Kind.DOUBLED_NAME: 3}
    with pytest.raises(InvalidCohort):
        parse('id = "keywords"\n' + "".join(f"[[subjects]]\n{_toml(each)}" for each in entries), "keywords")


def test_a_list_of_names_becomes_a_file_that_reads_back(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text('kettle\n\n  a "big"   \\ pot \nLüneburg\n', encoding="utf-8")
    text, count = template("mine", names, "thing")
    out = tmp_path / "mine.toml"
    out.write_text(text)
    id_, entries = read_entries(str(out))
    assert (id_, count) == ("mine", 3)
    assert [each.canonical_name for each in entries] == ["kettle", 'a "big" \\ pot', "Lüneburg"]
    assert {kind for kind, _ in kinds(*entries)} == {Kind.MALFORMED, Kind.NO_REFERENCE, Kind.SHOWN}
    with pytest.raises(InvalidCohort, match="description"):
        load(str(out))


def test_a_csv_file_brings_all_it_has(tmp_path: Path) -> None:
    names = tmp_path / "names.CSV"
    names.write_text(
        "\ufeffName,category,aliases,description,reference\n"
        'Ada Lovelace,person,Ada | Countess of Lovelace,"The mathematician, not her mother.",https://example.org/\nkettle,,,,\n,,,,\n',
        encoding="utf-8",
    )
    text, count = template("mine", names, "thing")
    (tmp_path / "mine.toml").write_text(text)
    _, (ada, kettle) = read_entries(str(tmp_path / "mine.toml"))
    assert count == 2 and ada.aliases == ("Ada", "Countess of Lovelace") and ada.category == "person" and kettle.category == "thing"
    assert not lint("mine", [ada], {})


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "\n \n", "holds 0 names"),
        ("a.csv", "title\nx\n", "'title' is unknown"),
        ("a.csv", "category\nx\n", "one column `name`"),
        ("a.csv", "name,name\nx,y\n", "one column `name`"),
        ("a.csv", "name\nx,y\n", "record 2: more fields"),
        ("a.txt", "x\n" * 10_001, "holds 10001 names"),
    ],
)
def test_a_bad_list_of_names_is_one_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidCohort, match=says):
        template("mine", tmp_path / name, "thing")
    with pytest.raises(InvalidCohort, match="cohort id"):
        template("Not an id", tmp_path / name, "thing")


@given(st.text())
def test_any_text_is_quoted_as_it_is(text: str) -> None:
    import tomllib

    from deep20ray_cohorts.writing import _quoted

    text = text.encode("utf-8", "ignore").decode()
    assert tomllib.loads(f"x = {_quoted(text)}")["x"] == text
