"""Reading a bank.md: its state, its cycles, and everything else as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.archive.bank_markdown import (
    CycleLine,
    list_sections,
    parse_bank,
    role_name,
    text_without_parts,
)

BANK = """# 🧠 Memory Bank

> Every role reads this.
> **Last updated:** 2026-02-09 11:27:00 EST | **Cycle:** 199 | **Version:** 8

---

## Current Status

### Active Sprint

- **Sprint 0:** COMPLETE ✅
- **Sprint 1:** 2026-02-14 → 2026-02-28 — Goal: ship the alpha

### Launch Status (Issue #26)

**All criteria are met.**

### In Progress

- **PR #103:** Flaky latency test — (Cycle 193, Engineering) — waits for review
- **Issue #84:** Headless mode
  - with a nested line

### Recently Shipped

- **PR #100:** `--export` flag — merged (Cycle 194, Ops)

### Blockers

- None 🎉

---

## Role State

### 👔 CEO — The Founder

- **Last action:** Cycle 196 review agenda — wrote it down
- **Working on:** The launch
- **Next:** Review on day 17
- **Strategy:** Free first

### 🔬 Research

- **Last:** Literature review (C188). Read two papers, updated #95. **40 in a row (C149-188)**
- **Next:** —

---

## Active Threads

- **#155** (P0, CEO, L) — Container — **the priority**
- **Engineering → QA:** PR #103 waits
- (none yet)

## Recent Cycles

- Cycle 197 (growth): Application draft
- **C198** · research — Looked into #91
- A line of no cycle

| Cycle | Role | Action |
|---|---|---|
| C199 | ops | Merged PR #103 |

```text
- Cycle 1 (nobody): not a line of a cycle
```

## Project Metrics

