"""A memory control group of the kernel (cgroup), as containers have one: what runs in it and takes more than the limit is killed.

    with MemoryGroup(1024) as group:
        done = group.run(["python3", "train.py"])
        print(group.killed(), group.peak())

Everything that the process takes counts, its code and its files in the cache too. Version 1 and version 2 are found by themselves; where
neither can be used, MemoryGroup raises an Unavailable that says why.
"""
import os
import pathlib
import subprocess
import time


class Unavailable(Exception):
    """This system gives no memory control group to this user."""


def parent_of_groups():
    """The folder in which groups with a limit of memory may be made, and the version of its interface."""
    first = pathlib.Path("/sys/fs/cgroup/memory")
    if (first / "memory.limit_in_bytes").exists():
        return first, 1
    for second in (pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/sys/fs/cgroup/unified")):
        control = second / "cgroup.subtree_control"
        if control.exists():
            if "memory" not in control.read_text().split():
                raise Unavailable(f"{control} does not name memory, so groups below it have no limit of memory")
            return second, 2
    raise Unavailable("there is no control group of version 1 or 2 for memory below /sys/fs/cgroup")


class MemoryGroup:
    """A group of `limit` MiB, without swap, that is there until the end of the block."""

    def __init__(self, limit):
        parent, self.version = parent_of_groups()
        self.folder = parent / f"batchwise-{os.getpid()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            raise Unavailable(f"{self.folder} cannot be made ({error.strerror}): root may, or a user to whom {parent} is delegated") from None
        try:
            self.write("memory.limit_in_bytes" if self.version == 1 else "memory.max", limit << 20)
            swap = self.folder / ("memory.memsw.limit_in_bytes" if self.version == 1 else "memory.swap.max")
            if swap.exists():  # not where the kernel counts no swap
                self.write(swap.name, limit << 20 if self.version == 1 else 0)
        except OSError as error:
            self.folder.rmdir()
            raise Unavailable(f"no limit can be set in {self.folder} ({error.strerror})") from None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for _ in range(50):  # the kernel takes a moment to leave a group whose last process has ended
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)

    def write(self, name, value):
        (self.folder / name).write_text(str(value))

    def run(self, command):
        """Runs the command, which is in the group from its first instruction on."""
        enter = ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.folder / "cgroup.procs")]
        return subprocess.run(enter + command, check=False, capture_output=True, text=True)

    def killed(self):
        """Whether the kernel has killed a process for want of memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        counts = dict(line.split() for line in (self.folder / name).read_text().splitlines())
        return int(counts.get("oom_kill", 0)) > 0

    def peak(self):
        """The most that the group has held, in MiB."""
        peak = self.folder / ("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")
        return int(peak.read_text()) / (1 << 20) if peak.exists() else float("nan")  # memory.peak came with Linux 5.19
