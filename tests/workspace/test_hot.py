"""Hot memory: budgets, rules, use, and what should leave or join."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError
from archivist.records import Episode, Event, EventKind
from archivist.workspace import hot
from archivist.workspace.files_service import Topology
from archivist.workspace.hot import Budget, HotUsage, RuleUsage, WarmEntry
from archivist.workspace.hot_service import demote, measure_hot_files, promote, review
from archivist.workspace.links_service import Client, link, read_rules

RULES = WorkspaceRules()
PROFILE = """<!-- budget: 6 lines -->
# Profile

- Answers are short
- In devtools, run `pnpm test --filter engine` first
- The shop deploys on Fridays,
  never on Mondays
"""


def _root(folder: Path, **files: str) -> Topology:
    for name, text in files.items():
        path = folder / RULES.hot / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for workspace in ("devtools", "shop"):
        (folder / RULES.resources / workspace).mkdir(parents=True, exist_ok=True)
    return Topology(folder, RULES)


# Budgets


@pytest.mark.req("W1")
@pytest.mark.parametrize(
    ("comment", "budget"),
    [
        ("<!-- budget: 50 lines -->", Budget(lines=50)),
        ("<!--budget:50-->", Budget(lines=50)),
        ("<!-- Budget: <80 lines -->", Budget(lines=80)),
        ("<!-- budget: 600 tokens -->", Budget(tokens=600)),
        ("<!-- budget: 50 lines, 600 tokens -->", Budget(50, 600)),
        ("---\nalwaysApply: true\n---\n<!-- budget: 9 lines -->", Budget(lines=9)),
    ],
)
def test_a_file_declares_its_budget_at_the_top(comment: str, budget: Budget) -> None:
    assert hot.measure_hot_file("a.md", f"{comment}\n# A\n").budget == budget


@pytest.mark.parametrize("said", ["many lines", "0 lines", "-5 lines", "", "50 pages", "1e9 lines"])
def test_a_budget_that_is_no_number_is_a_problem_and_counts_as_none(said: str) -> None:
    file = hot.measure_hot_file("a.md", f"<!-- budget: {said} -->\n")
    assert (file.budget, file.is_declared) == (Budget(lines=100), False)
    assert file.problem == f"budget {said!r} is not a number of lines or tokens"


def test_usage_adds_up_files_and_marks_what_is_over(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE, other="# Other\n\nA rule.\n")
    usage, problems = measure_hot_files(topology.root, RULES)
    assert problems == ()
    assert [(file.path, file.lines, file.is_over) for file in usage.files] == [
        ("agent/rules/common/other.md", 3, False),
        ("agent/rules/common/profile.md", 7, True),
    ]
    assert (usage.lines, usage.max_lines, usage.is_over) == (10, 300, True)
    assert usage.tokens == sum(file.tokens for file in usage.files)


def test_rules_that_one_tool_always_loads_count_too_and_our_links_do_not(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    cursor = tmp_path / ".cursor" / "rules"
    cursor.mkdir(parents=True)
    (cursor / "own.mdc").write_text("---\nalwaysApply: true\n---\nOwn.\n")
    (cursor / "sometimes.mdc").write_text("---\nglobs: '*.py'\nalwaysApply: false\n---\nSometimes.\n")
    claude = tmp_path / ".claude" / "rules"
    claude.mkdir(parents=True)
    (claude / "profile.md").symlink_to("../../agent/rules/common/profile.md")
    found = measure_hot_files(topology.root, RULES)[0].files
    assert [(file.path, file.agents) for file in found] == [
        ("agent/rules/common/profile.md", ()),
        (".cursor/rules/own.mdc", ("cursor",)),
    ]


@pytest.mark.req("W1")
def test_what_tools_load_from_the_root_counts_without_our_sections(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    (tmp_path / ".github").mkdir()
    for name, lines in (("AGENTS.md", 10), ("CLAUDE.md", 20), (".github/copilot-instructions.md", 5)):
        (tmp_path / name).write_text("".join(f"- rule {at} of {name}\n" for at in range(lines)))
    rules, _ = read_rules(tmp_path, RULES.hot)
    link(tmp_path, RULES.hot, rules, Client)
    with (tmp_path / "AGENTS.md").open("a") as stream:
        stream.write("- behind the section\n")
    usage = measure_hot_files(topology.root, RULES)[0]
    assert {file.path: (file.lines, file.agents) for file in usage.files} == {
        "agent/rules/common/profile.md": (7, ()),
        "AGENTS.md": (11, ("codex", "cursor", "vscode")),
        "CLAUDE.md": (20, ("claude-code", "vscode")),
        ".github/copilot-instructions.md": (5, ("vscode",)),
    }
    # One conversation is with one tool: what only others load is not given in it.
    assert (usage.agent, usage.lines) == ("vscode", 43)
    last = [item for file in usage.files if file.path == "AGENTS.md" for item in hot.parse_hot_items(file)][
        -1
    ]
    assert (tmp_path / "AGENTS.md").read_text().splitlines()[last.line - 1] == "- behind the section"


def test_a_file_that_several_names_or_imports_lead_to_counts_once(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile="# P\n")
    (tmp_path / "AGENTS.md").write_text("- one\n- two\n")
    (tmp_path / "GEMINI.md").symlink_to("AGENTS.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/style.md").write_text("- tabs, see @style.md and @../CLAUDE.md\n")
    (tmp_path / "CLAUDE.md").write_text(
        "See @AGENTS.md and @docs/style.md, not `@docs/no.md`, ada@example.org or @nobody.\n"
        "@./agent/rules/common/profile.md\n"
    )
    (tmp_path / "docs/no.md").write_text("never\n")
    usage = measure_hot_files(topology.root, RULES)[0]
    assert {file.path: file.agents for file in usage.files} == {
        "agent/rules/common/profile.md": (),
        "AGENTS.md": ("codex", "cursor", "vscode", "claude-code", "gemini"),
        "CLAUDE.md": ("claude-code", "vscode"),
        "docs/style.md": ("claude-code",),
    }


def test_an_agents_file_that_is_a_hot_file_counts_once_and_an_override_replaces_it(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    (tmp_path / "AGENTS.md").symlink_to(f"{RULES.hot}/profile.md")
    assert len(measure_hot_files(topology.root, RULES)[0].files) == 1
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").write_text("- a\n")
    (tmp_path / "AGENTS.override.md").write_text("- b\n")
    (tmp_path / "GEMINI.md").write_bytes(b"caf\xe9\n")
    usage, problems = measure_hot_files(topology.root, RULES)
    assert {file.path: file.agents for file in usage.files[1:]} == {
        "AGENTS.override.md": ("codex",),
        "AGENTS.md": ("cursor", "vscode"),
    }
    assert problems == ("GEMINI.md: not UTF-8 text",)


def test_no_rule_is_to_leave_where_a_tools_own_file_is_too_large_by_itself() -> None:
    big = hot.measure_hot_file("CLAUDE.md", "- rule\n" * 400, agents=("claude-code",))
    usage = HotUsage((hot.measure_hot_file("a.md", "- one\n- two\n"), big), 300, 3000)
    assert usage.is_over
    assert hot.propose_demotions(usage, {}) == ()


def test_a_root_without_hot_files_has_an_empty_usage(tmp_path: Path) -> None:
    (tmp_path / RULES.hot).mkdir(parents=True)
    found = review(Topology(tmp_path, RULES))
    assert (found.usage.files, found.usage.is_over, found.demotions) == ((), False, ())


def test_files_that_cannot_be_read_are_named_and_the_rest_is_measured(tmp_path: Path) -> None:
    topology = _root(tmp_path, good="# Good\n")
    folder = tmp_path / RULES.hot
    (folder / "latin.md").write_bytes(b"caf\xe9\n")
    (folder / "gone.md").symlink_to("nowhere.md")
    usage, problems = measure_hot_files(topology.root, RULES)
    assert [file.path for file in usage.files] == ["agent/rules/common/good.md"]
    assert problems == (
        "agent/rules/common/gone.md: the link points to a file that does not exist",
        "agent/rules/common/latin.md: not UTF-8 text",
    )


# Rules


def test_items_are_list_items_and_paragraphs_with_their_lines() -> None:
    text = (
        "---\ntags: [a]\n---\n<!-- budget: 9 lines -->\n# Title\n\nFirst paragraph\nof two lines.\n\n"
        "- one\n  - nested\n- two\n\nLike this:\n\n```\n- no item\n```\n"
    )
    found = hot.parse_hot_items(hot.measure_hot_file("a.md", text))
    assert [(item.line, item.end_line, item.text) for item in found] == [
        (7, 8, "First paragraph\nof two lines."),
        (10, 11, "- one\n  - nested"),
        (12, 12, "- two"),
        (14, 18, "Like this:\n\n```\n- no item\n```"),
    ]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30), max_size=12))
def test_taking_every_item_out_leaves_no_words_behind_but_headings(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = hot.parse_hot_items(hot.measure_hot_file("a.md", text))
    kept = text
    for item in reversed(found):
        kept = hot.without_item(kept, item)
    assert len(kept.splitlines()) <= len(text.splitlines())
    assert all(item.text.strip() for item in found)
    assert sum(item.lines for item in found) <= len(text.splitlines())


@given(st.text(st.characters(codec="ascii", categories=["L", "Zs"]), min_size=1).filter(str.strip))
def test_a_rule_put_in_is_a_rule_that_can_be_taken_out_again(words: str) -> None:
    text = hot.with_item("# Title\n\n- first\n", words)
    item = hot.parse_hot_items(hot.measure_hot_file("a.md", text))[-1]
    assert hot.strip_list_mark(item.text) == " ".join(words.split())
    assert hot.without_item(text, item) == "# Title\n\n- first\n"


def test_a_rule_joins_the_last_list_also_behind_front_matter_with_a_list() -> None:
    text = "---\ntags:\n  - a\n---\n# T\n\nWords.\n"
    assert hot.with_item(text, "new").endswith("Words.\n\n- new\n")
    assert hot.with_item("- a\r\n- b\r\n", "new") == "- a\r\n- b\r\n- new\r\n"
    assert hot.with_item("", "new") == "- new\n"


def test_an_item_is_found_by_id_by_its_beginning_and_by_place() -> None:
    found = hot.parse_hot_items(hot.measure_hot_file("agent/rules/common/a.md", PROFILE))
    assert hot.find_item(found, found[1].id) is found[1]
    assert hot.find_item(found, found[1].id[:5]) is found[1]
    assert hot.find_item(found, "a.md:7") is found[2]
    assert hot.find_item(found, "h-") is None
    assert hot.find_item(found, "a.md:99") is None


# Use and proposals


def test_a_run_meets_a_rule_when_it_holds_its_code_and_enough_of_its_words() -> None:
    rule = "- Run `pnpm test` before every commit"
    assert hot.is_relevant_to_run(rule, {"pnpm", "test", "commit", "other"})
    assert not hot.is_relevant_to_run(rule, {"test", "commit", "every"})
    assert not hot.is_relevant_to_run("- !!", {"a"})


def test_the_least_used_and_least_universal_leave_first_and_no_more_than_needed() -> None:
    usage = HotUsage((hot.measure_hot_file("p.md", PROFILE),), 300, 3000)
    items = hot.parse_hot_items(usage.files[0])
    seen = {items[0].id: RuleUsage(0, 10), items[1].id: RuleUsage(0, 10), items[2].id: RuleUsage(9, 10)}
    found = hot.propose_demotions(usage, seen, ["devtools", "shop"])
    assert [each.item.id for each in found] == [items[1].id]
    assert found[0].reason == "met in 0 of 10 runs; names devtools only"


def test_what_most_runs_met_stays_even_when_over_budget() -> None:
    usage = HotUsage((hot.measure_hot_file("p.md", PROFILE),), 300, 3000)
    seen = {item.id: RuleUsage(10, 10) for item in hot.parse_hot_items(usage.files[0])}
    assert hot.propose_demotions(usage, seen) == ()


@given(st.integers(1, 12), st.integers(1, 30), st.data())
def test_demotions_bring_hot_memory_under_budget_and_the_last_one_was_needed(
    budget: int, rules: int, data: st.DataObject
) -> None:
    text = f"<!-- budget: {budget} lines -->\n" + "".join(f"- rule number {at}\n" for at in range(rules))
    usage = HotUsage((hot.measure_hot_file("a.md", text),), 20, 3000)
    items = hot.parse_hot_items(usage.files[0])
    uses = {item.id: RuleUsage(data.draw(st.integers(0, 3)), 10) for item in items}
    chosen = hot.propose_demotions(usage, uses)
    left = usage.lines - sum(each.item.lines for each in chosen)
    if chosen:
        assert left + chosen[-1].item.lines > min(budget, 20)
        assert left <= budget or len(chosen) == len(items)
        most = max(each.use.met for each in chosen)
        spared = [uses[item.id].met for item in items if item.id not in {each.item.id for each in chosen}]
        assert all(met >= most for met in spared)
    else:
        assert not usage.is_over


def test_what_is_used_everywhere_is_proposed_for_promotion_unless_it_is_hot() -> None:
    usage = HotUsage((hot.measure_hot_file("p.md", PROFILE),), 300, 3000)
    warm = [
        WarmEntry("m-001", "Type checker runs before pushing"),
        WarmEntry("m-002", "Answers are short"),
        WarmEntry("a.md:3", "Ask the maintainer before deploying", "devtools"),
        WarmEntry("b.md:3", "Before deploying ask the maintainer", "shop"),
        WarmEntry("b.md:9", "Only said in one place", "shop"),
    ]
    uses = {"m-001": RuleUsage(9, 10), "m-002": RuleUsage(10, 10)}
    found = hot.propose_promotions(warm, uses, ["devtools", "shop"], usage)
    assert [(each.warm.id, each.reason) for each in found] == [
        ("m-001", "met in 9 of 10 runs"),
        ("a.md:3", "written down in all 2 workspaces"),
    ]


def test_a_few_runs_say_nothing_about_most_of_them() -> None:
    usage = HotUsage((), 300, 3000)
    assert (
        hot.propose_promotions([WarmEntry("m-001", "words here")], {"m-001": RuleUsage(3, 3)}, [], usage)
        == ()
    )


# The desk


def _ran(bank: Bank, run: str, *texts: str) -> None:
    events = [
        Event(run=run, seq=at, kind=EventKind.MESSAGE, role="user", text=text)
        for at, text in enumerate(texts)
    ]
    bank.capture(Episode(id=run), events)


def test_the_review_counts_the_runs_that_met_each_rule(bank: Bank, tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    for at in range(6):
        _ran(bank, f"r{at}", "please keep answers short", "run pnpm test --filter engine first" if at else "")
    lesson = bank.lessons.add("Always run the type checker before pushing")
    for at in range(6):
        bank.lessons.record_usage([lesson.short_id], run=f"r{at}")
    found = review(topology, bank)
    assert [(use.met, use.runs) for _, use in found.items] == [(6, 6), (5, 6), (0, 6)]
    assert [each.item.text for each in found.demotions] == [
        "- The shop deploys on Fridays,\n  never on Mondays"
    ]
    assert [each.warm.id for each in found.promotions] == [lesson.short_id]


@pytest.mark.req("W1")
def test_a_demoted_rule_becomes_a_lesson_and_leaves_the_hot_file(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    moved = demote(topology, "profile.md:6", "shop")
    assert moved.target == "user/memory/workspaces/shop/lessons.md:3"
    kept = (tmp_path / "user/memory/workspaces/shop/lessons.md").read_text("utf-8")
    assert "The shop deploys on Fridays, never on Mondays" in kept
    assert "Fridays" not in (tmp_path / RULES.hot / "profile.md").read_text("utf-8")
    with pytest.raises(NotFoundError):
        demote(topology, moved.source, "shop")


def test_a_rule_that_cannot_be_kept_warm_stays_hot(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE)
    for scope, error in (("nowhere", NotFoundError), ("../x", InputError)):
        with pytest.raises(error):
            demote(topology, "profile.md:4", scope)
    assert (tmp_path / RULES.hot / "profile.md").read_text("utf-8") == PROFILE


def test_a_rule_that_is_nearly_known_keeps_its_own_words(tmp_path: Path) -> None:
    topology = _root(tmp_path, profile="- Deploy the shop on Fridays between 9 and 11\n")
    demote(topology, "profile.md:1", "shop")
    (tmp_path / RULES.hot / "profile.md").write_text("- Deploy the shop on Fridays between 9 and 12\n")
    try:
        target = demote(topology, "profile.md:1", "shop").target
    except InputError:
        assert "12" in (tmp_path / RULES.hot / "profile.md").read_text("utf-8")
    else:
        assert target
        assert "12" in (tmp_path / "user/memory/workspaces/shop/lessons.md").read_text("utf-8")


@pytest.mark.req("W1")
def test_a_lesson_is_promoted_into_a_file_that_has_room(bank: Bank, tmp_path: Path) -> None:
    topology = _root(tmp_path, profile=PROFILE, flow="# Flow\n")
    lesson = bank.lessons.add("Always run the type checker before pushing")
    assert promote(topology, lesson.short_id, "flow", bank).target == "agent/rules/common/flow.md"
    text = (tmp_path / RULES.hot / "flow.md").read_text("utf-8")
    assert text == "# Flow\n\n- Always run the type checker before pushing\n"
    with pytest.raises(InputError, match="exceed its budget"):
        promote(topology, lesson.short_id, "profile.md", bank)
    for wrong in ("../x.md", "resources/x.md", "/etc/x.md"):
        with pytest.raises(InputError):
            promote(topology, lesson.short_id, wrong, bank)
    with pytest.raises(NotFoundError):
        promote(topology, "m-099", "flow", bank)
    with pytest.raises(NotFoundError):
        promote(topology, "nothing.md:3", "flow", bank)


@pytest.mark.req("W1")
def test_without_runs_what_names_one_workspace_goes_first_and_an_introduction_stays(tmp_path: Path) -> None:
    rules = "".join(f"- Preference {at} for all code\n" for at in range(4))
    text = (
        f"<!-- budget: 6 lines -->\n# Profile\n\nWho the user is.\n\n{rules}- The shop deploys on Fridays\n"
    )
    found, _ = measure_hot_files(_root(tmp_path, profile=text).root, RULES)
    demoted = hot.propose_demotions(found, {}, ("devtools", "shop"))
    assert demoted[0].names == ("shop",)
    assert not any("Who the user is" in each.item.text for each in demoted)
