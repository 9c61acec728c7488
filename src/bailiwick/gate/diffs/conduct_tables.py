"""The facilities by which code can tell that it is tested, or change what judges it; each with its reason.

A name is dotted, as it is imported: `sys._getframe`. An entry covers what is below it: `gc` also `gc.get_objects`.
"""

from __future__ import annotations

from collections.abc import Mapping

from bailiwick.gate.diffs.words import words

FRAMES = "conduct-frames"
MEMORY = "conduct-memory"
HOOKS = "conduct-import-hooks"
TRACING = "conduct-tracing"
TOOLS = "conduct-test-tools"
PATCHING = "conduct-patching"
EXIT = "conduct-exit"
DYNAMIC = "conduct-dynamic-code"
VALUES = "conduct-values"
ANSWERS = "conduct-answers"
CASES = "conduct-cases"
ENCODING = "conduct-encoding"
UNREADABLE = "conduct-unreadable"
COMPARES = "conduct-compares"
INSPECTS = "conduct-inspects"
BUILTIN = "conduct-builtin-subclass"
PLUGINS = "conduct-plugins"
PROCESS = "conduct-process-state"
SWALLOWS = "conduct-swallows"

WHY: Mapping[str, str] = {
    FRAMES: "it shows who calls, and so whether a test does",
    MEMORY: "it reaches objects of the whole process, the tests among them",
    HOOKS: "it decides what other code imports",
    TRACING: "it sees or changes every call",
    TOOLS: "product code that knows test tools can tell that it is tested",
    PATCHING: "it changes what other modules do, the judges among them",
    EXIT: "it can end or replace the process that tests it",
    DYNAMIC: "what it runs can't be read in the diff",
    ENCODING: "what is shown is not what Python reads",
    UNREADABLE: "nothing can be said about it",
    COMPARES: "it decides what its objects equal",
    INSPECTS: "it can look at where it runs",
    BUILTIN: "its values may compare otherwise than the plain ones",
    PLUGINS: "it acts on other tests too",
    PROCESS: "it changes a setting that all code of the process or thread shares",
    SWALLOWS: "an error becomes a result that looks like any other",
}
"""Why each kind is of interest, for the message."""

TEST_TOOLS = words("pytest _pytest unittest nose nose2 hypothesis mock doctest pluggy coverage testtools pytest_mock")

PARKED: Mapping[str, frozenset[str]] = {
    FRAMES: words(
        "sys._getframe sys._current_frames sys._getframemodulename sys._current_exceptions inspect.currentframe dis "
        "inspect.stack inspect.trace inspect.getouterframes inspect.getinnerframes traceback.extract_stack "
        "traceback.walk_stack traceback.print_stack traceback.format_stack"
    ),
    MEMORY: words("gc ctypes _ctypes cffi _testcapi"),
    HOOKS: words("sys.meta_path sys.path_hooks sys.path_importer_cache sys.modules sys.path"),
    TRACING: words(
        "sys.settrace sys.setprofile sys.monitoring sys.addaudithook sys.call_tracing threading.settrace "
        "threading.setprofile threading.settrace_all_threads threading.setprofile_all_threads trace bdb pdb cProfile "
        "profile"
    ),
    PATCHING: words("builtins"),
    EXIT: words(
        "os._exit os.abort os.kill os.killpg os.execv os.execve os.execl os.execle os.execlp os.execvp os.execvpe "
        "os.closerange os.dup2 atexit faulthandler signal.raise_signal signal.pthread_kill"
    ),
    DYNAMIC: words("importlib.reload timeit code codeop runpy marshal _imp imp"),
    TOOLS: TEST_TOOLS,
}
"""New uses of these ask for a person."""

BUILT_IN: Mapping[str, str] = {
    "exec": DYNAMIC,
    "eval": DYNAMIC,
    "compile": DYNAMIC,
    "__import__": DYNAMIC,
    "__debug__": INSPECTS,
}
"""Names of Python itself that do; written without an import."""
BORROWING = words("__class__ __instancecheck__ __subclasscheck__")
"""What passes for another class."""
LEAVING = words("sys.exit builtin:exit builtin:quit")
"""Ways to end a program that a command has reason to use and a library has not."""
LEAVING_ERRORS = words("builtin:SystemExit builtin:KeyboardInterrupt")
MAIN = words("main _main cli _cli main_cli run_main entry_point console_main")
"""Functions that commands begin with."""
COMMANDS = words("argparse optparse getopt click typer docopt fire cleo plumbum")
"""Modules that a command line entry imports."""
MADE_CODE = words("types.FunctionType types.CodeType types.LambdaType")
"""Types that make code when they are called; to compare with them is common."""

