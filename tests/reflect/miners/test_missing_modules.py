"""Missing modules make one lesson that names them all and one command."""

from __future__ import annotations

from archivist.records import Category

from .scripted import edit, learnt, no_module, one, run, sh

SIBLINGS = (
    sh("python use.py", no_module("numpy"), 1),
    sh("pip install numpy pandas -q"),
    sh("python use.py", no_module("pytz"), 1),
    sh("pip install -q pytz && python use.py", no_module("scipy"), 1),
    sh("pip install scipy"),
    sh("python use.py", "done"),
)


def test_three_missing_modules_are_one_lesson() -> None:
    lesson = one(run(*SIBLINGS))
    assert lesson.key == "acme/widget|missing_module:python"
    assert lesson.summary == (
        "`numpy`, `pytz` and `scipy` are not installed: `pip install numpy pytz scipy pandas`"
    )
    assert lesson.rule.startswith("IF ")
    assert " THEN run `pip install" in lesson.rule
    assert lesson.category is Category.INFRA
    assert lesson.events[0] == "run-1#0"


def test_the_key_and_words_are_stable_and_the_weight_grows() -> None:
    first, second = run(*SIBLINGS), run(*SIBLINGS, name="run-2")
    before, after = one(first), one(first, second)
    assert (before.key, before.summary) == (after.key, after.summary)
    assert after.importance > before.importance


def test_a_later_run_keeps_the_remedy_it_did_not_find_itself() -> None:
    gave_up = run(sh("python use.py", no_module("scipy"), 1), name="run-2")
    assert "pip install" in one(run(*SIBLINGS), gave_up).summary


def test_the_project_itself_is_installed_in_place() -> None:
    lesson = one(
        run(
            sh("python use.py", no_module("widget"), 1),
            sh("cd /srv/widget && pip install -e . 2>&1 | tail -3"),
            sh("python use.py", "done"),
            sh("python -m pytest", "/usr/bin/python: No module named pytest", 1),
            sh("pip install pytest"),
            sh("python -m pytest", "3 passed in 0.1s"),
        )
    )
    assert lesson.summary == "the project itself and `pytest` are not installed: `pip install -e . pytest`"


def test_the_projects_own_command_is_missing_for_the_same_reason() -> None:
    lesson = one(
        run(
            sh("widget --check", "bash: widget: command not found", 127),
            sh("pip install -e ."),
            sh("widget --check", "ok"),
        )
    )
    assert lesson.key == "acme/widget|missing_module:python"


def test_what_one_task_of_many_wanted_is_left_out() -> None:
    runs = [
        run(
            sh("python use.py", no_module("attrs"), 1),
            sh("pip install attrs"),
            sh("python use.py", no_module(odd), 1),
            sh(f"pip install {odd}"),
            sh("python use.py", "done"),
            name=f"run-{odd}",
        )
        for odd in ("alpha", "beta", "gamma")
    ]
    assert one(*runs).remedies == ("pip install attrs",)


def test_an_install_that_brings_a_broken_module_is_no_remedy() -> None:
    broken = (
        'Traceback (most recent call last):\n  File "/srv/use.py", line 1, in <module>\n    import wrapt\n'
        '  File "/usr/lib/python3.11/site-packages/wrapt/decorators.py", line 34, in <module>\n'
        "    from inspect import formatargspec\n"
        "ImportError: cannot import name 'formatargspec' from 'inspect' (/usr/lib/python3.11/inspect.py)\n"
    )
    found = learnt(
        run(
            sh("python use.py", no_module("wrapt"), 1),
            sh("pip install -e ."),
            sh("python use.py", broken, 1),
        )
    )
    missing = next(each for each in found if "missing_module" in each.key)
    assert missing.remedies == ()


def test_without_an_install_that_helped_no_command_is_guessed() -> None:
    lesson = one(run(sh("python use.py", no_module("numpy"), 1), sh("python other.py", "done")))
    assert lesson.rule == ""
    assert lesson.summary == "“numpy” is not installed"


def _no_node_module(name: str) -> str:
    return f"node:internal/modules/cjs/loader:1080\n  throw err;\n\nError: Cannot find module '{name}'\n"


def test_installing_what_the_project_lists_needs_no_names() -> None:
    lesson = one(
        run(
            sh("node build.js", _no_node_module("lodash"), 1),
            sh("npm install", "added 312 packages"),
            sh("node build.js", "built"),
        )
    )
    assert lesson.summary == "“lodash” is not installed: `npm install`"


def test_a_scoped_package_keeps_its_scope() -> None:
    lesson = one(
        run(
            sh("node build.js", _no_node_module("@acme/core"), 1),
            sh("npm install --save-dev @acme/core@2", "added 1 package"),
            sh("node build.js", "built"),
        )
    )
    assert lesson.remedies == ("npm install @acme/core@2",)


def test_a_module_of_the_projects_own_files_is_no_package() -> None:
    for own in ("./missing", "@/lib/missing", "~/missing"):
        assert learnt(run(sh("node build.js", _no_node_module(own), 1))) == []


def test_an_install_by_name_counts_though_the_call_was_not_repeated() -> None:
    lesson = one(run(sh("python use.py", no_module("pytz"), 1), sh("pip install pytz"), sh("ls")))
    assert lesson.remedies == ("pip install pytz",)


def test_what_belongs_to_a_newer_python_is_not_to_be_installed() -> None:
    lesson = one(
        run(
            sh("python3 -m importer --check", no_module("tomllib"), 1),
            sh("python3 --version", "Python 3.9.18"),
            sh("python3.12 -m importer --check", "ok: 120 rows"),
        )
    )
    assert lesson.summary == (
        "`tomllib` needs Python 3.11 or newer, and an older one runs here: "
        "use `python3.12 -m importer --check`"
    )
    assert lesson.remedies == ("python3.12 -m importer --check",)


def test_what_a_newer_python_dropped_is_told_so() -> None:
    calls = (sh("python setup.py build", no_module("distutils"), 1), sh("pip install setuptools"))
    lesson = one(run(*calls, sh("python3.11 setup.py build", "running build")))
    assert "`distutils` was removed in Python 3.12: use `python3.11 setup.py build`" in lesson.summary


def test_a_part_that_a_package_lacks_does_not_mean_that_the_package_is_missing() -> None:
    lesson = one(
        run(
            sh("python -m report.monthly", no_module("shop.utils"), 1),
            edit("report/monthly.py", "from shop.utils import money", "from shop.helpers import money"),
            sh("python -m report.monthly", "total 3"),
            sh("python use.py", "done"),
        )
    )
    assert lesson.summary == (
        "there is no module “shop.utils” here: change `shop.utils` to `shop.helpers` in `report/monthly.py`"
    )
    guessed = sh("python -c 'import widget.core.sums'", no_module("widget.core.sums"), 1)
    assert learnt(run(guessed)) == []


def test_a_part_that_is_installed_by_itself_is_told_with_what_brings_it() -> None:
    lesson = one(
        run(
            sh("python use.py", no_module("google.protobuf"), 1),
            sh("pip install protobuf"),
            sh("python use.py", "done"),
        )
    )
    assert lesson.summary == "“google.protobuf” is not installed: `pip install protobuf`"


def test_what_this_python_was_built_without_is_told_when_two_tasks_missed_it() -> None:
    missing = sh("python use.py", no_module("tkinter"), 1)
    first, second = run(missing, task="Draw a"), run(missing, name="run-2", task="Draw b")
    assert learnt(first) == []
    assert one(first, second).summary == ("`tkinter` is part of Python, but the one that runs here lacks it")
