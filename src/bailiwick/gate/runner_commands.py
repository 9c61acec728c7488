"""What the command of a JavaScript project means: `npm test` followed through its scripts to the runner. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bailiwick.ids import Json

DEPTH = 8
"""How many scripts may call each other."""
_MANAGERS = ("npm", "pnpm", "yarn")
_EXEC = ("npx", "pnpx", "bunx")
_COVERAGE = ("c8", "nyc")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_AND = "&&"
_SHELL_SIGNS = frozenset({"|", "||", ";", "&", "<", ">", ">>", "(", ")", ";;", "|&", "&>"})
_NODE_VALUES = (
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "-C",
    "--conditions",
    "--test-name-pattern",
    "--test-concurrency",
    "--test-timeout",
    "--test-reporter",
    "--test-reporter-destination",
)
_DROPPED = {
    "node-test": ("--test-reporter", "--test-reporter-destination", "--watch"),
    "vitest": ("--reporter", "--watch", "-w", "--ui", "--outputFile"),
    "jest": ("--reporters", "--watch", "--watchAll", "--testRunner", "--json", "--outputFile"),
    "mocha": ("--reporter", "-R", "--watch", "-w", "--reporter-option", "--reporter-options", "-O"),
}
_WITH_VALUE = (
    "--test-reporter",
    "--test-reporter-destination",
    "--reporter",
    "--reporters",
    "--outputFile",
    "-R",
    "--testRunner",
    "--reporter-option",
    "--reporter-options",
    "-O",
)
_JS_FILE = re.compile(r"[^-].*\.[cm]?[jt]sx?")


@dataclass(frozen=True, slots=True)
class CommandStep:
    """A part of a command. Words are as a shell takes them: what has to be quoted is. `runner` is empty for any other.

    `flags` are Node's own, `args` the runner's.
    """

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    runner: str = ""
    flags: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a line of a shell."""
        return " ".join([*(f"{name}={value}" for name, value in self.env.items()), *self.words])


def read_scripts(data: bytes) -> dict[str, str]:
    """The scripts of a package.json; none where it can't be read."""
    scripts = read_package(data).get("scripts")
    return {str(name): str(text) for name, text in scripts.items()} if isinstance(scripts, dict) else {}


