"""`models.yaml`: its forms, where it is looked for, what is said about mistakes, and what a repository may not say."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from bailiwick.errors import InputInvalid
from bailiwick.ids import Json, digest
from bailiwick.routing.models_file import Models, SkillModels, models_schema, read_models
from tests.unit.config.places import ConfigLayers

TODAY = """\
# chains
verifier: claude-sonnet-4-6
llama_swap_url: http://host:8080
default_chain: [ollama/qwen3-coder-30b-tuned, claude-sonnet-4-6]
skills:
  tdd:    {chain: [ollama/qwen3-coder-30b-tuned, claude-sonnet-4-6]}
  review:
    chain:
      - ollama/devstral-tuned
      - ollama/gemma4
  debug: {chain: []}
  spec: {}
  answer:
"""
OLDER = "default: ollama/qwen3\nskills:\n  tdd: ollama/qwen3\n  review: ollama/devstral\n"


@pytest.fixture
def world(tmp_path: Path) -> ConfigLayers:
    """A person without any file."""
    return ConfigLayers(tmp_path)


def read(world: ConfigLayers, file: Path | None = None) -> Models:
    """What the files of this world say."""
    return read_models(world.load(), file=file, environment=world.environment())


def persons(world: ConfigLayers, text: str) -> Path:
    """Write the person's file."""
    return world.write(world.person / "models.yaml", text)


def commit(world: ConfigLayers, text: str) -> Path:
    """Commit the repository's file."""
    world.git("init", "-q")
    path = world.write(world.repository / ".bailiwick" / "models.yaml", text)
    world.commit()
    return path


def problems(world: ConfigLayers, file: Path | None = None) -> list[str]:
    """What is wrong, each as `code line:column what`."""
    with pytest.raises(InputInvalid) as caught:
        read(world, file)
    assert caught.value.exit_code == 2
    return [f"{p.code} {p.place.line}:{p.place.column} {p.what}" for p in caught.value.problems() if p.place]


def test_todays_form_is_read_with_the_lines_of_its_chains(world: ConfigLayers) -> None:
    """The reason for a choice names the line that made it."""
    path = persons(world, TODAY)
    models = read(world)
    assert (models.verifier, models.llama_swap_url) == ("claude-sonnet-4-6", "http://host:8080")
    assert models.default_chain == ("ollama/qwen3-coder-30b-tuned", "claude-sonnet-4-6")
    assert models.skills["tdd"] == SkillModels(models.default_chain, line=6)
    assert models.skills["review"] == SkillModels(("ollama/devstral-tuned", "ollama/gemma4"), line=7)
    assert (models.default_line, models.path) == (4, path)
    assert models.digest == digest(TODAY)


def test_an_empty_or_absent_chain_says_nothing(world: ConfigLayers) -> None:
    """Such a skill falls to the default chain, as it does for a name that the file does not hold."""
    persons(world, TODAY)
    skills = read(world).skills
    assert [skills[name].chain for name in ("debug", "spec", "answer")] == [(), (), ()]


def test_the_older_form_is_read_as_chains_of_one(world: ConfigLayers) -> None:
    """Files of the supervisor load as they are."""
    persons(world, OLDER)
    models = read(world)
    assert models.default_chain == ("ollama/qwen3",)
    assert models.default_line == 1
    assert {name: entry.chain for name, entry in models.skills.items()} == {
        "tdd": ("ollama/qwen3",),
        "review": ("ollama/devstral",),
    }
    assert models.verifier == ""


def test_a_default_chain_goes_before_the_older_default(world: ConfigLayers) -> None:
    """A file in the middle of its change holds both."""
    persons(world, "default: old\ndefault_chain: [new, newer]\n")
    models = read(world)
    assert (models.default_chain, models.default_line) == (("new", "newer"), 2)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "default_chain: []\n", "skills:\n"])
def test_a_file_that_names_no_models_is_no_mistake_in_itself(world: ConfigLayers, text: str) -> None:
    """Whether anything is missing is known only when a skill asks."""
    path = persons(world, text)
    models = read(world)
    assert (models.path, models.default_chain, dict(models.skills)) == (path, (), {})


def test_without_a_file_the_places_are_told_where_one_could_be(world: ConfigLayers) -> None:
    """The message that asks for a chain has to say where to write it."""
    models = read(world)
    assert models.path is None
    assert models.looked == (str(world.person / "models.yaml"),)


def test_every_mistake_is_told_at_once_with_its_place_and_the_nearest_name(world: ConfigLayers) -> None:
    """A person corrects a file once, not once per mistake."""
    file = world.write(
        world.root / "m.yaml",
        "verifer: x\ndefault_chain: claude\nrouting: learned\nskills:\n  tdd: [a, b]\n  spec: {chian: [a]}\n"
        "  debug: {chain: [a, 3]}\n  'b d': m\nlocal_only: maybe\nllama_swap_url: nowhere at all\n",
    )
    found = problems(world, file)
    assert [line.split(" ", 2)[:2] for line in found] == [
        ["BW112", "1:1"],
        ["BW110", "2:16"],
        ["BW112", "3:1"],
        ["BW120", "8:3"],
        ["BW110", "5:8"],
        ["BW112", "6:10"],
        ["BW110", "7:22"],
        ["BW110", "9:13"],
        ["BW110", "10:17"],
    ]
    with pytest.raises(InputInvalid) as caught:
        read(world, file)
    hints = {p.code + str(p.place and p.place.line): p.hint for p in caught.value.problems()}
    assert (hints["BW1121"], hints["BW1126"]) == ("'verifier'", "'chain'")
    assert hints["BW1123"].startswith("remove the line: chains are walked from their first model on")


