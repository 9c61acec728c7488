"""Script nodes: what is started, and what its exit and output come to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine.graph import Node, Output, Poll, Wait, Work
from bailiwick.engine.render import Lookup, Rendered
from bailiwick.ids import Json
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import run_process
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, NodeKind
from bailiwick.runtime.script import BadAnswer, PollKind, ScriptKind, read_outputs, signal_name

KEY, NOTHING = Output("key"), dict[str, Json]()


class Braces:
    """A renderer that knows `{name}` and nothing else."""

    def text(self, template: str, lookup: Lookup) -> Rendered:
        missing: list[str] = []

        class Names(dict[str, str]):
            def __missing__(self, name: str) -> str:
                try:
                    return str(lookup(name))
                except KeyError:
                    missing.append(name)
                    return ""

        return Rendered(template.format_map(Names()), tuple(missing))

    def file(self, name: str, lookup: Lookup) -> Rendered: ...  # type: ignore[empty-body]  # never called

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        return self.text(str(template), lookup)


class RealIo:
    """Runs what it is told, with a small environment."""

    def __init__(self, **env: str) -> None:
        self.env = {"PATH": os.environ["PATH"], "BAILIWICK_EFFECT_KEY": f"script-{os.getpid()}", **env}
        self.commands: list[Command] = []
        self.cancel = asyncio.Event()

    async def run(self, command: Command) -> Exit:
        self.commands.append(command)
        return await run_process(command, cancel=self.cancel)

    def environment(self) -> dict[str, str]:
        return dict(self.env)

    def show(self, text: str) -> None: ...

    def observe(self, data: dict[str, Json]) -> None:
        raise AssertionError(f"a script has nothing to observe: {data}")


class ToldIo(RealIo):
    """Runs nothing: the process ends as it is told to."""

    def __init__(self, end: Exit | OSError) -> None:
        super().__init__()
        self.end = end

    async def run(self, command: Command) -> Exit:
        self.commands.append(command)
        if isinstance(self.end, OSError):
            raise self.end
        return self.end


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A pinned workflow directory with a live one beside it."""
    (tmp_path / "pin" / "scripts").mkdir(parents=True)
    (tmp_path / "live" / "data").mkdir(parents=True)
    (tmp_path / "space").mkdir()
    return tmp_path


def _write(flow: Path, name: str, text: str, mode: int = 0o644) -> str:
    path = flow / "pin" / "scripts" / name
    path.write_text(text)
    path.chmod(mode)
    return f"scripts/{name}"


def _node(script: str, *outputs: Output, timeout: float | None = None, **spec: Json) -> Work:
    return Work(id="n", type="script", spec={"script": script, **spec}, outputs=outputs, timeout=timeout, next="end")


def _poll(script: str, *outputs: Output, timeout: float | None = None, args: tuple[str, ...] = ()) -> Wait:
    return Wait(id="n", poll=Poll(script=script, every=1.0, args=args, timeout=timeout), outputs=outputs, next="end")


def _request(flow: Path, node: Node, prepared: Json) -> AttemptRequest:
    return AttemptRequest(
        "run", "run", 1, "key", "", node, 1, 1, 1, 1, prepared, flow / "pin", flow / "live", flow / "space"
    )


def _go(
    flow: Path, node: Work | Wait, io: RealIo | None = None, context: Mapping[str, Json] | None = None
) -> Done | Failed:
    kind: NodeKind = ScriptKind() if isinstance(node, Work) else PollKind()
    prepared = kind.prepare(node, (context or {}).__getitem__, Braces()).value
    assert json.loads(json.dumps(prepared)) == prepared, "what is prepared goes through the journal"
    return asyncio.run(kind.attempt(_request(flow, node, prepared), io or RealIo()))


def _failure(result: Done | Failed) -> tuple[str, str]:
    assert isinstance(result, Failed)
    return result.failure.kind, result.failure.message


def test_arguments_variables_and_directory_are_rendered_once() -> None:
    """A value that looks like a template is plain text; what was missing is noted once."""
    node = _node("s.sh", args=["{a}", "x{gone}y", "{gone}", 3, True], env={"E": "{b}"}, cwd="{c}")
    made = ScriptKind().prepare(node, {"a": "{b}", "b": "2", "c": "data"}.__getitem__, Braces())
    assert made == Rendered(
        {"script": "s.sh", "args": ["{b}", "xy", "", "3", "true"], "env": {"E": "2"}, "cwd": "data"}, ("gone",)
    )