def read_package(data: bytes) -> dict[str, Json]:
    """A package.json; empty where it can't be read."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_steps(run: Sequence[str], scripts: Mapping[str, str]) -> tuple[CommandStep, ...]:
    """The parts of a command in their order."""
    return tuple(_expand([shlex.quote(word) for word in run], {}, scripts, DEPTH))


def runner_of(steps: Iterable[CommandStep]) -> str:
    """The kind of check whose runner a command starts; empty where it starts none, or several kinds."""
    found = {step.runner for step in steps if step.runner}
    return found.pop() if len(found) == 1 else ""


def _expand(words: Sequence[str], env: Mapping[str, str], scripts: Mapping[str, str], depth: int) -> list[CommandStep]:
    words, env = _assignments(list(words), dict(env))
    words = _unwrapped(words)
    words, env = _assignments(words, env)
    if not words or depth <= 0:
        return [CommandStep(tuple(words), env)]
    called = _script_called(words, scripts)
    if called is not None:
        name, extra = called
        return _script(name, extra, env=env, scripts=scripts, depth=depth)
    return [_runner_step(words, env) or CommandStep(tuple(words), env)]


def _script(
    name: str, extra: Sequence[str], env: Mapping[str, str], scripts: Mapping[str, str], depth: int
) -> list[CommandStep]:
    found: list[CommandStep] = []
    for part in (f"pre{name}", name, f"post{name}"):
        segments = _segments(scripts.get(part, ""))
        for index, segment in enumerate(segments):
            if segment is None:
                found.append(CommandStep((scripts[part],), env))
                continue
            more = extra if part == name and index == len(segments) - 1 else ()
            found += _expand([*segment, *more], env, scripts, depth - 1)
    return found


def _segments(text: str) -> list[list[str] | None]:
    """The commands of a script, joined by `&&`; None for a script that can only be given to a shell as it is."""
    lexer = shlex.shlex(text, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return [None]
    if _SHELL_SIGNS.intersection(tokens):
        return [None]
    found: list[list[str] | None] = []
    while tokens:
        at = tokens.index(_AND) if _AND in tokens else len(tokens)
        found += [tokens[:at]] if at else []
        tokens = tokens[at + 1 :]
    return found


def _assignments(words: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    if words and words[0] in ("cross-env", "env"):
        words = words[1:]
    while words and _ASSIGNMENT.fullmatch(words[0]):
        name, _, value = words[0].partition("=")
        env[name] = value
        words = words[1:]
    return words, env


def _unwrapped(words: list[str]) -> list[str]:
    """Without `npx`, `npm exec` and their kin, and without what measures coverage around the runner."""
    if words[:1] and words[0] in _EXEC:
        words = _behind_flags(words[1:])
    elif len(words) > 1 and words[0] in _MANAGERS and words[1] in ("exec", "x", "dlx"):
        words = _behind_flags(words[2:])
    if words[:1] and words[0] in _COVERAGE:
        known = ("node", "mocha", "jest", "vitest", *_MANAGERS)
        at = next((index for index, word in enumerate(words) if word in known), None)
        words = words if at is None else words[at:]
    return words


def _behind_flags(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[1:]
    return words


def _script_called(words: Sequence[str], scripts: Mapping[str, str]) -> tuple[str, list[str]] | None:
    """Which script a package manager is told to run, and with which further arguments."""
    if words[0] not in _MANAGERS or len(words) < 2:
        return None
    rest = [word for word in words[1:] if word not in ("-s", "--silent", "--if-present")]
    if rest and rest[0] in ("run", "run-script") and len(rest) > 1:
        name, extra = rest[1], rest[2:]
    elif rest and rest[0] in ("test", "t", "tst"):
        name, extra = "test", rest[1:]
    elif rest and words[0] != "npm" and rest[0] in scripts:
        name, extra = rest[0], rest[1:]
    else:
        return None
    if name not in scripts or any(word.startswith(("--workspace", "-w", "--prefix", "-C", "-r")) for word in extra):
        return None
    return name, [word for index, word in enumerate(extra) if word != "--" or "--" in extra[:index]]


def _runner_step(words: Sequence[str], env: Mapping[str, str]) -> CommandStep | None:
    program, rest = _plain(words[0]).rpartition("/")[2], list(words[1:])
    step = CommandStep(tuple(words), env)
    if program in ("vitest", "jest", "mocha", "_mocha"):
        return replace(step, runner=program.lstrip("_"), args=tuple(rest))
    if program != "node":
        return None
    flags, rest = _node_flags(rest)
    if rest and (found := re.search(r"node_modules/(?:\.bin/)?(vitest|jest|mocha)\b", _plain(rest[0]))):
        return replace(step, runner=found[1], flags=tuple(flags), args=tuple(rest[1:]))
    if "--test" in flags or (len(rest) == 1 and _is_test_path(_plain(rest[0]))):
        return replace(step, runner="node-test", flags=tuple(flags), args=tuple(rest))
    return None


def _node_flags(words: list[str]) -> tuple[list[str], list[str]]:
    flags: list[str] = []
    while words and words[0].startswith("-"):
        count = 2 if words[0] in _NODE_VALUES and len(words) > 1 else 1
        flags += words[:count]
        words = words[count:]
    return flags, words


def _is_test_path(path: str) -> bool:
    return bool(_JS_FILE.fullmatch(path)) and bool(re.search(r"(?:^|[/._-])(?:tests?|spec)(?:[/._-]|$)", path))


def _plain(word: str) -> str:
    return word.strip("'\"")


def kept_args(kind: str, args: Sequence[str]) -> list[str]:
    """The arguments of a runner without those that say how to report or to watch."""
    kept: list[str] = []
    skip = False
    for word in args:
        name, has_value, _ = word.partition("=")
        if skip:
            skip = False
            if not word.startswith("-"):
                continue
        if name in _DROPPED[kind]:
            skip = not has_value and name in _WITH_VALUE
            continue
        kept.append(word)
    return kept


def node_line(step: CommandStep, entry: str, folder: str, only: Sequence[str] = (), *, own_runner: bool = False) -> str:
    """The line of a shell that runs a step's runner with our reporter from `folder`; `only` are files of tests.

    `own_runner`: the project chose another runner of single files than jest's usual one, which stays.
    """
    kind, args = step.runner, kept_args(step.runner, step.args)
    flags = kept_args("node-test", step.flags)
    files = [shlex.quote(path) for path in only]
    if kind == "node-test":
        positional = [word for word in args if not word.startswith("-")]
        report = [
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            f"--test-reporter={folder}/node_test.cjs",
            "--test-reporter-destination=/dev/null",
        ]
        tail = [*flags, *report, *args, *([] if positional else files)]
    else:
        own = {
            "vitest": ["--reporter=default", f"--reporter={folder}/vitest.cjs"],
            "jest": ["--ci", "--reporters=default", f"--reporters={folder}/jest.cjs"],
            "mocha": ["--reporter", f"{folder}/mocha.cjs"],
        }[kind]
        if kind == "jest":
            own += [] if own_runner else [f"--testRunner={folder}/jest_runner.cjs"]
            own += ["--runTestsByPath", *files] if files else []
        elif kind == "vitest" and "run" not in args[:1]:
            args = [*args, "--run"]
        tail = [*flags, shlex.quote(entry), *args, *own, *([] if kind == "jest" else files)]
    env = [f"{name}={value}" for name, value in step.env.items()]
    # a command that is only assigned variables has to be run by `env`, for `exec` takes none
    return " ".join(["exec", "env", *env, "node", f"--require={folder}/start.cjs", *tail])
