"""Finding by the command line: recall, and the doctor on what makes it possible."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import exp
from pathlib import Path
from typing import Any

import pytest

from archivist import Bank
from tests.conftest import Command, Ran
from tests.samples import MISSING_MODULE, agent_log

_EVERY_KIND = ("--kind", "lesson", "--kind", "episode", "--kind", "event")


def _json(ran: Any) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def _logs(project: Path, *sessions: str) -> None:
    for session in sessions:
        agent_log(
            project / f"{session}.jsonl", MISSING_MODULE, session=session, prompt="Fix the invoice rounding"
        )


@pytest.fixture
def told(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command where runs and lessons are known, in this process: many calls, one question each."""
    from archivist.edges.cli.main import main

    _logs(project, "s-1", "s-2")
    with Bank.open(project, create=True) as bank:
        for name in ("s-1.jsonl", "s-2.jsonl"):
            bank.runs.capture_file(project / name)
        list(bank.reflections.reflect_waiting())
        bank.lessons.add("The tests hang while the broker is down", tags=("broker",))
        bank.lessons.add("Use tabs in the Makefile")
        list(bank.vectors.embed_waiting())
    monkeypatch.chdir(project)

    def run(*words: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        return Ran(int(str(ended.value.code)), *capsys.readouterr())

    return run


def test_recall_prints_the_best_first(told: Command) -> None:
    ran = told("recall", "tests hang")
    assert (ran.code, ran.err) == (0, "")
    first, text = ran.out.splitlines()[:2]
    assert re.fullmatch(r"\d\.\d\d  lesson  m-\d{3}  \d{4}-\d\d-\d\d", first)
    assert text == "      The tests hang while the broker is down"
    assert told("recall", "tests hang", "--max", "1").out == f"{first}\n{text}\n"


@pytest.mark.req("A5", "C3")
@pytest.mark.parametrize("preset", ["archivist", "generative"])
def test_the_parts_of_every_explained_score_add_up(told: Command, preset: str) -> None:
    words = ("recall", "freezegun tests hang", "--explain", "--preset", preset, *_EVERY_KIND)
    lines = told(*words).out.splitlines()
    heads = [float(line.split()[0]) for line in lines if re.match(r"\d", line)]
    parts = [line.split("[")[0] for line in lines if line.startswith("      = ")]
    assert len(heads) == len(parts) >= 3
    for head, part in zip(heads, parts, strict=True):
        summed = [float(w) * float(v) for w, v in re.findall(r"([\d.]+)·\w+ ([\d.]+)", part)]
        assert len(summed) == 3
        assert sum(summed) == pytest.approx(head, abs=0.02)


@pytest.mark.req("C5")
def test_nothing_found_is_explained_also_in_a_small_bank(told: Command, project: Path) -> None:
    question = "which file lists the orchids in the greenhouse of the neighbours"
    things = ("cache", "queue", "gateway", "worker", "album", "upload", "proxy")
    with Bank.open(project) as bank:
        for number in range(35):
            thing = things[number % 7]
            bank.lessons.add(f"The {thing} of host {number} needs the file {thing}-{number}.toml")
        list(bank.vectors.embed_waiting())
    plain = told("recall", question)
    assert (plain.code, plain.out, plain.err) == (0, "", "nothing found\n")
    explained = told("recall", question, "--explain").err
    assert re.search(r"nothing found: too little evidence: -?\d\.\d\d of \d\.\d\d needed", explained)
    assert "no text has lists, orchids, greenhouse, neighbours" in explained
    assert "album-4.toml" in told("recall", "which file does the album of host 4 need").out.splitlines()[1]


def test_the_parts_of_relevance_add_up(told: Command) -> None:
    ran = told("recall", "freezegun tests hang", "--explain", *_EVERY_KIND)
    lines = ran.out.splitlines()
    heads = [float(line.split()[0]) for line in lines if re.match(r"\d", line)]
    parts = [line for line in lines if line.startswith("      = relevance ")]
    assert len(heads) == len(parts) >= 3
    for head, part in zip(heads, parts, strict=True):
        if ", here " in part:
            # It repeats a better hit word for word, and stands behind the others.
            assert head <= float(re.findall(r"relevance ([\d.]+)", part)[0])
            continue
        inside, _, standing = part[part.index("[") + 1 :].rstrip("]").partition(", ")
        weighed = sum(
            float(w) * float(v) for w, v in re.findall(r"([\d.]+)·(?:words|meaning) ([\d.]+)", inside)
        )
        extra = sum(float(value) for value in re.findall(r"(?:neighbours|speaker) ([\d.]+)", inside))
        factor = float(standing.split("·")[0]) if standing else 1.0
        total = (weighed + extra) * factor
        assert total == pytest.approx(float(re.findall(r"exp\(-([\d.]+)\)", part)[0]), abs=0.05)
        assert 1 - exp(-total) == pytest.approx(head, abs=0.05)
    assert ran.err.startswith("words: ")
    assert "vectors: static" in ran.err


def test_recall_as_json(told: Command) -> None:
    found = _json(told("recall", "tests hang", "--json", "--preset", "archivist", "--window", "1"))
    assert found["weights"] == {"importance": 0.4, "recency": 0.3, "relevance": 0.3}
    for hit in found["hits"]:
        assert set(hit) == {
            "id",
            "uid",
            "kind",
            "text",
            "score",
            "time",
            "notes",
            "window",
            "parts",
            "provenance",
        }
        assert set(hit["parts"]) >= {"importance", "recency", "relevance", "words", "meaning", "cosine"}
        total = sum(found["weights"][name] * hit["parts"][name] for name in found["weights"])
        assert hit["score"] == pytest.approx(total, abs=1e-4)
    assert _json(told("lessons", "show", found["hits"][0]["id"], "--json"))


def test_recall_of_each_kind(told: Command) -> None:
    for kind in ("lesson", "episode", "event"):
        found = _json(told("recall", "freezegun invoice rounding", "--kind", kind, "--json"))["hits"]
        assert {hit["kind"] for hit in found} == {kind}


def test_the_filters_of_recall(told: Command) -> None:
    def count(*words: str) -> int:
        return len(_json(told("recall", "tests hang freezegun", "--json", *words))["hits"])

    assert count("--tag", "broker") == 1
    assert count("--kind", "event", "--run", "s-1") > 0
    assert count("--run", "nobody") == count("--since", "2100-01-01") == count("--until", "1990-01-01") == 0
    assert count("--role", "nobody") == count("--provider", "nobody") == count("--domain", "nobody") == 0
    assert count("--since-cycle", "1") == count("--repo", "nobody") == count("--tool", "nobody") == 0
    assert count("--kind", "lesson", "--importance", "1") == 0
    assert count("--kind", "lesson", "--kind", "episode") > 1


@pytest.mark.parametrize(
    "words",
    [
        "", "x --kind rumour", "x --preset whim", "x --importance much",
        "x --max 0", "x --max many", "x --window -1", "x --since someday", "x --since-cycle one",
    ],
)  # fmt: skip
def test_a_wrong_call_of_recall_exits_2(told: Command, words: str) -> None:
    ran = told("recall", *words.split())
    assert (ran.code, ran.out, "Traceback" in ran.err) == (2, "", False)


@pytest.mark.parametrize("importance", ["7", "-1", "nan"])
def test_an_importance_that_is_none_exits_4(told: Command, importance: str) -> None:
    ran = told("recall", "x", "--importance", importance)
    assert (ran.code, ran.out) == (4, "")
    assert f"importance: {importance} is not between 0 and 1" in ran.err


def test_without_a_bank_recall_and_doctor_say_what_to_do(archivist: Command) -> None:
    for words in (["recall", "x"], ["doctor"], ["doctor", "--reindex"]):
        ran = archivist(*words)
        assert (ran.code, bool(ran.out)) == (5, words == ["doctor"])
        assert "hint: archivist setup makes one" in ran.err


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_question_that_says_nothing_finds_nothing(bank_cli: Command, is_fresh: bool) -> None:
    bank_cli("lessons", "add", "Use tabs in the Makefile")
    if not is_fresh:
        bank_cli("doctor", "--reindex")
    refused = bank_cli("recall", "--", "")
    assert (refused.code, refused.out) == (2, "")
    for question in ("?!… --", "\udcff"):
        ran = bank_cli("recall", "--", question)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.splitlines()[0] == "nothing found"


def test_a_question_of_a_hundred_thousand_characters_is_answered(bank_cli: Command) -> None:
    bank_cli("lessons", "add", "Use tabs in the Makefile")
    assert "Makefile" in bank_cli("recall", "tabs " * 20_000).out
    for unit in ("a", "-", "x.y/"):
        ran = bank_cli("recall", "--", unit * (100_000 // len(unit)))
        assert (ran.code, "Traceback" in ran.err) == (0, False)


def test_doctor_says_what_waits_and_reindexing_helps(bank_cli: Command, project: Path) -> None:
    assert bank_cli("doctor").code == 0
    bank_cli("lessons", "add", "Use tabs in the Makefile")
    assert bank_cli("doctor").code == 0
    assert "hint" not in bank_cli("recall", "tabs").err
    with Bank.open(project) as bank:
        for number in range(60):
            bank.lessons.add(f"Lesson number {number}")
    ran = bank_cli("doctor")
    assert (ran.code, ran.err) == (1, "")
    assert re.search(
        r"^warn  vectors      61 texts wait for static\S*: archivist doctor --reindex$", ran.out, re.MULTILINE
    )
    assert "ok    ledger" in ran.out
    assert "hint: 61 texts not yet found by meaning" in bank_cli("recall", "tabs").err
    mended = bank_cli("doctor", "--reindex")
    assert (mended.code, mended.out.count("ok  "), "warn" in mended.out) == (0, 21, False)
    assert _json(bank_cli("doctor", "--json")) == {
        "checks": [
            {"name": name, "ok": True, "text": text}
            for name, text in (line[6:].split(maxsplit=1) for line in mended.out.splitlines())
        ]
    }
    assert bank_cli("recall", "tabs").err == ""


def test_doctor_sees_a_waiting_run_and_a_broken_ledger(bank_cli: Command, project: Path) -> None:
    _logs(project, "s-1")
    bank_cli("capture", "s-1.jsonl")
    bank_cli("doctor", "--reindex")
    ran = bank_cli("doctor")
    assert (ran.code, "warn  reflection   1 run waits: archivist reflect" in ran.out) == (1, True)
    bank_cli("reflect")
    bank_cli("doctor", "--reindex")
    assert bank_cli("doctor").code == 0
    code = (
        "import apsw; db = apsw.Connection('.archivist/memory.db');"
        "db.execute(\"UPDATE episodes SET task = 'forged'\"); db.close()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True)
    ran = bank_cli("doctor")
    assert (ran.code, "warn  ledger" in ran.out) == (1, True)


def test_doctor_wants_no_vectors_where_there_is_no_embedder(bank_cli: Command, project: Path) -> None:
    (project / ".archivist" / "config.toml").write_text('[recall]\nembedder = "none"\n')
    bank_cli("lessons", "add", "Use tabs in the Makefile")
    ran = bank_cli("doctor")
    assert (ran.code, "recall.embedder is none" in ran.out) == (0, True)
    assert "vectors: none" in bank_cli("recall", "tabs", "--explain").err


@pytest.mark.req("C12")
def test_several_banks_are_asked_by_repeating_the_option(
    told: Command, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Bank.open(other, create=True) as bank:
        bank.lessons.add("The tests hang without a display")
    hits = _json(told("recall", "tests hang", "--bank", str(project), "--bank", str(other), "--json"))["hits"]
    assert {hit["bank"] for hit in hits} == {project.name, "other"}