- **Cycles:** 199
"""


@pytest.mark.req("C9")
def test_state_is_read_from_its_sections() -> None:
    page = parse_bank(BANK)
    assert f"{page.updated:%Y-%m-%d %H:%M}" == "2026-02-09 11:27"
    assert page.sprint.startswith("Sprint 1: 2026-02-14")
    assert page.lists["in_progress"][1] == "Issue #84: Headless mode - with a nested line"
    assert (page.lists["blockers"], len(page.lists["recently_shipped"])) == ([], 1)
    assert page.roles == {
        "ceo": {
            "last_action": "Cycle 196 review agenda — wrote it down",
            "next_action": "Review on day 17",
            "working_on": "The launch",
        },
        "research": {
            "last_action": "Literature review (C188). Read two papers, updated #95. 40 in a row (C149-188)"
        },
    }
    assert [(thread.id, thread.roles) for thread in page.threads.values()] == [
        ("#155", ("ceo",)),
        ("engineering-qa", ()),
    ]
    assert page.threads["#155"].summary == "(P0, CEO, L) — Container — the priority"


@pytest.mark.req("C9")
def test_lines_of_cycles_are_read_with_their_roles() -> None:
    assert [(line.cycle, line.role, line.action) for line in parse_bank(BANK).cycles] == [
        (188, "research", "Literature review"),
        (193, "engineering", "PR #103: Flaky latency test"),
        (194, "ops", "PR #100: `--export` flag — merged"),
        (196, "ceo", "Cycle 196 review agenda"),
        (197, "growth", "Application draft"),
        (198, "research", "Looked into #91"),
        (199, "ops", "Merged PR #103"),
    ]
    assert parse_bank(BANK).cycles[0] == CycleLine(
        188,
        "research",
        "Literature review",
        "(C188). Read two papers, updated #95. 40 in a row (C149-188)",
    )


@pytest.mark.req("C9")
def test_what_was_taken_is_gone_from_the_rest_and_nothing_else() -> None:
    page = parse_bank(BANK)
    left = text_without_parts(page, {part for parts in page.parts for part in parts})
    for gone in (
        "Sprint 1",
        "Headless",
        "nested",
        "Literature",
        "Container",
        "Recently Shipped",
        "### Blockers",
    ):
        assert gone not in left
    for kept in ("Sprint 0", "Launch Status", "Free first", "A line of no cycle", "not a line of a cycle",
                 "**Cycles:** 199", "Every role reads this", "(none yet)"):  # fmt: skip
        assert kept in left
    assert left.count("\n") == BANK.count("\n")
    assert text_without_parts(page, set()) == BANK


def test_a_part_that_was_refused_stays() -> None:
    page = parse_bank(BANK)
    left = text_without_parts(page, {"sprint", "role:research", "cycles"})
    assert "The launch" in left
    assert "**#155**" in left
    assert "Literature" not in left


@pytest.mark.parametrize(
    ("heading", "role"),
    [("👔 CEO — The Founder", "ceo"), ("⚙️ Engineering", "engineering"), ("QA (The Inspector)", "qa"),
     ("Dev Rel", "dev-rel"), ("🎉", "")],
)  # fmt: skip
def test_roles_are_named_plainly(heading: str, role: str) -> None:
    assert role_name(heading) == role


_lines = st.sampled_from([*BANK.split("\n"), "- ", "###", "## Role State", "- **Last:**", "| | |", "```"])


@pytest.mark.req("C9")
@given(st.one_of(st.text(max_size=300), st.lists(_lines, max_size=60).map("\n".join)))
def test_every_line_is_in_a_part_or_in_the_rest(text: str) -> None:
    page = parse_bank(text)
    parts = {part for each in page.parts for part in each}
    left = text_without_parts(page, parts).split("\n")
    for line, taken, now in zip(page.lines, page.parts, left, strict=True):
        assert taken or now == line or line.startswith("#")


@pytest.mark.req("C9")
@pytest.mark.parametrize(
    "status",
    [
        "**Sprint:** Sprint 4\n**In Progress:**\n- a\n- b\n\n**Blockers:**\n\n- c",
        "- **Sprint:** Sprint 4\n- **In Progress:**\n  - a\n  - b\n- **Blockers:** c",
        "### 🏃 Sprint\n- Sprint 4\n### 🚧 In Progress:\n- a\n- b\n### Blockers\n- c",
    ],
)
def test_a_status_is_read_from_labels_as_from_headings(status: str) -> None:
    page = parse_bank(f"## Current Status\n\n{status}\n\n## Notes\n\nLeft.\n\n### Deeper\n\nToo.\n")
    assert (page.sprint, page.lists["in_progress"]) == ("Sprint 4", ["a", "b"])
    assert page.lists["blockers"] == ["c"]
    left = text_without_parts(page, {part for parts in page.parts for part in parts})
    assert list_sections(left) == ("Notes",)
    assert "Sprint 4" not in left
    assert list_sections("# Title\n\n```\n## No heading\n```\n") == ()


def test_a_label_that_says_there_is_nothing_empties_its_list() -> None:
    page = parse_bank("## Current Status\n**Blockers:** None\n**Sprint:**\n")
    assert (page.lists["blockers"], page.sprint) == ([], "")
    assert "blockers" in page.parts[1]


@pytest.mark.req("C9")
def test_what_shipped_in_a_cycle_is_an_entry_also_without_a_role() -> None:
    page = parse_bank(
        "# Bank\n\n## Current Status\n\n### Recently Shipped\n\n- PR #110 heat scoring (Cycle 214)\n"
    )
    assert page.cycles == [CycleLine(214, "", "PR #110 heat scoring", "(Cycle 214)")]
    assert page.lists["recently_shipped"] == ["PR #110 heat scoring (Cycle 214)"]


@pytest.mark.req("C9")
def test_one_line_of_several_threads_is_a_thread_each() -> None:
    lines = "- **#127, #128, #132** (P1) \u2014 Ops/Growth/CEO\n- #7 (fp), #9\n"
    page = parse_bank(f"# Bank\n\n## Active Threads\n\n{lines}")
    assert {name: thread.summary for name, thread in page.threads.items()} == {
        **dict.fromkeys(("#127", "#128", "#132"), "(P1) \u2014 Ops/Growth/CEO"),
        "#7": "(fp)",
        "#9": "#7 (fp), #9",
    }
    # One that found no room leaves the line where it is.
    assert "#128" in text_without_parts(page, {"thread:#127", "thread:#132"})
    assert "#128" not in text_without_parts(page, {"thread:#127", "thread:#128", "thread:#132"})


@pytest.mark.req("C9")
def test_numbered_lessons_several_numbers_on_a_line_and_roles_between_arrows_are_read() -> None:
    page = parse_bank(
        "# Bank\n\n## Current Status\n\n### In Progress\n\n- #95 stream, #84 headless\n\n"
        "## Lessons Learned\n\n1. Review before the rotation\n2) Merge small\n\n"
        "## Active Threads\n\n- ops <-> research: who runs the bench\n- #12 parser, #13 docs\n"
    )
    assert page.lists["in_progress"] == ["#95 stream", "#84 headless"]
    assert page.lessons == ["Review before the rotation", "Merge small"]
    roles = {name: thread.roles for name, thread in page.threads.items()}
    assert ("ops", "research") in roles.values()
    assert {"#12", "#13"} <= page.threads.keys()
