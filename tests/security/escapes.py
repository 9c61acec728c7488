"""Ways to break out of a sandbox, as programs that are run inside. Each says ESCAPED if it got somewhere.

`F` holds what the attacker could know of the host: paths, pids, ports and names; `F["secret"]` must never be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = r"""
import ctypes, errno, json, os, socket, struct, subprocess, sys
F = json.loads(sys.argv[1])
F["secret"] = "".join(F["secret"])
LIBC = ctypes.CDLL(None, use_errno=True)

def escaped(how):
    print("ESCAPED", how, flush=True)
    sys.exit(0)

def reads(path):
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError as error:
        print("denied", path, error)
        return
    if F["secret"].encode() in data:
        escaped(f"read the secret at {path}")

def writes(path, data=b"owned"):
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        print("denied", path, error)
        return
    escaped(f"wrote {path}")

def syscall(number, *args):
    ctypes.set_errno(0)
    result = LIBC.syscall(number, *args)
    print("syscall", number, result, errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno()))
    return result

def connects(family, address, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as line:
            line.settimeout(0.4)
            line.connect(address)
    except (OSError, ValueError) as error:
        print("denied", address, error)
        return
    escaped(f"connected to {address}")

def ran(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        print("denied", argv, error)
        return False
    print(argv, done.returncode, done.stderr[:200])
    return done.returncode == 0

def numbers(x86, arm):
    return arm if os.uname().machine == "aarch64" else x86
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way out. `doors` are opened for it; `container`: it is also tried there in every run of the tests."""

    name: str
    code: str
    doors: tuple[str, ...] = ()
    container: bool = False


SECRETS = (
    Attempt("environ-of-init", 'reads("/proc/1/environ")', container=True),
    Attempt("environ-of-everyone", 'for p in os.listdir("/proc"):\n    if p.isdigit(): reads(f"/proc/{p}/environ")'),
    Attempt("cmdline-of-everyone", 'for p in os.listdir("/proc"):\n    if p.isdigit(): reads(f"/proc/{p}/cmdline")'),
    Attempt("environ-of-our-process", "reads(f\"/proc/{F['pid']}/environ\")"),
    Attempt("root-of-init", 'reads("/proc/1/root" + F["key"])', container=True),
    Attempt("cwd-of-init", 'reads("/proc/1/cwd/../../../.." + F["key"])'),
    Attempt("root-of-our-process", 'reads(f"/proc/{F[\'pid\']}/root" + F["key"])'),
    Attempt("descriptors-of-init", 'for n in range(64): reads(f"/proc/1/fd/{n}")'),
    Attempt(
        "inherited-descriptors",
        "for n in range(3, 512):\n"
        "    try:\n        os.lseek(n, 0, 0)\n    except OSError:\n        pass\n"
        "    try:\n        data = os.read(n, 1 << 16)\n    except OSError:\n        continue\n"
        '    if F["secret"].encode() in data: escaped(f"descriptor {n}")',
        container=True,
    ),
    Attempt(
        "memory-of-init",
        'try:\n    maps = open("/proc/1/maps").read().splitlines()\n    mem = open("/proc/1/mem", "rb")\n'
        "except OSError as e:\n    print(e); sys.exit()\n"
        "for line in maps:\n    a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
        "    try:\n        mem.seek(a); data = mem.read(min(b - a, 1 << 22))\n    except (OSError, ValueError): continue\n"
        '    if F["secret"].encode() in data: escaped("memory of init")',
    ),
    Attempt(
        "peek-at-the-parent",
        "class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "buf = ctypes.create_string_buffer(64)\n"
        "mine, theirs = V(ctypes.addressof(buf), 64), V(0x400000, 64)\n"
        "if syscall(numbers(310, 270), os.getppid(), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:\n"
        '    escaped("process_vm_readv")',
    ),
    Attempt("trace-the-parent", 'if LIBC.ptrace(16, os.getppid(), 0, 0) == 0: escaped("ptrace")'),
    Attempt("trace-init", 'if LIBC.ptrace(16, 1, 0, 0) == 0: escaped("ptrace")'),
    Attempt(
        "take-a-descriptor",
        "handle = syscall(434, 1, 0)\nif handle >= 0:\n    for n in range(3, 32):\n"
        '        if syscall(438, handle, n, 0) >= 0: escaped(f"took descriptor {n} of init")',
    ),
    Attempt("the-signing-key", 'reads(F["key"])', container=True),
    Attempt("the-database", 'reads(F["database"])'),
    Attempt("the-configuration", 'reads(F["config"])'),
    Attempt("another-worktree", 'reads(F["other"])'),
    Attempt("symlink-to-the-key", 'os.symlink(F["key"], "link")\nreads("link")', container=True),
    Attempt(
        "symlinked-directory",
        'os.symlink(os.path.dirname(F["key"]), "dir")\nreads("dir/" + os.path.basename(F["key"]))',
    ),
    Attempt(
        "hardlink-to-the-key",
        'try:\n    os.link(F["key"], "hard")\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("linked")',
    ),
    Attempt("up-from-the-tree", 'reads("../" * 12 + F["key"].lstrip("/"))'),
    Attempt(
        "home-of-root",
        'found = os.listdir("/root") if os.path.isdir("/root") else []\nif any(n.startswith(".") and n != ".pyenv" for n in found): escaped(str(found))',
    ),
    Attempt(
        "password-hashes",
        'try:\n    data = open("/etc/shadow").read()\nexcept OSError as e:\n    print(e); sys.exit()\nif data: escaped("shadow")',
    ),
    Attempt(
        "ssh-of-the-host",
        'try:\n    print(os.listdir("/etc/ssh"))\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("/etc/ssh")',
    ),
    Attempt("kernel-keyring", 'key = syscall(numbers(250, 219), 0, -4, 1)\nif key > 0: escaped("session keyring")'),
    Attempt(
        "kernel-memory",
        'for p in ("/dev/mem", "/dev/kmem", "/proc/kcore", "/dev/port"):\n    try:\n        open(p, "rb").read(1)\n    except OSError as e:\n        print(e)\n    else:\n        escaped(p)',
    ),
    Attempt(
        "block-devices",
        'import stat\nfor n in os.listdir("/dev"):\n    m = os.lstat("/dev/" + n).st_mode\n    if stat.S_ISBLK(m): escaped(n)',
    ),
    Attempt(
        "kernel-log", 'buf = ctypes.create_string_buffer(4096)\nif LIBC.klogctl(3, buf, 4096) > 0: escaped("dmesg")'
    ),
    Attempt(
        "system-files",
        'for p in ("/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware/efi/efivars"):\n    if os.path.isdir(p) and os.listdir(p): escaped(p)',
    ),
    Attempt(
        "processes-of-the-host",
        'if os.path.exists(f"/proc/{F[\'pid\']}/status"):\n    name = open(f"/proc/{F[\'pid\']}/comm").read()\n    if "pytest" in name or name.strip() == F["comm"]: escaped(name)',
    ),
)

WRITES = (
    Attempt("write-the-canary", 'writes(F["canary"])', container=True),
    Attempt("write-up-and-over", 'writes("../" * 12 + F["canary"].lstrip("/"))'),
    Attempt("write-through-a-symlink", 'os.symlink(os.path.dirname(F["canary"]), "out")\nwrites("out/canary")'),
    Attempt("write-into-usr", 'writes("/usr/bin/owned")', container=True),
    Attempt("write-into-etc", 'writes("/etc/ld.so.preload")'),
    Attempt("write-the-environment", 'writes(F["environment"] + "/owned")'),
    Attempt("core-pattern", 'writes("/proc/sys/kernel/core_pattern", b"|/bin/sh")'),
    Attempt("sysrq", 'writes("/proc/sysrq-trigger", b"h")'),
    Attempt("uevent-helper", 'writes("/sys/kernel/uevent_helper", b"/bin/sh")'),
    Attempt(
        "release-agent",
        'for d in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"):\n    if os.path.isdir(d):\n        try:\n            os.mkdir(d + "/owned")\n        except OSError as e:\n            print(e)\n        else:\n            escaped(d)',
    ),
    Attempt("binfmt", 'writes("/proc/sys/fs/binfmt_misc/register", b":o:M::MZ::/bin/sh:")'),
    Attempt(
        "remount-usr", 'if LIBC.mount(b"none", b"/usr", None, 0x20 | 0x1000, None) == 0: escaped("remounted /usr")'
    ),
    Attempt(
        "bind-mount",
        'os.makedirs("m", exist_ok=True)\nif LIBC.mount(b"/", b"m", None, 0x1000, None) == 0: escaped("bind")',
    ),
    Attempt(
        "mount-proc",
        'os.makedirs("p", exist_ok=True)\nif LIBC.mount(b"proc", b"p", b"proc", 0, None) == 0: escaped("proc")',
    ),
    Attempt(
        "new-mount-api",
        'if syscall(430, b"tmpfs", 0) >= 0: escaped("fsopen")\nif syscall(428, -100, b"/", 1) >= 0: escaped("open_tree")',
    ),
    Attempt("unmount", 'for p in (b"/usr", b"/proc", b"/tmp"):\n    if LIBC.umount2(p, 2) == 0: escaped(str(p))'),
    Attempt("change-root", 'if LIBC.chroot(b"/proc/1/root") == 0: escaped("chroot")'),
    Attempt(
        "pivot-root",
        'os.makedirs("n/o", exist_ok=True)\nif syscall(numbers(155, 41), b"n", b"n/o") == 0: escaped("pivot_root")',
    ),
    Attempt(
        "make-a-device",
        'try:\n    os.mknod("disk", 0o60666, os.makedev(254, 0))\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("mknod")',
    ),
    Attempt(
        "file-by-handle",
        'handle = struct.pack("IiQ", 8, 1, 2) + b"\\0" * 64\nif syscall(numbers(304, 265), 3, handle, 0) >= 0: escaped("open_by_handle_at")',
    ),
    Attempt(
        "setuid-shell",
        'import shutil\nshutil.copy("/bin/sh", "suid")\nos.chmod("suid", 0o6755)\nout = subprocess.run(["./suid", "-p", "-c", "id -u"], capture_output=True, text=True).stdout.strip()\nif out == "0" and os.getuid() != 0: escaped("root")',
    ),
    Attempt(
        "become-root",
        'for n in ("setuid", "setgid"):\n    try:\n        getattr(os, n)(0)\n    except OSError as e:\n        print(e)\n    else:\n        if os.path.exists("/etc/shadow"): escaped(n)',
    ),
    Attempt("sudo", 'if ran("sudo", "-n", "true") or ran("su", "-c", "true"): escaped("sudo")'),
)

NAMESPACES = (
    Attempt("nested-user-namespace", 'if LIBC.unshare(0x10000000) == 0: escaped("unshare")', container=True),
    Attempt("nested-mount-namespace", 'if LIBC.unshare(0x00020000) == 0: escaped("unshare")'),
    Attempt("unshare-tool", 'if ran("unshare", "-Ur", "true"): escaped("unshare -Ur")'),
    Attempt(
        "clone-user-namespace",
        'pid = syscall(numbers(56, 220), 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nif pid > 0: escaped("clone")',
    ),
    Attempt(
        "clone3",
        'args = struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0)\npid = syscall(435, args, 64)\nif pid == 0: os._exit(0)\nif pid > 0: escaped("clone3")',
    ),
    Attempt(
        "join-a-namespace",
        'for n in ("mnt", "net", "pid", "user"):\n    try:\n        fd = os.open(f"/proc/1/ns/{n}", os.O_RDONLY)\n    except OSError as e:\n        print(e); continue\n    if LIBC.setns(fd, 0) == 0: escaped(n)',
    ),
    Attempt(
        "capabilities",
        'for line in open("/proc/self/status"):\n    if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")) and int(line.split()[1], 16): escaped(line)',
        container=True,
    ),
    Attempt(
        "new-privileges",
        'status = open("/proc/self/status").read()\nif "NoNewPrivs:\\t1" not in status: escaped("no_new_privs is off")',
    ),
    Attempt(
        "no-filter",
        'status = open("/proc/self/status").read()\nif "Seccomp:\\t2" not in status: escaped("no seccomp filter")',
    ),
    Attempt("kernel-programs", 'if syscall(numbers(321, 280), 0, b"\\0" * 128, 128) >= 0: escaped("bpf")'),
    Attempt(
        "performance-events",
        'attr = struct.pack("IIQ", 1, 112, 0) + b"\\0" * 96\nif syscall(numbers(298, 241), attr, 0, -1, -1, 0) >= 0: escaped("perf_event_open")',
    ),
    Attempt("io-uring", 'if syscall(425, 4, b"\\0" * 120) >= 0: escaped("io_uring")'),
    Attempt("fault-handler", 'if syscall(numbers(323, 282), 0) >= 0: escaped("userfaultfd")'),
    Attempt(
        "load-a-module",
        'if syscall(numbers(175, 105), b"", 0, b"") == 0 or syscall(numbers(313, 273), 0, b"", 0) == 0: escaped("module")',
    ),
)

NETWORK = (
    Attempt("our-loopback-service", 'connects(socket.AF_INET, ("127.0.0.1", F["port"]))', container=True),
    Attempt("our-loopback-service-v6", 'connects(socket.AF_INET6, ("::1", F["port"]))'),
    Attempt("metadata-address", 'connects(socket.AF_INET, ("169.254.169.254", 80))'),
    Attempt("the-internet", 'connects(socket.AF_INET, ("1.1.1.1", 443))'),
    Attempt(
        "a-name",
        'try:\n    found = socket.getaddrinfo("example.com", 443)\nexcept OSError as e:\n    print(e); sys.exit()\nescaped(str(found[:1]))',
    ),
    Attempt(
        "a-question-to-dns",
        'line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ntry:\n    line.sendto(b"\\0" * 32, ("8.8.8.8", 53))\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("udp")',
    ),
    Attempt("abstract-socket", 'connects(socket.AF_UNIX, "\\0" + F["abstract"])', container=True),
    Attempt("socket-file", 'connects(socket.AF_UNIX, F["socket"])'),
    Attempt(
        "docker-socket",
        'for p in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"): connects(socket.AF_UNIX, p)',
    ),
    Attempt(
        "system-bus", 'for p in ("/run/dbus/system_bus_socket", "/run/systemd/private"): connects(socket.AF_UNIX, p)'
    ),
    Attempt(
        "raw-packets",
        'for f, k in ((17, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):\n    try:\n        socket.socket(f, k, 1)\n    except OSError as e:\n        print(e)\n    else:\n        escaped("raw socket")',
    ),
    Attempt(
        "host-of-the-machine",
        'try:\n    line = socket.socket(40, socket.SOCK_STREAM)\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("vsock")',
    ),
    Attempt("new-interface", 'if ran("ip", "link", "add", "x", "type", "dummy"): escaped("ip link")'),
    Attempt(
        "kernel-crypto",
        'try:\n    socket.socket(38, socket.SOCK_SEQPACKET)\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("AF_ALG")',
    ),
)

PROCESSES = (
    Attempt(
        "kill-us",
        'for s in (9, 19):\n    try:\n        os.kill(F["pid"], s)\n    except OSError as e:\n        print(e)',
    ),
    Attempt(
        "kill-everyone",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntry:\n    os.kill(-1, 15)\nexcept OSError as e:\n    print(e)",
    ),
    Attempt(
        "survive-by-setsid",
        'if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execvpe("sleep", ["sleep", F["nap"]], {"F": "x"})\n    os._exit(0)\nos.wait()',
        container=True,
    ),
    Attempt(
        "type-into-the-terminal",
        'import fcntl\nfor n in range(3):\n    try:\n        fcntl.ioctl(n, 0x5412, b"x")\n    except OSError as e:\n        print(e)\n    else:\n        escaped("TIOCSTI")',
    ),
    Attempt(
        "lower-the-niceness", 'try:\n    os.nice(-10)\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("nice")'
    ),
    Attempt(
        "set-the-clock",
        'import time\ntry:\n    time.clock_settime(time.CLOCK_REALTIME, 0)\nexcept OSError as e:\n    print(e); sys.exit()\nescaped("clock")',
    ),
    Attempt(
        "rename-the-host",
        'if LIBC.sethostname(b"owned", 5) == 0 and socket.gethostname() == F["hostname"]: escaped("host name")',
    ),
    Attempt("reboot", 'if LIBC.reboot(0) == 0: escaped("reboot")'),
)

RESOURCES = (
    Attempt(
        "fork-bomb",
        'n = 0\ntry:\n    while n < 3000:\n        if os.fork() == 0:\n            os.execvp("sleep", ["sleep", "60"])\n        n += 1\nexcept OSError as e:\n    print("stopped", n, e); sys.exit()\nescaped(f"{n} processes")',
        container=True,
    ),
    Attempt(
        "memory",
        'held = []\ntry:\n    while len(held) < 4096:\n        held.append(bytearray(os.urandom(1 << 10) * 1024))\nexcept MemoryError:\n    print("stopped", len(held)); sys.exit()\nescaped(f"{len(held)} MB")',
    ),
    Attempt(
        "one-huge-file",
        'n = 0\ntry:\n    with open("big", "wb") as file:\n        while n < 200:\n            file.write(b"x" * (1 << 20)); n += 1\nexcept OSError as e:\n    print("stopped", n, e); sys.exit()\nescaped(f"{n} MB")',
    ),
    Attempt(
        "fill-tmp",
        'n = 0\ntry:\n    while n < 200:\n        with open(f"/tmp/{n}", "wb") as file: file.write(b"x" * (1 << 20))\n        n += 1\nexcept OSError as e:\n    print("stopped", n, e); sys.exit()\nescaped(f"{n} MB in /tmp")',
    ),
    Attempt(
        "open-files",
        'held = []\ntry:\n    while len(held) < 20000: held.append(os.open("/dev/null", os.O_RDONLY))\nexcept OSError as e:\n    print("stopped", len(held), e); sys.exit()\nescaped(f"{len(held)} open files")',
    ),
)

ATTEMPTS = (*SECRETS, *WRITES, *NAMESPACES, *NETWORK, *PROCESSES, *RESOURCES)