def test_a_mapping_of_arguments_is_taken_in_its_order() -> None:
    """Workflows written for the older tool name their arguments."""
    made = ScriptKind().prepare(_node("s.sh", args={"z": "1", "a": "2"}), NOTHING.__getitem__, Braces())
    assert made.value == {"script": "s.sh", "args": ["1", "2"], "env": {}, "cwd": None}


def test_a_shell_script_gets_its_arguments_as_they_are(flow: Path) -> None:
    """No shell sees them: spaces, quotes and dollars are text."""
    script = _write(flow, "s.sh", 'printf "%s|" "$@"; echo warn >&2')
    args = ["a b", "$HOME", "'\"", "", "*", "ä"]
    result = _go(flow, _node(script, args=args))
    assert isinstance(result, Done)
    assert result.outputs == {}
    assert result.log["stdout"] == "a b|$HOME|'\"||*|ä|"
    assert (result.log["stderr"], result.log["code"]) == ("warn\n", 0)
    assert result.log["command"][1:] == [str(flow / "pin" / script), *args]
    assert Path(result.log["command"][0]).name == "bash"


def test_a_python_script_answers_with_json(flow: Path) -> None:
    """Only what is declared enters the context."""
    script = _write(flow, "s.py", "import json, sys; print(json.dumps({'key': sys.argv[1:], 'other': 1}))")
    assert _go(flow, _node(script, KEY, args=["1"])) == Done(
        {"key": ["1"]},
        {
            "command": [_which("python3"), str(flow / "pin" / script), "1"],
            "stdout": '{"key": ["1"], "other": 1}\n',
            "stderr": "",
            "code": 0,
        },
    )


def _which(name: str) -> str:
    import shutil

    found = shutil.which(name)
    assert found is not None
    return found


def test_any_other_script_is_executed(flow: Path) -> None:
    """The first line of the file says with what."""
    script = _write(flow, "tool", "#!/bin/sh\necho tool $1", 0o755)
    result = _go(flow, _node(script, args=["x"]))
    assert isinstance(result, Done)
    assert result.log["stdout"] == "tool x\n"


def test_it_runs_in_the_live_directory_unless_the_node_says_where(flow: Path) -> None:
    """Scripts come from the pin, data lies beside the live workflow."""
    script = _write(flow, "s.sh", "pwd -P")
    live = (flow / "live").resolve()
    for cwd, where in ((None, live), ("data", live / "data"), (str(flow), flow.resolve())):
        result = _go(flow, _node(script, cwd=cwd))
        assert isinstance(result, Done)
        assert result.log["stdout"].strip() == str(where)


def test_the_environment_is_the_operators_plus_the_nodes(flow: Path) -> None:
    """A node may add and change, but not take off the marks by which its processes are found after a crash."""
    io = RealIo(BAILIWICK_RUN="r1", LEVEL="operator", KEPT="yes")
    script = _write(flow, "s.sh", 'echo "$BAILIWICK_RUN $LEVEL $KEPT $NEW"')
    result = _go(flow, _node(script, env={"LEVEL": "{x}", "NEW": "n", "BAILIWICK_RUN": "fake"}), io, {"x": "node"})
    assert isinstance(result, Done)
    assert result.log["stdout"] == "r1 node yes n\n"


def test_a_failing_script_says_with_what_and_its_last_words(flow: Path) -> None:
    """The message is what a person sees in a list of runs."""
    script = _write(flow, "s.sh", r"echo first >&2; printf '\033[31mlast words\033[0m\n\n' >&2; exit 3")
    result = _go(flow, _node(script, KEY))
    assert _failure(result) == ("exit", "exited with 3: last words")
    assert isinstance(result, Failed)
    assert (result.failure.detail, result.log["code"]) == ({"code": 3}, 3)
    quiet = _write(flow, "q.sh", "kill -SEGV $$")
    assert _failure(_go(flow, _node(quiet))) == ("exit", "ended by SIGSEGV")


def test_a_signal_without_a_name_keeps_its_number() -> None:
    """Real-time signals have none."""
    assert (signal_name(signal.SIGKILL), signal_name(40)) == ("SIGKILL", "signal 40")


def test_a_timeout_and_a_cancel_are_told_apart_from_an_exit(flow: Path) -> None:
    """One may be tried again, the other was asked for."""
    script = _write(flow, "s.sh", "exec sleep 600")
    assert _failure(_go(flow, _node(script, timeout=0.05))) == ("timeout", "it ran longer than 0.05 s and was ended")
    io = RealIo()
    io.cancel.set()
    assert _failure(_go(flow, _node(script), io))[0] == "cancelled"


