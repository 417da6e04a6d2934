#!/usr/bin/env python3
"""Records every public name of Keras that docs/reference/keras-coverage.md compares with the tables here: names.txt, a line `kind name`
for each. Run it with a new version of Keras, then let the test write the page (see test_coverage.c)."""
import inspect, os

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = [("layers", keras.layers, inspect.isclass), ("activations", keras.activations, inspect.isfunction), ("losses", keras.losses, inspect.isclass),
         ("metrics", keras.metrics, inspect.isclass), ("optimizers", keras.optimizers, inspect.isclass), ("schedules", keras.optimizers.schedules, inspect.isclass),
         ("initializers", keras.initializers, inspect.isclass), ("regularizers", keras.regularizers, inspect.isclass),
         ("constraints", keras.constraints, inspect.isclass), ("callbacks", keras.callbacks, inspect.isclass)]
BASES = {"Layer", "Wrapper", "InputSpec", "Loss", "Metric", "MeanMetricWrapper", "Optimizer", "LearningRateSchedule", "Initializer", "Regularizer", "Constraint",
         "Callback", "CallbackList", "deserialize", "serialize", "get"}


def main():
    lines = [f"version {keras.__version__}"]
    for kind, module, fits in KINDS:
        seen = {}
        for name in sorted(n for n in dir(module) if n[0] != "_" and n not in BASES and fits(getattr(module, n))):
            seen.setdefault(getattr(module, name), []).append(name)
        # Of several names of one object the one that it calls itself comes first.
        for thing, names in seen.items():
            own = thing.__name__ if thing.__name__ in names else names[0]
            lines.append(" ".join([kind, own] + [n for n in names if n != own]))
    open(os.path.join(HERE, "names.txt"), "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