def test_the_named_file_goes_before_the_configured_before_the_repositorys_before_the_persons(
    world: ConfigLayers,
) -> None:
    """The most specific file decides; the others' chains are not mixed in."""
    persons(world, "default: persons\n")
    assert read(world).default_chain == ("persons",)
    commit(world, "default: repositorys\n")
    assert read(world).default_chain == ("repositorys",)
    world.variables["SUPERVISOR_MODELS_FILE"] = str(world.write(world.root / "c.yaml", "default: configured\n"))
    assert read(world).default_chain == ("configured",)
    named = world.write(world.root / "n.yaml", "default: named\n")
    assert read(world, named).default_chain == ("named",)


def test_our_own_variable_goes_before_the_supervisors(world: ConfigLayers) -> None:
    """Who sets our name means us."""
    for name in ("SUPERVISOR_MODELS_FILE", "BAILIWICK_MODELS"):
        world.variables[name] = str(world.write(world.root / f"{name}.yaml", f"default: {name}\n"))
    assert read(world).default_chain == ("BAILIWICK_MODELS",)


def test_the_supervisors_directory_may_hold_the_persons_file(world: ConfigLayers) -> None:
    """SUPERVISOR_CONFIG_DIR is where its models.yaml always was."""
    world.variables["SUPERVISOR_CONFIG_DIR"] = str(world.root / "supervisor")
    world.write(world.root / "supervisor" / "models.yaml", "default: theirs\n")
    assert read(world).default_chain == ("theirs",)


def test_a_named_file_that_is_not_there_is_told(world: ConfigLayers) -> None:
    """Falling back to another file in silence would ask models that nobody meant."""
    persons(world, OLDER)
    with pytest.raises(InputInvalid) as caught:
        read(world, world.root / "gone.yaml")
    assert caught.value.code == "BW101"
    assert caught.value.place is not None
    assert caught.value.place.file.endswith("gone.yaml")


def test_the_repositorys_file_counts_as_of_its_commit(world: ConfigLayers) -> None:
    """An agent that edits the file in its tree must not choose its own judge."""
    path = commit(world, "default: committed\nverifier: strict\n")
    path.write_text("default: edited\nverifier: lenient\n", "utf-8")
    models = read(world)
    assert (models.default_chain, models.verifier) == (("committed",), "strict")
    assert [note.code for note in models.notes] == ["BW288"]


def test_a_file_that_was_never_committed_is_not_used(world: ConfigLayers) -> None:
    """The same, for a file that an agent adds."""
    commit(world, "default: committed\n").rename(world.repository / ".bailiwick" / "other.yaml")
    world.commit()
    world.write(world.repository / ".bailiwick" / "models.yaml", "default: new\n")
    models = read(world)
    assert (models.path, [note.code for note in models.notes]) == (None, ["BW288"])


def test_outside_git_the_folders_own_file_counts(world: ConfigLayers) -> None:
    """A directory without history has no base commit to ask."""
    world.write(world.repository / ".bailiwick" / "models.yaml", "default: plain\n")
    assert read(world).default_chain == ("plain",)


def test_a_repository_cannot_say_where_to_connect(world: ConfigLayers) -> None:
    """A repository that sets endpoints could make the person's machine talk to anybody."""
    commit(world, "default: m\nllama_swap_url: http://evil.example\n")
    found = problems(world)
    assert found == ["BW281 2:1 a repository can't set endpoints, and llama_swap_url is one"]


def test_the_variable_goes_over_the_files_llama_swap(world: ConfigLayers) -> None:
    """The machine knows better than a file that moves between machines."""
    persons(world, TODAY)
    world.variables["LLAMA_SWAP_URL"] = "http://127.0.0.1:9"
    assert read(world).llama_swap_url == "http://127.0.0.1:9"


@pytest.mark.parametrize("closed", ["person", "repository"])
def test_no_file_lifts_the_local_only_of_another(world: ConfigLayers, closed: str) -> None:
    """It is a limit: a repository can't send the person's code away, nor a flag a repository's."""
    persons(world, "local_only: true\n" if closed == "person" else "default: p\n")
    commit(world, "default: r\n" + ("local_only: true\n" if closed == "repository" else ""))
    named = world.write(world.root / "n.yaml", "default: claude-opus-4-6\nlocal_only: false\n")
    assert read(world, named).local_only
    assert read(world).local_only


def test_a_skill_that_any_file_keeps_local_stays_local(world: ConfigLayers) -> None:
    """The same limit, for one skill; also for one that the deciding file does not name."""
    persons(world, "skills:\n  review: {local_only: true}\n  spec: {local_only: true}\n")
    commit(world, "default: r\nskills:\n  review: {chain: [claude-opus-4-6], local_only: false}\n  tdd: m\n")
    models = read(world)
    assert {name: entry.local_only for name, entry in models.skills.items()} == {
        "review": True,
        "spec": True,
        "tdd": False,
    }
    assert models.skills["review"].chain == ("claude-opus-4-6",)
    assert not models.local_only


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        ({"default": "m", "skills": {"tdd": "m", "x": None, "y": {"chain": ["m"], "local_only": True}}}, True),
        ({"default_chain": [], "verifier": "v", "llama_swap_url": "http://h:1"}, True),
        ({"default_chain": ["m"], "routing": "fixed"}, False),
        ({"default_chain": "m"}, False),
        ({"skills": {"tdd": ["m"]}}, False),
        ({"verifer": "v"}, False),
    ],
)
def test_the_schema_says_the_same_as_the_reader(world: ConfigLayers, data: Json, fits: bool) -> None:
    """An editor that marks what we take, or takes what we refuse, is worse than none."""
    assert jsonschema_rs.is_valid(models_schema(), data) is fits
    file = world.write(world.root / "m.yaml", json.dumps(data))
    if fits:
        read(world, file)
    else:
        assert problems(world, file)
