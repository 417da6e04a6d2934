"""Contexts: who owns native objects, who may use them now, and how a failure becomes an exception.

A context is used by one thread at a time. Every model has its own, so models of several Python threads run side by side; a thread
that asks for a model in use waits. Native objects are freed when their Python objects go, on whatever thread that happens; if the
context is in use just then, they are freed by the next call that enters it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref

from . import _errors, _interrupt
from . import _native as n

log = logging.getLogger("batchwise")

_settings = {"workers": 0, "memory": 0, "instruction_set": None, "exact_kernels": False}
_contexts = weakref.WeakSet()


def configure(*, workers=None, memory=None, instruction_set=None, exact_kernels=None):
    """Chooses what models and datasets that are made from now on use.

    workers: threads that compute; 0: one for each CPU. memory: the budget in bytes; 0: what the machine allows. instruction_set:
    "avx512", "avx2", "neon" or "portable". exact_kernels: convolutions by their definition only. What is not given stays. Returns all of
    them.
    """
    given = {"workers": workers, "memory": memory, "instruction_set": instruction_set, "exact_kernels": exact_kernels}
    _settings.update({name: value for name, value in given.items() if value is not None})
    return dict(_settings)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
def _log(_user, level, message):
    log.log(logging.WARNING if level == n.BW_LOG_WARNING else logging.INFO, "%s", _errors.shown(n.text(message)))


class Context:
    def __init__(self, ranks=None, **settings):
        self.settings = {**_settings, **settings}  # what a copy has as well
        options = n.options(n.bw_context_options, log=_log, **self.settings)
        if ranks is not None:
            options.ranks, options.rank = ranks.pointer, ranks.rank
            options.workers = options.workers or ranks.workers
        self.pointer = n.lib.bw_open(ctypes.byref(options))
        if not self.pointer:
            raise _errors.ResourceExhausted("there is no memory for a context")
        self.lock = threading.RLock()
        self.garbage = []
        self.datasets = weakref.WeakKeyDictionary()  # Dataset: its native form in this context
        self.interrupted = False  # Ctrl-C has cancelled a call, or will cancel the next one
        _contexts.add(self)
        if ranks is not None:
            ranks._contexts.add(self)
        options_failure = n.lib.bw_last_error(self.pointer).contents
        if options_failure.status:
            raise _errors.from_context(self.pointer, options_failure.status)

    def __enter__(self):
        self.lock.acquire()
        if not self.pointer:
            self.lock.release()
            raise _errors.InvalidArgument("this object is closed, or another thread was using it when the process forked")
        while self.garbage:
            free, pointer = self.garbage.pop()
            free(pointer)
        return self

    def __exit__(self, *_):
        self.lock.release()

    def call(self, function, *arguments):
        """Calls a function that returns a status."""
        status = function(*arguments)
        if status:
            raise _errors.from_context(self.pointer, status)

    def build(self, function, *arguments):
        """Calls a function that returns a pointer, NULL if it fails."""
        pointer = function(*arguments)
        if not pointer:
            raise _errors.from_context(self.pointer)
        return pointer

    def run(self, function, *arguments):
        """Calls a function that may take long: an interrupt (Ctrl-C) stops it, and becomes a KeyboardInterrupt."""
        stale, self.interrupted = self.interrupted, False
        with _interrupt.watch(self):
            status = function(*arguments)
            if status == n.BW_CANCELLED and stale and not self.interrupted:  # an interrupt that came too late for an earlier call
                status = function(*arguments)
            if status == n.BW_CANCELLED:
                self.interrupted = False
        return status

    def cancel(self):
        """Stops what the context is doing; from any thread."""
        if self.pointer:
            n.lib.bw_cancel(self.pointer)

    def free(self, function, pointer):
        """Frees an object now, or when the thread that uses the context has left it."""
        if not self.pointer:
            return
        if self.lock.acquire(blocking=False):
            try:
                if self.pointer:
                    function(pointer)
            finally:
                self.lock.release()
        else:
            self.garbage.append((function, pointer))

    def close(self):
        """Frees everything that was made from it."""
        with self:
            self.datasets.clear()
            pointer, self.pointer = self.pointer, None
            n.lib.bw_close(pointer)

    def __del__(self):
        pointer, self.pointer = getattr(self, "pointer", None), None
        if pointer:
            n.lib.bw_close(pointer)


class Handle:
    """A native object with the Python objects whose memory it uses."""

    def __init__(self, context, pointer, free, keep=None):
        self.context, self.pointer, self._free, self.keep = context, pointer, free, keep

    def __del__(self):
        pointer, self.pointer = getattr(self, "pointer", None), None
        if pointer:
            try:
                self.context.free(self._free, pointer)
            except ReferenceError:  # the context is gone, and the object with it
                pass


def _after_fork():
    """In a child, contexts that other threads of the parent were using are lost; the others go on with locks of their own."""
    for context in list(_contexts):
        if not context.lock.acquire(blocking=False):
            context.pointer = None
        context.lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