@pytest.mark.parametrize("name", ["scripts/gone.sh", "scripts", "../live/x.sh", "/bin/true", "scripts/../../live/x.sh"])
def test_a_script_that_is_not_in_the_pin_is_not_found(flow: Path, name: str) -> None:
    """What runs is what was pinned, whatever a definition names."""
    (flow / "live" / "x.sh").write_text("echo no")
    io = RealIo()
    kind, message = _failure(_go(flow, _node(name), io))
    assert kind == "not_found"
    assert name in message
    assert io.commands == []


def test_a_missing_interpreter_or_directory_is_not_found(flow: Path) -> None:
    """Trying again can't help; the message names what is missing."""
    script = _write(flow, "s.py", "")
    kind, message = _failure(_go(flow, _node(script), RealIo(PATH=str(flow))))
    assert (kind, "'python3'" in message) == ("not_found", True)
    kind, message = _failure(_go(flow, _node(script, cwd="missing")))
    assert (kind, str(flow / "live" / "missing") in message) == ("not_found", True)
    odd = _write(flow, "odd", "#!/nowhere/perl\n", 0o755)
    kind, message = _failure(_go(flow, _node(odd)))
    assert (kind, "first line" in message) == ("not_found", True)


def test_a_directory_that_rendered_to_nothing_is_not_the_live_one(flow: Path) -> None:
    """A missing variable must not make a clean-up script run in the wrong place."""
    script = _write(flow, "s.sh", "echo oops")
    kind, message = _failure(_go(flow, _node(script, cwd="{worktree}")))
    assert (kind, "rendered to nothing" in message) == ("not_found", True)


def test_a_script_that_can_not_be_started_says_what_to_do(flow: Path) -> None:
    """The usual two: no execute bit, no first line."""
    plain = _write(flow, "plain", "echo no\n")
    kind, message = _failure(_go(flow, _node(plain)))
    assert (kind, "chmod +x" in message) == ("spawn", True)
    headless = _write(flow, "headless", "echo no\n", 0o755)
    kind, message = _failure(_go(flow, _node(headless)))
    assert (kind, "#!" in message) == ("spawn", True)
    shell = _write(flow, "s.sh", "echo no\n")
    kind, message = _failure(_go(flow, _node(shell, args=["x" * 5_000_000])))
    assert (kind, "too long" in message) == ("spawn", True)
    kind, message = _failure(_go(flow, _node(shell, args=["a\0b"])))
    assert (kind, "can't be passed" in message) == ("spawn", True)
    closed = PermissionError(13, "Permission denied", str(flow / "live"))
    kind, message = _failure(_go(flow, _node(shell), ToldIo(closed)))
    assert (kind, str(flow / "live") in message, "chmod" in message) == ("spawn", True, False)


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("hello", "not JSON (Expecting value at 1:1)"),
        ('log line\n{"key": 1}', "not JSON"),
        ('{"key": 1}\n{"key": 2}', "not JSON (Extra data at 2:1)"),
        ("[1]", "is a JSON list"),
        ("null", "is a JSON null"),
        ('{"key": 1, "key": 2}', "the key 'key' is there twice"),
        ('{"key": {"a": 1, "a": 1}}', "the key 'a' is there twice"),
        ('{"key": NaN}', "NaN is not a JSON number"),
        ('{"key": -Infinity}', "-Infinity is not a JSON number"),
        ('{"key": 1e999}', "1e999 is too large"),
        ('{"key": "\\ud800"}', "can't be used"),
        ('{"key": ' + "[" * 300 + "]" * 300 + "}", "nested deeper than 200"),
        ('{"key": ' + "[" * 200_000 + "]" * 200_000 + "}", "can't be used"),
        ('{"key": ' + "9" * 5000 + "}", "can't be used"),
        ('{"a": 1, "b": 2}', "output 'key' is missing on standard output; keys there are: 'a', 'b'"),
        ("{}", "keys there are: none"),
    ],
)
def test_an_answer_that_is_not_one_json_object_with_the_keys_is_refused(printed: str, says: str) -> None:
    """What enters the context is exactly what the script meant, or nothing; the message says how to print it."""
    with pytest.raises(BadAnswer) as caught:
        read_outputs(printed.encode(), [KEY])
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500


def test_an_answer_that_is_not_utf8_is_refused() -> None:
    """Guessing an encoding would change data."""
    with pytest.raises(BadAnswer, match="not UTF-8 at byte 8"):
        read_outputs(b'{"key":"\xff"}', [KEY])


