"""Precedence, limits, origins and refusals, through the whole reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid, NotFound, Problem
from tests.unit.config.places import ConfigLayers


def problems(world: ConfigLayers) -> list[Problem]:
    with pytest.raises(InputInvalid) as caught:
        world.load()
    return caught.value.problems()


def test_with_nothing_configured_the_documented_defaults_hold(world: ConfigLayers) -> None:
    """They are promised by name: what a person who configured nothing can lose."""
    config = world.load()
    assert (config.get("budget.run.usd"), config.get("budget.run.tokens"), config.get("budget.run.wall")) == (
        10,
        5_000_000,
        12 * 3600,
    )
    assert (config.get("budget.day.usd"), config.get("night.agents")) == (40, 2)
    assert (config.get("publish.mode"), config.get("sandbox.profile")) == ("ask", "auto")
    assert str(config.origin("budget.run.usd")) == "built-in"


def test_without_any_file_neither_yaml_nor_a_process_is_needed(tmp_path: Path) -> None:
    """Every command loads the configuration; the one without files must not pay for a parser or for git."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom bailiwick.config.service import load_config\n"
        "load_config(Path('.'), {}, machine=Path('nowhere'))\n"
        "print([m for m in ('yaml', 'subprocess', 'difflib', 'click') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "[]"


def test_for_a_preference_the_most_specific_layer_wins(world: ConfigLayers) -> None:
    """Layers are taken away one by one; each time the next one in the documented order shows."""
    world.git("init", "-q")
    world.git("remote", "add", "origin", "https://forge.example/team/app.git")
    world.write_machine("model: machine")
    world.write_person("model: person")
    world.write_repository("model: repository")
    world.commit()
    assert world.load().get("model") == "repository"
    mine = world.write(world.person / "repos/forge.example/team/app.yaml", "model: mine")
    assert world.load().get("model") == "mine"
    world.variables["AGENT_MODEL"] = "other"
    assert world.load().get("model") == "other"
    world.variables["BAILIWICK_MODEL"] = "own"
    assert world.load().get("model") == "own"
    assert world.load({"model": "flag"}).get("model") == "flag"
    world.variables.clear()
    mine.unlink()
    world.write_repository("base: main")
    world.commit()
    assert world.load().get("model") == "person"
    world.write_person("")
    assert world.load().get("model") == "machine"


def test_for_a_limit_the_strictest_layer_wins(world: ConfigLayers) -> None:
    """A repository may be stricter than its person, and a machine stricter than both."""
    world.write_machine("budget: {run: {usd: 30}}")
    world.write_person("budget: {run: {usd: 20, tokens: unlimited}}")
    world.write_repository("budget: {run: {usd: 25, tokens: 1000}}")
    config = world.load()
    assert (config.get("budget.run.usd"), config.get("budget.run.tokens")) == (20, 1000)


def test_a_person_may_raise_a_limit_above_the_default_and_a_repository_may_not(world: ConfigLayers) -> None:
    """The built-in $10 is what holds while nobody with the right to say more has spoken."""
    world.write_repository("budget: {run: {usd: 500}, day: {usd: 500}}")
    world.write_person("budget: {run: {usd: 50}}")
    config = world.load()
    assert (config.get("budget.run.usd"), config.get("budget.day.usd")) == (50, 40)


def test_a_flag_loosens_a_limit_up_to_the_ceiling_in_the_persons_file_and_says_when_it_was_cut(
    world: ConfigLayers,
) -> None:
    """Somebody at the keyboard may go beyond a repository's wish, never beyond what they wrote down when calm."""
    person = world.write_person("budget:\n  run:\n    usd: 20\n")
    world.write_repository("budget: {run: {usd: 2}}")
    assert world.load().get("budget.run.usd") == 2
    assert world.load({"budget.run.usd": 15}).get("budget.run.usd") == 15
    cut = world.load({"budget.run.usd": 99})
    assert cut.get("budget.run.usd") == 20
    assert [str(notice.place) for notice in cut.notices] == [f"{person}:3:10"]


