"""One game in which everything happens once: a judged, an agreed and an unreviewed answer, a violation, a wrong and a right guess."""

from typing import Any

from deep20ray_prompts import load

COMET = "Halley's Comet"
SKY = "Can it be seen in the sky?"
OLD = "Was it known before the year 1700?"
LUCK = "Does it bring luck?"
PROSE = "Sure! Is it a planet?"
WRONG, RIGHT = ("Moon", "The natural satellite of the Earth."), (COMET, "The periodic comet that returns about every 76 years.")
EXCERPT = "visible to the naked eye from Earth"
PAGE = {"url": "https://comets.example/halley", "title": "Halley", "content": f"It is   {EXCERPT}\nabout every 76 years."}

COHORT = f"""
id = "one-comet"
[[subjects]]
id = "T-0001"
category = "thing"
canonical_name = "{COMET}"
aliases = ["1P/Halley"]
description = "The periodic comet. Not a ship or a band of that name."
reference = "https://comets.example/"
"""

FINAL_TOKENS = ["YES", None, "NO", "YES", "UNKNOWN", "YES"]
COUNTED = 5
CALLS = {"scripted-guesser": 6, "scripted-oracle": 3, "scripted-reviewer": 3, "scripted-judge": 1, "scripted-validator": 2}
"""Completion requests by model; one of the Reviewer's is turned away and comes again."""


def ask(question: str) -> dict[str, Any]:
    return {"action": "ASK", "question": question, "name": None, "description": None}


def guess(name: str, description: str) -> dict[str, Any]:
    return {"action": "GUESS", "question": None, "name": name, "description": description}


def sweep(aimock_url: str, search_url: str) -> str:
    """The sweep file of the game."""
    support = "\n".join(
        f'[support.{role}]\naccount = "aimock"\nmodel = "scripted-{role}"' for role in ("oracle", "reviewer", "judge", "validator")
    )
    return f"""
[sweep]
name = "scripted"
edition = "1.1"
cohort = "comet.toml"
seed = "scripted-1"
rounds = 1

[accounts.aimock]
kind = "openai-chat"
base_url = "{aimock_url}"

[search]
kind = "searxng"
query_target = 0
fetch_pages = 0
base_url = "{search_url}"

{support}

[[models]]
id = "scripted"
account = "aimock"
model = "scripted-guesser"
"""


def fixtures() -> list[dict[str, Any]]:
    """What aimock answers. The first that matches counts."""
    reminder = load("guesser", "1.1").reminder
    assert reminder
    return [
        _guesser({"userMessage": reminder[:60], "turnIndex": 1}, guess(*WRONG)),
        _guesser({"turnIndex": 0}, ask(SKY)),
        _guesser({"turnIndex": 1}, PROSE),
        _guesser({"turnIndex": 2}, ask(OLD)),
        _guesser({"turnIndex": 3}, ask(LUCK)),
        _guesser({"turnIndex": 4}, guess(*RIGHT)),
        _says("oracle", SKY, _oracle("RATHER_YES", [{"excerpt": EXCERPT, "result": 1}])),
        _says("reviewer", SKY, _opinion("UNKNOWN")),
        _says("judge", SKY, _opinion("YES")),
        _says("oracle", OLD, _oracle("YES", [])),
        {
            "match": {"model": "scripted-reviewer", "userMessage": OLD, "sequenceIndex": 0},
            "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1},
        },
        _says("reviewer", OLD, _opinion("YES")),
        _says("oracle", LUCK, _oracle("UNKNOWN", [])),
        _says("validator", WRONG[1], {"statement": "Another body.", "verdict": "NO"}),
        _says("validator", RIGHT[1], {"statement": "The same comet.", "verdict": "YES"}),
    ]


def _oracle(token: str, evidence: list[dict[str, Any]]) -> dict[str, Any]:
    return {"answer": token, "basis": "evidence" if evidence else "knowledge", "evidence": evidence, "statement": "PRIVATE-STATEMENT"}


def _opinion(token: str) -> dict[str, Any]:
    return {"answer": token, "basis": "knowledge", "statement": "PRIVATE-STATEMENT"}


def _guesser(match: dict[str, Any], content: object) -> dict[str, Any]:
    return {"match": {"model": "scripted-guesser", **match}, "response": {"content": content}}


def _says(role: str, about: str, content: object) -> dict[str, Any]:
    return {"match": {"model": f"scripted-{role}", "userMessage": about}, "response": {"content": content, "model": f"{role}-served"}}
