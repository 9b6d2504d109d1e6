"""Evidence as it is judged is evidence as it is published, and says nothing by its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray.canonical import sha256
from deep20ray_actors.evidence import EXCERPT_MAX, SUMMARY_LABEL, fold, held_results, keep
from deep20ray_actors.messages import ResultItem
from deep20ray_actors.replies import Cited
from tests.actors.support import RESULTS


def test_an_excerpt_that_stands_in_the_text_is_verified() -> None:
    (item,) = keep([Cited(1, " returns every 76\tyears ")], held_results(RESULTS))
    assert (item.number, item.url, item.excerpt, item.kind, item.verified) == (
        1,
        "https://a.example/comet",
        "returns every 76 years",
        "excerpt",
        True,
    )
    assert item.text_digest == sha256(RESULTS[0].text.encode())
    assert item.item.model_dump() == {"number": 1, "url": item.url, "excerpt": item.excerpt}


@pytest.mark.parametrize("excerpt", ["returns every 75 years", "RETURNS every", "", "  \n", "It returns ... Solar System"])
def test_an_excerpt_that_does_not_is_left_out(excerpt: str) -> None:
    assert keep([Cited(1, excerpt)], held_results(RESULTS)) == ()


def test_an_unknown_number_is_left_out() -> None:
    assert keep([Cited(7, "returns")], held_results(RESULTS)) == ()


def test_a_page_without_text_gives_a_labelled_unverified_summary() -> None:
    (item,) = keep([Cited(2, "Its orbit is elongated.")], held_results(RESULTS))
    assert (item.excerpt, item.kind, item.verified) == (SUMMARY_LABEL + "Its orbit is elongated.", "summary", False)


@pytest.mark.parametrize(
    "summary",
    [
        "The answer: YES",
        "so it is RATHER_NO",
        "rather yes",
        "_NO_",
        "unknown to science",
        "Dear Reviewer",
        "You must say so",
        "please agree",
        "\uff39\uff25\uff33",
        *(
            "RATHERYES",
            "isYES?",
            "YESit is",
            "isYESit",
            "isNoIt",
            "Yes1",
            "1no2",
            "rather-no",
            "Y E S",
            "Y-E-S",
            "it is n.o",
            "N_O",
            "so: Y  E  S!",
            "N O",
            "Y.E.P",
            "T-R-U-E",
            "q r s",
        ),
        *("y\u034fes", "Y\u0332E\u0332S\u0332", "n\u0308o", "\u00f1o", "Y\u20ddES"),
        *("Y\u0435s", "N\u039f", "\u0423\u0415\u0405", "\u039d\u039f", "a com\u0435t returns"),
        *("yep, indeed", "affirmative", "nope", "never", "It is not one", "Negative", "The answerYes"),
    ],
)
def test_a_summary_that_could_carry_an_answer_is_left_out(summary: str) -> None:
    assert keep([Cited(2, summary)], held_results(RESULTS)) == ()


@pytest.mark.parametrize(
    "summary",
    [
        "The comet returns every 76 years.",
        "Vitamin B12 and a 5G mast are named in Apollo 11's notes.",
        "Its Yesterday is a song by Norman Notting; the eyes of November.",
        "A kite weighs 3 kg at 20 km/h.",
        "It was made in the U.S. and, e.g., the U.K.",
        "J. Smith and A. Jones wrote of iPhone and eBay.",
        "\u041c\u043e\u0441\u043a\u0432\u0430 is the capital, \u0391\u03b8\u03ae\u03bd\u03b1 another.",
        "Caf\u00e9 M\u00fcnchen was made in \u00c5rhus.",
        "\u7231\u56e0\u65af\u5766\u751f\u4e8e\u5fb7\u56fd",
    ],
)
def test_a_harmless_summary_is_kept(summary: str) -> None:
    (item,) = keep([Cited(2, summary)], held_results(RESULTS))
    assert item.excerpt == SUMMARY_LABEL + summary and item.kind == "summary"


def test_items_are_cut_to_a_thousand_characters() -> None:
    page = ResultItem(number=1, url="https://long.example/", title="", text="word " * 400)
    (item,) = keep([Cited(1, "word " * 300)], held_results((page,)))
    assert len(item.excerpt) <= EXCERPT_MAX and item.excerpt in fold(page.text)
    (summary,) = keep([Cited(2, "long " * 300)], held_results(RESULTS))
    assert len(summary.excerpt) <= EXCERPT_MAX


PAGES = tuple(
    ResultItem(number=number, url=f"https://{host}.example/", title="", text=text)
    for number, (host, text) in enumerate([("c", "one two three"), ("a", "one two"), ("b", ""), ("a", "three one")], start=1)
)
CITED = st.lists(st.builds(Cited, st.integers(0, 5), st.sampled_from(["one", "two", "three", "one two", "never there", ""])), max_size=3)


@given(CITED, st.randoms(use_true_random=False))
def test_the_order_of_citing_says_nothing(cited: list[Cited], random: "object") -> None:
    shuffled = list(cited)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert keep(cited, held_results(PAGES)) == keep(shuffled, held_results(PAGES))


@given(CITED)
def test_items_are_numbered_in_order_of_address_and_digest_and_are_what_they_say(cited: list[Cited]) -> None:
    kept = keep(cited, held_results(PAGES))
    assert [item.number for item in kept] == list(range(1, len(kept) + 1))
    assert [(item.url, sha256(item.excerpt.encode())) for item in kept] == sorted(
        (item.url, sha256(item.excerpt.encode())) for item in kept
    )
    for item in kept:
        texts = [fold(page.text) for page in PAGES if page.url == item.url]
        assert item.verified is any(item.excerpt in text for text in texts) and item.verified is (item.kind == "excerpt")


@pytest.mark.parametrize(
    ("text", "excerpt", "kept"),
    [
        ("The eyes of NOVEMBER", "yes", False),
        ("The eyes of NOVEMBER", "NO", False),
        ("The eyes of NOVEMBER", "eyes of", True),
        ("say no more, or no", "no", True),
        ("It is 1879 here", "187", False),
        ("Ulm, 1879.", "1879", True),
        ("\u7231\u56e0\u65af\u5766\u751f\u4e8e\u5fb7\u56fd", "\u751f\u4e8e\u5fb7", True),
    ],
)
def test_an_excerpt_stands_in_the_text_as_words(text: str, excerpt: str, kept: bool) -> None:
    page = ResultItem(number=1, url="https://example.org/", title="t", text=text)
    assert bool(keep([Cited(1, excerpt)], held_results([page]))) == kept


def test_a_summary_hides_no_answer_behind_invisible_characters() -> None:
    page = ResultItem(number=1, url="https://example.org/", title="t", text="")
    assert keep([Cited(1, "Y\u200bES: a comet")], held_results([page])) == ()
