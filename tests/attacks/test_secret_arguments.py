"""Arguments and lines that are a secret by their place alone, one row for each program."""

from __future__ import annotations

import pytest

from archivist.capture.redaction import redact

# Put together at run time, so that no file of the tests holds one.
SECRET = "Marm" + "4lade" + "Wombat55"
PLACES = (
    "mount -t cifs //files/team /mnt -o username=ada,password=<v>,uid=1",
    "account work\nuser ada\npassword <v>\n",
    "poll mail.example protocol imap user ada pass <v>",
    "security add-generic-password -a ada -s wiki -w <v>",
    "printf %s <v> | secret-tool store --label=wiki site wiki",
    "bw unlock <v> --raw",
    "pulumi config set --secret dbPassword <v>",
    "dotnet user-secrets set Db:Main <v>",
    "ssh-keygen -p -P <v> -N '' -f key",
    "evil-winrm -i host -u ada -p <v>",
    "ncftpput -u ada -p <v> host / file",
    "rclone obscure <v>",
    "pdftk a.pdf input_pw <v> output b.pdf",
    "influx query -t <v> flux.txt",
    "xh -A bearer -a <v> api.example",
)
HARMLESS = (
    "connect(host=name, password=settings.password,timeout=3)",
    "user bob password required",
    "the user name password reset works",
    "mount -o rw,password=required,uid=1",
    "secret-tool lookup site wiki",
    "bw unlock --check",
    "pulumi config set --secret dbPassword",
    "dotnet user-secrets set --help",
    "tar -P archive.tar; ssh-keygen -t ed25519 -f key",
)


@pytest.mark.req("N6")
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_found_by_its_place(place: str) -> None:
    assert SECRET not in redact(place.replace("<v>", SECRET)).text


@pytest.mark.req("N6")
@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_so_stays(text: str) -> None:
    assert redact(text).text == text
