"""Makes the base for transfer.c: MobileNetV2 without its top, as Keras has it, with every layer frozen.

    python3 transfer.py BASE.keras [imagenet]

With `imagenet` its weights are those that Keras downloads; without, initial ones, for which no network is needed.
"""
import sys

import keras

weights = sys.argv[2] if len(sys.argv) > 2 else None
base = keras.applications.MobileNetV2(input_shape=(32, 32, 3), alpha=0.35, include_top=False, pooling="avg", weights=weights)
base.trainable = False
base.save(sys.argv[1])
print(f"{sys.argv[1]}: {base.count_params():,} weights, none of them trained")
