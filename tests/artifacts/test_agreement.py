"""Plan, statement and tables that don't tell one story, each valid by itself: neither the signer nor a reader accepts them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deep20ray.canonical import canonical, sha256
from deep20ray.subjects import TrustedSubject
from deep20ray_artifacts.errors import RecordRefused
from deep20ray_artifacts.keys import TrustedKey
from deep20ray_artifacts.signing import NewKey, sign_run
from deep20ray_artifacts.verify import check_sealed, verify_run
from tests.artifacts.builder import RunDraft, draft, force_sign, settle

Change = Callable[[RunDraft], object]


def _after(first: Change, table: str, index: int, **values: Any) -> Change:
    """One change, and then one field."""

    def changed(run: RunDraft) -> None:
        first(run)
        run.rows[table][index].update(values)

    return changed


def _again(run: RunDraft) -> None:
    for table in ("audits", "usage"):
        run.rows[table].append({**run.rows[table][0], "ask": 1, "state": "superseded"})
    settle(run.rows)


def _unknown(run: RunDraft) -> None:
    run.rows["usage"][0]["cost_microusd"] = None
    settle(run.rows)


def _untold(run: RunDraft) -> None:
    _again(run)
    run.rows["repairs"].clear()


def _plan(change: Callable[[dict[str, Any]], object]) -> Change:
    """Another plan, truthfully digested and stated."""

    def changed(run: RunDraft) -> None:
        plan = json.loads(run.plan)
        change(plan)
        run.plan = canonical(plan)
        run.rows["run"][0]["plan_sha256"] = sha256(run.plan)

    return changed


def _set(table: str, index: int, **values: Any) -> Change:
    return lambda run: run.rows[table][index].update(values)


def _resettled(change: Change) -> Change:
    def changed(run: RunDraft) -> None:
        change(run)
        settle(run.rows)

    return changed


def _unlike(table: str, **values: Any) -> Change:
    """Something changed in a table after its plan was settled, which keeps what it was."""

    def changed(run: RunDraft) -> None:
        _plan(lambda plan: plan.update(note="kept"))(run)
        run.rows[table][0].update(values)

    return changed


def _redescribed(run: RunDraft) -> None:
    """Another description under the cohort's old digest, with its own digest right."""
    row = run.rows["subjects"][0]
    row["description"] = "Someone who is easier to guess."
    row["subject_sha256"] = TrustedSubject(row["name"], tuple(row["aliases"]), row["description"]).digest


