"""Batchwise: neural networks on mini-batches of any size.

import batchwise as bw
history = bw.fit(keras_model, x, y, batch_size=8192, epochs=5, validation_split=0.1)    # the weights come back

model = bw.Model("conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)")
model.fit(x, y, epochs=10); model.evaluate(x, y); model.predict(x); model.save("digits.keras")
"""

from ._context import configure
from ._errors import (
    Cancelled,
    DataLoss,
    Error,
    Internal,
    InvalidArgument,
    MissingFile,
    NotFound,
    OutOfRange,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)
from ._native import __version__
from .callbacks import Callback
from .dataset import Dataset
from .doctor import doctor, finding_ids, review
from .graph import Graph
from .history import History
from .keras_bridge import fit
from .model import Model, file_kinds
from .plan import plan
from .profile import machine, profile
from .ranks import Ranks
from .tune import tune
from .verify import verify

__all__ = [
    "Callback",
    "Cancelled",
    "DataLoss",
    "Dataset",
    "Error",
    "Graph",
    "History",
    "Internal",
    "InvalidArgument",
    "MissingFile",
    "Model",
    "NotFound",
    "OutOfRange",
    "Ranks",
    "ResourceExhausted",
    "Unavailable",
    "Unimplemented",
    "__version__",
    "configure",
    "doctor",
    "file_kinds",
    "finding_ids",
    "fit",
    "machine",
    "plan",
    "profile",
    "review",
    "tune",
    "verify",
]
