"""Edits that did not apply."""

from __future__ import annotations

from .scripted import edit, learnt, one, run, sh, tool

STALE = "File has been modified since read, either by the user or by a linter. Read it again."
PATCH = (
    "cat > fix.patch << 'EOF'\n--- a/src/core.py\n+++ b/src/core.py\n@@ -1,2 +1,2 @@\n-a\n+b\nEOF\n"
    "patch -p1 < fix.patch"
)


def test_reading_again_made_it_apply() -> None:
    lesson = one(
        run(
            edit("/srv/widget/src/core.py", "a", "b", STALE, failed=True),
            tool("Read", "/srv/widget/src/core.py", "a"),
            edit("/srv/widget/src/core.py", "a", "b"),
        )
    )
    assert lesson.summary.endswith("changed since it was read: read it again right before the edit")


def test_patches_by_hand_fail_and_another_way_works() -> None:
    bad = sh(PATCH, "patch: **** malformed patch at line 5: +b", 2)
    lesson = one(run(bad, bad, bad, sh("sed -i 's/a/b/' src/core.py")))
    assert "patches written by hand" in lesson.summary
    assert lesson.summary.endswith("what worked was `sed -i`")


def test_one_bad_patch_is_thin() -> None:
    assert learnt(run(sh(PATCH, "patch: **** malformed patch at line 5: +b", 2))) == []


def test_patch_and_git_apply_are_one_phenomenon() -> None:
    by_git = sh(PATCH.replace("patch -p1 <", "git apply"), "error: corrupt patch at line 7", 128)
    by_patch = sh(PATCH, "patch: **** malformed patch at line 5: +b", 2)
    assert len(learnt(run(by_git, by_patch, by_git))) == 1
