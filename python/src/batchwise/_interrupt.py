"""Ctrl-C while the library computes.

Python runs signal handlers between its own instructions, so a long native call would hold them up. While such a call runs, Python's
wake-up descriptor is ours: a thread that sleeps on its other end cancels the context when SIGINT arrives, the call returns after
the step, and Python's handler then raises KeyboardInterrupt. Neither a step nor a callback pays for this. Bytes are passed on to
the descriptor that was set before, which event loops (notebooks) rely on.
"""

import os
import signal
import socket
import threading
from contextlib import contextmanager

_watcher = None


class _Watcher:
    def __init__(self):
        self.pid = os.getpid()
        self.receiving, self.sending = socket.socketpair()
        self.sending.setblocking(False)
        self.contexts = []
        self.before = -1
        threading.Thread(target=self._run, name="batchwise-interrupt", daemon=True).start()

    def _run(self):
        while True:
            signals = self.receiving.recv(64)
            if not signals:
                return
            for context in list(self.contexts) if signal.SIGINT in signals else []:
                context.interrupted = True
                context.cancel()
            if self.before >= 0:
                try:
                    os.write(self.before, signals)
                except OSError:
                    pass


@contextmanager
def watch(context):
    """While the body runs, SIGINT cancels the context. Only the main thread gets signals; elsewhere nothing is done."""
    global _watcher
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _watcher is None or _watcher.pid != os.getpid():
        _watcher = _Watcher()
    watcher = _watcher
    watcher.contexts.append(context)
    try:
        before = signal.set_wakeup_fd(watcher.sending.fileno(), warn_on_full_buffer=False)
        own = before == watcher.sending.fileno()
        if not own:
            watcher.before = before
        try:
            yield
        finally:
            if not own:
                watcher.before = -1
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)
    finally:
        watcher.contexts.remove(context)
