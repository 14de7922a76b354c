"""What came back, what was left and what was decided anew, from types, numbers and titles in any language."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.stream.entries import find_references
from archivist.stream.insight_text import Insight
from archivist.stream.insights import insights
from tests.stream.lines import read_lines

# Thirty cycles of work that has nothing to do with what is told.
_QUIET = "\n".join(f"{cycle}|ops|a|5|{text}" for cycle, text in enumerate(
    ("Swapped the lamps", "Washed the vans", "Filed the permits", "Oiled the hinges", "Sorted the keys",
     "Mapped the shelves", "Bought gloves", "Cut the hedge", "Framed the poster", "Rolled the carpet"), 3
))  # fmt: skip


def _told(lines: str, kind: str = "") -> list[Insight]:
    entries = read_lines(
        "\n".join(sorted(filter(str.strip, lines.splitlines()), key=lambda line: int(line.split("|")[0])))
    )
    found = insights(entries, others=entries)
    return [each for each in found if not kind or kind in each.tags]


@pytest.mark.req("C7")
def test_one_pull_request_takes_no_issue_with_it() -> None:
    assert find_references("Lock for the ledger, PR #49, #27")[:2] == ((27,), (49,))
    assert find_references("PRs #49, #27 and pull requests #3, #4")[:2] == ((), (49, 27, 3, 4))


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Der Chor probt montags #7", "Der Chor probt doch freitags, montags ist der Saal belegt #7"),
        ("Gäste zahlen mit Karte statt bar im Kiosk", "Zurück zu bar im Kiosk, Karte kostet Gäste zu viel"),
        ("Quizabende nur online, CLUB-3", "Quizabende wieder im Keller, CLUB-3"),
    ],
)
def test_the_later_decision_on_one_thing_holds(first: str, second: str) -> None:
    (told,) = _told(f"1|chef|d|6|{first}\n5|chef|d|6|{second}", "decisions")
    assert told.action.endswith(f"; before: “{first}” (cycle 1)")
    assert second in told.action
    assert f"It replaced “{first}” (cycle 1, chef)." in told.content
    assert "Holds" not in told.content


@pytest.mark.req("C7")
def test_decisions_under_one_number_about_different_things_are_not_called_reversed() -> None:
    lines = "1|pm|d|6|Lockers get numbers, #7\n5|pm|d|6|Tickets are printed at noon, #7"
    assert _told(lines, "decisions") == []


@pytest.mark.req("C7")
def test_a_decision_replaces_the_one_of_its_own_number() -> None:
    lines = """
    1|pm|d|6|Season goal: night tours with audio, see #30
    3|pm|d|6|Children may join the night tours #31
    5|pm|d|6|Children stay out of the night tours this season, insurance #31
    """
    (told,) = _told(lines, "decisions")
    assert "before: “Children may join the night tours #31”" in told.action


@pytest.mark.req("C7")
def test_all_reports_count_and_what_was_seen_after_the_last_work_is_how_it_ended() -> None:
    lines = """
    1|test|o|7|Kettingen van de fietsen vallen eraf, #4
    1|monteur|a|5|Kettingen gespannen, #4
    4|test|o|6|Ketting eraf bij vier fietsen, #4
    4|monteur|a|5|Andere spanner voor de ketting van de fietsen
    7|test|o|8|Kettingen vallen weer, #4
    7|monteur|o|8|Het tandwiel is een millimeter te dun, #4
    8|monteur|a|6|Tandwielen vervangen, #4
    9|test|o|5|Honderd ritten, geen ketting eraf, #4
    """
    (told,) = _told(lines)
    assert "(#4) was reported in cycles 1, 4, 7, last after “Andere spanner" in told.action
    assert told.action.endswith(
        "then “Tandwielen vervangen, #4” (cycle 8), then “Honderd ritten, geen ketting eraf, #4” (cycle 9)"
    )
    assert told.importance == 9


@pytest.mark.req("C7")
def test_what_is_back_is_a_report_and_its_end_is_told() -> None:
    lines = """
    1|qa|o|7|Lift crashes into the buffer at floor 2, #9
    2|dev|a|5|Brake adjusted, #9
    5|qa|o|7|The lift crash is back at floor 2, #9
    5|dev|a|5|Brake pads changed, #9
    8|qa|o|7|Lift crashes at floor 2 with four people, #9
    9|dev|o|7|The rope is two metres too long, #9
    9|dev|a|6|Rope cut to size, #9
    11|qa|o|5|Two hundred rides, the lift stops where it should, #9
    """
    (told,) = _told(lines, "trouble")
    assert told.action.endswith("in 3 cycles, ended in cycle 11")
    assert "Reported in cycles 1, 5, 8." in told.content
    assert (
        "Seen before the last work on it: “The rope is two metres too long, #9” (cycle 9, dev)."
        in told.content
    )
    assert all(
        words in told.content for words in ("Brake adjusted", "Brake pads changed", "Rope cut to size")
    )


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # Somebody asks again for what was begun or promised.
        (
            "1|dev|a|5|Started the fire plan #8, cellar drawn\n19|pm|o|6|The mayor wants the fire plan #8",
            "was last worked on in cycle 1 and named again in cycle 19: “The mayor wants the fire plan #8”",
        ),
        (
            "1|pm|a|5|Asked the library for old maps\n19|pm|o|6|The old maps of the library never came",
            "was last worked on in cycle 1 and named again in cycle 19: “The old maps",
        ),
        # No entry has its number again.
        (
            "1|security|o|7|Every intern has the master key, #8\n19|ops|o|5|Audit on Monday",
            "came up in cycle 1; no entry says what was done in the 18 cycles since",
        ),
        # Another role was to do it.
        (
            "1|pm|d|6|Löschprobe bis März, macht ops\n19|pm|o|5|Versicherung fragt nach der Löschprobe",
            "named again as “Versicherung fragt nach der Löschprobe” (cycle 19); no entry says what was done",
        ),
        # The text tells of another thing, one sentence of it of this.
        (
            "1|pm|d|6|We buy a second pump, #8\n19|ops|o|8|Flood|Two hours. The pump of #8 is missing.",
            "came up in cycle 1 and named again in cycle 19: “The pump of #8 is missing” (cycle 19)",
        ),
    ],
)  # fmt: skip
def test_what_was_asked_for_and_left_is_told(lines: str, said: str) -> None:
    (told,) = _told(f"{lines}\n{_QUIET}", "left")
    assert said in told.action


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    "lines",
    [
        "1|security|o|7|Every intern has the master key, #8\n4|dev|a|5|Master key taken back\n19|ops|o|5|x",
        "1|dev|a|5|Started the fire plan #8\n9|dev|a|5|Fire plan done, #8\n19|ops|o|5|Fire drill",
        "1|ops|o|5|Roof inspected, PR #8\n19|ops|o|5|Snow",
    ],
)
def test_what_was_worked_on_since_is_not_called_left(lines: str) -> None:
    assert _told(f"{lines}\n{_QUIET}", "left") == []


@pytest.mark.req("C7")
def test_what_was_left_is_told_once(bank: Bank) -> None:
    lines = f"1|security|o|7|Every intern has the master key, #8\n19|ops|o|5|Audit on Monday\n{_QUIET}"
    for entry in sorted(read_lines(lines), key=lambda entry: entry.cycle):
        bank.stream.log(
            entry.action, cycle=entry.cycle, role=entry.role, importance=entry.importance, type=entry.type
        )
    assert any("#8" in entry.action for entry in bank.stream.reflect().entries)
    bank.stream.log("Lent a ladder", cycle=20, role="ops", importance=5)
    assert not any("#8" in entry.action for entry in bank.stream.reflect().entries)


@pytest.mark.req("C7")
def test_what_is_only_asked_for_is_not_called_work() -> None:
    lines = """
    1|desk|o|5|Visitors ask for a plan of the graves
    6|desk|o|5|Again somebody wants a plan of the graves
    12|desk|o|5|A school class wanted the plan of the graves, none there
    """
    (told,) = _told(f"{lines}\n{_QUIET}", "theme")
    assert "came up in cycles 1, 6, 12, always from desk, last as “A school class" in told.action


@pytest.mark.req("C7")
def test_a_story_that_closed_is_not_worth_a_line() -> None:
    lines = """
    1|qa|o|6|Gate opens by itself, #3
    2|dev|a|6|Sensor of the gate cleaned, #3
    2|qa|o|5|Gate stays shut for a day, #3
    3|dev|a|5|Bench deployed at the pond
    9|dev|a|5|Path deployed to the hill
    """
    assert [each.tags[2] for each in _told(lines)] in ([], ["finished"])


@pytest.mark.req("C7")
def test_a_newer_figure_replaces_its_own_line_in_core_memory_and_no_other(bank: Bank) -> None:
    def log(cycle: int, *said: str) -> None:
        for text in said:
            bank.stream.log(text, cycle=cycle, role="qa", importance=6, type="observation")

    for cycle, (pond, hall) in enumerate(((61, 12), (70, 15), (79, 19)), 1):
        log(cycle, f"Pond level {pond} cm", f"Hall heating {hall} EUR")
    bank.stream.reflect()
    log(4, "Pond level 90 cm")
    bank.stream.reflect()
    first, second = sorted(bank.core.view().lessons.splitlines())
    assert "Hall heating rose from 12 EUR to 19 EUR" in first
    assert "Pond level rose from 61 cm to 90 cm" in second


@pytest.mark.req("C7")
def test_a_third_report_or_a_decision_to_live_with_it_is_no_end() -> None:
    lines = """
    1|qa|o|7|Gate fails to open for trucks, #3
    2|dev|a|5|Gate motor oiled, #3
    4|qa|o|7|Gate fails to open for 4 of 10 trucks, #3
    5|dev|a|5|Gate hinge changed, #3
    7|qa|o|7|Gate fails to open for 1 of 20 trucks, #3
    8|pm|d|6|We open the yard with the gate as it is, #3
    """
    (told,) = _told(lines, "trouble")
    assert told.action.endswith("in 3 cycles, open since cycle 1")
    lines = """
    1|qa|o|7|Winch motor fails in the rain, #4
    3|dev|a|5|Winch motor wrapped in foil, #4, PR #8
    4|dev|a|5|Foil for the anchor lamp, #5, PR #9
    6|qa|o|7|Winch motor fails in the fog, #4
    7|qa|o|7|Winch motor fails at dawn, #4
    8|dev|a|5|Winch motor moved below deck, #4, PR #10
    9|qa|o|4|Twelve of twelve days dry since PR #10
    """
    (told,) = _told(lines, "trouble")
    assert told.action.endswith("in 3 cycles, ended in cycle 9")
    assert "anchor lamp" not in told.content


@pytest.mark.req("C7")
def test_trouble_is_what_was_seen_and_not_what_was_built_against_it() -> None:
    lines = """
    1|qa|o|6|Speaking clock: wrong hours of the tower are not announced
    2|dev|a|5|Speaking clock: second bell for errors
    3|qa|o|5|Speaking clock: bell announces errors, small bell rings twice
    4|dev|a|4|Speaking clock: took out the small bell
    5|qa|o|4|Speaking clock: fine in both towers
    """
    assert _told(lines, "trouble") == []


@pytest.mark.req("C7")
def test_what_came_back_is_named_by_its_report_and_counts_no_other_number() -> None:
    lines = """
    1|qa|o|6|Sans grue, pas de quai, HB-4 bloque HB-5
    2|dev|a|4|HB-5 quai dessiné avec une maquette
    4|qa|o|6|HB-5 le quai est trop court de deux mètres
    5|dev|a|5|HB-5 quai rallongé
    6|qa|o|5|HB-5 trois bateaux à quai
    """
    assert _told(lines, "relapse") == []
    lines += "    7|qa|o|6|HB-5 le quai est trop court pour le ferry\n    8|dev|a|5|HB-5 ponton ajouté\n"
    (told,) = _told(lines, "relapse")
    assert "“HB-5 le quai est trop court de deux mètres” (HB-5) was reported in cycles 4, 7" in told.action


@pytest.mark.req("C7")
def test_one_word_in_common_joins_no_reports() -> None:
    lines = """
    1|dev|a|5|Liste der Boote mit Karte
    3|qa|o|6|Boote fahren durch das Schutzgebiet
    4|dev|a|5|Schutzgebiet gesperrt, Boote gewarnt
    6|qa|o|6|Namen der Boote auf Fotos lesbar
    7|dev|a|5|Fotos der Boote werden gelöscht
    9|qa|o|6|Alte Boote noch im Archiv sichtbar
    """
    assert [each for each in _told(lines) if {"open", "relapse"} & {*each.tags}] == []


@pytest.mark.req("C7")
def test_a_decision_replaces_the_one_on_its_object_and_not_the_one_with_common_words() -> None:
    lines = """
    1|pm|d|5|Probelauf mit einer Fähre im Oktober
    3|pm|d|5|Fahrkarten auf Papier abgeschafft, nur noch Handy
    6|pm|d|5|Probelauf auf November verschoben, eine Fähre fehlt
    9|pm|d|5|Fahrkarten auf Papier doch wieder da, die größte Fähre will sie für den Probelauf
    """
    (told,) = [each for each in _told(lines, "decisions") if "doch wieder" in each.action]
    assert told.action.endswith("; before: “Fahrkarten auf Papier abgeschafft, nur noch Handy” (cycle 3)")
    assert "Oktober" not in told.content
    assert "November" not in told.content


@pytest.mark.req("C7")
def test_what_is_named_again_after_its_end_is_not_called_done() -> None:
    lines = """
    1|qa|o|5|Bell tower sways, #6
    3|dev|a|5|Beams measured, #6
    6|dev|a|5|Fixed #6 with steel ropes
    """
    assert _told(lines, "finished")
    assert _told(f"{lines}    9|pm|o|5|Photos of #6 wanted by the insurance, second letter", "finished") == []