ATTACKS: dict[str, tuple[Change, str]] = {
    **{
        f"a plan with another {name}": (_plan(change), f"its {words} isn't that of the statement and the tables")
        for name, words, change in [
            ("edition", "edition", lambda p: p["edition"].update(id="1.0")),
            ("book of rules", "edition's rules", lambda p: p["edition"].update(sha256="0" * 64)),
            ("cohort", "cohort", lambda p: p["cohort"].update(id="another")),
            ("cohort digest", "cohort's digest", lambda p: p["cohort"].update(sha256="0" * 64)),
            ("protocol", "protocol version", lambda p: p.update(protocol_version="0" * 64)),
            ("policy", "policy", lambda p: p.update(policy="bounded-judge")),
            ("scoring", "scoring", lambda p: p.update(scoring="median")),
            ("sweep", "sweep", lambda p: p.update(sweep="another")),
            ("software", "software", lambda p: p.update(software="deep20ray 9")),
            ("reuse policy", "reuse policy", lambda p: p.update(reuse_policy="sweep")),
            ("fetch policy", "fetch policy", lambda p: p.update(fetch_policy="public-pages-v1")),
            ("search", "search back-end", lambda p: p["search"].update(backend="brave")),
            ("word on simulation", "word on simulation", lambda p: p.update(simulated=False)),
        ]
    },
    "a plan of no sweep": (_plan(lambda p: p.clear()), "isn't the plan of a sweep"),
    "a plan of another form": (_plan(lambda p: p.update(edition="1.1")), "isn't the plan of a sweep"),
    "a plan of another run": (_plan(lambda p: p["runs"][0].update(run_id="x")), "plans this run 0 times"),
    "a plan of the run twice": (_plan(lambda p: p["runs"].append(p["runs"][0])), "plans this run 2 times"),
    "a plan with another model": (_plan(lambda p: p["runs"][0].update(model_id="x")), "its model or seed"),
    "a plan with another seed": (_plan(lambda p: p["runs"][0].update(run_seed="x")), "its model or seed"),
    "a plan with another name": (_plan(lambda p: p["runs"][0].update(model_name="x")), "its model's name"),
    "another judge than planned": (_plan(lambda p: p["support"]["judge"].update(requested_model="x")), "the judge's requested_model"),
    "another effort than planned": (_plan(lambda p: p["support"]["oracle"].update(effort="high")), "the oracle's effort"),
    "another sampling than planned": (_plan(lambda p: p["support"]["oracle"].update(sampling={"top_p": 1})), "the oracle's sampling"),
    "another prompt than planned": (_unlike("roles", prompt_sha256="0" * 64), "prompt_sha256 isn't what the plan gives"),
    "settings under another digest": (_plan(lambda p: p["support"]["judge"].update(send_seed=False)), "the digest of the judge's settings"),
    "a role that wasn't planned": (_plan(lambda p: p["support"].pop("judge")), "isn't the plan of a sweep"),
    "a trial more than planned": (_plan(lambda p: p["runs"][0]["trials"].pop()), "aren't those that were planned"),
    "a trial fewer than planned": (_plan(lambda p: p["runs"][0]["trials"].append(p["runs"][0]["trials"][0])), "aren't those that were"),
    "a subject that wasn't planned": (_plan(lambda p: p["cohort"]["subjects"].pop()), "its subjects aren't those"),
    "more subjects than the cohort has": (_plan(lambda p: p["cohort"].update(size=1)), "its subjects aren't those"),
    "a subject described otherwise": (_redescribed, "the cohort's digest isn't that of these subjects"),
    "a subject with another reference": (_set("subjects", 0, reference="https://elsewhere.example/"), "the cohort's digest"),
    "a subject that no cohort may have": (_set("subjects", 0, reference="nowhere"), "must be an address"),
    "a simulator that isn't owned to": (
        lambda run: (
            [row.update(provider="simulator") for row in run.rows["roles"] if row["role"] == "judge"],
            run.facts.update(simulated=False),
            run.rows["run"][0].update(simulated=False),
        ),
        "a part of it was simulated",
    ),
    "a simulated search that isn't owned to": (
        lambda run: (
            run.rows["run"][0].update(simulated=False, search_backend="embedded"),
            run.facts.update(simulated=False),
        ),
        "a part of it was simulated",
    ),
    "a served model left out": (_set("roles", 1, served_models=[]), "served models aren't those of its audits"),
    "a served model made up": (_set("roles", 0, served_models=["model-a-2026", "x"]), "served models aren't those of its audits"),
    "an answer by another model": (_set("audits", 0, served_model="cheaper"), "served models aren't those of its audits"),
    "a cheaper trial": (_set("trials", 0, cost_microusd=1), "cost_microusd is 1 where"),
    "a cheaper Guesser": (_set("trials", 0, guesser_cost_microusd=1), "guesser_cost_microusd is 1 where"),
    "a cheaper call": (_set("usage", 0, cost_microusd=0), "cost_microusd is 1200 where"),
    "an unknown cost made known": (_after(_unknown, "trials", 0, cost_microusd=5), "where its calls give None"),
    "a call that pays back": (_set("usage", 0, cost_microusd=-5), "cost_microusd is below zero"),
    "tokens below zero": (_set("usage", 0, input_fresh=-1), "input_fresh is below zero"),
    "searches below zero": (_set("usage", 0, searches=-1), "searches is below zero"),
    "usage left out": (_resettled(lambda run: run.rows["usage"].pop(0)), "a row for each call"),
    "a shorter trial": (_set("trials", 0, duration_ms=1), "duration_ms is 1 where"),
    "a superseded call that isn't told": (
        _untold,
        "aren't the superseded and lost ones",
    ),
    "a superseded call made cheaper": (
        _after(_again, "repairs", 0, cost_microusd=0),
        "aren't the superseded and lost ones",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_does_not_agree_is_refused(tmp_path: Path, key: NewKey, trusted: list[TrustedKey], name: str) -> None:
    change, words = ATTACKS[name]
    run = draft()
    change(run)
    folder = run.seal(tmp_path)
    with pytest.raises(RecordRefused, match=words) as caught:
        sign_run(folder, key.private)
    assert "\n" not in str(caught.value)
    with pytest.raises(RecordRefused, match=words):
        verify_run(force_sign(folder, key.private), trusted)


@pytest.mark.parametrize("change", [_again, _unknown])
def test_calls_made_again_and_unknown_costs_agree(tmp_path: Path, change: Change) -> None:
    run = draft()
    change(run)
    check_sealed(run.seal(tmp_path))


def test_a_part_of_a_cohort_is_taken_as_such(tmp_path: Path) -> None:
    """Nothing public gives the rest of the cohort; a release contract takes no such run."""
    run = draft()
    _plan(lambda plan: plan["cohort"].update(size=12))(run)
    run.rows["subjects"][0]["reference"] = ""
    check_sealed(run.seal(tmp_path))
