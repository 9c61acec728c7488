"""Bad input gets a clear error: a code, a place and a way out; nothing dangerous happens on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.engine.graph import Branch
from bailiwick.engine.render import RenderFailed
from bailiwick.errors import InputInvalid, Problem
from bailiwick.lang.load import load
from bailiwick.lang.templates import Templates

HEAD = "name: x\nstart: a\nnodes:\n"
DONE = "  - {id: done, type: terminal}\n"
SCRIPT = "  - {{id: a, type: script, script: {}, next: done}}\n"
BOMB = "b0: &b0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 10)}]\n" for i in range(1, 10)
)


def write(root: Path, text: str | bytes) -> Path:
    (root / "workflow.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def refused(root: Path, text: str | bytes) -> list[Problem]:
    with pytest.raises(InputInvalid) as caught:
        load(write(root, text))
    assert caught.value.exit_code == 2
    return caught.value.problems()


BAD = {
    "billion laughs": (BOMB + HEAD + DONE, "BW108", "*b2", "aliases"),
    "duplicate key": (HEAD + "  - {id: a, id: b, type: terminal}\n", "BW105", "id: b", "remove or rename"),
    "python tag": (HEAD + "  - !!python/object/apply:os.system [id]\n", "BW106", "!!python", "remove the tag"),
    "custom tag": (HEAD + "  - {id: a, type: terminal, x: !secret y}\n", "BW106", "!secret", "remove the tag"),
    "path that climbs": (HEAD + SCRIPT.format("../x.sh") + DONE, "BW131", "../x.sh", "copy the file"),
    "absolute path": (HEAD + SCRIPT.format("/bin/sh") + DONE, "BW131", "/bin/sh", "copy the file"),
    "link out": (HEAD + SCRIPT.format("link.sh") + DONE, "BW131", "link.sh", "replace the link"),
    "missing script": (HEAD + SCRIPT.format("gone.sh") + DONE, "BW130", "gone.sh", "create gone.sh"),
    "missing prompt": (
        HEAD + "  - {id: a, type: agent, prompt: p.md, next: done}\n" + DONE,
        "BW130",
        "p.md",
        "create p.md",
    ),
    "control character": (HEAD + "  - {id: a, type: \x1b[31mset}\n", "BW102", "\x1b", "remove"),
    "escaped control character": (HEAD + '  - {id: "a\\0b", type: terminal}\n', "BW102", '"a', "leave the escape out"),
    "id with a space": (HEAD + "  - {id: a b, type: terminal}\n" + DONE, "BW110", "a b", "it has to match"),
    "id with a path": (HEAD + "  - {id: ../a, type: terminal}\n" + DONE, "BW110", "../a", "it has to match"),
    "long id": (HEAD + f"  - {{id: {'a' * 65}, type: terminal}}\n" + DONE, "BW110", "aaa", "it has to match"),
    "not a number": (HEAD + "  - {id: a, type: agent, prompt_text: x, max_usd: .nan}\n", "BW107", ".nan", "quote it"),
    "huge integer": ("vars: {n: 99999999999999999999}\n" + HEAD + DONE, "BW107", "9999", "quote it"),
    "not utf-8": (HEAD.encode() + b"  - {id: a\xff, type: terminal}\n", "BW102", "\udcff", "UTF-8"),
    "unknown next": (HEAD + "  - {id: a, type: set, values: {}, next: doen}\n" + DONE, "BW103", "doen", "'done'"),
    "duplicate id": (HEAD + "  - {id: a, type: terminal}\n" * 2, "BW121", "a, type", "id of its own"),
    "broken yaml": (HEAD + "  - {id: a, type: terminal]\n", "BW104", "]", "brackets"),
    "no file at all": (b"", "BW109", "", "a mapping"),
    "too large": ("x" * (1 << 20) + ": 1\n", "BW101", "", "split"),
}


@pytest.mark.parametrize(("text", "code", "word", "hint"), BAD.values(), ids=BAD)
def test_each_bad_file_has_its_code_place_and_hint(
    tmp_path: Path, text: str | bytes, code: str, word: str, hint: str
) -> None:
    """A person learns what is wrong, where, and what to do, and exits with 2."""
    (tmp_path / "flow").mkdir()
    (tmp_path / "outside.sh").write_text("")
    (tmp_path / "flow/link.sh").symlink_to(tmp_path / "outside.sh")
    first = next(problem for problem in refused(tmp_path / "flow", text) if problem.code == code)
    assert hint in first.hint
    assert first.place is not None
    assert first.place.file.endswith("workflow.yaml")
    lines = Path(first.place.file).read_text("utf-8", "surrogateescape").split("\n")
    assert lines[first.place.line - 1][first.place.column - 1 :].startswith(word) or not word


def test_ten_thousand_nodes_load(tmp_path: Path) -> None:
    """The largest workflow there may be; one more is refused."""
    nodes = [f"  - {{id: n{i}, type: set, values: {{x: '{{{{ x }}}}'}}, next: n{i + 1}}}\n" for i in range(10_000)]
    head = "start: n0\nvars: {x: 1}\nname: big\nnodes:\n"
    loaded = load(write(tmp_path, head + "".join(nodes[:9_999]) + "  - {id: n9999, type: terminal}\n"))
    assert (len(loaded.graph.nodes), loaded.warnings) == (10_000, [])
    [problem] = refused(tmp_path, head + "".join(nodes) + "  - {id: n10000, type: terminal}\n")
    assert problem.code == "BW129"


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ run.__init__.__globals__ }}",
        "{{ '{0.__class__}'.format(run) }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{% include '/etc/passwd' %}",
        "{% include '../secret' %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_reaches_nothing_but_its_values(tmp_path: Path, attack: str) -> None:
    """A template is text with holes: the attack fails the rendering and gives nothing away."""
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "flow").mkdir()
    with pytest.raises(RenderFailed) as caught:
        Templates(tmp_path / "flow").text(attack, {"run": {"id": "1"}}.__getitem__)
    assert "s3cret" not in str(caught.value)
    assert "root:" not in str(caught.value)


@pytest.mark.parametrize(
    "template", ["{{ v }}", "[{{ v }}]", "{{ v | trim }}", "{% for x in [v] %}{{ x }}{% endfor %}"]
)
def test_a_value_with_template_syntax_stays_text(template: str) -> None:
    """What an agent answered is data, whatever it looks like."""
    hostile = "{{ ''.__class__ }}{% include '/etc/passwd' %}"
    templates = Templates()
    assert hostile in templates.text(template, {"v": hostile}.__getitem__).value
    assert hostile in templates.value([template], {"v": hostile}.__getitem__).value[0]


def test_unquoted_yes_no_and_on_are_texts_in_cases(tmp_path: Path) -> None:
    """The keys of `cases` are compared as text, so they are read as text."""
    branch = (
        "  - {id: a, type: branch, path: x, cases: {yes: done, no: done, on: done, 1: done, null: done, true: done}}\n"
    )
    node = load(write(tmp_path, HEAD + branch + DONE)).graph.nodes["a"]
    assert isinstance(node, Branch)
    assert list(node.cases) == ["yes", "no", "on", "1", "null", "true"]
