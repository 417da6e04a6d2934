"""Ctrl-C while the library computes.

Python runs signal handlers between its own instructions, so a long native call would hold them up. While such a call runs, Python's
wake-up descriptor is ours: a thread that sleeps on its other end cancels the context when SIGINT arrives: the call returns after
the step. Python's handler is kept back until then, since an exception at the beginning of a callback would be lost, and then raises
KeyboardInterrupt; a second Ctrl-C reaches it at once. Neither a step nor a callback pays for this. Bytes are passed on to the
descriptor that was set before, which event loops (notebooks) rely on.
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
        self.lock = threading.Lock()
        self.before = -1
        threading.Thread(target=self._run, name="batchwise-interrupt", daemon=True).start()

    def _run(self):
        while True:
            signals = self.receiving.recv(64)
            if not signals:
                return
            with self.lock:  # so that nothing is cancelled that is over
                for context in self.contexts if signal.SIGINT in signals else []:
                    context.interrupted = True
                    context.cancel()
            if self.before >= 0:
                try:
                    os.write(self.before, signals)
                except OSError:
                    pass


@contextmanager
def watch(context):
    """While the body runs, SIGINT cancels the context; the handler that was set before is called afterwards. Only the main thread
    gets signals; elsewhere nothing is done."""
    global _watcher
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _watcher is None or _watcher.pid != os.getpid():
        _watcher = _Watcher()
    watcher, handler, seen = _watcher, signal.getsignal(signal.SIGINT), []

    def keep_back(number, frame):
        seen.append(number)
        if len(seen) > 1:
            handler(number, frame)

    with watcher.lock:
        watcher.contexts.append(context)
    before = signal.set_wakeup_fd(watcher.sending.fileno(), warn_on_full_buffer=False)
    nested = before == watcher.sending.fileno()
    try:
        if not nested:
            watcher.before = before
        if callable(handler):
            signal.signal(signal.SIGINT, keep_back)
        yield
    finally:
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
        if not nested:
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            watcher.before = -1
        with watcher.lock:
            watcher.contexts.remove(context)
    if len(seen) == 1:
        handler(signal.SIGINT, None)
