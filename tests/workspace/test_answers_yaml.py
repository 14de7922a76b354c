"""Answers as YAML: the documented style, and nothing lost on the way."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from archivist.workspace.documents import learnings_view, overviews_view, plans_view, to_yaml
from archivist.workspace.markdown_service import Workspace
from tests.workspace.trees import DOCUMENTED, make


def test_plans_look_as_documented(tmp_path: Path) -> None:
    plans = Workspace(make(tmp_path, DOCUMENTED)).retrieve_plans("devtools/common")
    assert to_yaml(plans_view(plans)) == (
        "plans:\n"
        '  - name: "Workflow Engine"\n'
        '    description: "What Workflow Engine is for"\n'
        "    status: done\n"
        '    created: "2026-02-08"\n'
        "    tags: [workflow, engine]\n"
        "    _meta:\n"
        '      document_path: "resources/workspaces/devtools/common/_plans/260208-workflow-engine.md"\n'
        '      document_id: "260208-workflow-engine"\n'
        "\n"
        '  - name: "Cache"\n'
        '    description: "What Cache is for"\n'
        "    status: new\n"
        '    created: "2026-02-08"\n'
        "    tags: [nestjs, spa]\n"
        "    _meta:\n"
        '      document_path: "resources/workspaces/devtools/common/metan/_plans/260301-cache.md"\n'
        '      document_id: "260301-cache"\n'
    )


def test_overviews_and_learnings_look_as_documented(tmp_path: Path) -> None:
    workspace = Workspace(make(tmp_path, DOCUMENTED))
    assert to_yaml(overviews_view(workspace.retrieve_overview("devtools"))).startswith(
        "overviews:\n"
        '  - scope: "devtools"\n'
        "    tier: T1\n"
        '    name: "DevTools"\n'
        "    tags: [tools]\n"
        "    content: |\n"
        "      Tools for developers\n"
        "\n"
        "      # DevTools\n"
        "\n"
        "      All about DevTools.\n"
        "    _meta:\n"
        '      document_path: "resources/workspaces/devtools/OVERVIEW.md"\n'
    )
    assert to_yaml(learnings_view(workspace.retrieve_learnings("k"))) == (
        "decisions:\n"
        '  - content: "Store prices in cents — Floats lost one."\n'
        '    date: "2026-02-08"\n'
        "    category: debugging\n"
        "    tags: [money]\n"
        "    _meta:\n"
        '      document_path: "user/memory/workspaces/k/stock/decisions.md"\n'
        '      document_id: "decisions#2026-02-08-store-prices-in-cents"\n'
        "\n"
        "lessons: []\n"
    )


@given(
    st.lists(
        st.fixed_dictionaries(
            {"content": st.text(), "status": st.text(), "tags": st.lists(st.text(), min_size=1)},
            optional={"_meta": st.fixed_dictionaries({"document_path": st.text()})},
        )
    )
)
@example([{"content": "a\n  b\n\nc\n", "status": "true", "tags": ["yes", "1", "2026-01-01", "a: b", "#x"]}])
@example([{"content": " a\nb", "status": "~", "tags": ["- a"]}])
@example([{"content": "a\n\n", "status": "a # b", "tags": [" a "]}])
@example([{"content": "a\n---\nb\n...\n", "status": "a\n", "tags": ["\u2028"]}])
def test_a_yaml_reader_gets_back_what_was_answered(items: list[dict[str, object]]) -> None:
    view: dict[str, object] = {"plans": items}
    assert YAML(typ="safe", pure=True).load(to_yaml(view)) == view
