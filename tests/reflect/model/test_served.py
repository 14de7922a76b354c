"""What a model spent, in the doors that show it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from archivist import Bank
from archivist.config import Config, ModelRules
from archivist.testing import ScriptedModel
from tests.edges.http_server import ADA, serving
from tests.reflect.model.runs import NO_ACCOUNT, claim, reflected_run

RULES = ModelRules(name="openai:m", url="http://127.0.0.1:9/v1", input_usd=3.0, output_usd=15.0)


@pytest.mark.req("N8")
def test_the_page_and_the_status_show_what_was_spent(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with Bank.open(folder, create=True, actor=ADA, config=Config(model=RULES)) as bank:
        run = reflected_run(bank, tmp_path)
        answers = [claim(refines="m-001"), NO_ACCOUNT]
        bank.model.use(ScriptedModel(answers, tokens=(1000, 100)))
        assert bank.model.read_run(run).spending.micro_usd == 9000
    settings = tuple(f"model.{name}={value}" for name, value in RULES._asdict().items() if value)
    with serving(folder, settings=settings) as served:
        with served.client() as client:
            shown = client.get("/api/status").json()["model"]
        assert shown["today"] == {"requests": 2, "input_tokens": 2000, "output_tokens": 200, "usd": 0.009}
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            page = browser.get(served.link).text
            page = page if "Language model" in page else browser.get(f"{served.url}/overview").text
            lessons = [browser.get(f"{served.url}/lessons/m-00{number}").text for number in (1, 2)]
    assert "openai:m: 2 requests, 2,200 of 400,000 tokens and $0.0090 of $1 today." in page
    assert "is not allowed yet" in page
    assert ["worded by the language model scripted" in lesson for lesson in lessons] == [False, True]