def test_a_policy_holds_against_everyone(world: ConfigLayers) -> None:
    """The organisation's word is the last one, whatever the command line says."""
    world.write_policy("publish: {mode: never}\nsandbox: {profile: container}")
    world.write_person("publish: {mode: auto}\nsandbox: {profile: bwrap}")
    config = world.load({"publish.mode": "auto", "sandbox.profile": "none"})
    assert (config.get("publish.mode"), config.get("sandbox.profile")) == ("never", "container")


def test_a_policy_holds_limits_only(world: ConfigLayers) -> None:
    """A preference in a policy would be overridden by everyone: better said than ignored."""
    world.write_policy("backend: codex")
    assert [problem.code for problem in problems(world)] == ["BW212"]


def test_every_value_knows_where_it_was_set(world: ConfigLayers) -> None:
    """`config show --origin` is how a person finds out why."""
    file = world.write_person("# mine\nbackend: codex\nnight:\n  agents: 1\n")
    world.variables["BAILIWICK_ATTEMPTS"] = "2"
    config = world.load({"model": "opus"})
    origins = {name: str(config.origin(name)) for name in ("backend", "night.agents", "attempts", "model", "base")}
    assert origins == {
        "backend": f"{file}:2:10",
        "night.agents": f"{file}:4:11",
        "attempts": "BAILIWICK_ATTEMPTS",
        "model": "command line",
        "base": "built-in",
    }


def test_lists_of_a_limit_are_intersected_and_name_every_origin(world: ConfigLayers) -> None:
    """A host is reachable only if everybody who lists hosts lists it."""
    one = world.write_machine("sandbox: {allow: [a.example, b.example]}")
    two = world.write_person("sandbox: {allow: [b.example, c.example]}")
    config = world.load()
    assert config.get("sandbox.allow") == ["b.example"]
    assert {str(origin.place.file) for origin in config.origins("sandbox.allow") if origin.place} == {
        str(one),
        str(two),
    }


@pytest.mark.parametrize(
    "text",
    [
        "credentials: {x: {backend: claude}}",
        "forges: {x: {url: https://forge.example}}",
        "endpoints: {x: {url: http://host:1}}",
        "agents: {command: 'evil {prompt_file}'}",
        "backend: command",
        "service: {port: 1}",
        "secrets: {provider: file}",
        "publish: {mode: auto}",
        "network: {proxy: 'http://host:1'}",
        "runs_dir: /elsewhere",
    ],
)
def test_a_repository_can_not_set_what_would_give_it_rights(world: ConfigLayers, text: str) -> None:
    """A repository is untrusted text: whoever clones it must not be steered by it. The place is named."""
    file = world.write_repository(text)
    (problem,) = problems(world)
    assert problem.code == "BW211"
    assert problem.place is not None
    assert str(problem.place).startswith(f"{file}:1:")


def test_an_unknown_key_is_an_error_with_its_place_and_the_nearest_name(world: ConfigLayers) -> None:
    """A typo in a limit must not mean no limit. All of them are named in one go."""
    file = world.write_person("budget:\n  run:\n    uds: 3\nbackendd: x\nnight: 7\n")
    found = {str(problem.place): problem for problem in problems(world)}
    assert set(found) == {f"{file}:3:5", f"{file}:4:1", f"{file}:5:8"}
    assert "'usd'" in found[f"{file}:3:5"].hint
    assert "'backend'" in found[f"{file}:4:1"].hint
    assert "a mapping" in found[f"{file}:5:8"].what


def test_a_dotted_key_in_a_file_is_told_how_to_be_nested(world: ConfigLayers) -> None:
    """`budget.run.usd: 3` is what the command line takes; the hint shows what a file takes."""
    world.write_person("budget.run.usd: 3")
    (problem,) = problems(world)
    assert "budget: {run: {usd: …}}" in problem.hint


