"""Commands about the language model: what it may be sent, whether it answers, what it spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import click

from archivist.bank import Bank
from archivist.config import ModelRules
from archivist.edges import views
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, Table, confirm, note
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.edges.views import View
from archivist.reflect.budget import NOTHING_SPENT, Spending
from archivist.reflect.model.questions import LEAVES
from archivist.text import shorten_line

_SHOWN_DAYS = 7
_LONGEST_CLAIM = 160
# What the claims of a question are called; those of the others are lessons.
_CLAIMED = {"account": "lines of the account", "wishes": "wishes", "insights": "insights"}

model = CommandGroup("model", help="Allow and try a language model for reflection, and show what it spends.")


def describe_spending(spending: View) -> str:
    """Say what requests cost."""
    tokens = spending["input_tokens"] + spending["output_tokens"]
    return f"{pluralize(spending['requests'], 'request')}, {tokens:,} tokens, ${spending['usd']:.4f}"


def describe_report(found: View) -> list[str]:
    """Say what asking a model came to: its cost, what held, what was dropped and why."""
    lines = []
    if found["requests"]:
        lines.append(f"{found['model']}: {describe_spending(found)}, {found['seconds']} s")
    if found["proposed"]:
        dropped = [f"{count} {reason}" for reason, count in found["dropped"].items()]
        left = f"; dropped: {', '.join(dropped)}" if dropped else ""
        fates: dict[str, list[str]] = {}
        for claim in found["claims"]:
            fates.setdefault(_CLAIMED.get(claim["question"], "lessons"), []).append(claim["fate"])
        held = [
            f"{sum(not fate.startswith('dropped') for fate in each)} of {len(each)} {name}"
            for name, each in fates.items()
        ]
        lines.append(f"{' and '.join(held)} hold{left}")
    told = [claim for claim in found["claims"] if claim["fate"] != "kept"]
    lines += [f"  {claim['fate']}: {shorten_line(claim['text'], _LONGEST_CLAIM)}" for claim in told]
    if found["problem"]:
        rest = "was read in part: it is asked the rest next time"
        lines += [f"run {run} {rest}" for run in found["unfinished"]]
        # What was sent to nobody who answers was not asked.
        how = "asked no further" if found["input_tokens"] else "not asked"
        lines.append(f"the model was {how}: {found['problem']}; what was mined is complete")
    return lines


@contextmanager
def _users_bank(session: Session) -> Iterator[Bank]:
    """Open a bank for the user's own settings: what is about the model is of no project and in no bank."""
    with Bank.temporary(session.load_settings(None).config) as bank:
        yield bank.acting_as(session.actor())


@options.command(model)
def status(session: Session) -> Answer:
    """Show which model is configured, whether it may be asked, and what was spent."""
    with _users_bank(session) as bank:
        view = views.model_view(bank)
        if not view:
            hint = "hint: archivist config set --global model.name openai:NAME"
            return Answer({"model": view}, "No model is configured: reflection works without one.", (hint,))
        rules = bank.config.model
    key = f"{view['key_variable']} ({'set' if view['has_key'] else 'not set'})"
    rows: list[tuple[str, object]] = [
        ("model", view["name"]),
        ("address", view["url"]),
        ("key", key if view["key_variable"] else "none"),
        ("allowed", "yes" if view["is_allowed"] else "no"),
        ("today", describe_spending(view["today"])),
        ("budget of a day", f"{rules.day_tokens:,} tokens, ${rules.day_usd:g}"),
        ("budget of a run", f"{rules.reflection_tokens:,} tokens, ${rules.reflection_usd:g}"),
        ("price of a million tokens", f"${rules.input_usd:g} in, ${rules.output_usd:g} out"),
    ]
    tables: list[Table] = [(("Language model", ""), rows)]
    days = [(day, describe_spending(spent)) for day, spent in list(view["days"].items())[-_SHOWN_DAYS:]]
    tables += [(("Day", "Spent"), days)] if days else []
    warnings = [f"archivist: {view['problem']}"] if view["problem"] else []
    return Answer({"model": view}, tables=tables, warnings=warnings)