LOADED = words("pickle.loads _pickle.loads dill.loads cloudpickle.loads")
"""What runs what it is given, where that is written out in the diff."""
HANDED_ON = words("sys builtins gc inspect ctypes")
"""Modules that are hardly ever passed on as values by honest code, and whose uses are then hidden."""
MODULE_NAMES = words("__builtins__ __loader__")
"""Names that every module has, by which others are reached without an import."""
TELLING_NAMES: Mapping[str, str] = {
    "_getframe": FRAMES,
    "_current_frames": FRAMES,
    "currentframe": FRAMES,
    "extract_stack": FRAMES,
    "walk_stack": FRAMES,
    "get_objects": MEMORY,
    "get_referrers": MEMORY,
    "meta_path": HOOKS,
    "path_hooks": HOOKS,
    "settrace": TRACING,
    "setprofile": TRACING,
    "addaudithook": TRACING,
    "_exit": EXIT,
    "call_args": TOOLS,
    "call_args_list": TOOLS,
    "mock_calls": TOOLS,
    "method_calls": TOOLS,
    "side_effect": TOOLS,
    "assert_called_with": TOOLS,
}
"""Attributes that tell a facility by their name alone, of whatever they are taken."""

HERE_ONLY = words(
    "os.getpid os.getppid socket.gethostname platform.node getpass.getuser uuid.getnode builtin:hash builtin:id"
)
"""What differs from machine to machine, or from process to process: a condition on it is right only here."""
TODAY = words("now today utcnow")
"""Methods that give the date; compared with a written one they end at a date."""

NOTED: Mapping[str, frozenset[str]] = {
    INSPECTS: words(
        "inspect importlib pkgutil signal os.environ os.getenv os.environb sys.argv sys.flags sys.orig_argv"
    ),
    PROCESS: words(
        "decimal.getcontext decimal.setcontext locale.setlocale random.seed warnings.simplefilter "
        "warnings.filterwarnings sys.setrecursionlimit sys.setswitchinterval os.chdir os.umask os.putenv time.tzset "
        "socket.setdefaulttimeout logging.disable"
    ),
}
"""New uses of these are notes: honest code uses them as well."""

WRITTEN: Mapping[str, str] = {
    "sys.path": HOOKS,
    "sys.excepthook": TRACING,
    "sys.displayhook": TRACING,
    "sys.unraisablehook": TRACING,
    "sys.breakpointhook": TRACING,
    "sys.exitfunc": EXIT,
    "threading.excepthook": TRACING,
}
"""What may be read by anybody, and is a facility when it is set."""
STREAMS = words("sys.stdout sys.stderr sys.stdin sys.argv os.environ sys.last_value")
"""What programs set for honest reasons: a note."""
OPEN_TABLES = words(
    "os.environ os.environb mimetypes.types_map mimetypes.common_types mimetypes.encodings_map mimetypes.suffix_map "
    "sys.argv copyreg.dispatch_table logging.root.handlers encodings.aliases.aliases"
)
"""Tables of libraries that are there to be added to: a note."""
REGISTRIES = words(
    "csv.register_dialect csv.unregister_dialect logging.disable decimal.setcontext signal.signal "
    "warnings.simplefilter warnings.filterwarnings os.umask locale.setlocale random.seed sys.setrecursionlimit "
    "os.system os.posix_spawn os.posix_spawnp os.popen os.fork subprocess.run subprocess.Popen subprocess.call "
    "subprocess.check_call subprocess.check_output subprocess.getoutput subprocess.getstatusoutput"
)
"""Calls that set something for the whole process, or start others: on import they act on whoever imports."""
DIALECTS = words("excel excel-tab unix")
"""Dialects of CSV that Python brings; a new name of its own is no concern of others."""
MUTATORS = words("insert append extend remove pop clear update setdefault __setitem__ __delitem__ popitem")

FRAME_ATTRIBUTES = words(
    "__code__ __closure__ __globals__ __defaults__ __kwdefaults__ __subclasses__ __builtins__ f_back f_locals "
    "f_globals f_code f_builtins f_trace gi_frame cr_frame ag_frame tb_frame gi_code cr_code co_code co_consts "
    "co_filename cell_contents"
)
WRITTEN_ATTRIBUTES = words("__spec__ __loader__")
"""Attributes that are facilities when they are set."""
FRAME_WORDS = words("_getframe _current_frames") | FRAME_ATTRIBUTES
"""The same names as texts, for `attrgetter` and its kin."""

COMPARISONS = words(
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __hash__ __contains__ __instancecheck__ __subclasscheck__ "
    "__class__ __getattribute__"
)
OPERATORS = words(
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ "
    "__rmod__ __divmod__ __pow__ __neg__ __abs__ __round__ __trunc__ __floor__ __ceil__ __float__ __int__ __index__ "
    "__and__ __or__ __xor__ __len__ __iter__ __getitem__ __repr__ __format__"
)
"""By what a test takes a value apart before it compares: the difference, the rounded one, the parts."""
BUILTIN_TYPES = words("int float str bytes bool complex list tuple dict set frozenset bytearray")
ODD_ENCODINGS = words("utf-7 utf_7 unicode-escape unicode_escape raw-unicode-escape raw_unicode_escape punycode idna")
PATCHERS = words("monkeypatch mocker patch mock mp")
"""What tests set other modules with, so that it is undone."""
