"""Commands for those who write subject lists and prompts: ``cohort`` and ``prompts``. They need no Ray and play nothing."""

import difflib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import deep20ray_cohorts
import deep20ray_prompts
from deep20ray.editions import EDITIONS, edition
from deep20ray.errors import UsageError
from deep20ray_cluster.terminal import Json, complain, one_line
from deep20ray_cohorts.lint import Severity, lint
from deep20ray_cohorts.writing import template

cohort_app = typer.Typer(help="Subject lists.", no_args_is_help=True)
prompts_app = typer.Typer(help="Prompt texts.", no_args_is_help=True)


@cohort_app.command("lint")
def cohort_lint(
    cohort: Annotated[str, typer.Argument(help="A cohort file, or a built-in cohort's name.")],
    edition_: Annotated[str, typer.Option("--edition", help="Whose Guesser prompt the names are looked for in.")] = max(EDITIONS),
    json_: Json = False,
) -> None:
    """Look for subjects that clash, names that the Guesser's prompt gives away, missing references, and whatever else is wrong.

    Ends with 2 if there are errors; warnings alone end with 0.
    """
    shown = _shown(edition_)
    id_, entries = deep20ray_cohorts.read_entries(cohort)
    found = lint(id_, entries, shown)
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    if json_:
        rows = [asdict(finding) | {"severity": finding.severity} for finding in found]
        print(json.dumps({"cohort": id_, "edition": edition_, "subjects": len(entries), "errors": errors, "findings": rows}))
    else:
        for finding in found:
            print(one_line(f"{finding.severity} {', '.join(finding.subjects)}: {finding.kind}: {finding.detail}"))
        print(one_line(f"cohort {id_}: {len(entries)} subjects, {errors} errors, {len(found) - errors} warnings"))
    if errors:
        raise typer.Exit(2)


@cohort_app.command("new")
def cohort_new(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The list's id: lower-case letters, digits, dots and hyphens.")],
    names: Annotated[
        Path, typer.Option("--names", help="A text file with a name per line, or a CSV file with a header; see the documents.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The cohort file to write; it must not exist yet.")],
    category: Annotated[str, typer.Option("--category", help="The category of those that have none of their own.")] = "thing",
) -> None:
    """Write a cohort file out of a list of names, to be completed by hand: descriptions above all."""
    text, count = template(id_, names, category)
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{out}: there is such a file already; choose another name") from None
    except OSError as error:
        raise UsageError(f"{out}: can't be written ({error.strerror}); choose another place") from None
    print(out)
    complain(f"{count} subjects; complete them, then `deep20ray cohort lint {out}`")


@prompts_app.command("list")
def prompts_list(json_: Json = False) -> None:
    """All prompts that ever were, by revision."""
    entries = deep20ray_prompts.index()
    if json_:
        kept = ("revision", "role", "edition", "policy", "variant", "sha256")
        print(json.dumps([{name: getattr(entry, name) for name in kept} for entry in entries]))
        return
    for entry in entries:
        print(entry.revision, entry.sha256[:16])


@prompts_app.command("diff")
def prompts_diff(
    one: Annotated[str, typer.Argument(help="A prompt's revision; `prompts list` has them.")],
    other: Annotated[str, typer.Argument(help="The revision to compare it with.")],
) -> None:
    """The lines in which two prompts differ, in unified form; nothing where their texts are the same."""
    for line in difflib.unified_diff(_texts(one), _texts(other), fromfile=one, tofile=other, lineterm=""):
        print(line)


def _texts(revision: str) -> list[str]:
    for entry in deep20ray_prompts.index():
        if entry.revision == revision:
            prompt = deep20ray_prompts.compose(entry)
            parts = {"system": prompt.system, "guide": prompt.guide, "reminder": prompt.reminder, "queries": prompt.queries}
            return [line for name, text in parts.items() if text is not None for line in (f"[{name}]", *text.splitlines())]
    raise UsageError(f"{revision}: there is no such prompt; `deep20ray prompts list` has all")


def _shown(name: str) -> dict[str, str]:
    """What every Guesser of an edition reads, whatever the subject."""
    if name not in EDITIONS:
        raise UsageError(f"--edition {name}: choose {' or '.join(EDITIONS)}")
    prompt = deep20ray_prompts.load("guesser", edition(name).id)
    parts = {"rules": prompt.system, "guide": prompt.guide, "reminder": prompt.reminder}
    return {f"the {part} of edition {name}": text for part, text in parts.items() if text}
