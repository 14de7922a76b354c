"""Versions that do not go together."""

from __future__ import annotations

from .scripted import learnt, one, run, sh

REMOVED = (
    'Traceback (most recent call last):\n  File "/srv/widget/use.py", line 1, in <module>\n    import w\n'
    '  File "/srv/widget/widget/core.py", line 9, in <module>\n    LIMIT = np.Inf\n'
    "AttributeError: `np.Inf` was removed in the NumPy 2.0 release. Use `np.inf` instead.\n"
)
TOO_OLD = (
    'Traceback (most recent call last):\n  File "/srv/widget/use.py", line 1, in <module>\n    import wrapt\n'
    '  File "/opt/lib/python3.11/site-packages/wrapt/decorators.py", line 34, in <module>\n'
    "    from inspect import formatargspec\n"
    "ImportError: cannot import name 'formatargspec' from 'inspect' (/opt/lib/python3.11/inspect.py)\n"
)


def test_an_edit_in_two_files_and_a_pin_are_both_named() -> None:
    lesson = one(
        run(
            sh("python use.py", REMOVED, 1),
            sh("sed -i 's/np\\.Inf/np.inf/g' widget/core.py"),
            sh("python use.py", REMOVED, 1),
            sh("sed -i 's/np\\.Inf/np.inf/g' widget/more.py"),
            sh("python use.py", "done"),
        )
    )
    assert lesson.summary == (
        "widget fails at import: `np.Inf` was removed in the NumPy 2.0 release: "
        "change `np.Inf` to `np.inf` in `widget/more.py` and `widget/core.py`, or `pip install 'numpy<2'`"
    )


def test_a_package_that_misses_a_name_of_python_is_too_old() -> None:
    lesson = one(run(sh("pip install -e ."), sh("python use.py", TOO_OLD, 1)))
    assert "after `pip install -e .`" in lesson.summary
    assert "the installed wrapt is too old for this Python" in lesson.summary
    assert lesson.remedies == ("pip install -U wrapt",)


def test_raised_and_printed_are_the_same_failure() -> None:
    printed = (
        "Import error: cannot import name 'formatargspec' from 'inspect' (/opt/lib/python3.11/inspect.py)"
    )
    raised = run(sh("python use.py", TOO_OLD, 1))
    caught = run(sh("python use.py", printed, 1), name="run-2")
    assert {each.key for each in learnt(raised)} == {each.key for each in learnt(caught)}


def test_a_name_that_the_project_itself_lacks_was_guessed() -> None:
    guessed = "ImportError: cannot import name 'frobnicate' from 'widget.core' (/srv/widget/widget/core.py)"
    trace = (
        f'Traceback (most recent call last):\n  File "/srv/widget/use.py", line 1, in <module>\n{guessed}\n'
    )
    assert learnt(run(sh("python use.py", trace, 1))) == []
