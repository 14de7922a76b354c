"""What a model spent, in the doors that show it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from archivist import Bank
from archivist.config import Config, ModelRules
from archivist.testing import ScriptedModel
from tests.edges.http_server import ADA, serving
from tests.reflect.model.runs import NO_ACCOUNT, NO_LESSONS, reflected_run

RULES = ModelRules(name="openai:m", url="http://127.0.0.1:9/v1", input_usd=3.0, output_usd=15.0)


@pytest.mark.req("N8")
def test_the_page_and_the_status_show_what_was_spent(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with Bank.open(folder, actor=ADA, config=Config(model=RULES)) as bank:
        run = reflected_run(bank, tmp_path)
        bank.model.use(ScriptedModel([NO_LESSONS, NO_ACCOUNT], tokens=(1000, 100)))
        assert bank.model.read_run(run).spending.micro_usd == 9000
    settings = tuple(f"model.{name}={value}" for name, value in RULES._asdict().items() if value)
    with serving(folder, settings=settings) as served:
        with served.client() as client:
            shown = client.get("/api/status").json()["model"]
        assert shown["today"] == {"requests": 2, "input_tokens": 2000, "output_tokens": 200, "usd": 0.009}
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            page = browser.get(served.link).text
            page = page if "Language model" in page else browser.get(f"{served.url}/overview").text
    assert "openai:m: 2 requests, 2200 of 400000 tokens and $0.0090 of $1 today." in page
    assert "is not allowed yet" in page
