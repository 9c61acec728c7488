"""What the numbers were taken on: processor, memory, kernel, disk and versions; never names of hosts or paths."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

SLOW_FILE = 100e-6
"""Seconds for a small file above which readings that write run directories tell more about the disk than about us."""
PACKAGES = ("bailiwick", "apsw", "langgraph", "langgraph-checkpoint-sqlite", "dbos")


def machine_facts(folder: Path) -> dict[str, str]:
    """Facts that explain differences between machines; `folder` is where the readings write."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "file system": _file_system(folder),
        "write and fdatasync of 4 KiB, median": f"{_sync_time(folder) * 1000:.2f} ms",
        "making a file of 60 bytes, median": f"{file_time(folder) * 1e6:.0f} µs",
        "load before the run": f"{os.getloadavg()[0]:.2f}",
    }


def obstacles(folder: Path) -> list[str]:
    """What would spoil the readings, in words; none is best."""
    found = []
    if (load := os.getloadavg()[0]) > 0.5:
        found.append(f"other work is going on (load {load:.1f}): times of engines that wait for the disk suffer most")
    if (seconds := file_time(Path(tempfile.mkdtemp(dir=folder)))) > SLOW_FILE:
        found.append(f"files are made slowly ({seconds * 1e6:.0f} µs): if many were removed here, wait five minutes")
    return found


def version_facts() -> dict[str, str]:
    """The versions side by side."""
    import apsw

    found = {"Python": platform.python_version(), "SQLite (apsw)": apsw.sqlite_lib_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(folder: Path) -> str:
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return "unknown"
    for line in lines:
        fields = line.split()
        if fields[2] == wanted:
            return fields[fields.index("-") + 1]
    return "unknown"


def _sync_time(folder: Path) -> float:
    handle = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        return median(_one_sync(handle) for _ in range(50))
    finally:
        os.close(handle)


def file_time(folder: Path) -> float:
    """Seconds to make a small file in a new directory; on ext4 ten times more where many were removed lately."""
    found = []
    for number in range(100):
        place = folder / f"probe-{number}"
        place.mkdir()
        began = time.perf_counter()
        (place / "file").write_bytes(b"x" * 60)
        found.append(time.perf_counter() - began)
    return median(found)


def _one_sync(handle: int) -> float:
    began = time.perf_counter()
    os.write(handle, b"x" * 4096)
    os.fdatasync(handle)
    return time.perf_counter() - began