@options.command(model, owners_of="bank")
@click.option("--yes", is_flag=True, help="Do not ask.")
def allow(session: Session, yes: bool) -> Answer:
    """Say what leaves the machine and where to, and allow it for the configured model.

    Nothing is sent before. The permission is for this model at this address: another needs its own.
    """
    with _users_bank(session) as bank:
        endpoint = bank.model.require_endpoint()
        rules = bank.config.model
        lines = [
            f"to: {endpoint.label}" + (" (this machine)" if endpoint.is_local else ""),
            f"what: {LEAVES.format(tokens=rules.context_tokens)}",
            f"at most: {rules.day_tokens:,} tokens or ${rules.day_usd:g} a day",
        ]
        if endpoint.url.startswith("http:") and not endpoint.is_local:
            lines.append("warning: this address is not encrypted; anybody on the way can read it")
        if not yes:
            for line in lines:
                note(line)
            if not confirm("Allow it?", "allowing a model", "--yes allows it without asking"):
                return Answer({"allowed": False}, "Nothing is sent.")
        bank.model.allow()
    text = "\n".join((*(lines if yes else ()), "Allowed. archivist model forbid withdraws it."))
    return Answer({"allowed": True, "endpoint": endpoint.label}, text)


@options.command(model, owners_of="bank")
def forbid(session: Session) -> Answer:
    """Withdraw every permission: nothing is sent to a model from now on."""
    with _users_bank(session) as bank:
        return Answer({"forbidden": bank.model.forbid()}, "Nothing is sent to a model any more.")


@options.command(model, "try", owners_of="bank")
def try_(session: Session) -> Answer:
    """Ask the model one small question, which holds nothing of any run, and say how it went."""
    with _users_bank(session) as bank:
        view = views.model_report_view([bank.model.try_once()])
    return Answer(view, f"{view['model']} answers: {describe_spending(view)}, {view['seconds']} s")


@options.command(model, owners_of="bank")
def refine(session: Session) -> Answer:
    """Reword lessons that runs ignored, join those that say the same, and find what several have in common.

    A reworded or joined lesson supersedes those that were mined; all are kept, and archivist undo goes back.
    """
    with session.bank() as bank:
        report = bank.model.refine()
        view: dict[str, Any] = views.model_report_view([report])
        changed = views.lesson_views(bank, [*report.created, *report.updated])
    lines = [f"{each['id']}  {shorten_line(each['summary'], 160)}" for each in changed]
    text = "\n".join(lines or ["No lesson was changed."])
    return Answer({**view, "lessons": changed}, text, describe_report(view))


def estimate_answer(bank: Bank, runs: list[str]) -> Answer:
    """Say what reading runs with the model may cost at most; nothing is sent."""
    rules: ModelRules = bank.config.model
    found = dict(bank.model.estimate(runs))
    total = reduce(Spending.plus, found.values(), NOTHING_SPENT)
    today = bank.model.status().today
    is_within = today.tokens + total.tokens <= rules.day_tokens and today.usd + total.usd <= rules.day_usd
    problem = bank.model.why_not()
    view = {
        "runs": [{"run": run, **spending.as_view()} for run, spending in found.items()],
        "total": total.as_view(),
        "today": today.as_view(),
        "within_budget": is_within,
        "problem": problem,
    }
    if not rules.name:
        return Answer(view, notes=[problem])
    rows = [
        (run, spent.requests, f"{spent.tokens:,}", f"${spent.usd:.4f}")
        for run, spent in (*found.items(), ("all", total))
    ]
    tokens, usd = max(0, rules.day_tokens - today.tokens), max(0.0, rules.day_usd - today.usd)
    notes = ["each is the most that it costs if the model calls no tools to look things up"]
    notes.append(f"{tokens:,} tokens and ${usd:.4f} of today's budget are left")
    if found and not is_within:
        notes.append("the budget ends before all runs are read; what is mined does not depend on it")
    notes += [problem] if problem else []
    return Answer(view, tables=[(("Run", "Requests", "Tokens", "Price"), rows)], notes=notes)
