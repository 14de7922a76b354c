"""The commands that open the bank: `serve`, `token`."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.banks import lay_bank
from tests.commands import PROGRAM
from tests.conftest import Command
from tests.edges.http_server import serving

EVERYWHERE = "0.0.0.0"  # noqa: S104 to see that it is refused, or allowed when it is said


def test_a_token_is_created_listed_and_revoked(bank_cli: Command) -> None:
    made = bank_cli("token", "create", "--actor", "agent:kit:maker", "--name", "ci", "--expires", "30")
    assert made.code == 0
    assert made.out.startswith("arch_")
    assert made.out.count("\n") == 1
    assert "acts as agent:kit:maker, until " in made.err
    (listed,) = json.loads(bank_cli("token", "list", "--json").out)["tokens"]
    assert (listed["name"], listed["actor"], listed["state"]) == ("ci", "agent:kit:maker", "valid")
    assert made.out.strip() not in bank_cli("token", "list", "--all").out
    assert bank_cli("token", "revoke", "ci").out == "1 token revoked: ci\n"
    assert bank_cli("token", "list").err == "no tokens: archivist token create makes one\n"
    (gone,) = json.loads(bank_cli("token", "list", "--all", "--json").out)["tokens"]
    assert gone["state"] == "revoked"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("token", "create"), 2),
        (("token", "create", "--actor", "agent"), 4),
        (("token", "create", "--actor", "robot:x"), 4),
        (("token", "create", "--actor", "agent:x", "--expires", "-1"), 4),
        (("token", "revoke", "nobody"), 3),
        (("--actor", "agent:x", "token", "create", "--actor", "agent:x"), 9),
        (("--actor", "orchestrator:o", "token", "create", "--actor", "human:x"), 9),
        (("--actor", "agent:x", "token", "list"), 9),
        (("serve", "--host", EVERYWHERE), 4),
        (("serve", "--host", "::"), 4),
        (("serve", "--host", "no such host"), 4),
        (("serve", "--port", "70000"), 2),
        (("serve", "--tls-cert", "cert.pem"), 2),
        (("serve", "--tls-cert", "none.pem", "--tls-key", "none.pem", "--port", "0"), 4),
    ],
)
def test_what_makes_no_sense_is_refused(
    bank_cli: Command, archivist_process: Command, words: tuple[str, ...], code: int
) -> None:
    # A server that gives up leaves the closing of what it has opened to the end of its process.
    ran = archivist_process(*words) if words[0] == "serve" else bank_cli(*words)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_serving_needs_a_bank_and_a_free_port(archivist_process: Command, project: Path) -> None:
    assert archivist_process("serve").code == 5
    lay_bank(project)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = archivist_process("serve", "--port", str(taken.getsockname()[1]))
    assert ran.code == 4
    assert "cannot listen at 127.0.0.1" in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits there")
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("serve", "--port", "0", "--json")])
def test_a_server_that_cannot_start_says_why_and_no_address(project: Path, words: tuple[str, ...]) -> None:
    import resource

    lay_bank(project)
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=project,
        capture_output=True,
        check=False,
        timeout=60,
        # Enough for a command, not for the connections of a server.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (13, 13)),
    )
    assert (done.returncode != 0, done.stdout) == (True, b"")
    assert (b"\narchivist: " in done.stderr, b"Traceback" in done.stderr) == (True, False), done.stderr


def test_beyond_this_machine_when_it_is_said(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", EVERYWHERE, "--insecure") as served, served.client() as client:
        assert client.get("/api/status").status_code == 200
        refused = client.get("/api/status", headers={"Host": "evil.example"})
        assert refused.json()["code"] == "unknown_host"


def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    cert, key = _certificate(tmp_path)
    with serving(tmp_path / "bank", "--tls-cert", str(cert), "--tls-key", str(key)) as served:
        assert served.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(cert))
        headers = {"Authorization": f"Bearer {served.token('human:ada')}"}
        with httpx.Client(verify=trusting, headers=headers) as client:
            assert client.get(f"{served.url}/api/status").status_code == 200
            assert "Secure" in client.get(served.link).headers["set-cookie"]


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of our own, for this machine's address alone."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert_file, key_file


def test_it_ends_though_somebody_listens(tmp_path: Path) -> None:
    with serving(tmp_path) as served, served.client() as client, client.stream("GET", "/api/events") as heard:
        assert heard.status_code == 200
        code, _ = served.stop()
    assert code in (0, -15)


def test_the_commands_do_not_load_the_server() -> None:
    code = (
        "import sys, archivist.edges.cli.serve;"
        "print([name for name in ('fastapi', 'uvicorn', 'archivist.edges.http') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"[]\n"
