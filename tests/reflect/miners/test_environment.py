"""Versions that do not go together."""

from __future__ import annotations

from .scripted import edit, learnt, no_module, one, run, sh

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
            sh("pip install numpy", "Successfully installed numpy-2.0"),
            sh("python use.py", REMOVED, 1),
            sh("sed -i 's/np\\.Inf/np.inf/g' widget/core.py"),
            sh("python use.py", REMOVED, 1),
            sh("sed -i 's/np\\.Inf/np.inf/g' widget/more.py"),
            sh("python use.py", "done"),
        )
    )
    assert lesson.summary == (
        "the project fails at import: “'np.Inf' was removed in the NumPy 2.0 release”: "
        "change `np.Inf` to `np.inf` in `widget/more.py` and `widget/core.py`, or `pip install 'numpy<2'`"
    )


def test_a_package_that_misses_a_name_of_python_is_too_old() -> None:
    installed = sh("pip install wrapt==1.10", "Successfully installed wrapt-1.10")
    lesson = one(run(installed, sh("pip install -e ."), sh("python use.py", TOO_OLD, 1)))
    assert "after `pip install -e .`" in lesson.summary
    assert "the installed wrapt is too old for this Python" in lesson.summary
    assert lesson.remedies == ("pip install -U wrapt",)


def test_a_package_that_no_run_installed_is_not_advised() -> None:
    lesson = one(run(sh("pip install -e ."), sh("python use.py", TOO_OLD, 1)))
    assert "the installed “wrapt” is too old for this Python" in lesson.summary
    assert lesson.remedies == ()
    assert "install -U" not in lesson.summary


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


def _misses(name: str, where: str) -> str:
    return (
        f"ImportError while importing test module '/srv/shop/tests/test_{name}.py'.\n"
        f"tests/test_{name}.py:1: in <module>\n    from cart import {name}\n"
        f"E   ImportError: cannot import name '{name}' from 'cart' ({where})\n1 error in 0.05s\n"
    )


def test_a_test_written_before_its_code_is_no_lesson() -> None:
    runs = [
        run(
            edit(f"tests/test_{name}.py", "", f"from cart import {name}"),
            sh(f"pytest -q tests/test_{name}.py", _misses(name, "/srv/shop/cart.py"), 2),
            edit("cart.py", "x = 1", f"x = 1\ndef {name}(): return 1"),
            sh(f"pytest -q tests/test_{name}.py", "1 passed in 0.05s"),
            name=name,
            task=f"Add {name}",
        )
        for name in ("total", "discount")
    ]
    assert learnt(*runs) == []
    assert [met for each in runs for met in each.met] == []


def test_a_name_missing_from_what_is_installed_is_told_whatever_the_run_writes() -> None:
    where = "/opt/lib/python3.11/site-packages/cart/__init__.py"
    lesson = one(
        run(edit("cart/total.py", "x", "y"), sh("pytest -q tests/test_total.py", _misses("total", where), 2))
    )
    assert "the installed cart is not the version that the code expects" in lesson.summary


def test_an_attribute_of_a_module_that_the_run_writes_is_its_own() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/srv/shop/main.py", line 3, in <module>\n    main()\n'
        '  File "/srv/shop/main.py", line 2, in main\n    cart.total()\n'
        "AttributeError: module 'cart' has no attribute 'total'\n"
    )
    fails = sh("python main.py", trace, 1)
    assert (
        learnt(run(fails, edit("src/cart.py", "x = 1", "def total(): ..."), sh("python main.py", "ok"))) == []
    )


def test_a_module_that_the_run_writes_after_its_test_was_not_missing() -> None:
    calls = (
        sh("pytest -q tests", no_module("cart.discount"), 2),
        edit("cart/discount.py", "", "rate = 1"),
        sh("pytest -q tests", "1 passed in 0.1s"),
    )
    assert learnt(run(*calls), run(*calls, name="run-2", task="Again")) == []


def test_a_file_that_is_called_like_a_library_does_not_make_it_the_projects() -> None:
    lesson = one(
        run(
            sh("python manage.py check", no_module("celery"), 1),
            edit("shop/celery.py", "", "app = 1"),
            sh("pip install celery"),
            sh("python manage.py check", "ok"),
        )
    )
    assert lesson.remedies == ("pip install celery",)


def test_a_project_that_keeps_its_code_in_lib_has_its_own_modules() -> None:
    assert learnt(run(sh("pytest -q", _misses("total", "/srv/shop/lib/cart.py"), 2))) == []
