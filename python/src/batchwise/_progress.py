"""Progress of a training as Keras shows it: by the library itself where there is a file, by Python in notebooks and elsewhere."""

import ctypes
import os
import sys

from . import _native as n

_libc = ctypes.CDLL(None)
_libc.fdopen.restype = ctypes.c_void_p
_libc.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
_libc.fclose.argtypes = [ctypes.c_void_p]


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """verbose: 0 shows nothing, 1 a bar, 2 a line for each epoch, "auto" a bar."""

    def __init__(self, verbose, epochs, initial_epoch=0):
        self.verbose = 1 if verbose == "auto" else int(verbose)
        self.first, self.epochs = initial_epoch, epochs + initial_epoch
        self.file, self.step, self.epoch = None, None, None
        self.drawn = 0.0
        self.width = 0
        self.columns = None
        if self.verbose == 0:
            return
        sys.stdout.flush()
        descriptor = self._descriptor()
        if self.verbose == 1 and descriptor is not None and initial_epoch == 0:
            self.file = _libc.fdopen(os.dup(descriptor), b"w")
            return
        self.epoch = self._end
        if self.verbose == 1:
            self.step = self._step
            self._title(0)

    def _descriptor(self):
        """The descriptor that standard output really is, or None where Python catches it."""
        try:
            return None if _in_notebook() else sys.stdout.fileno()
        except (OSError, AttributeError, ValueError):
            return None

    def _title(self, epoch):
        print(f"Epoch {epoch + self.first + 1}/{self.epochs}", flush=True)

    def _line(self, progress):
        per_step = progress.seconds / max(progress.step, 1)
        steps = f"{progress.step}/{progress.steps or 'Unknown'}"
        filled = 20 * progress.step // progress.steps if progress.steps else 0
        bar = "━" * filled + "─" * (20 - filled)
        unit = f"{per_step * 1e3:.0f}ms" if per_step >= 1e-3 else f"{per_step * 1e6:.0f}us"
        return f"{steps} {bar} {progress.seconds:.0f}s {unit}/step{self._values(progress)}"

    def _values(self, progress):
        parts = []
        for i in range(n.lib.bw_history_columns(progress.logs)):
            name = n.lib.bw_history_column(progress.logs, i)
            value = n.lib.bw_history_last(progress.logs, name)
            if value == value:
                parts.append(
                    f" - {name.decode()}: {value:.4f}" if abs(value) > 1e-3 or value == 0 else f" - {name.decode()}: {value:.4e}"
                )
        return "".join(parts)

    def _step(self, progress):
        if progress.seconds - self.drawn >= 0.1:
            self.drawn = progress.seconds
            self._draw(self._line(progress), "")

    def _draw(self, line, end):
        print("\r" + line.ljust(self.width), end=end, flush=True)
        self.width = len(line)

    def _end(self, progress):
        if self.verbose == 1:
            self._draw(self._line(progress), "\n")
            self.drawn = 0.0
            self.width = 0
            if progress.epoch + 1 < progress.epochs:
                self._title(progress.epoch + 1)
        else:
            print(
                f"Epoch {progress.epoch + self.first + 1}/{self.epochs} - {progress.seconds:.0f}s{self._values(progress)}",
                flush=True,
            )

    def close(self):
        if self.file:
            _libc.fclose(self.file)
            self.file = None
