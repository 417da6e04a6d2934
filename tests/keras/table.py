"""The rows that record.py records. One row is one case; its name is its file's.

A row says only what differs from the defaults in `row`. x: the shape of a sample, or ("tokens", vocabulary, length). y: the kind of
targets (see record.targets). draw: another draw of data, where the first happened to sit on an edge. disturb: whether biases and
the like start beside their zeros and ones.
"""
ROWS = []


def row(name, expression, **given):
    values = dict(x=(5,), y="classes", n=21, batch=8, epochs=2, optimizer="sgd(lr=0.05,momentum=0.9)",
                  loss="sparse_categorical_crossentropy", metrics=None, weighted_metrics=None, class_weight=None, w=False,
                  spread=1.0, centre=0.0, draw=0, disturb=True)
    assert not set(given) - set(values), given
    assert name not in [r["name"] for r in ROWS], name
    ROWS.append(values | {"name": name, "expression": expression} | given)


# The slice: convolutions, pooling, dense layers, batch normalisation; SGD and Adam; uneven and tiny batches.
row("slice_conv_valid", "conv2d(6,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    x=(8, 8, 1), n=70, batch=32, epochs=2, optimizer="sgd(lr=0.05)", metrics="accuracy")
row("slice_conv_image", "conv2d(12,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    x=(12, 12, 1), n=33, batch=32, epochs=3, optimizer="adam(lr=0.003)", metrics="accuracy", spread=0.3, centre=0.5)
row("slice_conv_same_stride", "conv2d(8,3,strides=2,padding=same,activation=relu) flatten dense(4,softmax)",
    x=(9, 7, 3), n=30, batch=7, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_conv_1x1", "conv2d(5,1,relu) conv2d(4,3,padding=same,use_bias=false) relu flatten dense(3) softmax",
    x=(6, 5, 3), n=30, batch=7, epochs=2, optimizer="sgd(lr=0.02,momentum=0.9)", metrics="accuracy")
row("slice_conv_1x1_stride", "conv2d(7,1,strides=2,use_bias=false) relu conv2d(3,3,strides=2,padding=same) flatten dense(2,softmax)",
    x=(10, 10, 3), n=20, batch=20, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9,nesterov=true)", metrics="accuracy")
row("slice_conv_deep", "conv2d(6,3,relu) maxpool2d(2) conv2d(9,3,relu) maxpool2d(2) flatten dense(16,relu) dense(5,softmax)",
    x=(14, 13, 1), n=40, batch=16, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_pool_overlap", "conv2d(4,3,relu) maxpool2d(3,strides=2) flatten dense(3,softmax)",
    x=(11, 9, 1), n=25, batch=7, epochs=2, optimizer="sgd(lr=0.05)", metrics="accuracy")
row("slice_pool_same", "conv2d(4,3,padding=same) maxpool2d(2,padding=same) relu maxpool2d(3,strides=2,padding=same) flatten dense(3,softmax)",
    x=(9, 7, 3), n=25, batch=10, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_dense_wide", "dense(40,relu) dense(3)",
    x=(33,), y="real", n=30, batch=64, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", loss="mse")
row("slice_dense_narrow", "dense(1) dense(2,relu) dense(1)",
    x=(2,), y="real", n=23, batch=1, epochs=2, optimizer="sgd(lr=0.02)", loss="mse")
row("slice_dense_one", "dense(40,softmax)",
    x=(17,), n=60, batch=1, epochs=2, optimizer="adam(lr=0.02)", metrics="accuracy")
row("slice_labels_column", "dense(9,relu) dense(4,softmax)",
    x=(6,), y="column", n=45, batch=32, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9,nesterov=true)", metrics="accuracy")
row("slice_weights_classes", "conv2d(4,3,relu) flatten dense(3,softmax)",
    x=(6, 6, 1), n=30, batch=7, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy", w=True)
row("slice_weights_mse", "dense(12,relu) dense(2)",
    x=(5,), y="real", n=33, batch=32, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", loss="mse", w=True)
row("slice_bn_conv", "conv2d(6,3,use_bias=false) batchnorm relu maxpool2d(2) flatten dense(3,softmax)",
    x=(8, 8, 3), n=33, batch=8, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy", spread=3.0, centre=1.0)
row("slice_bn_dense", "dense(12,use_bias=false) batchnorm(momentum=0.9) relu dense(4,softmax)",
    x=(7,), n=30, batch=7, epochs=3, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_bn_dense_last_one", "dense(12,use_bias=false) batchnorm(momentum=0.9) relu dense(4,softmax)",
    x=(7,), n=29, batch=7, epochs=2, optimizer="sgd(lr=0.05)", metrics="accuracy")
row("slice_bn_only_one", "dense(6,use_bias=false) batchnorm(momentum=0.5) dense(2)",
    x=(4,), y="real", n=3, batch=1, epochs=2, optimizer="sgd(lr=0.05)", loss="mse")
row("slice_bn_two", "conv2d(5,3,use_bias=false) batchnorm relu conv2d(6,3,use_bias=false) batchnorm(momentum=0.9) relu flatten dense(3,softmax)",
    x=(8, 7, 1), n=33, batch=32, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy")
row("slice_bn_first", "batchnorm(momentum=0.8) conv2d(4,3,relu) flatten dense(3) batchnorm softmax",
    x=(6, 6, 3), n=26, batch=12, epochs=2, optimizer="sgd(lr=0.02)", metrics="accuracy", spread=3.0, centre=2.0)
row("slice_bn_weights", "dense(10,use_bias=false) batchnorm relu dense(3,softmax)",
    x=(6,), n=30, batch=13, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy", w=True)