def test_a_bad_variable_is_named_as_the_place(world: ConfigLayers) -> None:
    """A person who set a variable in some profile needs its name, not a stack trace."""
    world.variables["BAILIWICK_BUDGET_RUN_USD"] = "lots"
    (problem,) = problems(world)
    assert str(problem.place) == "BAILIWICK_BUDGET_RUN_USD"


def test_a_variable_of_ours_that_nothing_reads_is_noticed(world: ConfigLayers) -> None:
    """BAILIWICK_BAKCEND would otherwise be silently without effect."""
    world.variables["BAILIWICK_BAKCEND"] = "codex"
    (notice,) = world.load().notices
    assert notice.warning
    assert "'BAILIWICK_BACKEND'" in notice.hint


def test_variables_of_other_tools_are_honoured(world: ConfigLayers) -> None:
    """Whoever comes from those tools keeps their set-up: seconds as plain numbers, words for booleans."""
    world.variables |= {
        "AGENT_RESULT_TIMEOUT_S": "120",
        "AGENT_USE_DEFAULT_OUTPUTS": "false",
        "RETRY_CAP": "5",
        "SUPERVISOR_PORT": "4000",
        "AGENT_RUNS_DIR": "runs",
        "OLLAMA_HOST": "http://127.0.0.1:11434",
    }
    config = world.load()
    assert config.get("agents.result_timeout") == 120
    assert config.get("agents.use_default_outputs") is False
    assert (config.get("attempts"), config.get("service.port")) == (5, 4000)
    assert config.runs_dir == world.repository / "runs"
    assert config.get("endpoints.ollama.url") == "http://127.0.0.1:11434"


def test_a_command_in_agent_cmd_chooses_the_command_backend_unless_agent_cli_names_another(world: ConfigLayers) -> None:
    """The order is AGENT_CLI, then AGENT_CMD, then the files."""
    world.write_person("backend: codex")
    world.variables["AGENT_CMD"] = "my-agent {prompt_file}"
    config = world.load()
    assert (config.get("backend"), str(config.origin("backend"))) == ("command", "AGENT_CMD")
    world.variables["AGENT_CLI"] = "copilot"
    assert world.load().get("backend") == "copilot"


def test_relative_paths_start_where_they_were_written(world: ConfigLayers) -> None:
    """A path in a file means the same from every working directory."""
    world.write_person("runs_dir: my-runs")
    assert world.load().runs_dir == world.person / "my-runs"


def test_a_plain_secret_is_refused_and_not_repeated(world: ConfigLayers) -> None:
    """The message may end up in a log, so it must not carry what it complains about."""
    world.write_person("credentials:\n  main:\n    token: sk-live-12345\n")
    (problem,) = problems(world)
    assert problem.code == "BW213"
    assert str(problem.place).endswith(":3:12")
    assert "sk-live-12345" not in str(problem)


def test_a_reference_to_a_secret_is_kept_as_a_reference(world: ConfigLayers) -> None:
    """It is resolved late, by the process that needs it; configuration never holds the secret."""
    world.write_person("credentials: {main: {backend: claude, token: '${secret:agents#token}'}}")
    config = world.load()
    assert config.get("credentials") == {"main": {"backend": "claude", "token": "${secret:agents#token}"}}


def test_a_name_that_is_no_key_is_not_found_with_the_nearest(world: ConfigLayers) -> None:
    """`config get budget.run.usb` answers with what was probably meant."""
    with pytest.raises(NotFound) as caught:
        world.load().get("budget.run.usb")
    assert "'budget.run.usd'" in caught.value.hint
    assert world.load().get("credentials") == {}


def test_a_file_of_comments_sets_nothing(world: ConfigLayers) -> None:
    """`config edit` may leave a file with everything commented out."""
    world.write_person("# backend: codex\n\n  # more\n")
    assert world.load().get("backend") == "claude"
