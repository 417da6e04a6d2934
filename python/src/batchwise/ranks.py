"""Ranks: processes that a launcher of MPI started, or threads of this one, that train one model together with the bits of one."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from . import _errors
from . import _native as n


class Ranks:
    """A group of ranks.

    with bw.Ranks.mpi() as ranks:                          mpirun -n 4 python train.py
        model = bw.Model("dense(10,softmax)", ranks=ranks)
        model.fit(x, y)                                    all with the same model, samples and options
        if ranks.rank == 0:
            model.save("model.keras")

    Ranks(count) makes a group within one process; each of its threads takes `ranks.at(number)`. A group serves one model. Leaving the
    body waits for the other ranks, and the model is one of its own from there on.
    """

    def __init__(self, count: int = 1) -> None:
        pointer = n.lib.bw_ranks_open(int(count))
        if not pointer:
            raise _errors.InvalidArgument(f"Ranks({count}): expected 1 to 64 ranks")
        self._begin(pointer, 0, 0)

    def _begin(self, pointer, rank, workers):
        self.pointer, self.rank, self.workers = pointer, rank, workers
        self._contexts = weakref.WeakSet()

    @classmethod
    def mpi(cls) -> Ranks:
        """This process's place among those that mpirun, mpiexec or srun started; without a launcher a group of one. To be called
        once in a process. $BATCHWISE_MPI names the library for an MPI, or one of openmpi, mpich and none."""
        options = n.options(n.bw_context_options)
        n.lib.bw_ranks_mpi(ctypes.byref(options))
        made = cls.__new__(cls)
        made._begin(options.ranks, options.rank, options.workers)
        return made

    def __len__(self) -> int:
        return n.lib.bw_ranks_count(self.pointer)

    def at(self, rank: int) -> Ranks:
        """The same group for the thread that is its rank of this number."""
        if not 0 <= rank < len(self):
            raise _errors.OutOfRange(f"rank {rank} of {len(self)}")
        made = Ranks.__new__(Ranks)
        made.pointer, made.rank, made.workers, made._contexts = self.pointer, rank, self.workers, self._contexts
        return made

    def end(self, failure: Any = None) -> None:
        """Waits for the other ranks of MPI, tells them why this one failed, and leaves the group. If another one failed, that is raised."""
        reason = ctypes.c_char_p()
        text = None if failure is None else f"{type(failure).__name__}: {failure}".encode()
        failed = n.lib.bw_ranks_end(self.pointer, text, ctypes.byref(reason))
        mine = self.rank
        self.close()
        if failure is None and failed >= 0 and failed != mine:
            raise _errors.Unavailable(f"rank {failed} failed: {n.text(reason.value)}")

    def close(self) -> None:
        for context in list(self._contexts):
            with context:
                n.lib.bw_ranks_part(context.pointer)
        pointer, self.pointer = self.pointer, None
        n.lib.bw_ranks_close(pointer)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, _kind: Any, failure: Any, _trace: Any) -> None:
        self.end(failure)

    def __repr__(self):
        return f"Ranks(rank {self.rank} of {len(self)})"