def test_a_byte_order_mark_and_a_surrogate_pair_are_no_harm() -> None:
    """Both are valid ways to write text."""
    assert read_outputs(b'\xef\xbb\xbf{"key": "\\ud83d\\ude00"}\n', [KEY]) == {"key": "\U0001f600"}


def test_each_value_has_to_fit_its_schema() -> None:
    """A miss is told with the place in the value."""
    output = Output("key", {"type": "object", "properties": {"n": {"items": {"maximum": 3}}}})
    assert read_outputs(b'{"key": {"n": [1, 2]}}', [output]) == {"key": {"n": [1, 2]}}
    with pytest.raises(BadAnswer, match=r"output 'key.n\[1\]' does not fit its schema: 9 is greater"):
        read_outputs(b'{"key": {"n": [1, 9]}}', [output])
    with pytest.raises(BadAnswer) as caught:
        read_outputs(json.dumps({"key": ["x" * 1000] * 1000}).encode(), [output])
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema"}, {"$ref": "#/gone"}])
def test_a_schema_that_can_not_be_used_fails_the_node(schema: Json) -> None:
    """It was checked when the workflow was; a check never fetches anything."""
    with pytest.raises(BadAnswer, match="the schema of output 'key' can't be used"):
        read_outputs(b'{"key": 1}', [Output("key", schema)])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=json_values)
def test_every_json_value_passes_unchanged(value: Json) -> None:
    """Strict is not lossy."""
    assert read_outputs(json.dumps({"key": value}).encode(), [KEY]) == {"key": value}


@given(raw=st.binary(max_size=200))
def test_no_output_raises_anything_but_a_bad_answer(raw: bytes) -> None:
    """A script may print anything."""
    with suppress(BadAnswer):
        assert set(read_outputs(raw, [KEY])) == {"key"}


def test_an_answer_that_was_cut_off_is_refused(flow: Path) -> None:
    """The beginning of an answer may be valid and wrong."""
    script = _write(flow, "s.sh", "")
    io = ToldIo(Exit(0, b'{"key": 1}', b"", 0.1, truncated=True))
    assert _failure(_go(flow, _node(script, KEY), io)) == ("bad_output", "standard output is longer than 16,384 KiB")
    assert isinstance(_go(flow, _node(script), io), Done)


def test_the_log_is_bounded_and_always_text(flow: Path) -> None:
    """It is kept for people, in the journal."""
    script = _write(flow, "s.sh", "")
    result = _go(flow, _node(script, KEY), ToldIo(Exit(0, b'{"key":"' + b"x" * 100_000 + b'"}', b"\xff", 0.1)))
    assert isinstance(result, Done)
    assert (len(result.log["stdout"]), result.log["stderr"]) == (65_536, "\ufffd")
    assert len(result.outputs["key"]) == 100_000


def test_a_bad_answer_keeps_the_log(flow: Path) -> None:
    """Otherwise nobody could see what the script printed instead."""
    result = _go(flow, _node(_write(flow, "s.sh", "echo oops"), KEY))
    assert isinstance(result, Failed)
    assert (result.failure.kind, result.log["stdout"]) == ("bad_output", "oops\n")


def test_a_poll_is_ready_not_yet_or_broken(flow: Path) -> None:
    """Exit 1 is an answer, other codes are failures: a broken check must not wait for ever."""
    script = _write(flow, "s.sh", 'echo "{\\"key\\": $1}"; exit $1')
    ready = _go(flow, _poll(script, KEY, args=("{code}",)), context={"code": 0})
    assert isinstance(ready, Done)
    assert ready.outputs == {"key": 0}
    not_yet = _go(flow, _poll(script, args=("1",)))
    assert _failure(not_yet)[0] == "not_yet"
    assert _failure(_go(flow, _poll(script, args=("2",)))) == ("exit", "exited with 2")
    assert _failure(_go(flow, _poll("scripts/gone.sh")))[0] == "not_found"
    hanging = _write(flow, "h.sh", "exec sleep 600")
    assert _failure(_go(flow, _poll(hanging, timeout=0.05)))[0] == "timeout"


def test_a_kind_refuses_a_node_of_another_kind() -> None:
    """A wrong entry in the table of kinds is a bug that has to show at once."""
    for kind, node in ((ScriptKind(), _poll("s.sh")), (PollKind(), _node("s.sh"))):
        with pytest.raises(TypeError, match="script"):
            kind.prepare(node, NOTHING.__getitem__, Braces())
