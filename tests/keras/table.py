"""The rows that record.py records. One row is one case; its name is its file's.

A row says only what differs from the defaults in `row`. x: the shape of a sample, or ("tokens", vocabulary, length). y: the kind of
targets (see record.targets). w: sample weights: True (n,), "column" (n, 1), "each" as y. draw: another draw of data, where the
first happened to sit on an edge. disturb: whether biases and the like start beside their zeros and ones.
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
row("slice_conv_1x1_stride",
    "conv2d(7,1,strides=2,use_bias=false) relu conv2d(3,3,strides=2,padding=same) flatten dense(2,softmax)",
    x=(10, 10, 3), n=20, batch=20, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9,nesterov=true)", metrics="accuracy")
row("slice_conv_deep", "conv2d(6,3,relu) maxpool2d(2) conv2d(9,3,relu) maxpool2d(2) flatten dense(16,relu) dense(5,softmax)",
    x=(14, 13, 1), n=40, batch=16, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_conv_three", "conv2d(17,3,relu) maxpool2d(2) flatten dense(4,softmax)",
    x=(15, 12, 3), n=20, batch=8, epochs=2, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy")
row("slice_conv_three_same", "conv2d(8,3,relu,padding=same,use_bias=false) maxpool2d(2) flatten dense(4,softmax)",
    x=(10, 14, 3), n=20, batch=7, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_conv_many", "conv2d(16,3,relu) maxpool2d(2) conv2d(32,3,relu) maxpool2d(2) flatten dense(4,softmax)",
    x=(20, 17, 1), n=20, batch=8, epochs=2, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy")
row("slice_conv_many_same",
    "conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(16,3,relu,padding=same,use_bias=false) maxpool2d(2) flatten dense(3,softmax)",
    x=(12, 16, 3), n=20, batch=7, epochs=2, optimizer="adam(lr=0.003)", metrics="accuracy")
row("slice_conv_many_twice",
    "conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(48,3,relu,padding=same) "
    "maxpool2d(2) flatten dense(3,softmax)",
    x=(24, 24, 2), n=12, batch=5, epochs=2, optimizer="sgd(lr=0.1)", metrics="accuracy")
row("slice_pool_overlap", "conv2d(4,3,relu) maxpool2d(3,strides=2) flatten dense(3,softmax)",
    x=(11, 9, 1), n=25, batch=7, epochs=2, optimizer="sgd(lr=0.05)", metrics="accuracy")
row("slice_pool_same",
    "conv2d(4,3,padding=same) maxpool2d(2,padding=same) relu maxpool2d(3,strides=2,padding=same) flatten dense(3,softmax)",
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
row("slice_bn_two",
    "conv2d(5,3,use_bias=false) batchnorm relu conv2d(6,3,use_bias=false) batchnorm(momentum=0.9) relu flatten dense(3,softmax)",
    x=(8, 7, 1), n=33, batch=32, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy")
row("slice_bn_first", "batchnorm(momentum=0.8) conv2d(4,3,relu) flatten dense(3) batchnorm softmax",
    x=(6, 6, 3), n=26, batch=12, epochs=2, optimizer="sgd(lr=0.02)", metrics="accuracy", spread=3.0, centre=2.0)
row("slice_bn_weights", "dense(10,use_bias=false) batchnorm relu dense(3,softmax)",
    x=(6,), n=30, batch=13, epochs=3, optimizer="sgd(lr=0.05,momentum=0.9)", metrics="accuracy", w=True)


# Breadth. Layers: each between a convolution or a dense layer and a head, so that both of its gradients are seen.
def image(name, expression, x=(7, 6, 2), n=13, head=" flatten dense(3,softmax)", **given):
    row(name, expression + head, x=x, n=n, **given)


def line(name, expression, x=(9, 3), head=" flatten dense(3,softmax)", **given):
    row(name, expression + head, x=x, **given)


def text(name, expression, x=("tokens", 12, 6), head=" dense(3,softmax)", **given):
    row(name, expression + head, x=x, **given)


image("layer_input", "input(7,6,2) conv2d(3,2,relu)")
row("layer_dense", "dense(7,relu,use_bias=false) dense(3,softmax)", metrics="accuracy")
line("layer_dense_positions", "dense(4,tanh) dense(2)")
image("layer_dense_image", "dense(3,tanh)", x=(3, 4, 2))

line("layer_conv1d", "conv1d(4,3,relu)")
line("layer_conv1d_same_stride", "conv1d(4,4,relu,strides=2,padding=same)", x=(10, 3))
line("layer_conv1d_causal_dilation", "conv1d(4,3,tanh,padding=causal,dilation_rate=2)")
line("layer_conv1d_dilation_same", "conv1d(4,3,tanh,padding=same,dilation_rate=3)")
line("layer_conv1d_causal_stride", "conv1d(4,3,tanh,padding=causal,strides=2)")
line("layer_conv1d_groups", "conv1d(4,3,tanh) conv1d(6,3,relu,groups=2,use_bias=false)")

image("layer_conv2d_oblong", "conv2d(4,(3,2),relu,strides=(1,2))")
image("layer_conv2d_stride_same_even", "conv2d(4,4,relu,strides=3,padding=same)")
image("layer_conv2d_dilation", "conv2d(3,2,tanh) conv2d(4,3,relu,dilation_rate=2)", x=(8, 9, 2))
image("layer_conv2d_dilation_same", "conv2d(4,3,relu,dilation_rate=(2,1),padding=same)")
image("layer_conv2d_groups", "conv2d(4,2,tanh) conv2d(6,3,relu,groups=2,padding=same)")
image("layer_conv2d_each", "conv2d(18,1,tanh) conv2d(18,5,relu,padding=same,groups=18)")
image("layer_conv2d_5x5", "conv2d(3,5,relu,padding=same)")

image("layer_depthwise_conv2d", "conv2d(3,2,tanh) depthwise_conv2d(3,relu)")
image("layer_depthwise_conv2d_multiplier", "depthwise_conv2d(3,tanh,depth_multiplier=3,padding=same)")
image("layer_depthwise_conv2d_stride", "conv2d(3,1,tanh) depthwise_conv2d(3,strides=2,padding=same,use_bias=false) relu",
    x=(7, 7, 2))
image("layer_depthwise_conv2d_5x5", "conv2d(18,1,tanh) depthwise_conv2d(5,relu,padding=same)")
image("layer_depthwise_conv2d_dilation", "conv2d(3,1,tanh) depthwise_conv2d(2,dilation_rate=2)")

line("layer_depthwise_conv1d", "conv1d(4,2,tanh) depthwise_conv1d(3,relu,depth_multiplier=2)")
line("layer_depthwise_conv1d_same", "conv1d(4,2,tanh) depthwise_conv1d(4,relu,padding=same,strides=2,use_bias=false)")
line("layer_separable_conv1d", "conv1d(4,2,tanh) separable_conv1d(3,3,relu)")
line("layer_separable_conv1d_same", "conv1d(4,2,tanh) separable_conv1d(3,4,relu,padding=same,strides=2,depth_multiplier=2,use_bias=false)")
image("layer_separable_conv2d", "conv2d(3,2,tanh) separable_conv2d(4,3,relu)")
image("layer_separable_conv2d_same", "conv2d(3,2,tanh) separable_conv2d(4,(3,2),padding=same,depth_multiplier=2,use_bias=false) relu "
      "zero_padding2d(1) separable_conv2d(3,3,strides=2)")
image("layer_separable_conv2d_5x5", "conv2d(5,2,tanh) separable_conv2d(4,5,relu,padding=same,"
      "depthwise_regularizer=l2(0.05),pointwise_regularizer=l1(0.02),bias_regularizer=l2(0.1))")
image("layer_separable_conv2d_dilation", "conv2d(3,2,tanh) separable_conv2d(4,3,dilation_rate=2,padding=same,depthwise_initializer=he_normal)")

line("layer_maxpool1d", "conv1d(4,2,tanh) maxpool1d(2)")
line("layer_maxpool1d_overlap_same", "conv1d(4,2,tanh) maxpool1d(3,2,same)")
line("layer_avgpool1d", "conv1d(4,2,tanh) avgpool1d(2)")
line("layer_avgpool1d_overlap_same", "conv1d(4,2,tanh) avgpool1d(3,strides=2,padding=same)", x=(10, 3))
image("layer_maxpool2d", "conv2d(4,2,tanh) maxpool2d")
image("layer_maxpool2d_oblong", "conv2d(4,2,tanh) maxpool2d((3,2),strides=(1,2))")
image("layer_maxpool2d_overlap_same", "conv2d(4,2,tanh) maxpool2d(3,2,same)")
image("layer_avgpool2d", "conv2d(4,2,tanh) avgpool2d(2)", x=(8, 7, 2))
image("layer_avgpool2d_oblong", "conv2d(4,2,tanh) avgpool2d((2,3),strides=(2,1))")
image("layer_avgpool2d_overlap_same", "conv2d(4,2,tanh) avgpool2d(3,strides=2,padding=same)", x=(8, 7, 2))
line("layer_global_maxpool1d", "conv1d(5,2,tanh) global_maxpool1d", head=" dense(3,softmax)")
line("layer_global_avgpool1d", "conv1d(5,2,tanh) global_avgpool1d", head=" dense(3,softmax)")
image("layer_global_maxpool2d", "conv2d(5,2,tanh) global_maxpool2d", head=" dense(3,softmax)")
image("layer_global_maxpool2d_wide", "conv2d(3,2,tanh) global_maxpool2d(keepdims=true)", x=(18, 17, 1))
image("layer_global_avgpool2d", "conv2d(5,2,tanh) global_avgpool2d", head=" dense(3,softmax)")
image("layer_global_avgpool2d_keepdims", "conv2d(5,2,tanh) global_avgpool2d(keepdims=true)")

image("layer_flatten", "flatten dense(5,tanh)", head=" flatten dense(3,softmax)", x=(3, 4, 2))
image("layer_reshape", "conv2d(4,2,tanh) reshape(10,12) conv1d(3,3,tanh)")
image("layer_reshape_rest", "conv2d(4,2,tanh) reshape((6,-1)) conv1d(3,3,tanh)")
row("layer_reshape_to_image", "dense(24,tanh) reshape(4,3,2) conv2d(3,2,tanh) flatten dense(3,softmax)")
image("layer_permute", "conv2d(4,2,tanh) permute(3,1,2) conv2d(3,2,tanh)")
line("layer_permute_line", "conv1d(4,2,tanh) permute(2,1) conv1d(3,2,tanh)")

row("layer_dropout_off", "dense(6,tanh) dropout(0.0) dense(3,softmax)")
image("layer_spatial_dropout2d_off", "conv2d(3,2,tanh) spatial_dropout2d(0.0)")
row("layer_gaussian_noise_off", "dense(6,tanh) gaussian_noise(0.0) dense(3,softmax)")
row("layer_dropout_noise_shape_off", "dense(6,tanh) dropout(0.0,noise_shape=(none,1)) dense(3,softmax)")
line("layer_spatial_dropout1d_off", "conv1d(3,2,tanh) spatial_dropout1d(0.0)")
row("layer_gaussian_dropout_off", "dense(6,tanh) gaussian_dropout(0.0) dense(3,softmax)")
row("layer_alpha_dropout_off", "dense(6,tanh) alpha_dropout(0.0) dense(3,softmax)")
image("layer_stochastic_depth_off", "conv2d(3,2,tanh) stochastic_depth(0.0)")

line("layer_batchnorm_line", "conv1d(4,2,use_bias=false) batchnorm relu", metrics="accuracy")
image("layer_batchnorm_plain", "conv2d(4,2,use_bias=false) batchnorm(center=false,scale=false,epsilon=0.01)")
image("layer_batchnorm_no_scale", "conv2d(4,2,use_bias=false) batchnorm(scale=false,momentum=0.7) relu")
image("layer_batchnorm_no_center", "conv2d(4,2,use_bias=false) batchnorm(center=false,momentum=0.7) relu")
image("layer_batchnorm_after_relu", "conv2d(4,2,relu) batchnorm", optimizer="adam(lr=0.005)")
image("layer_batchnorm_frozen", "conv2d(4,2) batchnorm(trainable=false) relu")
row("layer_batchnorm_twice", "dense(6,use_bias=false) batchnorm batchnorm(momentum=0.8) relu dense(3,softmax)",
    optimizer="sgd(lr=0.05)")
row("layer_layernorm", "dense(8) layernorm relu dense(3,softmax)")
row("layer_layernorm_plain", "dense(8) layernorm(center=false,scale=false,epsilon=0.01) relu dense(3,softmax)")
image("layer_layernorm_image", "conv2d(4,2) layernorm relu")
line("layer_layernorm_axes", "conv1d(4,2) layernorm(axis=(1,2)) relu")
line("layer_layernorm_first", "conv1d(4,2) layernorm(axis=1) relu")
image("layer_layernorm_gap", "conv2d(4,2) layernorm(axis=(1,3)) relu")
image("layer_groupnorm", "conv2d(6,2) groupnorm(3) relu")
image("layer_groupnorm_one", "conv2d(6,2) groupnorm(1,scale=false,epsilon=0.01) relu")
image("layer_groupnorm_each", "conv2d(6,2) groupnorm(-1,center=false) relu")
line("layer_groupnorm_line", "conv1d(4,2) groupnorm(2,gamma_regularizer=l2(0.1),beta_regularizer=l1(0.02)) relu")
row("layer_groupnorm_vector", "dense(8) groupnorm(2) relu dense(3,softmax)")
row("layer_rmsnorm", "dense(8) rmsnorm relu dense(3,softmax)")
image("layer_rmsnorm_image", "conv2d(4,2) rmsnorm(epsilon=0.01) relu")
row("layer_unitnorm", "dense(8) unitnorm relu dense(3,softmax)")
image("layer_unitnorm_axes", "conv2d(4,2) unitnorm(axis=(1,2)) relu")
image("layer_layer_scale", "conv2d(4,2,tanh) layer_scale(0.5,4) conv2d(3,2,relu)")
row("layer_layer_scale_vector", "dense(5,tanh) layer_scale(0.5,5) dense(3,softmax)")
image("layer_custom_scale", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) custom_scale(a,scale=0.17) relu")

text("layer_embedding", "embedding(12,4) flatten")
text("layer_embedding_adam", "embedding(40,4) flatten", x=("tokens", 40, 5), optimizer="adam(lr=0.01)")
text("layer_embedding_average", "embedding(12,4) global_avgpool1d")
text("layer_embedding_max", "embedding(12,4) global_maxpool1d")
text("layer_embedding_mask_average", "embedding(5,4,mask_zero=true) global_avgpool1d", x=("tokens", 5, 6))
text("layer_embedding_mask_dense_average", "embedding(5,4,mask_zero=true) dense(5,tanh) global_avgpool1d", x=("tokens", 5, 6))
text("layer_embedding_mask_loss", "embedding(5,4,mask_zero=true) dense(4,tanh)", x=("tokens", 5, 6))
text("layer_embedding_mask_flatten", "embedding(5,4,mask_zero=true) flatten", x=("tokens", 5, 6))

last = " dense(3,softmax)"
for cell in ("simple_rnn", "lstm", "gru"):
    line(f"layer_{cell}", f"{cell}(5)", head=last)
    line(f"layer_{cell}_sequences", f"{cell}(4,return_sequences=true)")
    line(f"layer_{cell}_backwards", f"{cell}(4,return_sequences=true,go_backwards=true)", optimizer="adam(lr=0.003)")
    line(f"layer_{cell}_stacked", f"{cell}(6,return_sequences=true) {cell}(4)", head=last, n=15, batch=7)
    line(f"layer_{cell}_plain", f"{cell}(5,use_bias=false,unroll=true)", head=last)
    line(f"layer_{cell}_regularized",
         f"{cell}(3,kernel_regularizer=l2(0.05),recurrent_regularizer=l1(0.02),bias_regularizer=l2(0.03))", head=last)
    text(f"layer_{cell}_masked", f"embedding(5,4,mask_zero=true) {cell}(5)", x=("tokens", 5, 6))
    text(f"layer_{cell}_masked_sequences", f"embedding(5,4,mask_zero=true) {cell}(5,return_sequences=true) {cell}(3,go_backwards=true)",
         x=("tokens", 5, 6))
    text(f"layer_{cell}_masked_zero", f"embedding(5,4,mask_zero=true) {cell}(5,return_sequences=true,zero_output_for_mask=true) flatten",
         x=("tokens", 5, 6))
    text(f"layer_{cell}_masked_loss", f"embedding(5,4,mask_zero=true) {cell}(5,return_sequences=true)", x=("tokens", 5, 6))
text("layer_masking_lstm", "reshape(6,1) masking(2) lstm(4)", x=("tokens", 4, 6))
text("layer_masking_dense", "reshape(3,2) masking dense(4,tanh) gru(3,return_sequences=true)", x=("tokens", 2, 6))
line("layer_simple_rnn_relu", "simple_rnn(5,relu)", head=last)
line("layer_lstm_wide", "lstm(33)", head=last, x=(6, 5), n=12)
line("layer_lstm_activations", "lstm(5,softsign,recurrent_activation=hard_sigmoid,unit_forget_bias=false)", head=last)
line("layer_lstm_of_input", "lstm(4,gelu,recurrent_activation=silu)", head=last)
line("layer_lstm_linear", "lstm(4,linear)", head=last)
line("layer_gru_wide", "gru(33)", head=last, x=(6, 5), n=12)
line("layer_gru_before", "gru(5,reset_after=false)", head=last)
line("layer_gru_before_wide", "gru(33,reset_after=false,return_sequences=true)", x=(4, 5), n=12)
line("layer_gru_before_plain", "gru(5,reset_after=false,use_bias=false,go_backwards=true)", head=last)
text("layer_gru_before_masked", "embedding(5,4,mask_zero=true) gru(5,reset_after=false)", x=("tokens", 5, 6))
line("layer_gru_activations", "gru(5,elu,recurrent_activation=softplus)", head=last)
line("layer_gru_of_input", "gru(4,gelu,recurrent_activation=silu,reset_after=false)", head=last)

line("layer_bidirectional", "bidirectional(lstm(4))", head=last)
line("layer_bidirectional_sequences", "bidirectional(gru(3,return_sequences=true))")
for mode in ("sum", "mul", "ave"):
    line(f"layer_bidirectional_{mode}", f"bidirectional(simple_rnn(4,return_sequences=true),merge_mode={mode})")
line("layer_bidirectional_pair", "bidirectional(lstm(4),backward_layer=gru(4,relu,go_backwards=true))", head=last, optimizer="adam(lr=0.003)")
text("layer_bidirectional_masked", "embedding(5,4,mask_zero=true) bidirectional(lstm(3,return_sequences=true)) global_avgpool1d", x=("tokens", 5, 6))
text("layer_bidirectional_masked_last", "embedding(5,4,mask_zero=true) bidirectional(gru(3),merge_mode=sum)", x=("tokens", 5, 6))
line("layer_stacked_cells", "rnn(stacked_rnn_cells(lstm_cell(3),gru_cell(4,kernel_regularizer=l2(0.02)),lstm_cell(5)),return_sequences=true)")
text("layer_stacked_cells_backwards", "embedding(5,4,mask_zero=true) rnn(stacked_rnn_cells(gru_cell(4,reset_after=false),lstm_cell(3)),go_backwards=true,return_sequences=true)", x=("tokens", 5, 6))
line("layer_stacked_cells_states", "a=rnn(stacked_rnn_cells(lstm_cell(3),simple_rnn_cell(4)),return_sequences=true,return_state=true) rnn(stacked_rnn_cells(lstm_cell(3),simple_rnn_cell(4)),initial_state=a)", head=last)
line("layer_lstm_states", "a=lstm(4,return_sequences=true,return_state=true) lstm(4,initial_state=a)", head=last)
line("layer_gru_states", "a=gru(4,return_sequences=true,return_state=true,reset_after=false) gru(4,return_sequences=true,initial_state=a)")
line("layer_simple_rnn_states", "a=simple_rnn(4,return_sequences=true,return_state=true) dense(2) simple_rnn(4,initial_state=a,go_backwards=true)", head=last)
text("layer_gru_states_masked", "embedding(5,4,mask_zero=true) a=gru(5,return_sequences=true,return_state=true) gru(5,return_sequences=true,initial_state=a)", x=("tokens", 5, 6))
text("layer_lstm_state_masked", "embedding(5,4,mask_zero=true) lstm(5,return_state=true,go_backwards=true)", x=("tokens", 5, 6))
line("layer_bidirectional_states", "a=bidirectional(lstm(3,return_sequences=true,return_state=true)) bidirectional(lstm(3),initial_state=a,merge_mode=sum)", head=last)
line("layer_einsum_dense", "einsum_dense(\"abc,cd->abd\",(9,4),tanh,bias_axes=d)")
line("layer_einsum_dense_plain", "einsum_dense(\"...x,xy->...y\",output_shape=4,kernel_regularizer=l2(0.05))")
line("layer_einsum_dense_heads", "einsum_dense(\"abc,cde->abde\",(9,2,3),bias_axes=de,bias_regularizer=l1(0.02))")
image("layer_einsum_dense_two", "einsum_dense(\"abcd,cde->abe\",(3,4),relu,bias_axes=e)", x=(3, 4, 2))
line("layer_einsum_dense_positions", "einsum_dense(\"abc,bd->adc\",(4,3),tanh,bias_axes=d)")
image("layer_einsum_dense_crossed", "einsum_dense(\"abcd,cbe->ade\",(2,4),relu,bias_axes=e)", x=(3, 4, 2))
image("layer_einsum_dense_apart", "einsum_dense(\"abc...,bde->aecd...\",(2,4,3),kernel_regularizer=l2(0.05))", x=(3, 4, 2))
line("layer_time_distributed", "time_distributed(dense(4,tanh))")
image("layer_time_distributed_conv", "time_distributed(conv1d(3,2,tanh))", x=(3, 5, 2))
image("layer_time_distributed_pool", "conv2d(3,2,tanh) time_distributed(global_maxpool1d)", x=(4, 5, 2))
image("layer_time_distributed_lstm", "time_distributed(lstm(3))", x=(3, 4, 2))
image("layer_time_distributed_flatten", "conv2d(3,2) time_distributed(flatten) lstm(3)", x=(4, 5, 2), head=last)

# Where every key of a query is masked, the shares are equal; a flattened output shows it.
masked = "embedding(5,4,mask_zero=true) "
line("layer_multi_head_attention", "multi_head_attention(2,4)")
line("layer_multi_head_attention_long", "multi_head_attention(1,5)", x=(140, 3), n=6, batch=3, head=" global_avgpool1d dense(3,softmax)")
line("layer_multi_head_attention_causal", "multi_head_attention(2,3,use_causal_mask=true)")
line("layer_multi_head_attention_causal_long", "multi_head_attention(2,3,use_causal_mask=true)", x=(140, 3), n=6, batch=3,
     head=" global_avgpool1d dense(3,softmax)")
line("layer_multi_head_attention_window", "multi_head_attention(2,3,sliding_window=3)")
line("layer_multi_head_attention_gate", "multi_head_attention(2,3,use_gate=true)")
line("layer_multi_head_attention_plain", "multi_head_attention(3,2,value_dim=5,use_bias=false)", optimizer="adam(lr=0.003)")
line("layer_multi_head_attention_output", "multi_head_attention(2,3,output_shape=5)")
line("layer_multi_head_attention_outputs", "multi_head_attention(2,3,output_shape=(2,3))")
line("layer_multi_head_attention_regularized", "multi_head_attention(2,3,kernel_regularizer=l2(0.05),bias_regularizer=l1(0.02))")
line("layer_multi_head_attention_cross", "b=conv1d(4,3) conv1d(5,2) multi_head_attention(b,num_heads=2,key_dim=3)")
line("layer_multi_head_attention_key", "b=conv1d(4,3) a=conv1d(2,1) conv1d(5,2) multi_head_attention(b,a,num_heads=2,key_dim=3)")
text("layer_multi_head_attention_masked", masked + "multi_head_attention(2,3) global_avgpool1d", x=("tokens", 5, 6))
text("layer_multi_head_attention_masked_flatten", masked + "multi_head_attention(2,3) flatten", x=("tokens", 5, 6))
text("layer_multi_head_attention_masked_causal", masked + "multi_head_attention(2,3,use_causal_mask=true) flatten", x=("tokens", 5, 6))
text("layer_multi_head_attention_masked_loss", masked + "multi_head_attention(2,3)", x=("tokens", 5, 6))
line("layer_group_query_attention", "group_query_attention(3,4,2)")
line("layer_group_query_attention_one", "group_query_attention(3,3,1,use_bias=false,use_causal_mask=true)")
line("layer_group_query_attention_cross", "b=conv1d(3,3) conv1d(3,1) group_query_attention(b,head_dim=2,num_query_heads=4,num_key_value_heads=4)")
text("layer_group_query_attention_masked", masked + "group_query_attention(3,4,2) flatten", x=("tokens", 5, 6))
line("layer_attention", "attention")
line("layer_attention_scale", "conv1d(4,2) attention(use_scale=true)")
line("layer_attention_concat", "conv1d(4,2) attention(score_mode=concat)")
line("layer_attention_concat_scale", "conv1d(4,2) attention(score_mode=concat,use_scale=true,use_causal_mask=true)")
line("layer_attention_causal", "conv1d(4,2) attention(use_causal_mask=true)")
line("layer_attention_key", "b=conv1d(2,3) a=conv1d(4,1) conv1d(4,2) attention(b,a)")
text("layer_attention_masked", masked + "attention flatten", x=("tokens", 5, 6))
text("layer_attention_masked_causal", masked + "attention(use_causal_mask=true) flatten", x=("tokens", 5, 6))
line("layer_additive_attention", "conv1d(4,2) additive_attention")
line("layer_additive_attention_plain", "b=conv1d(4,3) conv1d(4,2) additive_attention(b,use_scale=false)")
text("layer_additive_attention_masked", masked + "additive_attention flatten", x=("tokens", 5, 6))

row("layer_activation", "dense(6) activation(tanh) dense(3) activation(softmax)")
row("layer_relu_capped", "dense(12) relu(0.8,negative_slope=0.1,threshold=0.05) dense(3,softmax)")
row("layer_leaky_relu", "dense(8) leaky_relu dense(8) leaky_relu(0.15) dense(3,softmax)")
row("layer_elu", "dense(8) elu dense(8) elu(0.6) dense(3,softmax)")
row("layer_prelu", "dense(8) prelu dense(3,softmax)")
image("layer_prelu_image", "conv2d(3,2) prelu")
image("layer_prelu_shared", "conv2d(3,2) prelu(shared_axes=(1,2))")
row("layer_softmax", "dense(6) softmax dense(3) softmax")
line("layer_softmax_axis", "conv1d(4,2) softmax(axis=1)")

line("layer_softmax_axes", "conv1d(4,2) softmax(axis=(1,2))")
image("layer_softmax_axes_image", "conv2d(4,2) softmax(axis=(1,2)) conv2d(3,1) softmax(axis=(1,3))")

image("layer_add", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) add(a) relu")
image("layer_add_input", "a=input(7,6,2) conv2d(2,3,padding=same) add(a) relu")
image("layer_subtract", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) subtract(a) relu")
image("layer_multiply", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) multiply(a)")
image("layer_average", "a=conv2d(4,2,tanh) b=conv2d(4,3,padding=same) conv2d(4,1) average(a,b) relu")
image("layer_maximum", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) maximum(a)")
image("layer_minimum", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same) minimum(a)")
image("layer_concat", "a=conv2d(4,2,tanh) b=conv2d(3,3,relu,padding=same) conv2d(2,1) concat(a,b) conv2d(3,2,relu)")
image("layer_concat_axis", "a=conv2d(3,2,tanh) conv2d(3,(3,2),relu,padding=same) concat(a,axis=2) conv2d(3,2,relu)")
row("layer_dot", "a=dense(6,tanh) dense(6,tanh) dot(a,axes=1) dense(3,softmax)")
row("layer_dot_normalized", "a=dense(6,tanh) dense(6,tanh) dot(a,axes=1,normalize=true) dense(3,softmax)")
line("layer_dot_lines", "a=conv1d(4,2,tanh) conv1d(3,3,tanh,padding=same) dot(a,axes=(1,1))")
image("layer_add_broadcast", "a=conv2d(4,2,tanh) global_avgpool2d(keepdims=true) add(a) relu")
image("layer_residual_bn", "a=conv2d(4,2,tanh) conv2d(4,3,padding=same,use_bias=false) batchnorm add(a) relu "
      "b=conv2d(4,1) conv2d(4,3,padding=same,use_bias=false) batchnorm add(b) relu", optimizer="adam(lr=0.003)")

image("layer_zero_padding2d", "conv2d(3,2,tanh) zero_padding2d(1) conv2d(3,3,relu)")
image("layer_zero_padding2d_uneven", "conv2d(3,2,tanh) zero_padding2d(((1,0),(2,1))) conv2d(3,3,relu)")
image("layer_zero_padding2d_pool", "conv2d(3,2,tanh) zero_padding2d((2,1)) avgpool2d(3,2) zero_padding2d(3) conv2d(3,3,strides=2)")
image("layer_zero_padding2d_depthwise", "conv2d(3,2,tanh) zero_padding2d(((0,1),(0,1))) depthwise_conv2d(3,relu,strides=2)")
image("layer_cropping2d", "conv2d(3,2,tanh) cropping2d(((1,0),(2,1))) conv2d(3,2,relu)")
image("layer_cropping2d_pair", "conv2d(3,2,tanh) cropping2d((1,0)) conv2d(3,2,relu)")
image("layer_upsampling2d", "conv2d(2,2,tanh) upsampling2d(2) conv2d(2,3,relu,strides=2)", x=(4, 3, 2))
image("layer_upsampling2d_oblong", "conv2d(2,2,tanh) upsampling2d((3,1)) conv2d(2,2,relu)", x=(4, 3, 2))
image("layer_upsampling2d_bilinear", "conv2d(2,2,tanh) upsampling2d((2,3),interpolation=bilinear) conv2d(2,3,relu,strides=2)",
    x=(4, 4, 2))
row("layer_identity", "dense(6,tanh) identity dense(3,softmax)")
row("layer_repeat_vector", "dense(6,tanh) repeat_vector(4) conv1d(3,2,tanh) flatten dense(3,softmax)")
line("layer_zero_padding1d", "conv1d(3,2,tanh) zero_padding1d((2,1)) conv1d(3,3,relu) zero_padding1d(1)")
line("layer_cropping1d", "conv1d(3,2,tanh) cropping1d((2,1)) conv1d(3,2,relu) cropping1d")
line("layer_upsampling1d", "conv1d(3,2,tanh) upsampling1d(3) conv1d(3,2,relu,strides=2)", x=(5, 3))
image("layer_rescaling_list", "rescaling((0.5,2),(-1,0.25)) conv2d(3,2,tanh) rescaling((0.5,2,1.5)) conv2d(2,2,relu)")
image("layer_normalization_list", "normalization(mean=(19,21),variance=(25,16)) conv2d(3,2,tanh)", spread=5.0, centre=20.0)
row("layer_normalization_list_inverted", "dense(2,tanh) normalization(mean=(2,1),variance=(0.25,4),invert=true) dense(3,softmax)")
row("layer_rescaling", "rescaling(0.5,-1) dense(6,tanh) rescaling(1.5) dense(3,softmax)")
row("layer_normalization", "normalization dense(6,tanh) dense(3,softmax)", spread=5.0, centre=20.0)
image("layer_normalization_image", "normalization conv2d(3,2,tanh)", spread=5.0, centre=20.0)
row("layer_normalization_given", "normalization(mean=20,variance=25) dense(6,tanh) dense(3,softmax)", spread=5.0, centre=20.0)

image("layer_normalization_axes", "normalization(axis=(1,3)) conv2d(3,2,tanh)", spread=5.0, centre=20.0)
image("layer_normalization_one", "normalization(axis=none) conv2d(3,2,tanh)", spread=5.0, centre=20.0)
image("layer_normalization_middle",
    "conv2d(2,(2,1),tanh,padding=same) normalization(axis=(1,3)) conv2d(3,2,tanh) normalization(axis=none)",
    spread=0.5)
row("layer_normalization_inverted", "dense(6,tanh) normalization(mean=2,variance=0.25,invert=true) dense(3,softmax)")
row("layer_relu_threshold",
    "dense(12) relu(threshold=0.3) dense(8) relu(max_value=6) dense(8) relu(negative_slope=0.2) dense(3,softmax)")
image("layer_softmax_image", "conv2d(4,2) softmax(axis=2) conv2d(3,1) softmax(axis=1)")
row("layer_after_zeros", "dense(9,relu) leaky_relu dense(9,relu) prelu dense(9,relu) elu(0.5) dense(3,softmax)")
row("layer_maximum_ties", "a=dense(8,relu) b=dense(8,relu) dense(8,relu) maximum(a,b) dense(3,softmax)")
row("layer_minimum_ties", "a=dense(8,relu) b=dense(8,relu) dense(8,relu) minimum(a,b) dense(3,softmax)")
row("layer_multiply_three", "a=dense(8,tanh) b=dense(8,sigmoid) dense(8) multiply(a,b) dense(3,softmax)")
line("layer_add_ranks", "a=conv1d(4,2,tanh) b=global_avgpool1d dense(4) add(a,b) relu")
line("layer_multiply_ranks", "a=conv1d(4,2,tanh) global_avgpool1d dense(4,sigmoid) multiply(a)")
image("layer_multiply_gate", "a=conv2d(4,2,tanh) global_avgpool2d(keepdims=true) conv2d(4,1,sigmoid) multiply(a)")
line("layer_dot_vector", "a=conv1d(4,2,tanh) global_maxpool1d dense(4) dot(a,axes=(1,2),normalize=true) softmax")
image("layer_layernorm_regularized", "conv2d(4,2) layernorm(gamma_regularizer=l2(0.1),beta_regularizer=l1(0.02),epsilon=0.01) relu")
image("layer_batchnorm_frozen_plain", "conv2d(4,2) batchnorm(trainable=false,scale=false) relu conv2d(3,2) batchnorm relu")

row("layer_trainable_off", "dense(6,tanh,trainable=false) dense(5,tanh) dense(3,softmax)")
row("layer_trainable_off_between", "dense(6,tanh) dense(5,tanh,trainable=false) dense(3,softmax)", optimizer="adam(lr=0.01)")

# Regularisers: the penalty is in the loss that is reported.
row("regularizer_l2", "dense(8,tanh,kernel_regularizer=l2(0.05)) dense(3,softmax)")
row("regularizer_l1", "dense(8,tanh,kernel_regularizer=l1(0.02)) dense(3,softmax)")
row("regularizer_l1_l2", "dense(8,tanh,kernel_regularizer=l1_l2(0.01,0.03)) dense(3,softmax,bias_regularizer=l2(0.1))")
row("regularizer_default", "dense(8,tanh,kernel_regularizer=l2) dense(3,softmax,kernel_regularizer=l1)")
image("regularizer_conv",
    "conv2d(3,2,use_bias=false,kernel_regularizer=l2(0.05)) batchnorm(gamma_regularizer=l2(0.1),beta_regularizer=l1(0.02)) relu")
text("regularizer_embedding", "embedding(12,4,embeddings_regularizer=l2(0.1)) flatten")
row("regularizer_frozen", "dense(6,tanh,trainable=false,kernel_regularizer=l2(0.05)) dense(3,softmax)")
row("regularizer_weights", "dense(8,tanh,kernel_regularizer=l2(0.05)) dense(3,softmax)", w=True)

# Activations.
for name in ("linear", "relu", "sigmoid", "tanh", "softmax", "elu", "selu", "softplus", "softsign", "silu", "swish", "gelu", "leaky_relu",
             "exponential", "hard_sigmoid", "relu6", "hard_silu", "hard_swish", "hard_tanh", "mish", "celu", "squareplus", "log_sigmoid",
             "soft_shrink", "hard_shrink", "tanh_shrink", "sparse_plus", "sparse_sigmoid", "log_softmax"):
    row("activation_" + name, f"dense(12,{name}) dense(6) activation({name}) dense(3,softmax)",
        spread=0.5 if name == "exponential" else 1.5, optimizer="sgd(lr=0.02)")


# Losses.
def loss(name, given, output, y, **more):
    row("loss_" + name, f"dense(7,tanh) {output}", loss=given, y=y, **more)


for name in ("mean_squared_error", "mean_absolute_error", "huber", "log_cosh"):
    loss(name, name, "dense(2)", "real")
loss("huber_delta", "huber(delta=0.5)", "dense(2)", "real")
for name in ("mean_absolute_percentage_error", "mean_squared_logarithmic_error"):
    loss(name, name, "dense(2,softplus)", "positive", optimizer="adam(lr=0.01)")
loss("mae_one", "mae", "dense(1)", "real")
loss("mape", "mape", "dense(1)", "positive", optimizer="sgd(lr=0.0005)")
loss("msle", "msle", "dense(1,softplus)", "positive")
loss("mse_image", "mse", "reshape(7,1,1) conv2d(2,(2,1))", "real")
loss("binary_crossentropy", "binary_crossentropy", "dense(1,sigmoid)", "binary", metrics="accuracy")
loss("binary_crossentropy_many", "binary_crossentropy", "dense(3,sigmoid)", "binary", metrics="binary_accuracy")
loss("binary_crossentropy_logits", "binary_crossentropy(from_logits=true)", "dense(1)", "binary")
loss("binary_crossentropy_smooth", "binary_crossentropy(label_smoothing=0.2)", "dense(2,sigmoid)", "binary")
loss("binary_crossentropy_logits_smooth", "binary_crossentropy(from_logits=true,label_smoothing=0.2)", "dense(2)", "binary")
loss("categorical_crossentropy", "categorical_crossentropy", "dense(4,softmax)", "onehot", metrics="accuracy")
loss("categorical_crossentropy_logits", "categorical_crossentropy(from_logits=true)", "dense(4)", "onehot", metrics="accuracy")
loss("categorical_crossentropy_smooth", "categorical_crossentropy(label_smoothing=0.1)", "dense(4,softmax)", "onehot")
loss("categorical_crossentropy_logits_smooth", "categorical_crossentropy(from_logits=true,label_smoothing=0.1)", "dense(4)",
    "onehot")
loss("categorical_crossentropy_shares", "categorical_crossentropy", "dense(4,softmax)", "shares")
loss("categorical_crossentropy_unscaled", "categorical_crossentropy", "dense(4,hard_sigmoid)", "onehot")
loss("sparse_categorical_crossentropy", "sparse_categorical_crossentropy", "dense(4,softmax)", "classes", metrics="accuracy")
loss("sparse_categorical_crossentropy_logits", "sparse_categorical_crossentropy(from_logits=true)", "dense(4)", "column",
    metrics="accuracy")
loss("sparse_categorical_crossentropy_unscaled", "sparse_categorical_crossentropy", "dense(4,hard_sigmoid)", "classes")
row("loss_sparse_categorical_crossentropy_line", "conv1d(4,3,tanh,padding=same) dense(3,softmax)", x=(6, 2), metrics="accuracy")
loss("hinge", "hinge", "dense(2,tanh)", "sign")
loss("hinge_zero_one", "hinge", "dense(1,tanh)", "binary")
loss("squared_hinge", "squared_hinge", "dense(2,tanh)", "sign")
loss("squared_hinge_zero_one", "squared_hinge", "dense(3)", "binary")
loss("categorical_hinge", "categorical_hinge", "dense(4)", "onehot", metrics="accuracy")
loss("kl_divergence", "kl_divergence", "dense(4,softmax)", "shares")
loss("poisson", "poisson", "dense(2,softplus)", "counts")
loss("cosine_similarity", "cosine_similarity", "dense(4)", "real")
row("loss_categorical_crossentropy_line", "conv1d(4,3,tanh,padding=same) dense(3,softmax)", x=(6, 2), y="onehot",
    loss="categorical_crossentropy(label_smoothing=0.1)", metrics="accuracy")
row("loss_binary_crossentropy_line", "conv1d(4,3,tanh,padding=same) dense(1,sigmoid)", x=(6, 2), y="binary",
    loss="binary_crossentropy", metrics="accuracy,precision,auc")
row("loss_kl_divergence_line", "conv1d(4,3,tanh,padding=same) dense(3,softmax)", x=(6, 2), y="shares", loss="kl_divergence")

# Sample and class weights.
for name, output, y in (("mean_absolute_error", "dense(2)", "real"), ("binary_crossentropy", "dense(1,sigmoid)", "binary"),
                        ("categorical_crossentropy", "dense(3,softmax)", "onehot"), ("cosine_similarity", "dense(3)", "real")):
    row("weights_" + name, f"dense(7,tanh) {output}", loss=name, y=y, w=True)
row("weights_metrics", "dense(7,tanh) dense(3,softmax)", w=True, metrics="accuracy",
    weighted_metrics="sparse_categorical_accuracy,sparse_categorical_crossentropy")
row("weights_precision", "dense(7,tanh) dense(1,sigmoid)", y="binary", loss="binary_crossentropy", w=True,
    weighted_metrics="precision,recall,auc,binary_accuracy")
row("weights_regression_metrics", "dense(7,tanh) dense(2)", y="real", loss="mse", w=True,
    weighted_metrics="mae,mse,root_mean_squared_error,r2_score")
for name, w in (("each", "each"), ("column", "column")):
    row("weights_line_" + name, "conv1d(4,3,tanh,padding=same) dense(3,softmax)", x=(6, 2), w=w, metrics="accuracy",
        weighted_metrics="sparse_categorical_accuracy")
    row("weights_mask_" + name, "embedding(5,4,mask_zero=true) dense(4,tanh) dense(3,softmax)", x=("tokens", 5, 6), w=w)
row("weights_mse_line_column", "conv1d(4,3,tanh,padding=same) dense(2)", x=(6, 2), y="real", loss="mse", w="column",
    weighted_metrics="mae,root_mean_squared_error")
row("weights_top_k", "dense(7,tanh) dense(8,softmax)", w=True,
    weighted_metrics="sparse_top_k_categorical_accuracy(k=2),sparse_categorical_crossentropy")
row("weights_binary_many", "dense(7,tanh) dense(3,sigmoid)", y="binary", loss="binary_crossentropy", w=True,
    weighted_metrics="accuracy,binary_accuracy(threshold=0.4),precision,recall(thresholds=0.6),auc(num_thresholds=20,curve=pr)")
row("class_weight_some", "dense(7,tanh) dense(4,softmax)", class_weight="1:2.5", metrics="accuracy",
    weighted_metrics="sparse_categorical_crossentropy")
row("class_weight_classes", "dense(7,tanh) dense(3,softmax)", class_weight="0:0.5,1:2,2:1.25", metrics="accuracy",
    weighted_metrics="sparse_categorical_accuracy")
row("class_weight_onehot", "dense(7,tanh) dense(3,softmax)", y="onehot", loss="categorical_crossentropy",
    class_weight="0:0.5,1:2,2:1.25", metrics="accuracy")
row("class_weight_binary", "dense(7,tanh) dense(1,sigmoid)", y="binary", loss="binary_crossentropy", class_weight="0:0.5,1:3",
    metrics="accuracy")

# Metrics.
row("metric_accuracy_three_forms", "dense(7,tanh) dense(4,softmax)", y="onehot", loss="categorical_crossentropy",
    metrics="accuracy,categorical_accuracy,categorical_crossentropy", epochs=3)
row("metric_sparse_top_k", "dense(7,tanh) dense(8,softmax)", n=29,
    metrics="accuracy,sparse_top_k_categorical_accuracy,sparse_categorical_accuracy")
row("metric_top_k", "dense(7,tanh) dense(8,softmax)", y="onehot", n=29, loss="categorical_crossentropy",
    metrics="top_k_categorical_accuracy")
row("metric_top_k_two", "dense(7,tanh) dense(8,softmax)", y="onehot", n=29, loss="categorical_crossentropy",
    metrics="top_k_categorical_accuracy(k=2)")
row("metric_binary", "dense(7,tanh) dense(1,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="accuracy,binary_accuracy,precision,recall,auc,binary_crossentropy", epochs=3)
row("metric_binary_threshold", "dense(7,tanh) dense(1,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="binary_accuracy(threshold=0.6),precision(thresholds=0.4),recall(thresholds=0.6),auc(num_thresholds=50,curve=pr)")
row("metric_binary_many", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="binary_accuracy,precision,recall,auc")
row("metric_regression", "dense(7,tanh) dense(1)", y="real", n=29, loss="mse",
    metrics="mae,mse,root_mean_squared_error,r2_score", epochs=3)
row("metric_regression_many", "dense(7,tanh) dense(3)", y="real", n=29, loss="huber",
    metrics="mean_absolute_error,mean_squared_error,root_mean_squared_error,r2_score")
row("metric_regression_more", "dense(7,tanh) dense(2,softplus)", y="positive", n=29, loss="mse",
    metrics="mean_absolute_percentage_error,mean_squared_logarithmic_error")
row("metric_shares", "dense(7,tanh) dense(4,softmax)", y="shares", n=29, loss="kl_divergence",
    metrics="kl_divergence,categorical_crossentropy,poisson,cosine_similarity,top_k_categorical_accuracy(k=2)")
row("metric_sign", "dense(7,tanh) dense(2,tanh)", y="sign", n=29, loss="hinge",
    metrics="hinge,squared_hinge,log_cosh_error,mape,msle")
row("metric_categorical_hinge", "dense(7,tanh) dense(4)", y="onehot", n=29, loss="categorical_hinge",
    metrics="categorical_hinge,categorical_accuracy,categorical_crossentropy(from_logits=true,label_smoothing=0.1)")
row("metric_r2_options", "dense(7,tanh) dense(3)", y="real", n=29, loss="mse",
    metrics="r2_score(class_aggregation=variance_weighted_average)")
for name, given in (("minoring", "summation_method=minoring"), ("majoring", "num_thresholds=20,summation_method=majoring"),
                    ("pr_minoring", "curve=pr,summation_method=minoring"), ("prgain", "curve=prgain,num_thresholds=30")):
    row("metric_auc_" + name, "dense(7,tanh) dense(1,sigmoid)", y="binary", n=29, loss="binary_crossentropy", metrics=f"auc({given})")
row("metric_auc_logits", "dense(7,tanh) dense(1)", y="binary", n=29, loss="binary_crossentropy(from_logits=true)",
    metrics="auc(from_logits=true),binary_accuracy(threshold=0)")


# Optimizers and schedules: ten updates or more, so that the corrections of the first steps are seen to fade.
def optimizer(name, given, **more):
    row(name, "dense(8,tanh) dense(3,softmax)", optimizer=given, epochs=4, **more)


for name, given in (
        ("sgd", "sgd(lr=0.1)"), ("sgd_default", "sgd"), ("sgd_momentum", "sgd(lr=0.05,momentum=0.8)"),
        ("sgd_nesterov", "sgd(lr=0.05,momentum=0.8,nesterov=true)"), ("sgd_weight_decay", "sgd(lr=0.1,weight_decay=0.1)"),
        ("adam_default", "adam"), ("adam", "adam(lr=0.01)"), ("adam_betas", "adam(lr=0.01,beta_1=0.8,beta_2=0.95,epsilon=0.001)"),
        ("adam_amsgrad", "adam(lr=0.02,beta_2=0.8,amsgrad=true)"), ("adam_weight_decay", "adam(lr=0.01,weight_decay=0.1)"),
        ("adamw", "adamw(lr=0.02)"), ("adamw_decay", "adamw(lr=0.01,weight_decay=0.2,amsgrad=true)"),
        ("rmsprop", "rmsprop(lr=0.01)"), ("rmsprop_default", "rmsprop"), ("rmsprop_rho", "rmsprop(lr=0.01,rho=0.7,epsilon=0.001)"),
        ("rmsprop_momentum", "rmsprop(lr=0.01,momentum=0.5)"), ("rmsprop_centered", "rmsprop(lr=0.01,centered=true)"),
        ("rmsprop_centered_momentum", "rmsprop(lr=0.01,momentum=0.5,centered=true,weight_decay=0.05)"),
        ("adagrad", "adagrad(lr=0.05)"), ("adagrad_start", "adagrad(lr=0.05,initial_accumulator_value=0.01,epsilon=0.001)"),
        ("adadelta", "adadelta(lr=1.0)"), ("adadelta_rho", "adadelta(lr=2.0,rho=0.8,epsilon=0.0001)"),
        ("adamax", "adamax(lr=0.02)"), ("adamax_betas", "adamax(lr=0.02,beta_1=0.8,beta_2=0.9)"),
        ("nadam", "nadam(lr=0.01)"), ("nadam_betas", "nadam(lr=0.01,beta_1=0.8,beta_2=0.95)"),
        ("lion", "lion(lr=0.01)"), ("lion_betas", "lion(lr=0.01,beta_1=0.7,beta_2=0.9,weight_decay=0.1)"),
        ("clipnorm", "sgd(lr=0.1,clipnorm=0.1)"), ("clipvalue", "sgd(lr=0.1,clipvalue=0.02)"),
        ("global_clipnorm", "adam(lr=0.01,global_clipnorm=0.1)"),
        ("global_clipnorm_momentum", "sgd(lr=0.1,momentum=0.9,global_clipnorm=0.2)"),
        ("ema", "sgd(lr=0.1,use_ema=true,ema_momentum=0.9)"),
        ("ema_overwrite", "adam(lr=0.01,use_ema=true,ema_momentum=0.8,ema_overwrite_frequency=5)")):
    optimizer("optimizer_" + name, given)

# Penalties are in the gradient before it is clipped; weights decay after; a wide layer is stored packed.
penalized = "dense(40,tanh,kernel_regularizer=l1_l2(0.002,0.02)) dense(3,softmax,bias_regularizer=l2(0.1))"
for name, given in (
        ("clipnorm", "sgd(lr=0.1,clipnorm=0.2)"), ("clipvalue", "sgd(lr=0.1,momentum=0.5,clipvalue=0.03)"),
        ("global_clipnorm", "adam(lr=0.01,global_clipnorm=0.2)"),
        ("everything", "adamw(lr=polynomial_decay(0.03,9,0.005),weight_decay=0.3,global_clipnorm=0.3,use_ema=true,ema_momentum=0.7)"),
        ("ema_overwrite", "rmsprop(lr=0.005,momentum=0.5,centered=true,clipnorm=0.2,use_ema=true,ema_momentum=0.6,"
                          "ema_overwrite_frequency=3)")):
    row("optimizer_penalized_" + name, penalized, optimizer=given, epochs=4)
text("optimizer_penalized_embedding", "embedding(12,4,embeddings_regularizer=l1_l2(0.001,0.02)) flatten",
     optimizer="adam(lr=0.01,clipnorm=0.1)", epochs=3)
text("optimizer_penalized_embedding_global", "embedding(12,4,embeddings_regularizer=l2(0.03)) flatten",
     optimizer="adagrad(lr=0.1,global_clipnorm=0.1,use_ema=true,ema_momentum=0.5)", epochs=3)

for name, given in (
        ("exponential_decay", "exponential_decay(0.1,5,0.6)"),
        ("exponential_decay_staircase", "exponential_decay(0.1,4,0.5,staircase=true)"),
        ("inverse_time_decay", "inverse_time_decay(0.1,3,0.5)"),
        ("inverse_time_decay_staircase", "inverse_time_decay(0.1,4,0.5,true)"),
        ("piecewise_constant_decay", "piecewise_constant_decay((3,7),(0.1,0.02,0.05))"),
        ("polynomial_decay", "polynomial_decay(0.1,8,0.01)"), ("polynomial_decay_power", "polynomial_decay(0.1,20,0.01,power=2.0)"),
        ("polynomial_decay_cycle", "polynomial_decay(0.1,4,0.01,power=1.5,cycle=true)"),
        ("cosine_decay", "cosine_decay(0.1,9)"), ("cosine_decay_alpha", "cosine_decay(0.1,20,alpha=0.2)"),
        ("cosine_decay_warmup", "cosine_decay(0.01,6,alpha=0.1,warmup_target=0.1,warmup_steps=4)"),
        ("cosine_decay_restarts", "cosine_decay_restarts(0.1,3)"),
        ("cosine_decay_restarts_options", "cosine_decay_restarts(0.1,3,t_mul=1.5,m_mul=0.7,alpha=0.1)")):
    optimizer("schedule_" + name, f"sgd(lr={given})")
optimizer("schedule_adam", "adam(lr=cosine_decay(0.02,10))")
optimizer("schedule_adamw", "adamw(lr=exponential_decay(0.02,4,0.5),weight_decay=0.2)")

# Initialisers: the initial values are Keras's draws as they are.
for name, given in (
        ("glorot_uniform", None), ("glorot_normal", None), ("he_uniform", None), ("he_normal", None), ("lecun_uniform", None),
        ("lecun_normal", None),
        ("random_normal", "random_normal(mean=0.1,stddev=0.2)"),
        ("random_uniform", "random_uniform(minval=-0.1,maxval=0.3)"),
        ("truncated_normal", "truncated_normal(stddev=0.2)"), ("zeros", None), ("ones", None), ("constant", "constant(0.1)"),
        ("orthogonal", "orthogonal(gain=0.5)"), ("identity", "identity(gain=0.5)"),
        ("variance_scaling", "variance_scaling(scale=2.0,mode=fan_avg,distribution=uniform)")):
    row("initializer_" + name, f"dense(24,tanh,kernel_initializer={given or name}) dense(3,softmax)", x=(16,), disturb=False)
image("initializer_conv", "conv2d(12,3,kernel_initializer=he_normal,bias_initializer=constant(0.2))",
    disturb=False, n=9, x=(5, 5, 3))
image("initializer_depthwise", "depthwise_conv2d(3,depthwise_initializer=he_uniform,depth_multiplier=4)",
    disturb=False, n=9, x=(5, 5, 3))
text("initializer_embedding", "embedding(50,8,embeddings_initializer=random_normal(stddev=0.3)) flatten",
    disturb=False, x=("tokens", 50, 5))
row("initializer_batchnorm",
    "dense(6,use_bias=false) batchnorm(gamma_initializer=constant(0.5),beta_initializer=random_normal(stddev=0.1),"
    "moving_mean_initializer=ones,moving_variance_initializer=constant(2)) relu dense(3,softmax)", disturb=False)

# Losses with several parameters.
loss("binary_focal_crossentropy", "binary_focal_crossentropy", "dense(2,sigmoid)", "binary")
loss("binary_focal_crossentropy_options",
     "binary_focal_crossentropy(apply_class_balancing=true,alpha=0.3,gamma=1.5,label_smoothing=0.1)", "dense(2,sigmoid)", "binary")
loss("binary_focal_crossentropy_logits", "binary_focal_crossentropy(from_logits=true)", "dense(2)", "binary", w=True)
loss("categorical_focal_crossentropy", "categorical_focal_crossentropy", "dense(4,softmax)", "onehot", metrics="accuracy")
loss("categorical_focal_crossentropy_options", "categorical_focal_crossentropy(alpha=0.5,gamma=1.5,label_smoothing=0.1)",
     "dense(4,softmax)", "onehot", w=True)
loss("categorical_focal_crossentropy_logits", "categorical_focal_crossentropy(from_logits=true)", "dense(4)", "onehot")
loss("categorical_generalized_cross_entropy", "categorical_generalized_cross_entropy(q=0.7)", "dense(4,softmax)", "classes", w=True)
loss("dice_rows", "dice(axis=-1)", "dense(3,sigmoid)", "binary", w=True)
row("loss_dice_image", "conv2d(2,3,sigmoid,padding=same)", x=(5, 4, 2), y="binary", loss="dice(axis=(1,2,3))")
row("loss_ctc", "conv1d(4,3,tanh,padding=same) dense(4)", x=(7, 2), y="spelled", loss="ctc")
row("loss_ctc_weights", "conv1d(4,3,tanh,padding=same) dense(5)", x=(6, 2), y="spelled", loss="ctc", w=True)

# Metrics of counts, at one threshold and at several, of the largest and of one class.
row("metric_counts", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="true_positives,true_negatives,false_positives(thresholds=0.4),false_negatives(thresholds=(0.3,0.6))")
row("metric_counts_weights", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy", w=True,
    weighted_metrics="true_positives,false_negatives(thresholds=(0.3,0.6)),f1_score(average=macro,threshold=0.4),"
    "precision_at_recall(recall=0.6),fbeta_score(beta=0.5),auc(multi_label=true)")
row("metric_thresholds", "dense(7,tanh) dense(4,softmax)", y="onehot", n=29, loss="categorical_crossentropy",
    metrics="precision(thresholds=(0.2,0.3,0.6)),recall(top_k=2)")
row("metric_class", "dense(7,tanh) dense(4,softmax)", y="onehot", n=29, loss="categorical_crossentropy",
    metrics="precision(top_k=2,class_id=1),recall(class_id=2,thresholds=0.25)")
row("metric_at", "dense(7,tanh) dense(1,sigmoid)", y="binary", n=49, loss="binary_crossentropy",
    metrics="precision_at_recall(recall=0.7),recall_at_precision(precision=0.6,num_thresholds=50),"
    "sensitivity_at_specificity(specificity=0.5),specificity_at_sensitivity(sensitivity=0.5,num_thresholds=30)")
row("metric_at_class", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=49, loss="binary_crossentropy",
    metrics="precision_at_recall(recall=0.7,class_id=1),recall_at_precision(precision=0.4,num_thresholds=1)")
row("metric_auc_labels", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=49, loss="binary_crossentropy",
    metrics="auc(multi_label=true,num_labels=3,label_weights=(0.5,1,2),curve=pr)")
row("metric_auc_thresholds", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=49, loss="binary_crossentropy",
    metrics="auc(thresholds=(0.2,0.45,0.7),label_weights=(0.5,1,2))")
row("metric_auc_labels_logits", "dense(7,tanh) dense(3)", y="binary", n=49, loss="binary_crossentropy(from_logits=true)",
    metrics="auc(multi_label=true,from_logits=true,summation_method=minoring)")
row("metric_f", "dense(7,tanh) dense(4,softmax)", y="onehot", n=29, loss="categorical_crossentropy",
    metrics="f1_score,fbeta_score(average=weighted,beta=2.0)")
row("metric_f_micro", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="f1_score(average=micro,threshold=0.5),fbeta_score(average=macro,beta=0.5,threshold=0.4)")
row("metric_iou", "dense(7,tanh) dense(4,softmax)", n=29,
    metrics="mean_iou(num_classes=4,sparse_y_pred=false),iou(num_classes=4,target_class_ids=(0,2),sparse_y_pred=false,ignore_class=1)")
row("metric_iou_one_hot", "conv2d(3,3,softmax,padding=same)", x=(5, 4, 2), y="onehot", loss="categorical_crossentropy",
    metrics="one_hot_mean_iou(num_classes=3),one_hot_iou(num_classes=3,target_class_ids=(1,2))")
row("metric_iou_binary", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="binary_iou(threshold=0.5),mean_iou(num_classes=2)")
row("metric_iou_binary_one", "dense(7,tanh) dense(3,sigmoid)", y="binary", n=29, loss="binary_crossentropy",
    metrics="binary_iou(target_class_ids=(1,),threshold=0.4)")
row("metric_correlations", "dense(7,tanh) dense(4)", y="real", n=29, loss="mse",
    metrics="pearson_correlation,concordance_correlation")
row("metric_correlations_weights", "dense(7,tanh) dense(4)", y="real", n=29, loss="mse", w=True,
    weighted_metrics="pearson_correlation,concordance_correlation")

# Transposed convolutions.
image("layer_conv2d_transpose", "conv2d_transpose(3,3,relu)", x=(4, 3, 2))
image("layer_conv2d_transpose_same", "conv2d_transpose(3,3,strides=2,padding=same)", x=(4, 3, 2))
image("layer_conv2d_transpose_plain", "conv2d_transpose(4,(2,3),strides=(3,2),use_bias=false)", x=(3, 3, 3))
image("layer_conv2d_transpose_even", "conv2d_transpose(4,4,strides=2,padding=same) conv2d_transpose(2,2,strides=3)", x=(3, 3, 3))
image("layer_conv2d_transpose_output_padding", "conv2d_transpose(3,3,strides=2,padding=same,output_padding=1)", x=(3, 3, 3))
image("layer_conv2d_transpose_output_padding_valid", "conv2d_transpose(3,2,strides=3,output_padding=(1,2))", x=(3, 3, 3))
image("layer_conv2d_transpose_dilation", "conv2d_transpose(3,2,dilation_rate=2,padding=same)", x=(4, 3, 3))
image("layer_conv2d_transpose_wide", "conv2d(16,3,relu) conv2d_transpose(17,3,strides=2,padding=same) relu", x=(5, 5, 2))
line("layer_conv1d_transpose", "conv1d_transpose(4,3,tanh,strides=2,padding=same)", x=(5, 3))
line("layer_conv1d_transpose_valid", "conv1d_transpose(4,4,strides=3,output_padding=2)", x=(5, 3))
row("loss_tversky_image", "conv2d(2,3,sigmoid,padding=same)", x=(5, 4, 2), y="binary", loss="tversky(alpha=0.4,axis=(1,2,3))")

# Volumes: convolutions, pooling, other extents.
volume = lambda name, expression, **more: row(name, expression + " flatten dense(3,softmax)", **({"x": (4, 5, 6, 2), "n": 13} | more))
volume("layer_conv3d", "conv3d(3,2,relu)")
volume("layer_conv3d_same", "conv3d(3,(3,2,1),strides=(1,2,3),padding=same,use_bias=false) conv3d(4,3,tanh,padding=same)")
volume("layer_conv3d_dilation", "conv3d(3,2,dilation_rate=(1,2,3)) conv3d(2,1,relu)")
volume("layer_conv3d_groups", "conv3d(4,2,tanh,groups=2) conv3d(6,2,groups=2)")
volume("layer_conv3d_wide", "conv3d(16,3,relu,padding=same) conv3d(17,3,strides=2,padding=same) relu", optimizer="adam(lr=0.003)")
volume("layer_conv3d_transpose", "conv3d_transpose(3,2,relu)", x=(2, 3, 4, 2))
volume("layer_conv3d_transpose_same", "conv3d_transpose(3,3,strides=(1,2,3),padding=same) conv3d_transpose(2,2,use_bias=false)", x=(2, 3, 2, 2))
volume("layer_conv3d_transpose_output_padding", "conv3d_transpose(3,3,strides=2,padding=same,output_padding=1)", x=(2, 3, 2, 2))
volume("layer_conv3d_transpose_dilation", "conv3d_transpose(3,2,dilation_rate=(1,2,2))", x=(2, 3, 2, 2))
volume("layer_maxpool3d", "conv3d(3,2,relu,padding=same) maxpool3d(2) conv3d(3,2,relu)")
volume("layer_maxpool3d_same", "conv3d(3,2,tanh) maxpool3d((1,2,3),strides=(2,1,2),padding=same)")
volume("layer_maxpool3d_overlap", "conv3d(3,2,relu) maxpool3d((2,3,3),strides=1)")
volume("layer_avgpool3d", "conv3d(3,2,tanh) avgpool3d(2,strides=1) conv3d(2,2,relu)")
volume("layer_avgpool3d_same", "conv3d(3,2,tanh) avgpool3d((2,3,2),strides=(2,2,3),padding=same)")
volume("layer_global_maxpool3d", "conv3d(3,2,relu) global_maxpool3d")
volume("layer_global_avgpool3d", "conv3d(3,2,tanh) global_avgpool3d(keepdims=true) conv3d(4,1,relu)")
volume("layer_zero_padding3d", "conv3d(3,2,tanh) zero_padding3d((1,0,2)) conv3d(3,2,relu)")
volume("layer_zero_padding3d_uneven", "conv3d(3,2,tanh) zero_padding3d(((1,0),(0,2),(2,1))) conv3d(3,2,relu)")
volume("layer_cropping3d", "conv3d(3,2,tanh) cropping3d(((1,0),(0,2),(1,1))) conv3d(3,2,relu)")
volume("layer_cropping3d_one", "conv3d(3,1,tanh) cropping3d(1) conv3d(3,2,relu)")
volume("layer_upsampling3d", "conv3d(2,2,tanh) upsampling3d((2,1,3)) conv3d(2,2,relu,strides=2)", x=(3, 3, 3, 2))
volume("layer_spatial_dropout3d", "conv3d(3,2,tanh) spatial_dropout3d(0) conv3d(3,2,relu)")

# Images that change at random, where the limits leave one value.
image("layer_random_translation", "random_translation((0.3,0.3),(-0.23,-0.23)) conv2d(3,2,tanh)")
image("layer_random_translation_wrap", "random_translation((-0.3,-0.3),(0.4,0.4),fill_mode=wrap) conv2d(3,2,tanh)")
image("layer_random_translation_constant", "conv2d(3,2,tanh) random_translation((0.3,0.3),(0.2,0.2),fill_mode=constant,fill_value=0.5)")
image("layer_random_rotation", "random_rotation((0.1,0.1)) conv2d(3,2,tanh)")
image("layer_random_rotation_nearest", "conv2d(3,2,tanh) random_rotation((-0.2,-0.2),fill_mode=nearest,interpolation=nearest)")
image("layer_random_zoom", "random_zoom((0.3,0.3)) conv2d(3,2,tanh)")
image("layer_random_zoom_two", "conv2d(3,2,tanh) random_zoom((-0.3,-0.3),(0.4,0.4),fill_mode=nearest)")
image("layer_random_brightness", "random_brightness((0.2,0.2),value_range=(-1.0,2.0)) conv2d(3,2,tanh)")
image("layer_random_contrast", "random_contrast((0.0,0.0),value_range=(-0.5,0.7)) conv2d(3,2,tanh)")
row("layer_random_flip", "reshape(1,1,5) random_flip flatten dense(4,tanh) dense(3,softmax)")
image("layer_center_crop", "conv2d(3,2,tanh) center_crop(3,2) conv2d(3,2,relu)")
line("layer_adaptive_avgpool1d", "conv1d(3,2,tanh) adaptive_avgpool1d(3)")
image("layer_adaptive_avgpool2d", "conv2d(3,2,tanh) adaptive_avgpool2d((2,3))")
image("layer_adaptive_avgpool2d_even", "conv2d(3,1,tanh) adaptive_avgpool2d(1)")
volume("layer_adaptive_avgpool3d", "conv3d(3,1,tanh) adaptive_avgpool3d((2,3,4))")
line("layer_adaptive_maxpool1d", "conv1d(3,2,tanh) adaptive_maxpool1d(3)")
image("layer_adaptive_maxpool2d", "conv2d(3,2,tanh) adaptive_maxpool2d((2,3))")
volume("layer_adaptive_maxpool3d", "conv3d(3,1,tanh) adaptive_maxpool3d((2,3,4))")
row("activation_glu", "dense(7,tanh) dense(6,glu)", y="real", loss="mse")
row("layer_activation_object", "dense(8,leaky_relu(0.1)) dense(7,activation=elu(alpha=0.5)) dense(3,softmax(axis=-1))")
line("layer_activation_object_relu", "conv1d(4,2,relu(max_value=0.8,negative_slope=0.1))")
image("layer_batchnorm_axis", "conv2d(3,2,tanh,use_bias=false) batchnorm(axis=1)")

# Optimizers that look at variables as a whole, or divide by their rate.
row("optimizer_ftrl", "dense(7,tanh) dense(3,softmax)", optimizer="ftrl(lr=0.1)")
row("optimizer_ftrl_all", "dense(7,tanh) dense(3,softmax)", optimizer="ftrl(lr=0.05,learning_rate_power=-0.7,"
    "initial_accumulator_value=0.3,l1_regularization_strength=0.01,l2_regularization_strength=0.02,"
    "l2_shrinkage_regularization_strength=0.03,beta=0.1)")
row("optimizer_lamb", "dense(7,tanh) dense(3,softmax)", optimizer="lamb(lr=0.02)")
row("optimizer_lamb_all", "dense(7,tanh,kernel_regularizer=l2(0.01)) dense(3,softmax)",
    optimizer="lamb(lr=0.02,beta_1=0.8,beta_2=0.95,epsilon=0.001,weight_decay=0.1,clipnorm=0.5)")
row("optimizer_lamb_embedding", "embedding(11,5) flatten dense(3,softmax)", x=("tokens", 11, 4), optimizer="lamb(lr=0.02)")
row("optimizer_adafactor", "dense(7,tanh) dense(3,softmax)", optimizer="adafactor(lr=0.05)")
row("optimizer_adafactor_all", "conv2d(4,2,tanh) flatten dense(3,softmax)", x=(5, 4, 2), optimizer="adafactor(lr=0.03,"
    "beta_2_decay=-0.6,epsilon_1=0.000001,epsilon_2=0.01,clip_threshold=0.7,relative_step=false,weight_decay=0.05,clipvalue=0.1)")
row("optimizer_adafactor_embedding", "embedding(11,5) flatten dense(3,softmax)", x=("tokens", 11, 4), optimizer="adafactor(lr=0.05)")
row("optimizer_adafactor_ema", "dense(40,tanh) dense(3,softmax)", optimizer="adafactor(lr=0.05,use_ema=true,ema_momentum=0.8)")
row("optimizer_muon", "dense(7,tanh) dense(3,softmax)", optimizer="muon(lr=0.02)")
row("optimizer_muon_all", "dense(40,tanh) dense(5,tanh,name=middle) dense(3,softmax)", optimizer="muon(lr=0.02,adam_beta_1=0.8,"
    "adam_beta_2=0.95,adam_weight_decay=0.1,epsilon=0.0001,weight_decay=0.05,exclude_layers=\"middle\",muon_a=3.2,muon_b=-4.5,"
    "muon_c=1.9,adam_lr_ratio=0.5,momentum=0.8,ns_steps=3,nesterov=false,rms_rate=0.3)")
row("optimizer_muon_embedding", "embedding(11,5) flatten dense(3,softmax)", x=("tokens", 11, 4), optimizer="muon(lr=0.02)")
row("optimizer_muon_embedding_too", "embedding(11,5) conv1d(4,2,tanh) flatten dense(3,softmax)", x=("tokens", 11, 4),
    optimizer="muon(lr=0.02,exclude_embeddings=false)")

# Constraints, and penalties that look at rows or at values.
row("constraint_max_norm", "dense(7,tanh,kernel_constraint=max_norm(0.8)) dense(3,softmax,bias_constraint=non_neg)", optimizer="sgd(lr=0.1)")
row("constraint_unit_norm", "dense(40,tanh,kernel_constraint=unit_norm(axis=1)) dense(3,softmax,kernel_constraint=unit_norm)")
row("constraint_min_max_norm", "conv2d(4,2,tanh,kernel_constraint=min_max_norm(0.2,0.9,rate=0.4,axis=(0,1,2))) flatten dense(3,softmax)",
    x=(5, 4, 2))
row("constraint_non_neg", "lstm(4,recurrent_constraint=non_neg,kernel_constraint=max_norm(0.5,axis=0)) dense(3,softmax)", x=(5, 3))
row("constraint_embedding", "embedding(11,5,embeddings_constraint=unit_norm(axis=1)) flatten dense(3,softmax)", x=("tokens", 11, 4))
row("constraint_batchnorm", "dense(6,use_bias=false) batchnorm(gamma_constraint=non_neg,beta_constraint=max_norm(0.1)) dense(3,softmax)")
row("regularizer_orthogonal", "dense(7,tanh,kernel_regularizer=orthogonal(factor=0.3)) dense(3,softmax)")
row("regularizer_orthogonal_columns", "dense(40,tanh,kernel_regularizer=orthogonal(factor=0.2,mode=columns)) dense(3,softmax)",
    optimizer="sgd(lr=0.1,clipnorm=0.5)")
row("layer_activity_regularization", "dense(7,tanh) activity_regularization(0.02,l2=0.03) dense(3,softmax)", w=True)
row("layer_activity_regularizer", "dense(7,tanh,activity_regularizer=l2(0.05)) dense(5,relu,activity_regularizer=l1(0.02)) dense(3,softmax)",
    metrics="accuracy")
row("activation_sparsemax", "dense(7,sparsemax) dense(3)", y="real", loss="mse")

# Images of another size, and colours where the limits leave one value.
for kind in ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"):
    image(f"layer_resizing_{kind}", f"conv2d(3,2,tanh) resizing(7,3,{kind}) conv2d(3,2,relu)")
image("layer_resizing_antialias", "conv2d(3,2,tanh) resizing(3,4,antialias=true) conv2d(3,2,relu)", x=(9, 7, 2))
image("layer_resizing_antialias_cubic", "conv2d(3,2,tanh) resizing(3,4,bicubic,antialias=true) conv2d(3,2,relu)", x=(9, 7, 2))
image("layer_resizing_crop", "conv2d(3,2,tanh) resizing(4,3,crop_to_aspect_ratio=true) conv2d(3,2,relu)", x=(6, 9, 2))
image("layer_resizing_pad", "conv2d(3,2,tanh) resizing(6,6,pad_to_aspect_ratio=true,fill_value=0.5) conv2d(3,2,relu)", x=(5, 9, 2))
image("layer_upsampling2d_bicubic", "conv2d(3,2,tanh) upsampling2d((2,3),interpolation=bicubic) conv2d(2,2,relu)")
image("layer_upsampling2d_lanczos3", "conv2d(3,2,tanh) upsampling2d(2,interpolation=lanczos3) conv2d(2,2,relu)")
image("layer_random_grayscale", "conv2d(3,2,tanh) random_grayscale(1.0) conv2d(3,2,relu)", x=(5, 4, 3))
image("layer_random_color_degeneration", "random_color_degeneration((0.3,0.3),value_range=(-1.0,1.0)) conv2d(3,2,relu)", x=(5, 4, 3))
image("layer_random_invert", "conv2d(3,2,tanh) random_invert((1.0,1.0),value_range=(-0.5,0.8)) conv2d(3,2,relu)", x=(5, 4, 3))
image("layer_random_posterization", "random_posterization((3,3),value_range=(-4.0,4.0)) conv2d(3,2,relu)", x=(5, 4, 3))
image("layer_solarization", "solarization(value_range=(-2.0,2.0)) conv2d(3,2,relu)", x=(5, 4, 3))

# RNN with a cell.
line("layer_rnn_lstm_cell", "rnn(lstm_cell(4,kernel_regularizer=l2(0.01)),return_sequences=true)", x=(5, 3))
line("layer_rnn_gru_cell", "rnn(gru_cell(4,reset_after=false),go_backwards=true,return_sequences=true)", x=(5, 3))
row("layer_rnn_simple_rnn_cell", "masking(0.0) rnn(simple_rnn_cell(4,relu),zero_output_for_mask=true) dense(3,softmax)", x=(5, 3))
