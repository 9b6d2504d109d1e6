"""``deep20ray plan``, and what ``run`` asks before it spends: what a sweep will take, from its file alone. Nothing is called."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from deep20ray.errors import UsageError
from deep20ray_cluster.terminal import complain, one_line

if TYPE_CHECKING:
    from deep20ray_cluster.estimate import CallEstimate, Estimate
    from deep20ray_cluster.plan import Plan
    from deep20ray_cluster.sweep import Sweep


def show_plan(settings: "Sweep", base: Path, like: list[Path], trust: list[Path], *, as_json: bool) -> None:
    """Prints a sweep's estimate, learned from earlier runs where ``like`` names such."""
    found = _estimate(settings, base, like, trust)
    if as_json:
        print(json.dumps(found.document))
        return
    print(f"{'model':20} {'call':10} {'least':>8} {'expected':>9} {'most':>9} {'p50':>10} {'p95':>10} {'worst':>12}")
    for run in found.runs:
        for call in run.calls:
            print(f"{one_line(run.model):20.20} {_row(call)}")
        print(f"{one_line(run.model):20.20} {'all':39} {_money(run.cost('p50'))} {_money(run.cost('p95'))} {_money(run.cost('worst'), 12)}")
    print(_summary(found))
    if _made_up(settings):
        print("all of it is simulated: its prices are made up, and nothing is paid")
    for line in _remarks(found):
        print(one_line(line))


def ask_first(plan: "Plan", above: float, *, yes: bool) -> None:
    """Says what a plan will take, and asks where it may well cost more than ``above`` US dollars.

    Raises:
        UsageError: it may, and there is nobody to ask, or the answer is no.
    """
    from deep20ray_cluster.estimate import estimate
    from deep20ray_cluster.habits import RECORDED

    found = estimate(plan, RECORDED)
    complain(_summary(found))
    if yes or _made_up(plan.sweep) or not found.may_pass(above):
        return
    high = _money(found.cost("p95")).strip()
    if not sys.stdin.isatty():
        raise UsageError(f"it may cost {high}, and more than ${above:g} is asked about first; say --yes, or raise --ask-above")
    if not typer.confirm(f"deep20ray: it may cost {high}. Play it?", err=True):
        raise UsageError("nothing was played; `deep20ray plan` shows what costs how much")


def _made_up(settings: "Sweep") -> bool:
    """Whether nothing of it costs anything: the simulator plays all of it, and its prices are made up."""
    return settings.search.kind == "simulator" and all(account.kind == "simulator" for account in settings.accounts.values())


def _estimate(settings: "Sweep", base: Path, like: list[Path], trust: list[Path]) -> "Estimate":
    from deep20ray.reuse import ReusePolicy
    from deep20ray_artifacts.trust import load_trust
    from deep20ray_artifacts.verify import verify_run
    from deep20ray_cluster.archive import archive_of, read_archive
    from deep20ray_cluster.estimate import estimate
    from deep20ray_cluster.habits import learned
    from deep20ray_cluster.plan import load_cohort, resolve, terms_of, with_archive
    from deep20ray_cluster.price_list import load_prices

    if like and not trust:
        raise UsageError("--like needs --trust: the public key that may have signed the earlier run")
    keys = load_trust(trust, datetime.now(UTC))
    cohort, now = load_cohort(settings, base), datetime.now(UTC)
    plan = resolve(settings, cohort, now, load_prices(settings, base / (settings.sweep.prices_file or "")))
    if settings.sweep.reuse is ReusePolicy.ARCHIVE:
        subjects = {subject.trusted.digest for subject in cohort.subjects}
        plan = with_archive(plan, archive_of(read_archive(settings.sweep, base, terms_of(plan), subjects, now)))
    trials = sum(len(run.trials) for run in plan.runs)
    return estimate(plan, learned([verify_run(path, keys) for path in like], trials))


def _row(call: "CallEstimate") -> str:
    counts = f"{call.call:10} {call.least:8,} {call.expected:9,} {call.most:9,}"
    return f"{counts} {_money(call.p50_microusd)} {_money(call.p95_microusd)} {_money(call.worst_microusd, 12)}"


def _summary(found: "Estimate") -> str:
    trials = sum(run.trials for run in found.runs)
    calls = sum(call.expected for run in found.runs for call in run.calls)
    searches = sum(call.expected for run in found.runs for call in run.calls if call.call == "search")
    cost = found.cost("p50")
    money = "at unknown cost" if cost is None else f"for about {_money(cost).strip()}, in a bad case {_money(found.cost('p95')).strip()}"
    time = timedelta(seconds=max(1, round(found.seconds)))
    return (
        f"{trials} {'trial' if trials == 1 else 'trials'}, about {calls:,} calls with {searches:,} searches, {money}; about {time} of play"
    )


def _remarks(found: "Estimate") -> list[str]:
    lines = [f"the time is bound by {found.bound_by}; about {found.disk_bytes / 1e6:,.1f} MB on disk"]
    lines += [f"no price is known of {missing}" for missing in found.missing_prices]
    lines += [f"nothing bounds what {free} cost" for free in found.unbounded]
    if found.reusable:
        lines.append(f"the archive holds {found.reusable:,} answers; each one that is reused saves its calls")
    if found.learned_from:
        lines.append(f"learned from {', '.join(found.learned_from)}")
    else:
        lines.append("nothing was learned from earlier runs (--like): a model that reasons, or searches long, takes more tokens and time")
    lines.append(
        "p95 is a bad case, worst is what no such sweep can pass, every game at the limit and every call retried; max_cost_usd is a wall"
    )
    return lines


def _money(microusd: int | None, width: int = 10) -> str:
    return f"{'unknown' if microusd is None else f'${microusd / 1e6:,.2f}':>{width}}"
