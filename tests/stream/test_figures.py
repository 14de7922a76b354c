"""Figures that rise or fall are found in any wording and language, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from archivist.stream.figures import figure_insights
from archivist.stream.insight_text import Insight
from archivist.stream.insights import insights
from tests.stream.lines import read_lines

_OTHERS = (
    "Renamed the folders", "Wrote the handbook", "Ordered new chairs", "Moved the archive", "Hired a guide",
    "Printed the leaflets", "Painted the hall", "Trained two helpers",
)  # fmt: skip


def _told(lines: str) -> list[Insight]:
    entries = read_lines(lines)
    return figure_insights(entries, {entry.id for entry in entries})


def _observed(*said: str) -> str:
    return "\n".join(f"{cycle}|qa|o|5|{text}" for cycle, text in enumerate(said, 1))


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("said", "heading"),
    [
        (
            ("Tank level of the north basin: 61 % of 80 t", "Tank at 68 % after the rain", "Tank 77 %"),
            "Tank rose from 61 % to 77 % between cycles 1 and 3 (61 % → 68 % → 77 %)",
        ),
        (
            ("New kiosk page, opens in 0.8 s", "Kiosk page 1.1 s with pictures", "Kiosk page 1.9 s, a sigh"),
            "Kiosk page rose from 0.8 s to 1.9 s between cycles 1 and 3 (0.8 s → 1.1 s → 1.9 s)",
        ),
        (
            ("Fähre legt ab um 07:05", "Fähre legt heute erst 07:25 ab", "Fähre um 07:50, Gäste frieren"),
            "Fähre legt moved from 07:05 to 07:50 between cycles 1 and 3 (07:05 → 07:25 → 07:50)",
        ),
        (
            ("Loyer du dépôt 9 200 euros", "Loyer du dépôt 11 400 euros", "Le loyer du dépôt : 13 900 euros"),
            "Loyer du dépôt rose from 9 200 to 13 900 between cycles 1 and 3 (9 200 → 11 400 → 13 900 euros)",
        ),
        (
            ("Visits per day: 2.1 million", "Visits per day 2.9 million", "Visits per day now 3.8 million"),
            "Visits per day rose from 2.1 to 3.8 between cycles 1 and 3 (2.1 → 2.9 → 3.8 million)",
        ),
    ],
)  # fmt: skip
def test_one_subject_with_one_unit_is_a_series_whatever_stands_around(
    said: tuple[str, ...], heading: str
) -> None:
    told = [each.action.removeprefix("Reflection: ") for each in _told(_observed(*said))]
    assert told == [heading]


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    "said",
    [
        # It goes up and down, or hardly changes.
        ("Pump noise 61 dB", "Pump noise 58 dB", "Pump noise 63 dB", "Pump noise 60 dB"),
        ("Accuracy 94 %", "Accuracy 95 %", "Accuracy 97 %"),
        # The number is a name, or how many went wrong each time.
        ("Week 1 report sent", "Week 2 report sent", "Week 3 report sent"),
        ("Lift stuck, 12 guests inside", "Lift stuck, 9 guests inside", "Lift stuck, 22 guests inside"),
        # One word in common is no subject where the figures are of other things.
        ("Server room at 21 % humidity", "Server disk 44 % full", "Server sale, 60 % off"),
    ],
)
def test_what_is_no_course_of_one_figure_is_not_told(said: tuple[str, ...]) -> None:
    assert _told(_observed(*said)) == []


@pytest.mark.req("C7")
def test_a_goal_and_a_roll_out_are_no_readings() -> None:
    lines = """
    1|pm|d|5|Churn must fall from 9 % to 5 %
    2|qa|o|5|Churn 8.1 %
    3|qa|o|5|Churn 7.2 %, good
    4|dev|a|5|Beta rolled out to 10 %
    5|dev|a|5|Beta rolled out to 50 %
    6|dev|a|5|Beta rolled out to 100 %
    7|qa|o|5|Churn 5.9 %
    """
    (told,) = _told(lines)
    assert "Churn fell from 8.1 % to 5.9 %" in told.action
    assert "No action or decision since the first of them names it." in told.content


@pytest.mark.req("C7")
def test_two_figures_of_one_entry_are_two_series() -> None:
    told = _told(
        _observed(
            "Ticket desk 3 min, locker queue 14 min", "Ticket desk 5 min, locker queue 9 min",
            "Ticket desk 8 min, locker queue 4 min",
        )
    )  # fmt: skip
    assert [each.action.split(" between")[0].removeprefix("Reflection: ") for each in told] == [
        "Locker queue fell from 14 min to 4 min",
        "Ticket desk rose from 3 min to 8 min",
    ]


@pytest.mark.req("C7")
@pytest.mark.parametrize("unit", ["%", "kB", "s", "GB"])
def test_more_readings_never_lose_a_figure_and_a_later_reflection_tells_it_again(unit: str) -> None:
    for count in range(3, 9):
        said = [f"{2 * n + 1}|qa|o|6|Boiler {40 + 7 * n} {unit}" for n in range(count)]
        said += [f"{2 * n + 2}|dev|a|6|{text}" for n, text in enumerate(_OTHERS)]
        entries = read_lines("\n".join(sorted(said, key=lambda line: int(line.split("|")[0]))))
        last = f"to {40 + 7 * (count - 1)} {unit}"
        assert any(last in each.action for each in insights(entries, others=entries))
        earlier, newest = entries[: 2 * count - 2], entries[2 * count - 2 :]
        again = insights(newest, earlier=earlier, told_before=frozenset(entry.id for entry in earlier))
        assert any(last in each.action for each in again)


@pytest.mark.req("C7")
def test_of_a_figure_that_turned_the_last_stretch_is_told() -> None:
    said = ("Leak rate 310 ml", "Leak rate 140 ml", "Leak rate 72 ml", "Leak rate 118 ml with the new valve")
    (told,) = _told(_observed(*said))
    assert (
        "Leak rate rose from 72 ml to 118 ml between cycles 3 and 4, after 310 ml in cycle 1" in told.action
    )
    # Counts of what went wrong go to and fro.
    lost = ("Ferry lost 12 crates", "Ferry lost 9 crates", "Ferry lost 15 crates", "Ferry lost 22 crates")
    assert _told(_observed(*lost)) == []


@pytest.mark.req("C7")
def test_half_of_the_readings_may_stand_in_actions_and_what_work_is_said_to_give_is_no_reading() -> None:
    lines = """
    1|ops|a|5|New pump for a tenth of the guests, t95 41 ms
    4|ops|o|5|t95 47 ms
    6|ops|a|5|New pump for all, t95 66 ms
    9|ops|o|5|t95 88 ms, limit is 100
    10|dev|a|5|Smaller pump, t95 50 ms on paper
    """
    (told,) = _told(lines)
    assert "T95 rose from 41 ms to 88 ms between cycles 1 and 9" in told.action
    assert "Since then: “Smaller pump, t95 50 ms on paper” (cycle 10, dev)." in told.content


@pytest.mark.req("C7")
def test_work_under_the_number_of_a_figure_is_action() -> None:
    lines = """
    1|ops|o|5|Schleuse: 48 min bei 500 Booten, HK-9
    3|dev|a|5|HK-9 Tore geschmiert
    5|ops|o|5|HK-9 Schleuse: 31 min
    9|ops|o|5|HK-9 Schleuse: 16 min
    """
    (told,) = _told(lines)
    assert "Schleuse fell from 48 min to 16 min" in told.action
    assert "No action" not in told.content
