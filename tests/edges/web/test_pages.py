"""The pages in a real browser: each opens, can be used by everybody, and trusts no text of the bank."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from archivist import Bank
from archivist.capture.service import CaptureOverrides
from archivist.records import Episode
from tests.edges.http_server import Served, serving
from tests.edges.web.conftest import Visitor, visit
from tests.edges.web.sites import ADA, HOSTILE, TASKS, fill_small
from tests.samples import lesson

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = {
    "/overview": "Overview",
    "/lessons": "Lessons",
    "/lessons?q=tests": "Lessons",
    "/runs": "Runs",
    "/runs/flow": "Tools and providers",
    "/live": "Live",
    "/checks": "Health",
    "/brief?task=fix+the+tests&repo=toolshed": "Brief preview",
    "/audit": "Did memory help?",
    "/audit?days=7": "Did memory help?",
    "/ledger": "Ledger",
    "/ledger?verify=1": "Ledger",
    "/knowledge": "Knowledge",
    "/tasks": "Tasks",
    "/core": "Core memory",
    "/proposals": "Proposals",
    "/workspace": "Workspace",
}
CORE = "/core?role=coder"
RUN, LESSON, TASK = "/runs/session-005", "/lessons/m-001", f"/tasks/{TASKS[0].replace(' ', '%20')}"


def _violations(page: Page, axe: str, rules: Sequence[str] = ()) -> list[Any]:
    # Evaluated past the policy of the page, which allows no script but ours.
    page.evaluate(axe)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found["violations"]]


def _check_page(visitor: Visitor, path: str, heading: str, axe: str, rules: Sequence[str] = ()) -> None:
    page = visitor.go(path)
    assert page.title().endswith("Archivist")
    if heading:
        assert page.get_by_role("heading", level=1).inner_text() == heading
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is too wide"
    assert len(page.content()) <= 100_000
    assert _violations(page, axe, rules) == [], path


@pytest.mark.req("A16", "M12")
@pytest.mark.parametrize(
    ("width", "scheme", "rules"),
    [
        ("desk", "light", ()),
        ("desk", "dark", ("color-contrast",)),
        ("phone", "light", ()),
        ("phone", "dark", ()),
    ],
)
def test_everybody_can_use_every_page(
    browser: Browser, small: Served, axe: str, width: str, scheme: Any, rules: Sequence[str]
) -> None:
    visitor = visit(browser, small, width=width, color_scheme=scheme)
    for path, heading in {**PAGES, RUN: "", LESSON: "", CORE: "", TASK: TASKS[0]}.items():
        _check_page(visitor, path, heading, axe, rules)
    visitor.context.close()
    assert visitor.problems == []


def test_axe_would_say_what_is_wrong(visitor: Visitor, axe: str) -> None:
    page = visitor.go("/lessons")
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<img><button></button>')")
    assert {rule for rule, _ in _violations(page, axe)} == {"image-alt", "button-name"}


def test_pages_of_an_empty_bank_say_what_to_do_next(browser: Browser, axe: str, tmp_path: Path) -> None:
    with serving(tmp_path / "new", "--quiet") as served:
        visitor = visit(browser, served)
        for path, heading in PAGES.items():
            _check_page(visitor, path, heading, axe)
        assert "archivist setup" in visitor.go("/overview").inner_text("main")
        assert "archivist lessons add" in visitor.go("/lessons").inner_text("main")
        assert "archivist capture" in visitor.go("/runs").inner_text("main")
        visitor.context.close()
        assert visitor.problems == []


def test_dark_is_dark(browser: Browser, small: Served) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        visitor = visit(browser, small, color_scheme=scheme)
        shown = visitor.go("/overview").evaluate("getComputedStyle(document.body).backgroundColor")
        colours[scheme] = sum(map(int, re.findall(r"\d+", shown)[:3]))
        visitor.context.close()
    assert colours["dark"] < 150 < 600 < colours["light"]


# Lessons


def test_search_answers_while_one_types(visitor: Visitor) -> None:
    page = visitor.go("/lessons")
    page.get_by_label("Search").press_sequentially("upstream branch")
    page.wait_for_url("**/lessons?q=upstream+branch")
    first = page.locator("#results li").first
    assert "git push" in first.inner_text()
    first.locator("summary").click()
    assert "relevance" in first.inner_text()
    # The address can be shared.
    page.reload()
    assert "git push" in page.locator("#results li").first.inner_text()


@pytest.mark.req("C10")
def test_a_lesson_shows_the_calls_that_taught_it(visitor: Visitor) -> None:
    page = visitor.go("/lessons?q=rm+build")
    page.locator("#results a.main").first.click()
    failed, worked = page.locator("figure.failed"), page.locator("figure.worked")
    assert "rm build" in failed.inner_text()
    assert "Is a directory" in failed.inner_text()
    assert "rm -rf build" in worked.inner_text()
    failed.get_by_role("link").click()
    page.wait_for_url("**/runs/session-*#step-*")
    assert page.locator("li.step.failed:target").count() == 1


def test_a_lesson_is_approved_edited_forgotten_and_brought_back(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        name = (
            bank.acting_as(bank.actor.parse("agent:kit"))
            .lessons.suggest("Deploys need a ticket")
            .lesson.short_id
        )
    page = visitor.go(f"/lessons/{name}")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Approved: runs are told").wait_for()
    assert "active" in page.locator("main .meta .status").first.inner_text()
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Summary").fill("Deploys need a ticket and a reviewer")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Deploys need a ticket and a reviewer").wait_for()
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("Forgotten: no run").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("The last change was undone").wait_for()
    assert page.locator("main .meta .status").first.inner_text() == "active"
    history = page.locator(".history").inner_text()
    for words in (
        "approved by human:ada",
        "edited by human:ada",
        "forgotten by human:ada",
        "undone by human:ada",
    ):
        assert words in history
    # What was edited: the words that differ, before and after.
    assert "Deploys need a ticket → Deploys need a ticket and a reviewer" in history


def test_a_retired_lesson_waits_for_nobody(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        agent = bank.acting_as(bank.actor.parse("agent:kit"))
        name = agent.lessons.suggest("Herons fish at the weir by dawn").lesson.short_id
    page = visitor.go(f"/lessons/{name}")
    assert page.get_by_text("No run is told this lesson yet").count() == 1
    page.get_by_role("button", name="Forget").click()
    page.get_by_text("Forgotten: no run").wait_for()
    assert page.get_by_text("No run is told this lesson yet").count() == 0
    listed = visitor.go("/lessons?status=archived").locator("#results li", has_text="Herons")
    assert "waits for approval" not in listed.inner_text()


def test_a_lesson_is_superseded_by_another(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        old, new = (
            bank.lessons.add(text).short_id
            for text in ("Ask Ada about tabs", "Widths are in the style guide")
        )
    page = visitor.go(f"/lessons/{old}")
    page.get_by_text("Supersede", exact=True).first.click()
    page.get_by_label("Lesson that says it better").fill(new)
    page.get_by_role("button", name="Supersede").click()
    page.get_by_text("Superseded by the other lesson").wait_for()
    assert page.locator(".notice").get_by_role("link", name=re.compile(new)).count() == 1


def test_keys_alone_find_and_forget_a_lesson(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        name = bank.lessons.add("Zebra crossings are painted at night").short_id
    page, keys = visitor.go("/lessons"), visitor.page.keyboard
    keys.press("/")
    keys.type("zebra crossings")
    page.wait_for_url("**q=zebra+crossings")
    page.get_by_text("Zebra crossings").wait_for()
    page.evaluate("document.activeElement.blur()")
    keys.press("j")
    keys.press("Enter")
    page.wait_for_url(f"**/lessons/{name}")
    for _ in range(60):
        keys.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Forget":
            break
    keys.press("Enter")
    page.get_by_text("Forgotten: no run").wait_for()


def test_a_chosen_row_stays_chosen_when_the_list_is_updated(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        name = bank.lessons.add("Quokkas rest under the jetty").short_id
        page, keys = visitor.go("/lessons?q=quokkas"), visitor.page.keyboard
        keys.press("j")
        bank.lessons.add("Quokkas are counted in spring")
    page.get_by_text("counted in spring").wait_for()
    assert page.locator("[data-at]", has_text="under the jetty").count() == 1
    keys.press("Enter")
    page.wait_for_url(f"**/lessons/{name}")


def test_texts_of_the_bank_are_shown_as_texts(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        name = bank.lessons.add(f"Hostile {HOSTILE}", rule=HOSTILE, tags=["<b>tag</b>"]).short_id
        bank.knowledge.put("<i>c", "k", HOSTILE, source="<u>s</u>")
        bank.attempts.log(HOSTILE[:60], agent="<b>kit</b>", action="failed", approach=HOSTILE)
    for path in (
        f"/lessons/{name}",
        "/lessons?q=hostile",
        "/overview",
        "/live",
        "/knowledge",
        "/tasks",
        "/brief",
    ):
        page = visitor.go(path)
        assert page.title() != "owned"
        assert page.locator("main img, main b, main i, main u, main script").count() == 0
        assert page.locator('[href^="javascript"]').count() == 0
        text = page.inner_text("main")
        assert not set(text) & {"\x1b", "\u202e"}
    shown = visitor.go(f"/lessons/{name}").inner_text("h1")
    assert "<script>document.title" in shown
    assert "red" in shown
    assert "{{ 7 * 7 }}" in shown


def test_a_question_on_the_overview_leads_to_the_moment_that_taught_the_answer(visitor: Visitor) -> None:
    page = visitor.go("/overview")
    page.get_by_label("Why is my agent told this?").fill("-rf")
    page.keyboard.press("Enter")
    page.wait_for_url("**/lessons?q=-rf")
    page.locator("#results a.main").first.click()
    assert "rm -rf build" in page.locator("figure.worked").inner_text()
    link = page.locator("figure.failed").get_by_role("link")
    # The run is named by its task and when it was; its id is for those who ask.
    assert re.fullmatch(rf"step \d+ of “({'|'.join(TASKS)})”", link.inner_text())
    assert re.fullmatch(r"session-\d+", link.get_attribute("title") or "")
    assert re.search(r"\d+ (min|h|d) ago", page.locator("figure.failed figcaption").inner_text())
    link.click()
    page.wait_for_url("**/runs/session-*#step-*")
    assert "Is a directory" in page.locator("li.step.failed:target").inner_text()


# Whether it helps


@pytest.mark.req("N2", "F9")
def test_whether_memory_helped_last_week_is_answered_first(visitor: Visitor, small: Served) -> None:
    page = visitor.go("/overview")
    short = page.locator(".answer").inner_text()
    page.get_by_role("link", name="Lesson by lesson").click()
    page.wait_for_url("**/audit?days=7")
    answer = page.locator(".answer").inner_text().replace("\xa0", " ")
    assert re.fullmatch(
        r"Probably: fewer failures than before\.\s+Last 7 days: 14 runs, \d lessons told \d+ times;"
        r" failures per run \d\.\d, in the 7 days before \d\.\d"
        r" \(change [+-]\d\.\d, 95 % interval [+-]\d\.\d to [+-]\d\.\d\)\.",
        answer,
    )
    assert short.replace("\xa0", " ").startswith(answer)
    with small.client() as client:
        asked = client.get("/api/audit/report", params={"days": 7}).json()
    headline, figures = asked["answer"]["headline"], asked["answer"]["figures"]
    assert headline == "probably, fewer failures than before"
    assert asked["answer"]["text"] == f"Last 7 days: {headline}. {figures}."
    assert figures in answer
    page.get_by_role("link", name="All", exact=True).click()
    assert "Since the first brief: " in page.locator(".answer").inner_text()
    today = time.strftime("%Y-%m-%d", time.gmtime())
    page.get_by_label("From").fill(today)
    page.get_by_label("To", exact=True).fill(today)
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(f"**/audit?from={today}&to={today}*")
    assert f"{today} to {today}: " in page.locator(".answer").inner_text()
    answers = [
        httpx.get(f"{small.url}/audit?{query}", headers={"Accept": "text/html"}, cookies=_cookies(visitor))
        for query in (
            "days=x",
            "from=tomorrow",
            "to=9999-12-31",
            "from=2026-02-02&to=2026-01-01",
            "days=7&from=2026-01-01",
        )
    ]
    assert [answer.status_code for answer in answers] == [400] * 5


def _cookies(visitor: Visitor) -> dict[str, str]:
    return {each["name"]: each["value"] for each in visitor.context.cookies()}


@pytest.mark.req("N2")
def test_every_page_shows_the_same_figure_of_what_helped(visitor: Visitor) -> None:
    listed = visitor.go("/lessons").locator("#results li", has_text="npm test").inner_text()
    figure = re.search(r"helped (\d+ of \d+)", listed)
    assert figure
    row = visitor.go("/audit").locator("tr", has_text="npm test")
    assert figure[1] in row.inner_text()
    page = visitor.go("/lessons?q=npm+test")
    page.locator("#results a.main").first.click()
    assert f"Helped {figure[1]}" in page.inner_text("main")
    page.get_by_role("link", name="helped", exact=True).click()
    page.wait_for_url("**/audit#helped")
    assert "had an occasion" in page.inner_text("#helped")


# Runs, layers and tiers


def test_a_timeline_folds_what_does_not_stand_out(visitor: Visitor) -> None:
    page = visitor.go(RUN)
    fold = page.locator("li.fold details").first
    assert page.locator("li.step.recovered").count() > 0
    before = page.locator("li.step").count()
    fold.locator("summary").click()
    fold.locator("ol li").first.wait_for()
    assert page.locator("li.step").count() > before


def test_a_conflict_and_a_proposal_are_decided(visitor: Visitor, small: Served) -> None:
    page = visitor.go("/knowledge")
    page.get_by_role("button", name="Use this instead").click()
    page.wait_for_url("**/knowledge")
    assert page.get_by_text("Conflicts to decide").count() == 0
    page = visitor.go("/proposals")
    card = page.locator("article").first
    name = card.get_attribute("id") or ""
    assert card.locator(".diff .add").count() > 0
    card.get_by_label("Reason").fill("we agreed on it")
    card.get_by_role("button", name="Accept").click()
    page.wait_for_url("**/proposals?done=accept*")
    page.get_by_text("we agreed on it").wait_for()
    with Bank.open(small.folder, actor=ADA) as bank:
        decided = bank.proposals.get(name)
        assert (decided.status.value, str(decided.decided_by)) == ("accepted", "human:ada")


def test_a_person_edits_core_memory_within_its_budget_and_undoes_it(
    visitor: Visitor, small: Served, axe: str
) -> None:
    page = visitor.go("/core")
    status = page.locator("#status")
    status.get_by_text("Edit", exact=True).click()
    status.get_by_label("Sprint").fill("Publish 1.1")
    status.get_by_label("Blockers").fill("the signing key\nthe release notes")
    status.get_by_role("button", name="Save").click()
    status.get_by_text("Saved.").wait_for()
    assert (
        "Sprint: Publish 1.1\nIn progress:\n- the release notes\nBlockers:\n- the signing key"
        in status.inner_text()
    )
    status.get_by_role("button", name="Undo").click()
    status.get_by_text("The last change was undone.").wait_for()
    assert "Publish 1.0" in status.inner_text()
    # Too long: nothing is saved, and nothing that was typed is lost.
    lessons, long = page.locator("#lessons"), "word " * 4_000
    lessons.get_by_text("Edit", exact=True).click()
    lessons.get_by_label("Text").fill(long)
    lessons.get_by_role("button", name="Save").click()
    assert "at most 1,000" in lessons.get_by_role("alert").inner_text()
    assert lessons.get_by_label("Text").input_value().strip() == long.strip()
    assert _violations(page, axe) == []
    # A person who may approve changes the rules at once; the ledger keeps it as a proposal.
    rules = visitor.go("/core").locator("#rules")
    rules.get_by_text("Edit", exact=True).click()
    rules.get_by_label("Text").fill("Never push to main <b>\nAsk first")
    rules.get_by_label("Reason").fill("we agreed")
    rules.get_by_role("button", name="Save").click()
    rules.get_by_text("Saved.").wait_for()
    assert "Never push to main <b>\nAsk first" in rules.inner_text()
    with Bank.open(small.folder, actor=ADA) as bank:
        made = bank.proposals.list()[-1]
        assert (made.reason, made.status.value, str(made.decided_by)) == (
            "we agreed",
            "accepted",
            "human:ada",
        )
    rules.get_by_role("button", name="Undo").click()
    rules.get_by_text("The last change was undone.").wait_for()
    assert "Never push" not in rules.inner_text()


@pytest.mark.req("C10")
def test_who_may_not_approve_proposes_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVIST_ACTOR", "human:ada")
    with (
        serving(tmp_path / "new", "--quiet", settings=("proposals.approvers=human:zoe",)) as served,
        httpx.Client(base_url=served.url, follow_redirects=True, headers={"Accept": "text/html"}) as client,
    ):
        client.get(served.link)
        shown = client.get("/core").text
        assert shown.count(">Propose</button>") == 2
        answer = client.post("/core/rules/edit", data={"text": "Ask first", "reason": "we agreed"})
        assert (answer.url.path, "we agreed" in answer.text) == ("/proposals", True)
        assert "Ask first" not in client.get("/core").text
        paths = ("/core/nothing/edit", "/core/status/paint", "/core/rules/undo")
        assert [client.post(path, data={"x": "y"}).status_code for path in paths] == [400, 404, 404]


@pytest.mark.req("M12")
def test_a_task_and_its_run_show_attempts_and_whether_files_are_unchanged(
    visitor: Visitor, small: Served
) -> None:
    listed = visitor.go("/tasks").inner_text("main")
    for words in ("notes.md", "Publish 1.0", "Announce it", "Attempts per task"):
        assert words in listed
    text = visitor.go(TASK).inner_text("main")
    assert "worked every time (2)" in text
    assert "retry the flaky test" in text
    assert re.search(r"notes\.md\s+.*unchanged", visitor.go("/runs/session-004").inner_text("main"))
    (small.folder / "notes.md").write_text("Changed since.\n")
    assert re.search(r"notes\.md\s+.* changed", visitor.go("/runs/session-004").inner_text("main"))


def test_runs_are_found_by_words_of_their_task(visitor: Visitor) -> None:
    task = visitor.go("/runs").locator("main a[href^='/runs/session']").first.inner_text()
    word = max(task.split(), key=len)
    assert task in visitor.go(f"/runs?task={word}").inner_text("main")
    assert "No run fits." in visitor.go("/runs?task=nothing-has-this").inner_text("main")


def test_a_run_leads_to_the_other_runs_of_its_task_however_long_that_is(
    visitor: Visitor, small: Served
) -> None:
    task = "Implement the following plan:\n\n# Mend the sail\n" + "a line of it, with / and ? and #\n" * 200
    with Bank.open(small.folder) as bank:
        for number in range(2):
            bank.capture(Episode(id=f"long-{number}", project="toolshed", task=task), ())
    page = visitor.go("/runs/long-1")
    assert page.get_by_role("heading", level=1).inner_text() == "Mend the sail"
    page.get_by_role("link", name="All runs of this task").click()
    assert page.locator("main a[href='/runs/long-0']").count() == 1


def test_the_preview_says_what_a_run_would_be_told_and_what_not(visitor: Visitor) -> None:
    page = visitor.go("/brief?repo=toolshed")
    page.get_by_label("Task").press_sequentially("clean the build folder")
    page.wait_for_url("**task=clean+the+build+folder**")
    text = page.inner_text("#results")
    assert "rm -rf build" in page.inner_text("pre.brief")
    assert "tokens of" in text
    assert re.search(r"m-\d+: met in \d+ runs?", text)
    assert "chance that the next run meets it" in text
    assert "What was left out" in text


def _shown_brief(visitor: Visitor, path: str) -> str:
    return visitor.go(path).locator("pre.brief").inner_text().strip()


def test_the_preview_is_what_the_command_prints_in_the_folder(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVIST_ACTOR", "human:ada")
    folder = fill_small(tmp_path / "toolshed", runs=9)

    def run(*words: str) -> str:
        command = [str(Path(sys.executable).parent / "archivist"), *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
        return done.stdout.strip()

    run("lessons", "add", "--global", "Wombats dig at night")
    printed = run("brief")
    assert "Wombats dig" in printed
    assert "rm -rf build" in printed
    with serving(folder, "--quiet") as served:
        visitor = visit(browser, served)
        assert _shown_brief(visitor, "/brief") == printed
        assert _shown_brief(visitor, "/brief?provider=claude") == run("brief", "--provider", "claude")
        assert _shown_brief(visitor, "/brief?task=clean") == run("brief", "--task", "clean")
        visitor.context.close()
        # The global bank is the user's own: whoever comes in by a token is not shown it.
        other = visit(browser, served, sign_in=False)
        _sign_in(other.page, served, served.token("human:bo"))
        other.page.wait_for_url("**/overview")
        shown = _shown_brief(other, "/brief")
        assert "rm -rf build" in shown
        assert "Wombats" not in shown
        other.context.close()
    with Bank.open(folder, actor=ADA) as bank, bank.global_bank() as global_bank:
        assert bank.brief(global_bank=global_bank).text.strip() == printed


def test_a_run_that_was_started_is_live_until_it_is_finished(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        bank.runs.start_run("started-1", task="Paint the boathouse", repo="toolshed", provider="claude")
        listed = visitor.go("/live").locator("#live > section > ul > li", has_text="Paint the boathouse")
        assert "told m-" in listed.inner_text()
        assert visitor.go("/runs").get_by_role("link", name=re.compile(r"running now")).count() == 1
        bank.runs.finish(overrides=CaptureOverrides(run="started-1"))
    assert visitor.go("/live").locator("#live > section li", has_text="Paint the boathouse").count() == 0


def test_the_overview_shows_one_figure_of_failures(visitor: Visitor) -> None:
    text = visitor.go("/overview").inner_text("main")
    assert len(re.findall(r"failures per run", text, re.IGNORECASE)) == 2  # the answer, and the chart's title
    assert "at first" not in text
    assert "→" not in text


def test_ageing_is_named_as_what_it_is(visitor: Visitor, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        # What a person wrote does not age.
        with bank.transaction() as writer:
            aged = lesson("swifts", summary="Swifts nest under the eaves", number=writer.next_number())
            writer.put(aged, "add")
        name = aged.short_id
        for number in range(11):
            bank.lessons.decay(f"ageing-{number}")
    history = visitor.go(f"/lessons/{name}").locator(".history").inner_text()
    assert "aged by archivist" in history
    assert "decay" not in history
    assert "lesson aged by archivist" in visitor.go("/ledger").inner_text("main")


def test_a_live_page_shows_what_another_process_does_within_a_second(visitor: Visitor, small: Served) -> None:
    page = visitor.go("/live")
    page.get_by_text("Connected: updates").wait_for()
    waits = []
    for animal in ("Otters", "Puffins", "Badgers"):
        words = ["lessons", "add", f"{animal} sleep near the {animal.lower()} colony"]
        command = [str(Path(sys.executable).parent / "archivist"), "--bank", str(small.folder), *words]
        subprocess.run(command, check=True, capture_output=True)
        written = time.monotonic()
        page.get_by_text(f"{animal} sleep").first.wait_for()
        waits.append(time.monotonic() - written)
    # The best of three: the machine does other things meanwhile.
    assert min(waits) <= 1.0


# Who may do what


def _sign_in(page: Page, served: Served, secret: str) -> None:
    page.goto(served.url)
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Sign in").click()


def test_the_link_works_again_while_the_server_runs(browser: Browser, small: Served) -> None:
    for _ in range(2):
        visitor = visit(browser, small)
        assert visitor.page.url == f"{small.url}/overview"
        visitor.context.close()


def test_a_token_that_only_reads_sees_no_button(browser: Browser, small: Served) -> None:
    visitor = visit(browser, small, sign_in=False)
    _sign_in(visitor.page, small, small.token("agent:kit"))
    visitor.page.wait_for_url("**/overview")
    assert "read only" in visitor.page.inner_text("header")
    for path in (LESSON, "/knowledge", "/proposals", "/core", CORE):
        assert visitor.go(path).locator("main form[method=post], main button").count() == 0
    answer = visitor.context.request.post(
        f"{small.url}/core/status/edit", form={"sprint": "mine"}, headers={"Origin": small.url}
    )
    assert answer.status == 403
    visitor.context.close()


def test_changes_are_named_by_lesson_and_task_but_not_to_agents(
    browser: Browser, visitor: Visitor, small: Served
) -> None:
    words = "Kestrels nest on the mast"
    with Bank.open(small.folder, actor=ADA) as bank:
        bank.acting_as(bank.actor.parse("agent:kit")).lessons.suggest(words)
        bank.attempts.log(TASKS[0], agent="kit", action="failed", approach="ask the kestrels")
    for path in ("/ledger", "/live"):
        listed = visitor.go(path).locator(".entries")
        assert listed.get_by_role("link", name=re.compile(words)).count() > 0, path
        assert listed.get_by_role("link", name=TASKS[0]).count() > 0, path
    agent = visit(browser, small, sign_in=False)
    _sign_in(agent.page, small, small.token("agent:mo"))
    agent.page.wait_for_url("**/overview")
    for path in ("/ledger", "/live"):
        assert words not in agent.go(path).inner_text("main"), path
    agent.context.close()


def test_a_token_that_ended_is_asked_for_again(browser: Browser, small: Served) -> None:
    with Bank.open(small.folder, actor=ADA) as bank:
        issued = bank.tokens.create("human:bo")
        visitor = visit(browser, small, sign_in=False)
        _sign_in(visitor.page, small, "arch_wrong")
        visitor.page.get_by_text("The token is unknown here").wait_for()
        _sign_in(visitor.page, small, issued.secret)
        visitor.page.wait_for_url("**/overview")
        bank.tokens.revoke(issued.token.id)
    visitor.page.goto(f"{small.url}/lessons")
    assert visitor.page.get_by_role("heading", level=1).inner_text() == "Sign in"
    visitor.context.close()


def test_forms_of_other_sites_are_refused(small: Served) -> None:
    with httpx.Client(base_url=small.url, follow_redirects=True) as client:
        client.get(small.link)
        before = client.get("/api/lessons/m-001").json()["lesson"]["status"]
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            answer = client.post("/lessons/m-001/forget", data={"x": "y"}, headers=headers)
            assert answer.status_code == 403
        assert client.post("/lessons/m-001/forget", json={}).status_code == 415
        assert client.get("/api/lessons/m-001").json()["lesson"]["status"] == before
    assert httpx.post(f"{small.url}/lessons/m-001/forget", data={"x": "y"}).status_code == 401


def test_pages_allow_no_script_but_their_own(small: Served) -> None:
    with httpx.Client(base_url=small.url, follow_redirects=True, headers={"Accept": "text/html"}) as client:
        answer = client.get(small.link)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(
            r"<script(?! type=\"module\" src=\"/static/)|<[^>]*\s(on\w+|style)=", answer.text
        )
        assert client.get("/static/..%2frendering.py").status_code == 404
        assert client.get("/no/such/page").status_code == 404
