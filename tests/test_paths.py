"""Where a bank lies: a file, or a server's bank that stands for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.errors import BankError
from archivist.paths import (
    bank_file,
    home_folder,
    name_on_server,
    person_bank,
    state_file_of_url,
    url_on_server,
)
from archivist.store.postgres.connection import split_url

SERVER = "postgresql://db.example/archivist"


def test_a_new_bank_on_a_server_is_called_by_its_project() -> None:
    web = bank_file(Path("/srv/web"))
    assert name_on_server(web, SERVER, "0a1b") == "web-0a1b"
    assert name_on_server(person_bank(web, "ada"), SERVER, "0a1b") == "web~ada-0a1b"
    assert name_on_server(bank_file(home_folder()), SERVER, "0a1b") == "global-0a1b"
    assert name_on_server(bank_file(Path("/srv/odd\nname#1")), SERVER, "0a1b") == "odd-name-1-0a1b"


def test_the_url_of_the_server_names_a_bank_for_all_folders_but_the_global_one() -> None:
    shared = f"{SERVER}#team/shop"
    assert name_on_server(bank_file(Path("/srv/web")), shared, "0a1b") == "team/shop"
    assert name_on_server(bank_file(home_folder()), shared, "0a1b") == "global-0a1b"


def test_a_bank_without_a_name_on_a_server_is_a_file() -> None:
    assert url_on_server(bank_file(Path("/srv/web")), SERVER, "") == ""


def test_a_bank_on_a_server_that_nobody_names_is_not_looked_for_in_the_folder() -> None:
    with pytest.raises(BankError, match="'/srv/web' is on a server as 'web-1'"):
        url_on_server(bank_file(Path("/srv/web")), "", "web-1")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_name_comes_back_from_its_url(name: str) -> None:
    assert split_url(url_on_server(Path("x"), f"{SERVER}?sslmode=disable#other", name))[1] == name


def test_the_state_of_a_bank_that_is_opened_by_its_url_lies_under_the_home() -> None:
    for url in (f"{SERVER}#../../team/shop", f"{SERVER}?bank=../../team/shop"):
        file = state_file_of_url(url)
        assert file.parents[2] == home_folder() / "servers"
