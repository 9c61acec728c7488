"""What references to secrets stand for, by provider; nothing that is said repeats one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.config.secrets import Secrets, problem_of, resolve_secret
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError, NotReady, UsageError
from tests.unit.config.places import ConfigLayers

SECRET = "s3cr3t-value"


def private(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(text, "utf-8")
    return path


def refused(secrets: Secrets, reference: str) -> BailiwickError:
    """Why a reference can't be resolved; never with what is secret in it."""
    error = problem_of(secrets, reference)
    assert error is not None
    assert SECRET not in f"{error} {error.problems()[0]}"
    assert error.hint
    return error


def test_with_the_environment_a_name_is_a_variable() -> None:
    """The short form, beside the one that says where to look."""
    secrets = Secrets(environment=Environment({"MY_KEY": f" {SECRET} "}))
    assert secrets.token("${secret:MY_KEY}") == secrets.token("${secret:env:MY_KEY}") == SECRET
    assert refused(secrets, "${secret:OTHER}").code == "BW263"
    assert refused(secrets, "${secret:agents/claude#token}").code == "BW262"


@pytest.mark.parametrize("written", [f"agents:\n  claude: {{token: '{SECRET}'}}\n", None])
def test_with_a_file_of_secrets_a_path_and_a_key_name_one_in_it(tmp_path: Path, written: str | None) -> None:
    """YAML as people write it, JSON as tools do."""
    text = written or json.dumps({"agents": {"claude": {"token": SECRET}}})
    secrets = Secrets("file", str(private(tmp_path / "secrets.yaml", text)), Environment({}))
    assert secrets.token("${secret:agents/claude#token}") == secrets.text("${secret:agents/claude/token}") == SECRET


def test_with_the_file_provider_a_whole_path_names_a_file_itself(tmp_path: Path) -> None:
    """A secret that another tool keeps in a file of its own, with or without keys in it."""
    home = Environment({"HOME": str(tmp_path)})
    private(tmp_path / "forge.json", json.dumps({"token": SECRET}))
    private(tmp_path / "key", f"{SECRET}\n")
    for file in (None, str(tmp_path / "none.yaml")):
        secrets = Secrets("file", file, home)
        assert secrets.token(f"${{secret:{tmp_path}/forge.json#token}}") == SECRET
        assert secrets.token("${secret:~/forge.json#token}") == SECRET
        assert secrets.token("${secret:~/key}") == secrets.token("${secret:file:~/key}") == SECRET
    assert refused(Secrets("file", None, home), "${secret:relative#key}").code == "BW262"


@pytest.mark.parametrize(
    ("text", "reference", "code"),
    [
        (f"a: {{b: '{SECRET}'}}", "${secret:a#c}", "BW263"),
        (f"a: {{b: '{SECRET}'}}", "${secret:a/b#c}", "BW263"),
        (f"a: {{b: '{SECRET}'}}", "${secret:a}", "BW268"),
        (f"a: {{b: '{SECRET}'}}", "${secret:a#}", "BW262"),
        ("a: {b: 123456}", "${secret:a#b}", "BW268"),
        ("a: {b: '  '}", "${secret:a#b}", "BW268"),
        (f"a: [{SECRET}", "${secret:a#b}", "BW268"),
        (f"- {SECRET}", "${secret:a#b}", "BW268"),
        (f"{SECRET}: 1\n{SECRET}: 2", "${secret:a#b}", "BW268"),
        ("", "${secret:a#b}", "BW268"),
    ],
)
def test_a_file_of_secrets_that_does_not_answer_says_so_without_its_content(
    tmp_path: Path, text: str, reference: str, code: str
) -> None:
    """A parser's message would quote the line."""
    secrets = Secrets("file", str(private(tmp_path / "secrets.yaml", text)), Environment({}))
    assert refused(secrets, reference).code == code


def test_a_file_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    """What others can read is no secret."""
    file = private(tmp_path / "secrets.yaml", f"a: {SECRET}")
    secrets = Secrets("file", str(file), Environment({}))
    assert secrets.text("${secret:a}") == SECRET
    file.chmod(0o640)
    assert (refused(secrets, "${secret:a}").code, refused(secrets, "${secret:a}").hint) == (
        "BW264",
        f"chmod 600 {file}",
    )
    file.unlink()
    assert refused(secrets, "${secret:a}").code == "BW263"
    file.mkdir()
    assert refused(secrets, "${secret:a}").code == "BW264"


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe", b"a\0b", b"x" * (65 << 10)])
def test_a_file_that_holds_no_secret_is_not_taken_for_one(tmp_path: Path, data: bytes) -> None:
    """An empty or a wrong file would be found out by the vendor, hours later."""
    file = private(tmp_path / "key", "")
    file.write_bytes(data)
    assert refused(Secrets(environment=Environment({})), f"${{secret:file:{file}}}").code == "BW263"


def test_a_secret_may_have_several_lines_but_a_token_may_not(tmp_path: Path) -> None:
    """A node's variable can hold a key file; a header can't."""
    file = private(tmp_path / "key", "-----BEGIN-----\nabc\n-----END-----\n")
    secrets = Secrets(environment=Environment({}))
    reference = f"${{secret:file:{file}}}"
    assert secrets.text(reference) == "-----BEGIN-----\nabc\n-----END-----"
    with pytest.raises(NotReady):
        secrets.token(reference)


def test_references_inside_a_text_are_filled_and_told() -> None:
    """`Bearer ${secret:T}` is what a header's variable looks like; whoever covers secrets hears of it."""
    secrets = Secrets(environment=Environment({"T": "t-value", "U": "${secret:T}"}))
    learnt: list[str] = []
    assert secrets.filled("Bearer ${secret:T}, ${secret:U}!", learnt.append) == "Bearer t-value, ${secret:T}!"
    assert learnt == ["t-value", "${secret:T}"]
    assert secrets.filled("nothing here") == "nothing here"


def test_the_configuration_names_the_provider(world: ConfigLayers) -> None:
    """One key decides for every reference."""
    file = private(world.person / "secrets.yaml", f"agents: {{token: {SECRET}}}")
    world.write_person("secrets: {provider: file, file: secrets.yaml}")
    config = world.load()
    assert config.get("secrets.file") == str(file)
    assert resolve_secret("${secret:agents#token}", world.environment(), config) == SECRET
    with pytest.raises(UsageError):
        resolve_secret("${secret:agents#token}", world.environment())


@pytest.mark.parametrize("reference", ["", SECRET, "${secret:}", "${secret: x}", "x${secret:env:T}", "${secret:env:}"])
def test_what_is_no_reference_is_refused_and_not_repeated(reference: str) -> None:
    """It may be the secret itself, put in the wrong place."""
    assert refused(Secrets(environment=Environment({"T": "x"})), reference).code == "BW262"
