"""Where packages come from, as the operator has configured it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.egress.hosts import HostPort
from bailiwick.egress.proxy import allow_list
from bailiwick.environments.registries import REGISTRIES, Registries, configured_registries


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory of nobody."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """An /etc of no machine."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


def write(path: Path, text: str) -> Path:
    """A file with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_public_registries_are_a_list_that_can_be_read() -> None:
    """They are used as they stand, with TLS only."""
    allow = allow_list((), REGISTRIES)
    assert allow.allows(HostPort("pypi.org", 443))
    assert not allow.allows(HostPort("pypi.org", 80))


def test_nothing_configured_adds_nothing(home: Path, machine: Path) -> None:
    """Then the public registries are all there is."""
    assert configured_registries({}, home, machine=machine) == Registries()


@pytest.mark.parametrize(
    ("name", "value", "hosts"),
    [
        ("PIP_INDEX_URL", "https://pip.corp.example/simple", ["pip.corp.example:443"]),
        ("PIP_EXTRA_INDEX_URL", "https://a.example/s https://b.example:8443/s", ["a.example:443", "b.example:8443"]),
        ("UV_INDEX_URL", "http://uv.corp.example/simple", ["uv.corp.example:80"]),
        ("UV_DEFAULT_INDEX", "mine=https://uv.corp.example/simple", ["uv.corp.example:443"]),
        ("UV_INDEX", "https://a.example/s named=https://b.example/s", ["a.example:443", "b.example:443"]),
        ("NPM_CONFIG_REGISTRY", "https://npm.corp.example/", ["npm.corp.example:443"]),
        ("GOPROXY", "https://go.corp.example,direct|off", ["go.corp.example:443"]),
        ("PIP_INDEX_URL", "https://[2001:db8::1]:8443/simple", ["[2001:db8::1]:8443"]),
        ("PIP_INDEX_URL", "git+ssh://odd.example/x", []),
        ("PIP_INDEX_URL", "https://bad_port.example:x/", []),
    ],
)
def test_a_variable_names_registries(home: Path, machine: Path, name: str, value: str, hosts: list[str]) -> None:
    """As the tools read them; each host with the port that is asked, so that no other is opened."""
    assert list(configured_registries({name: value}, home, machine=machine).hosts) == hosts


def test_files_of_the_tools_count_the_persons_before_the_machines(home: Path, machine: Path) -> None:
    """Where one value counts, it is the nearest, as the tools themselves have it."""
    write(machine / "pip.conf", "[global]\nindex-url = https://machine.example/simple\n")
    write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://person.example/simple\n")
    write(
        home / ".config/uv/uv.toml",
        '[[index]]\nurl = "https://uv.example/s"\n[pip]\nextra-index-url = ["https://x.example"]\n',
    )
    write(
        home / ".npmrc",
        "registry=https://npm.example/\n@corp:registry = https://scope.example/\n//npm.example/:_authToken=t\n",
    )
    cargo = (
        '[source.mine]\nregistry = "sparse+https://crates.example/i/"\n[registries.b]\nindex = "https://idx.example"\n'
    )
    write(home / ".cargo/config.toml", cargo)
    found = configured_registries({}, home, machine=machine)
    names = ("person", "machine", "x", "uv", "npm", "scope", "crates", "idx")
    assert list(found.hosts) == [f"{name}.example:443" for name in names]
    assert found.variables["PIP_INDEX_URL"] == "https://person.example/simple"
    assert found.variables["UV_DEFAULT_INDEX"] == "https://person.example/simple"
    assert found.variables["UV_INDEX"] == "https://x.example https://uv.example/s"
    assert found.variables["NPM_CONFIG_REGISTRY"] == "https://npm.example/"
    assert "_authToken" not in str(found)


def test_a_login_in_an_address_stays_outside(home: Path, machine: Path) -> None:
    """No secret goes into a sandbox; the host is named, so that a person can be told why it may answer 401."""
    found = configured_registries({"PIP_INDEX_URL": "https://me:s3cret@pip.corp.example/simple"}, home, machine=machine)
    assert "s3cret" not in str(found)
    assert found.variables["PIP_INDEX_URL"] == "https://pip.corp.example/simple"
    assert found.logins == ("pip.corp.example",)


def test_a_directory_of_packages_is_bound_with_the_files_beside_it(home: Path, machine: Path, tmp_path: Path) -> None:
    """The pages of a simple index point to files next to it."""
    for name in ("wheels", "mirror/simple", "mirror/files"):
        (tmp_path / name).mkdir(parents=True)
    write(machine / "pip.conf", f"[install]\nfind-links =\n    {tmp_path}/wheels\n    {tmp_path}/missing\n")
    index = (tmp_path / "mirror/simple").as_uri()
    found = configured_registries({"PIP_EXTRA_INDEX_URL": index}, home, machine=machine)
    assert {(bind.source, bind.write) for bind in found.binds} == {
        (tmp_path / "mirror", False),
        (tmp_path / "wheels", False),
    }
    assert found.variables == {
        "PIP_EXTRA_INDEX_URL": index,
        "UV_INDEX": index,
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "UV_FIND_LINKS": str(tmp_path / "wheels"),
    }
    assert found.hosts == ()


def test_a_directory_of_packages_never_shows_what_is_private(home: Path, machine: Path) -> None:
    """However the address is written."""
    (home / ".ssh").mkdir()
    (home / "state/x").mkdir(parents=True)
    for place in (home, home / ".ssh", home / "state/x"):
        found = configured_registries({"PIP_FIND_LINKS": str(place)}, home, machine=machine, hidden=(home / "state",))
        assert (found.binds, dict(found.variables)) == ((), {})


def test_certificates_that_the_operator_trusts_are_trusted_inside(home: Path, machine: Path, tmp_path: Path) -> None:
    """A registry behind the operator's own authority can't be reached without them."""
    bundle = write(tmp_path / "corp.pem", "---")
    variables = {
        "SSL_CERT_FILE": str(bundle),
        "PIP_CERT": str(tmp_path / "missing.pem"),
        "NODE_EXTRA_CA_CERTS": "rel.pem",
    }
    found = configured_registries(variables, home, machine=machine)
    assert [bind.target for bind in found.binds] == [bundle]
    assert found.variables == {"SSL_CERT_FILE": str(bundle)}


def test_broken_files_are_as_none(home: Path, machine: Path) -> None:
    """They are other programs' files: those will say what is wrong with them."""
    write(home / ".config/pip/pip.conf", "index-url = without a section\n")
    write(home / ".config/uv/uv.toml", "[[index\n")
    write(home / ".cargo/config.toml", 'source = "text"\nregistries = {a = 1}\n')
    write(home / ".npmrc", "registry=\n\xff\n")
    assert configured_registries({}, home, machine=machine) == Registries()
