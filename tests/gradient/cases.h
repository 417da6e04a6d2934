/*
 * What tests/gradient tries: for each op with a gradient, attributes and shapes; for each pattern, the nodes it fuses;
 * and models of several layers. A new op or pattern gets its rows here; the test fails while it has none.
 */
#ifndef GRADIENT_CASES_H
#define GRADIENT_CASES_H

#include "op/op.h"

/* Where a case's input comes from: a variable with a value of its own for each sample and element, so that the gradient of
 * the input is seen, or the samples' y or w. Of class numbers (BW_I32) there are as many as input 0's last extent. */
typedef enum case_source { CASE_NONE, CASE_VARIED, CASE_Y, CASE_W } case_source;

typedef struct case_input {
    case_source from;
    bwi_shape shape;
    bw_dtype dtype;
} case_input;

enum { CASE_INPUTS = 5, CASE_VARIABLES = 5 };

typedef struct op_case {
    const bwi_op *op;
    const void *attributes;
    size_t attribute_bytes;
    case_input input[CASE_INPUTS];
    bwi_shape variable[CASE_VARIABLES];
    int frozen;    /* how many of the last variables are not trained */
    bool loss;     /* its output is one number a sample */
    bool kinks;    /* inputs must lie apart from each other and from zero */
    bool positive; /* inputs are between 0.2 and 0.8 */
} op_case;

#define ATTRIBUTES(type, ...) .attributes = &(const type){__VA_ARGS__}, .attribute_bytes = sizeof(type)
#define SHAPE(...)                                                                                         \
    {                                                                                                      \
        .ndim = (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .extent = { __VA_ARGS__ } \
    }
#define ONE       \
    {             \
        .ndim = 0 \
    }
#define VARIED(...)                             \
    {                                           \
        CASE_VARIED, SHAPE(__VA_ARGS__), BW_F32 \
    }

/* Conv2D: kernel height and width, strides, dilation, groups, same; input height, width, channels; filters. */
#define CONV(kh, kw, sh, sw, dh, dw, g, s, h, w, c, f)                                                                 \
    {                                                                                                                  \
        .op = &bwi_op_conv2d,                                                                                          \
        ATTRIBUTES(bwi_conv2d_attributes, .filters = f, .kernel = {kh, kw}, .strides = {sh, sw}, .dilation = {dh, dw}, \
                   .groups = g, .same = s),                                                                            \
        .input = {VARIED(h, w, c)}, .variable = {                                                                      \
            SHAPE(kh, kw, (c) / (g), f),                                                                               \
            SHAPE(f)                                                                                                   \
        }                                                                                                              \
    }

/* Depthwise: kernel, strides, dilation, same; input height, width, channels. */
#define DEPTHWISE(kh, kw, sh, sw, dh, dw, s, h, w, c)                                                                  \
    {                                                                                                                  \
        .op = &bwi_op_depthwise,                                                                                       \
        ATTRIBUTES(bwi_conv2d_attributes, .filters = c, .kernel = {kh, kw}, .strides = {sh, sw}, .dilation = {dh, dw}, \
                   .groups = c, .same = s),                                                                            \
        .input = {VARIED(h, w, c)}, .variable = {                                                                      \
            SHAPE(kh, kw, c, 1),                                                                                       \
            SHAPE(c)                                                                                                   \
        }                                                                                                              \
    }

/* Pooling: window, strides, same; input height, width, channels. */
#define POOL(which, wh, ww, sh, sw, s, h, w, c)                                                                       \
    {                                                                                                                 \
        .op = &bwi_op_##which, ATTRIBUTES(bwi_pool2d_attributes, .window = {wh, ww}, .strides = {sh, sw}, .same = s), \
        .input = {VARIED(h, w, c)}, .kinks = true                                                                     \
    }

#define DENSE(in, out)                                                                                            \
    {                                                                                                             \
        .op = &bwi_op_dense, ATTRIBUTES(bwi_dense_attributes, .units = out), .input = {VARIED(in)}, .variable = { \
            SHAPE(in, out),                                                                                       \
            SHAPE(out)                                                                                            \
        }                                                                                                         \
    }

/* Recurrent: cell, gates, units, steps, and other attributes. */
#define RECURRENT_ATTRIBUTES(c, u, ...) \
    ATTRIBUTES(bwi_recurrent_attributes, .cell = BWI_CELL_##c, .units = u, .activation = {.kind = BWI_TANH}, __VA_ARGS__)
#define RECURRENT(c, g, u, t, ...)                                                                                       \
    {                                                                                                                    \
        .op = &bwi_op_recurrent, RECURRENT_ATTRIBUTES(c, u, __VA_ARGS__), .input = {VARIED(t, (g) * (u))}, .variable = { \
            SHAPE(u, (g) * (u))                                                                                          \
        }                                                                                                                \
    }
#define MASKED_RECURRENT(c, g, u, t, ...)                                          \
    {                                                                              \
        .op = &bwi_op_recurrent, RECURRENT_ATTRIBUTES(c, u, __VA_ARGS__),          \
        .input = {VARIED(t, (g) * (u)), {CASE_W, SHAPE(t), BW_F32}}, .variable = { \
            SHAPE(u, (g) * (u))                                                    \
        }                                                                          \
    }

/* The same with a given state; the third input is a second state, a mask, or none. */
#define NO_INPUT               \
    {                          \
        CASE_NONE, ONE, BW_F32 \
    }
#define WEIGHTS(...)                       \
    {                                      \
        CASE_W, SHAPE(__VA_ARGS__), BW_F32 \
    }
#define BEGUN_RECURRENT(cell, g, u, t, third, ...)                                           \
    {                                                                                        \
        .op = &bwi_op_recurrent, RECURRENT_ATTRIBUTES(cell, u, .begins = true, __VA_ARGS__), \
        .input = {VARIED(t, (g) * (u)), VARIED(u), third}, .variable = {                     \
            SHAPE(u, (g) * (u))                                                              \
        }                                                                                    \
    }

/* Attention: heads, groups; queries, keys; width of a head, of a value. */
#define ATTENTION_ATTRIBUTES(h, g, ...) ATTENTION_OF(.heads = h, .groups = g, .scale = 0.7F, __VA_ARGS__)
#define ATTENTION_OF(...) ATTRIBUTES(bwi_attention_attributes, __VA_ARGS__)
#define ATTENTION(h, g, tq, tk, d, dv, ...)                                          \
    {                                                                                \
        .op = &bwi_op_attention, ATTENTION_ATTRIBUTES(h, g, __VA_ARGS__), .input = { \
            VARIED(tq, (h) * (d)),                                                   \
            VARIED(tk, (g) * (d)),                                                   \
            VARIED(tk, (g) * (dv))                                                   \
        }                                                                            \
    }

#define BATCHNORM_ATTRIBUTES(c, s) ATTRIBUTES(bwi_batchnorm_attributes, .momentum = 0.9F, .epsilon = 1e-3F, .center = c, .scale = s)
#define BATCHNORM(channels, ...)                                                                      \
    {                                                                                                 \
        .op = &bwi_op_batchnorm, BATCHNORM_ATTRIBUTES(true, true), .input = {VARIED(__VA_ARGS__)},    \
        .variable = {SHAPE(channels), SHAPE(channels), SHAPE(channels), SHAPE(channels)}, .frozen = 2 \
    }

#define PLAIN(which, ...)                                       \
    {                                                           \
        .op = &bwi_op_##which, .input = { VARIED(__VA_ARGS__) } \
    }
#define KINKED(which, ...)                                                   \
    {                                                                        \
        .op = &bwi_op_##which, .input = {VARIED(__VA_ARGS__)}, .kinks = true \
    }

/* A loss by its formula and parameter: one row with a weight, and three with a weight each. */
#define LOSS_ATTRIBUTES(which, p) ATTRIBUTES(bwi_loss_attributes, .kind = BWI_LOSS_##which, .parameter = p)
#define LOSS(which, p, above)                                                                                               \
    {.op = &bwi_op_loss,                                                                                                    \
     LOSS_ATTRIBUTES(which, p),                                                                                             \
     .input = {VARIED(7), {CASE_Y, SHAPE(7), BW_F32}, {CASE_W, ONE, BW_F32}},                                               \
     .loss = true,                                                                                                          \
     .positive = above},                                                                                                    \
    {                                                                                                                       \
        .op = &bwi_op_loss, LOSS_ATTRIBUTES(which, p),                                                                      \
        .input = {VARIED(3, 5), {CASE_Y, SHAPE(3, 5), BW_F32}, {CASE_W, SHAPE(3), BW_F32}}, .loss = true, .positive = above \
    }

/* Kind, parameters, whether it has kinks, shape. */
#define ACTIVATION(k, a, b, c, bends, ...)                                                          \
    {                                                                                               \
        .op = &bwi_op_activation, ATTRIBUTES(bwi_activation_attributes, .kind = k, .p = {a, b, c}), \
        .input = {VARIED(__VA_ARGS__)}, .kinks = bends                                              \
    }
#define ACTIVATION_OF_INPUT(k, a, bends, ...)                                                                \
    {                                                                                                        \
        .op = &bwi_op_activation_of_input, ATTRIBUTES(bwi_activation_attributes, .kind = k, .p = {a, 0, 0}), \
        .input = {VARIED(__VA_ARGS__)}, .kinks = bends                                                       \
    }
#define UNARY(k, p, q, bends, above, ...)                                                                                 \
    {                                                                                                                     \
        .op = &bwi_op_unary, ATTRIBUTES(bwi_unary_attributes, .kind = k, .a = p, .b = q), .input = {VARIED(__VA_ARGS__)}, \
        .kinks = bends, .positive = above                                                                                 \
    }
#define BINARY(k, bends, above, ...)                                                                                             \
    {                                                                                                                            \
        .op = &bwi_op_binary, ATTRIBUTES(bwi_binary_attributes, .kind = k), .input = {VARIED(__VA_ARGS__), VARIED(__VA_ARGS__)}, \
        .kinks = bends, .positive = above                                                                                        \
    }
#define REDUCE(which, k, along, keep, ...)                                                                    \
    {                                                                                                         \
        .op = &bwi_op_##which, ATTRIBUTES(bwi_reduce_attributes, .kind = k, .axis = along, .keepdims = keep), \
        .input = {VARIED(__VA_ARGS__)}, .kinks = true                                                         \
    }
#define NOISE(which, by, ...)                                                                                                 \
    {                                                                                                                         \
        .op = &bwi_op_##which, ATTRIBUTES(bwi_noise_attributes, .amount = by, .stream = 77), .input = { VARIED(__VA_ARGS__) } \
    }
#define SHARED(which, by, every, draws, ...)                                                                                 \
    {                                                                                                                        \
        .op = &bwi_op_##which, ATTRIBUTES(bwi_noise_attributes, .amount = by, .stream = 77, .shared = draws, .same = every), \
        .input = {                                                                                                           \
            VARIED(__VA_ARGS__)                                                                                              \
        }                                                                                                                    \
    }
#define LAYERNORM(last, c, s) \
    .op = &bwi_op_layernorm, ATTRIBUTES(bwi_layernorm_attributes, .axes = last, .epsilon = 1e-3F, .center = c, .scale = s)
#define AXIS(which, along, ...)                                                                                 \
    {                                                                                                           \
        .op = &bwi_op_##which, ATTRIBUTES(bwi_axis_attributes, .axis = along), .input = { VARIED(__VA_ARGS__) } \
    }

/* bwi_channel_map_attributes with its numbers. */
static const struct {
    int64_t channels;
    float number[9];
} three_channels = {3, {0.5F, -1, 2, 1.5F, 0.25F, -2, 1, 0, -0.5F}};

/* A transposed Conv2D: kernel, strides, dilation, same, output padding; input height, width, channels; filters. */
#define TRANSPOSED(kh, kw, sh, sw, d, s, p, h, w, c, f)                                                                        \
    {                                                                                                                          \
        .op = &bwi_op_conv2d_transpose,                                                                                        \
        ATTRIBUTES(bwi_conv2d_transpose_attributes, .filters = f, .kernel = {kh, kw}, .strides = {sh, sw}, .dilation = {d, d}, \
                   .same = s, .output_padding = {p, p}),                                                                       \
        .input = {VARIED(h, w, c)}, .variable = {                                                                              \
            SHAPE(kh, kw, f, c)                                                                                                \
        }                                                                                                                      \
    }

/* A loss with several parameters, of one row with a weight, and of three with a weight each. */
#define GRADED(above, ...)                                                                                                  \
    {.op = &bwi_op_graded_loss,                                                                                             \
     ATTRIBUTES(bwi_graded_attributes, __VA_ARGS__),                                                                        \
     .input = {VARIED(7), {CASE_Y, SHAPE(7), BW_F32}, {CASE_W, ONE, BW_F32}},                                               \
     .loss = true,                                                                                                          \
     .positive = above},                                                                                                    \
    {                                                                                                                       \
        .op = &bwi_op_graded_loss, ATTRIBUTES(bwi_graded_attributes, __VA_ARGS__),                                          \
        .input = {VARIED(3, 5), {CASE_Y, SHAPE(3, 5), BW_F32}, {CASE_W, SHAPE(3), BW_F32}}, .loss = true, .positive = above \
    }

/* A Conv3D and a transposed one: kernel, stride, dilation, same; input depth, height, width, channels; filters, groups. */
#define VOLUME(kd, kh, kw, st, dl, s, d, h, w, c, f, g)                                                                            \
    {                                                                                                                              \
        .op = &bwi_op_conv3d,                                                                                                      \
        ATTRIBUTES(bwi_conv2d_attributes, .filters = f, .kernel = {kh, kw, kd}, .strides = {st, st, st}, .dilation = {dl, dl, dl}, \
                   .same = s, .groups = g),                                                                                        \
        .input = {VARIED(d, h, w, c)}, .variable = {                                                                               \
            SHAPE(kd, kh, kw, c / g, f),                                                                                           \
            SHAPE(f)                                                                                                               \
        }                                                                                                                          \
    }
#define TRANSPOSED_VOLUME(kd, kh, kw, st, dl, s, p, d, h, w, c, f)                                                 \
    {                                                                                                              \
        .op = &bwi_op_conv3d_transpose,                                                                            \
        ATTRIBUTES(bwi_conv2d_transpose_attributes, .filters = f, .kernel = {kh, kw, kd}, .strides = {st, st, st}, \
                   .dilation = {dl, dl, dl}, .same = s, .output_padding = {p, p, p}),                              \
        .input = {VARIED(d, h, w, c)}, .variable = {                                                               \
            SHAPE(kd, kh, kw, f, c)                                                                                \
        }                                                                                                          \
    }

static const op_case op_cases[] = {
    {.op = &bwi_op_random_view,
     ATTRIBUTES(bwi_random_view_attributes, .shift = {{-0.3F, 0.4F}, {-0.2F, 0.3F}}, .zoom = {{0.7F, 1.4F}, {0.8F, 1.2F}},
                .turn = {-0.2F, 0.3F}, .fill = BWI_FILL_REFLECT, .stream = 7),
     .input = {VARIED(5, 4, 3)}},
    {.op = &bwi_op_random_view,
     ATTRIBUTES(bwi_random_view_attributes, .shift = {{-0.3F, 0.4F}, {-0.2F, 0.3F}}, .zoom = {{1, 1}, {1, 1}}, .one_zoom = true,
                .fill = BWI_FILL_CONSTANT, .value = 0.5F, .stream = 7),
     .input = {VARIED(5, 4, 2)}},
    {.op = &bwi_op_random_view,
     ATTRIBUTES(bwi_random_view_attributes, .zoom = {{1, 1}, {1, 1}}, .flip = {true, true}, .nearest = true, .stream = 7),
     .input = {VARIED(5, 4, 3)}},
    {.op = &bwi_op_random_color,
     ATTRIBUTES(bwi_random_color_attributes, .kind = BWI_COLOR_GREY, .chance = {0.2F, 0.8F}, .first = {-0.5F, 0.9F}, .stream = 7),
     .input = {VARIED(5, 4, 3)}},
    {.op = &bwi_op_random_color,
     ATTRIBUTES(bwi_random_color_attributes, .kind = BWI_COLOR_INVERT, .chance = {0, 1}, .range = {-1, 2}, .stream = 7),
     .input = {VARIED(5, 4, 2)}},
    {.op = &bwi_op_random_color,
     ATTRIBUTES(bwi_random_color_attributes, .kind = BWI_COLOR_SOLARIZE, .chance = {2, 2}, .second = {100, 100}, .range = {-9, 9},
                .stream = 7),
     .input = {VARIED(5, 4, 2)}},
    {.op = &bwi_op_resample, ATTRIBUTES(bwi_resample_attributes, .axis = 0, .extent = 7), .input = {VARIED(5, 4, 3)}},
    {.op = &bwi_op_resample,
     ATTRIBUTES(bwi_resample_attributes, .axis = 1, .extent = 3, .kind = BWI_INTERPOLATE_LINEAR, .smooth = true),
     .input = {VARIED(5, 8, 3)}},
    {.op = &bwi_op_resample,
     ATTRIBUTES(bwi_resample_attributes, .axis = 1, .extent = 9, .kind = BWI_INTERPOLATE_CUBIC),
     .input = {VARIED(2, 4, 3)}},
    {.op = &bwi_op_resample,
     ATTRIBUTES(bwi_resample_attributes, .axis = 0, .extent = 4, .kind = BWI_INTERPOLATE_LANCZOS3, .smooth = true),
     .input = {VARIED(9, 2, 3)}},
    {.op = &bwi_op_random_contrast,
     ATTRIBUTES(bwi_random_contrast_attributes, .factor = {0.5F, 1.5F}, .offset = {-0.2F, 0.3F}, .range = {-9, 9}, .stream = 7),
     .input = {VARIED(5, 4, 3)}},
    VOLUME(2, 3, 2, 1, 1, false, 3, 4, 3, 2, 3, 1),
    VOLUME(3, 2, 3, 2, 1, true, 4, 3, 4, 3, 4, 1),
    VOLUME(2, 2, 2, 1, 2, true, 3, 4, 3, 4, 6, 2),
    VOLUME(3, 3, 3, 1, 1, true, 2, 3, 3, 16, 17, 1),
    TRANSPOSED_VOLUME(2, 3, 2, 1, 1, false, -1, 2, 3, 2, 2, 3),
    TRANSPOSED_VOLUME(3, 3, 3, 2, 1, true, -1, 2, 3, 2, 3, 2),
    TRANSPOSED_VOLUME(2, 2, 2, 1, 2, true, -1, 2, 3, 2, 3, 4),
    TRANSPOSED(3, 3, 1, 1, 1, false, -1, 4, 3, 2, 3),
    TRANSPOSED(3, 3, 2, 2, 1, true, -1, 3, 4, 3, 5),
    TRANSPOSED(2, 4, 3, 2, 1, false, 1, 3, 3, 2, 3),
    TRANSPOSED(3, 2, 1, 1, 2, true, -1, 4, 5, 3, 2),
    TRANSPOSED(3, 3, 2, 2, 1, true, 0, 3, 3, 8, 8),
    TRANSPOSED(3, 3, 2, 2, 1, false, -1, 3, 3, 16, 17),
    {.op = &bwi_op_conv2d_transpose,
     ATTRIBUTES(bwi_conv2d_transpose_attributes, .filters = 4, .kernel = {1, 3}, .strides = {1, 2}, .dilation = {1, 1},
                .same = true, .output_padding = {-1, -1}),
     .input = {VARIED(5, 3)},
     .variable = {SHAPE(3, 4, 3)}},
    GRADED(true, .kind = BWI_GRADED_BINARY_FOCAL, .gamma = 2),
    GRADED(true, .kind = BWI_GRADED_BINARY_FOCAL, .gamma = 1.5F, .alpha = 0.3F, .balanced = true, .smoothing = 0.1F),
    GRADED(true, .kind = BWI_GRADED_CATEGORICAL_FOCAL, .gamma = 2, .alpha = 0.25F, .smoothing = 0.1F),
    GRADED(true, .kind = BWI_GRADED_TVERSKY, .alpha = 0.3F, .beta = 0.7F, .epsilon = 1e-7F),
    {.op = &bwi_op_graded_loss,
     ATTRIBUTES(bwi_graded_attributes, .kind = BWI_GRADED_TVERSKY, .alpha = 0.5F, .beta = 0.5F, .epsilon = 1e-7F, .samples = true),
     .input = {VARIED(3, 5), {CASE_Y, SHAPE(3, 5), BW_F32}, {CASE_W, ONE, BW_F32}},
     .loss = true,
     .positive = true},
    {.op = &bwi_op_graded_loss,
     ATTRIBUTES(bwi_graded_attributes, .kind = BWI_GRADED_GENERALIZED, .gamma = 0.5F),
     .input = {VARIED(3, 5), {CASE_Y, SHAPE(3), BW_I32}, {CASE_W, SHAPE(3), BW_F32}},
     .loss = true,
     .positive = true},
    {.op = &bwi_op_ctc, .input = {VARIED(6, 4), {CASE_Y, SHAPE(2), BW_I32}}, .loss = true},
    {.op = &bwi_op_ctc, .input = {VARIED(7, 3), {CASE_Y, SHAPE(3), BW_I32}, {CASE_W, ONE, BW_F32}}, .loss = true},
    RECURRENT(SIMPLE, 1, 5, 4, .sequences = false),
    {.op = &bwi_op_recurrent,
     ATTRIBUTES(bwi_recurrent_attributes, .cell = BWI_CELL_SIMPLE, .units = 3, .activation = {.kind = BWI_GELU, .of_input = true},
                .sequences = true, .backwards = true),
     .input = {VARIED(4, 3)},
     .variable = {SHAPE(3, 3)}},
    RECURRENT(LSTM, 4, 3, 4, .sequences = true),
    RECURRENT(LSTM, 4, 5, 3, .backwards = true),
    RECURRENT(LSTM, 4, 4, 3, .dropout = 0.4F, .stream = 5),
    MASKED_RECURRENT(LSTM, 4, 3, 5, .sequences = true),
    MASKED_RECURRENT(LSTM, 4, 3, 5, .sequences = true, .zero_masked = true, .backwards = true),
    RECURRENT(GRU, 3, 3, 4, .sequences = true),
    RECURRENT(GRU, 3, 3, 4, .dropout = 0.4F, .stream = 5, .recurrent_activation = {.kind = BWI_SILU, .of_input = true}),
    MASKED_RECURRENT(GRU, 3, 4, 4, .sequences = true),
    RECURRENT(GRU_AFTER, 3, 3, 4, .sequences = true),
    MASKED_RECURRENT(GRU_AFTER, 3, 4, 4, .sequences = false),
    {.op = &bwi_op_recurrent,
     RECURRENT_ATTRIBUTES(GRU_AFTER, 3, .sequences = true, .dropout = 0.3F),
     .input = {VARIED(4, 9)},
     .variable = {SHAPE(3, 9), SHAPE(2, 9)}},
    RECURRENT(LSTM, 4, 3, 4, .sequences = true, .ends = true),
    RECURRENT(LSTM, 4, 3, 4, .ends = true),
    RECURRENT(GRU, 3, 4, 3, .sequences = true, .ends = true, .backwards = true),
    MASKED_RECURRENT(GRU_AFTER, 3, 3, 5, .sequences = true, .ends = true, .zero_masked = true),
    BEGUN_RECURRENT(LSTM, 4, 3, 4, VARIED(3), .sequences = true),
    BEGUN_RECURRENT(LSTM, 4, 3, 4, VARIED(3), .ends = true, .dropout = 0.4F, .stream = 5),
    BEGUN_RECURRENT(GRU, 3, 3, 4, NO_INPUT, .sequences = true, .ends = true),
    BEGUN_RECURRENT(GRU_AFTER, 3, 3, 4, WEIGHTS(4), .sequences = true, .ends = true),
    BEGUN_RECURRENT(SIMPLE, 1, 3, 4, WEIGHTS(4), .ends = true),
    {.op = &bwi_op_reverse, .input = {VARIED(5)}},
    {.op = &bwi_op_reverse, .input = {VARIED(3, 4)}},
    ATTENTION(2, 2, 3, 4, 3, 2, .masking = BWI_MASKING_REPLACE),
    ATTENTION(4, 2, 5, 5, 2, 3, .causal = true),
    ATTENTION(1, 1, 3, 5, 2, 2, .dropout = 0.3F, .stream = 7, .masking = BWI_MASKING_EXCLUDE),
    {.op = &bwi_op_attention,
     ATTENTION_ATTRIBUTES(2, 1, .key_mask = true, .masking = BWI_MASKING_EXCLUDE),
     .input = {VARIED(3, 4), VARIED(4, 2), VARIED(4, 3), {CASE_W, SHAPE(4), BW_F32}}},
    {.op = &bwi_op_attention,
     ATTENTION_ATTRIBUTES(1, 1, .factor = true),
     .input = {VARIED(3, 4), VARIED(4, 4), VARIED(4, 3)},
     .variable = {SHAPE(1)}},
    {.op = &bwi_op_attention,
     ATTENTION_ATTRIBUTES(1, 1, .scores = BWI_SCORES_ADDITIVE, .factor = true, .weight = true),
     .input = {VARIED(3, 4), VARIED(4, 4), VARIED(4, 3)},
     .variable = {SHAPE(1), SHAPE(4)}},
    ACTIVATION(BWI_SIGMOID, 0, 0, 0, false, 17),
    ACTIVATION(BWI_SIGMOID, 0, 0, 0, false, 3, 2, 5),
    ACTIVATION(BWI_TANH, 0, 0, 0, false, 17),
    ACTIVATION(BWI_SOFTPLUS, 0, 0, 0, false, 5),
    ACTIVATION(BWI_SOFTSIGN, 0, 0, 0, true, 7),
    ACTIVATION(BWI_ELU, 1, 0.6F, 0, true, 7),
    ACTIVATION(BWI_ELU, 1.05070098F, 1.75809934F, 0, true, 7),
    ACTIVATION(BWI_EXPONENTIAL, 0, 0, 0, false, 5),
    ACTIVATION(BWI_HARD_SIGMOID, 0, 0, 0, true, 9),
    ACTIVATION(BWI_LEAKY_RELU, 0.2F, 0, 0, true, 17),
    ACTIVATION(BWI_BENT_RELU, 0.1F, 0.796875F, 0.140625F, true, 17),
    {.op = &bwi_op_activation_of_input, ATTRIBUTES(bwi_activation_attributes, .kind = BWI_SILU), .input = {VARIED(17)}},
    {.op = &bwi_op_activation_of_input, ATTRIBUTES(bwi_activation_attributes, .kind = BWI_GELU), .input = {VARIED(3, 7)}},
    ACTIVATION(BWI_HARD_TANH, 0, 0, 0, true, 17),
    ACTIVATION(BWI_LOG_SIGMOID, 0, 0, 0, false, 17),
    ACTIVATION(BWI_SOFT_SHRINK, 0.515625F, 0, 0, true, 17),
    ACTIVATION(BWI_HARD_SHRINK, 0.515625F, 0, 0, true, 17),
    ACTIVATION(BWI_SPARSE_SIGMOID, 0, 0, 0, true, 17),
    ACTIVATION_OF_INPUT(BWI_HARD_SILU, 0, true, 7),
    ACTIVATION_OF_INPUT(BWI_MISH, 0, false, 17),
    ACTIVATION_OF_INPUT(BWI_SQUAREPLUS, 4, false, 3, 7),
    ACTIVATION_OF_INPUT(BWI_TANH_SHRINK, 0, false, 17),
    ACTIVATION_OF_INPUT(BWI_SPARSE_PLUS, 0, true, 17),
    AXIS(softmax_axis, 0, 5),
    AXIS(softmax_axis, 0, 4, 3),
    AXIS(softmax_axis, 1, 2, 5, 3),
    {.op = &bwi_op_prelu, .input = {VARIED(7)}, .variable = {SHAPE(7)}, .kinks = true},
    {.op = &bwi_op_prelu, .input = {VARIED(3, 4, 5)}, .variable = {SHAPE(1, 1, 5)}, .kinks = true},
    {.op = &bwi_op_prelu, .input = {VARIED(3, 4, 2)}, .variable = {SHAPE(3, 1, 2)}, .kinks = true},
    {.op = &bwi_op_prelu, .input = {VARIED(4, 3)}, .variable = {SHAPE(4, 1)}, .kinks = true},

    NOISE(dropout, 0.3F, 70),
    NOISE(dropout, 0.5F, 3, 4, 5),
    NOISE(spatial_dropout, 0.4F, 3, 2, 7),
    NOISE(gaussian_noise, 0.5F, 7),
    NOISE(gaussian_dropout, 0.5F, 3, 7),
    SHARED(shared_dropout, 0.4F, false, SHAPE(1, 1, 5), 3, 2, 5),
    SHARED(shared_dropout, 0.4F, true, SHAPE(3, 1, 1), 3, 2, 5),
    SHARED(shared_dropout, 0.4F, false, SHAPE(1), 70),
    SHARED(alpha_dropout, 0.4F, false, SHAPE(3, 2, 5), 3, 2, 5),
    SHARED(alpha_dropout, 0.4F, false, SHAPE(3, 1), 3, 5),

    {.op = &bwi_op_channel_affine,
     ATTRIBUTES(bwi_channel_affine_attributes, .center = true, .scale = true),
     .input = {VARIED(3, 2, 5)},
     .variable = {SHAPE(5), SHAPE(5)}},
    {.op = &bwi_op_channel_affine,
     ATTRIBUTES(bwi_channel_affine_attributes, .scale = true),
     .input = {VARIED(3, 17)},
     .variable = {SHAPE(17)}},
    {.op = &bwi_op_channel_affine,
     ATTRIBUTES(bwi_channel_affine_attributes, .center = true),
     .input = {VARIED(7)},
     .variable = {SHAPE(7)}},
    {.op = &bwi_op_channel_map,
     .attributes = &three_channels,
     .attribute_bytes = sizeof three_channels,
     .input = {VARIED(2, 4, 3)}},

    {LAYERNORM(1, true, true), .input = {VARIED(9)}, .variable = {SHAPE(9), SHAPE(9)}},
    {LAYERNORM(1, true, true), .input = {VARIED(2, 3, 5)}, .variable = {SHAPE(5), SHAPE(5)}},
    {LAYERNORM(2, true, true), .input = {VARIED(2, 3, 5)}, .variable = {SHAPE(3, 5), SHAPE(3, 5)}},
    {LAYERNORM(1, true, false), .input = {VARIED(17)}, .variable = {SHAPE(17)}},
    {LAYERNORM(1, false, true), .input = {VARIED(4)}, .variable = {SHAPE(4)}},
    {LAYERNORM(1, false, false), .input = {VARIED(4)}},
    {.op = &bwi_op_batchnorm_ghost,
     ATTRIBUTES(bwi_batchnorm_attributes, .momentum = 0.9F, .epsilon = 1e-3F, .center = true, .scale = true, .ghost = 2),
     .input = {VARIED(3, 2, 5)},
     .variable = {SHAPE(5), SHAPE(5), SHAPE(5), SHAPE(5)},
     .frozen = 2},
    {.op = &bwi_op_batchnorm_ghost,
     ATTRIBUTES(bwi_batchnorm_attributes, .momentum = 0.9F, .epsilon = 1e-3F, .center = true, .scale = false, .ghost = 2),
     .input = {VARIED(4, 3, 17)},
     .variable = {SHAPE(17), SHAPE(17), SHAPE(17)},
     .frozen = 2},
    {.op = &bwi_op_batchnorm_frozen,
     BATCHNORM_ATTRIBUTES(true, true),
     .input = {VARIED(3, 2, 5)},
     .variable = {SHAPE(5), SHAPE(5), SHAPE(5), SHAPE(5)},
     .frozen = 4,
     .positive = true},
    {.op = &bwi_op_normalization,
     ATTRIBUTES(bwi_normalization_attributes, .spread = SHAPE(1, 1, 2)),
     .input = {VARIED(3, 4, 2)},
     .variable = {SHAPE(2), SHAPE(2)},
     .frozen = 2,
     .positive = true},
    {.op = &bwi_op_normalization,
     ATTRIBUTES(bwi_normalization_attributes, .spread = SHAPE(3, 1, 2), .invert = true),
     .input = {VARIED(3, 4, 2)},
     .variable = {SHAPE(3, 2), SHAPE(3, 2)},
     .frozen = 2,
     .positive = true},
    {.op = &bwi_op_sparsemax,
     .input = {VARIED(2)},
     .kinks = true,
     .positive = true}, /* Keras's formula jumps where its support changes */
    AXIS(l2_normalize, 0, 7),
    AXIS(l2_normalize, 1, 2, 5, 3),

    {.op = &bwi_op_scale, ATTRIBUTES(bwi_scale_attributes, .scale = -1.5F, .offset = 0.25F), .input = {VARIED(2, 3, 5)}},
    UNARY(BWI_ABS, 0, 0, true, false, 7),
    UNARY(BWI_SQUARE, 0, 0, false, false, 7),
    UNARY(BWI_SQRT, 0, 0, false, true, 7),
    UNARY(BWI_LOG, 0, 0, false, true, 7),
    UNARY(BWI_POW, 3, 0, false, false, 7),
    UNARY(BWI_POW, -1, 0, false, true, 7),
    UNARY(BWI_POW, 1.7F, 0, false, true, 2, 3),
    UNARY(BWI_THRESHOLD, 0.515625F, -0.25F, true, false, 9),
    UNARY(BWI_CLIP, -0.515625F, 0.609375F, true, false, 9),
    {.op = &bwi_op_add, ATTRIBUTES(bwi_add_attributes, .scale = 1), .input = {VARIED(7), VARIED(7)}},
    {.op = &bwi_op_add,
     ATTRIBUTES(bwi_add_attributes, .scale = 1.0F / 3),
     .input = {VARIED(2, 3, 5), VARIED(2, 3, 5), VARIED(2, 3, 5)}},
    {.op = &bwi_op_add, ATTRIBUTES(bwi_add_attributes, .subtract = true, .scale = 1), .input = {VARIED(5), VARIED(5)}},
    BINARY(BWI_MULTIPLY, false, false, 2, 3, 5),
    BINARY(BWI_DIVIDE, false, true, 7),
    BINARY(BWI_MAXIMUM, true, false, 7),
    BINARY(BWI_MINIMUM, true, false, 7),
    {.op = &bwi_op_broadcast, ATTRIBUTES(bwi_broadcast_attributes, .shape = SHAPE(3, 4, 5)), .input = {VARIED(1, 1, 5)}},
    {.op = &bwi_op_broadcast, ATTRIBUTES(bwi_broadcast_attributes, .shape = SHAPE(3, 4, 5)), .input = {VARIED(3, 1, 5)}},
    {.op = &bwi_op_broadcast, ATTRIBUTES(bwi_broadcast_attributes, .shape = SHAPE(3, 4, 2)), .input = {VARIED(4, 1)}},
    {.op = &bwi_op_broadcast, ATTRIBUTES(bwi_broadcast_attributes, .shape = SHAPE(3, 4)), .input = {VARIED(1)}},
    REDUCE(reduce, BWI_REDUCE_SUM, -1, false, 2, 3, 5),
    REDUCE(reduce, BWI_REDUCE_MEAN, 1, false, 2, 3, 5),
    REDUCE(reduce, BWI_REDUCE_MEAN, 0, true, 4, 3),
    REDUCE(reduce_extreme, BWI_REDUCE_MAX, -1, false, 4, 3),
    REDUCE(reduce_extreme, BWI_REDUCE_MAX, 1, true, 2, 3, 5),
    REDUCE(reduce_extreme, BWI_REDUCE_MIN, 1, false, 4, 3),
    {.op = &bwi_op_dot, ATTRIBUTES(bwi_dot_attributes, .axis = {0, 0}), .input = {VARIED(7), VARIED(7)}},
    {.op = &bwi_op_dot, ATTRIBUTES(bwi_dot_attributes, .axis = {1, 0}), .input = {VARIED(3, 4), VARIED(4, 5)}},
    {.op = &bwi_op_dot, ATTRIBUTES(bwi_dot_attributes, .axis = {0, 1}), .input = {VARIED(4, 3), VARIED(5, 4)}},
    {.op = &bwi_op_dot, ATTRIBUTES(bwi_dot_attributes, .axis = {1, 1}), .input = {VARIED(2, 3, 2), VARIED(2, 3, 4)}},
    {.op = &bwi_op_slice, ATTRIBUTES(bwi_slice_attributes, .axis = 1, .start = 1, .count = 2), .input = {VARIED(2, 4, 3)}},
    {.op = &bwi_op_slice, ATTRIBUTES(bwi_slice_attributes, .axis = 0, .start = 3, .count = 4), .input = {VARIED(7)}},
    {.op = &bwi_op_concatenate, ATTRIBUTES(bwi_axis_attributes, .axis = 0), .input = {VARIED(3), VARIED(4), VARIED(1)}},
    {.op = &bwi_op_concatenate, ATTRIBUTES(bwi_axis_attributes, .axis = 2), .input = {VARIED(2, 3, 5), VARIED(2, 3, 1)}},
    {.op = &bwi_op_concatenate, ATTRIBUTES(bwi_axis_attributes, .axis = 1), .input = {VARIED(2, 3, 5), VARIED(2, 1, 5)}},

    CONV(3, 3, 1, 1, 1, 1, 1, false, 5, 7, 3, 4),
    CONV(3, 3, 1, 1, 1, 1, 1, true, 5, 4, 1, 17),
    CONV(1, 1, 1, 1, 1, 1, 1, false, 3, 3, 5, 2),
    CONV(1, 1, 2, 2, 1, 1, 1, true, 5, 5, 2, 3),
    CONV(2, 3, 2, 1, 1, 1, 1, true, 7, 6, 2, 5),
    CONV(5, 1, 1, 3, 1, 1, 1, false, 7, 7, 1, 3),
    CONV(4, 4, 3, 3, 1, 1, 1, true, 11, 7, 3, 1),
    CONV(3, 3, 1, 1, 2, 1, 1, true, 7, 5, 2, 3),
    CONV(3, 2, 1, 1, 2, 3, 1, false, 7, 7, 1, 2),
    CONV(3, 3, 1, 1, 1, 1, 2, true, 4, 4, 4, 6),
    CONV(3, 3, 2, 2, 1, 1, 3, false, 5, 5, 3, 3),
    CONV(3, 3, 1, 1, 1, 1, 1, false, 3, 3, 1, 1),
    CONV(3, 3, 1, 1, 1, 1, 1, true, 1, 1, 2, 2),
    CONV(3, 3, 1, 1, 1, 1, 1, true, 4, 3, 16, 16),
    CONV(3, 3, 1, 1, 1, 1, 1, true, 3, 3, 8, 19),
    /* Without a bias. */
    {.op = &bwi_op_conv2d,
     ATTRIBUTES(bwi_conv2d_attributes, .filters = 3, .kernel = {3, 3}, .strides = {1, 1}, .dilation = {1, 1}, .groups = 1),
     .input = {VARIED(4, 5, 2)},
     .variable = {SHAPE(3, 3, 2, 3)}},

    POOL(maxpool2d, 2, 2, 2, 2, false, 4, 6, 3),
    POOL(maxpool2d, 2, 2, 2, 2, false, 5, 7, 2),
    POOL(maxpool2d, 2, 2, 2, 2, true, 5, 7, 1),
    POOL(maxpool2d, 3, 2, 1, 2, true, 5, 5, 3),
    POOL(maxpool2d, 3, 3, 2, 2, false, 7, 7, 1),
    POOL(maxpool2d, 1, 1, 1, 1, false, 3, 3, 2),
    POOL(maxpool2d, 2, 3, 3, 1, true, 4, 7, 5),
    POOL(relu_maxpool, 2, 2, 2, 2, false, 4, 6, 3),
    POOL(relu_maxpool, 2, 2, 2, 2, false, 5, 7, 2),
    POOL(relu_maxpool, 2, 2, 2, 2, true, 2, 2, 1),
    POOL(relu_maxpool, 2, 2, 2, 2, false, 3, 4, 17),

    /* A sequence is an image of height 1; a depthwise kernel is (kh, kw, in, multiplier); padding before and after. */
    {.op = &bwi_op_conv2d,
     ATTRIBUTES(bwi_conv2d_attributes, .filters = 4, .kernel = {1, 3}, .strides = {1, 2}, .dilation = {1, 2}, .groups = 1,
                .pad = {{0, 0}, {4, 0}}),
     .input = {VARIED(9, 3)},
     .variable = {SHAPE(3, 3, 4), SHAPE(4)}},
    {.op = &bwi_op_conv2d,
     ATTRIBUTES(bwi_conv2d_attributes, .filters = 10, .kernel = {3, 2}, .strides = {1, 1}, .dilation = {1, 1}, .groups = 5,
                .same = true),
     .input = {VARIED(4, 5, 5)},
     .variable = {SHAPE(3, 2, 5, 2), SHAPE(10)}},
    {.op = &bwi_op_conv2d,
     ATTRIBUTES(bwi_conv2d_attributes, .filters = 17, .kernel = {3, 3}, .strides = {2, 2}, .dilation = {1, 1}, .groups = 17,
                .pad = {{1, 0}, {0, 2}}),
     .input = {VARIED(4, 4, 17)},
     .variable = {SHAPE(3, 3, 17, 1)}},

    DEPTHWISE(3, 3, 1, 1, 1, 1, true, 4, 5, 17),
    DEPTHWISE(5, 4, 1, 1, 1, 1, true, 7, 9, 3),
    DEPTHWISE(3, 2, 1, 1, 2, 3, false, 7, 8, 2),
    DEPTHWISE(5, 5, 2, 3, 1, 1, true, 8, 7, 5),

    POOL(maxpool2d, 1, 3, 1, 2, true, 1, 9, 3),
    {.op = &bwi_op_maxpool2d,
     ATTRIBUTES(bwi_pool2d_attributes, .window = {1, 2}, .strides = {1, 2}),
     .input = {VARIED(9, 3)},
     .kinks = true},
    POOL(avgpool2d, 2, 2, 2, 2, false, 4, 6, 17),
    POOL(avgpool2d, 2, 2, 2, 2, false, 5, 7, 2),
    POOL(avgpool2d, 3, 2, 2, 1, true, 5, 4, 3),
    POOL(avgpool2d, 2, 1, 3, 2, false, 7, 7, 1),
    POOL(avgpool2d, 5, 6, 5, 6, false, 5, 6, 3),
    {.op = &bwi_op_avgpool2d,
     ATTRIBUTES(bwi_pool2d_attributes, .window = {1, 3}, .strides = {1, 2}, .same = true),
     .input = {VARIED(8, 5)}},
    KINKED(global_maxpool, 4, 5, 3),
    KINKED(global_maxpool, 7, 17),
    {.op = &bwi_op_pad2d, ATTRIBUTES(bwi_pad2d_attributes, .amount = {{1, 2}, {0, 3}}), .input = {VARIED(3, 4, 2)}},
    {.op = &bwi_op_pad2d, ATTRIBUTES(bwi_pad2d_attributes, .amount = {{-1, 0}, {-2, -1}}), .input = {VARIED(4, 5, 3)}},
    {.op = &bwi_op_pad2d, ATTRIBUTES(bwi_pad2d_attributes, .amount = {{2, -1}, {-4, 5}}), .input = {VARIED(2, 3, 1)}},
    {.op = &bwi_op_upsample2d, ATTRIBUTES(bwi_upsample2d_attributes, .size = {2, 3}), .input = {VARIED(3, 2, 3)}},
    {.op = &bwi_op_upsample2d, ATTRIBUTES(bwi_upsample2d_attributes, .size = {3, 2}, .bilinear = true), .input = {VARIED(3, 4, 2)}},
    {.op = &bwi_op_upsample2d, ATTRIBUTES(bwi_upsample2d_attributes, .size = {1, 4}, .bilinear = true), .input = {VARIED(1, 3, 1)}},
    {.op = &bwi_op_permute, ATTRIBUTES(bwi_permute_attributes, .ndim = 3, .axes = {2, 0, 1}), .input = {VARIED(2, 3, 5)}},
    {.op = &bwi_op_permute, ATTRIBUTES(bwi_permute_attributes, .ndim = 2, .axes = {1, 0}), .input = {VARIED(4, 3)}},
    {.op = &bwi_op_permute, ATTRIBUTES(bwi_permute_attributes, .ndim = 4, .axes = {1, 3, 0, 2}), .input = {VARIED(2, 3, 2, 4)}},

    KINKED(relu, 1),
    KINKED(relu, 17),
    KINKED(relu, 3, 5, 2),
    PLAIN(softmax, 1),
    PLAIN(softmax, 7),
    PLAIN(softmax, 17),
    PLAIN(softmax, 3, 5),
    {.op = &bwi_op_reshape, ATTRIBUTES(bwi_reshape_attributes, .shape = SHAPE(2, 3, 5)), .input = {VARIED(5, 6)}},
    {.op = &bwi_op_reshape, ATTRIBUTES(bwi_reshape_attributes, .shape = {.ndim = -1}), .input = {VARIED(2, 3, 5)}},

    {.op = &bwi_op_embedding, .input = {{CASE_W, SHAPE(4), BW_I32}}, .variable = {SHAPE(6, 3)}},
    {.op = &bwi_op_embedding, .input = {{CASE_W, SHAPE(2, 3), BW_I32}}, .variable = {SHAPE(2, 17)}},
    {.op = &bwi_op_embedding, .input = {{CASE_W, ONE, BW_I32}}, .variable = {SHAPE(1, 1)}},
    {.op = &bwi_op_masked_average, .input = {VARIED(5, 3), {CASE_W, SHAPE(5), BW_F32}}},
    {.op = &bwi_op_masked_average, .input = {VARIED(1, 17), {CASE_W, SHAPE(1), BW_F32}}},

    DENSE(1, 1),
    DENSE(3, 17),
    DENSE(13, 2),
    DENSE(31, 37),
    {.op = &bwi_op_dense,
     ATTRIBUTES(bwi_dense_attributes, .units = 5),
     .input = {VARIED(4, 3)},
     .variable = {SHAPE(3, 5), SHAPE(5)}},
    {.op = &bwi_op_dense, ATTRIBUTES(bwi_dense_attributes, .units = 7), .input = {VARIED(11)}, .variable = {SHAPE(11, 7)}},

    BATCHNORM(3, 3),
    BATCHNORM(1, 1),
    BATCHNORM(17, 17),
    BATCHNORM(2, 3, 5, 2),
    BATCHNORM(5, 4, 5),
    {.op = &bwi_op_batchnorm,
     BATCHNORM_ATTRIBUTES(false, true),
     .input = {VARIED(2, 3, 2)},
     .variable = {SHAPE(2), SHAPE(2), SHAPE(2)},
     .frozen = 2},
    {.op = &bwi_op_batchnorm,
     BATCHNORM_ATTRIBUTES(true, false),
     .input = {VARIED(7)},
     .variable = {SHAPE(7), SHAPE(7), SHAPE(7)},
     .frozen = 2},
    {.op = &bwi_op_batchnorm,
     BATCHNORM_ATTRIBUTES(false, false),
     .input = {VARIED(3)},
     .variable = {SHAPE(3), SHAPE(3)},
     .frozen = 2},

    {.op = &bwi_op_balance, .input = {{CASE_VARIED, ONE, BW_F32}, {CASE_W, ONE, BW_F32}}, .loss = true},
    {.op = &bwi_op_balance, .input = {{CASE_VARIED, ONE, BW_F32}, {CASE_W, SHAPE(3), BW_F32}}, .loss = true},
    {.op = &bwi_op_balance, .input = {{CASE_VARIED, ONE, BW_F32}}, .loss = true},

    {.op = &bwi_op_crossentropy, .input = {VARIED(7), {CASE_Y, ONE, BW_I32}}, .loss = true},
    {.op = &bwi_op_crossentropy, .input = {VARIED(2), {CASE_Y, ONE, BW_I32}, {CASE_W, ONE, BW_F32}}, .loss = true},
    {.op = &bwi_op_crossentropy, .input = {VARIED(4, 5), {CASE_Y, SHAPE(4), BW_I32}, {CASE_W, ONE, BW_F32}}, .loss = true},
    {.op = &bwi_op_crossentropy, .input = {VARIED(4, 5), {CASE_Y, SHAPE(4), BW_I32}, {CASE_W, SHAPE(4), BW_F32}}, .loss = true},
    {.op = &bwi_op_crossentropy, .input = {VARIED(7), {CASE_Y, SHAPE(7), BW_F32}}, .loss = true},
    {.op = &bwi_op_crossentropy,
     ATTRIBUTES(bwi_crossentropy_attributes, .smoothing = 0.2F),
     .input = {VARIED(3, 17), {CASE_Y, SHAPE(3, 17), BW_F32}, {CASE_W, SHAPE(3), BW_F32}},
     .loss = true},
    {.op = &bwi_op_loss,
     ATTRIBUTES(bwi_loss_attributes, .kind = BWI_LOSS_SQUARE),
     .input = {VARIED(1), {CASE_Y, ONE, BW_F32}},
     .loss = true},
    LOSS(SQUARE, 0, false),
    LOSS(ABSOLUTE, 0, false),
    LOSS(PERCENTAGE, 0, false),
    LOSS(LOGARITHMIC, 0, true),
    LOSS(HUBER, 3, false),
    LOSS(HUBER, 1e-3F, false),
    LOSS(LOG_COSH, 0, false),
    LOSS(POISSON, 0, true),
    LOSS(HINGE, 0, false),
    LOSS(SQUARED_HINGE, 0, false),
    LOSS(BINARY_LOGITS, 0.2F, false),
    LOSS(BINARY, 0.2F, true),
    LOSS(DIVERGENCE, 0, true),
    LOSS(CATEGORICAL, 0.2F, true),
    {.op = &bwi_op_loss,
     LOSS_ATTRIBUTES(CATEGORICAL_HINGE, 0),
     .input = {VARIED(7), {CASE_Y, SHAPE(7), BW_F32}, {CASE_W, ONE, BW_F32}},
     .loss = true},
    {.op = &bwi_op_loss,
     LOSS_ATTRIBUTES(CATEGORICAL_HINGE, 0),
     .input = {VARIED(2, 3), {CASE_Y, SHAPE(2, 3), BW_F32}, {CASE_W, SHAPE(2), BW_F32}},
     .loss = true},
    LOSS(COSINE, 0, false),
    {.op = &bwi_op_loss,
     ATTRIBUTES(bwi_loss_attributes, .kind = BWI_LOSS_SPARSE),
     .input = {VARIED(3, 5), {CASE_Y, SHAPE(3), BW_I32}, {CASE_W, SHAPE(3), BW_F32}},
     .loss = true,
     .positive = true},
};

/* ---- Patterns ---- */

typedef struct pattern_case {
    const bwi_op *fused;
    op_case chain[BWI_CHAIN]; /* of all but the first only op and attributes count */
} pattern_case;

#define RELU_POOL(same) KINKED(relu, 0), POOL(maxpool2d, 2, 2, 2, 2, same, 0, 0, 0)

static const pattern_case pattern_cases[] = {
    {&bwi_op_relu_maxpool, {KINKED(relu, 6, 4, 3), POOL(maxpool2d, 2, 2, 2, 2, false, 0, 0, 0)}},
    {&bwi_op_relu_maxpool, {KINKED(relu, 7, 5, 17), POOL(maxpool2d, 2, 2, 2, 2, false, 0, 0, 0)}},
    {&bwi_op_relu_maxpool, {KINKED(relu, 2, 4, 1), POOL(maxpool2d, 2, 2, 2, 2, true, 0, 0, 0)}},
    {&bwi_op_conv_relu_maxpool, {CONV(3, 3, 1, 1, 1, 1, 1, false, 9, 8, 1, 5), RELU_POOL(false)}},
    {&bwi_op_conv_relu_maxpool, {CONV(1, 3, 1, 1, 1, 1, 1, true, 6, 10, 3, 17), RELU_POOL(true)}},
    {&bwi_op_conv_relu_maxpool, {CONV(2, 5, 1, 1, 1, 1, 1, false, 7, 12, 2, 33), RELU_POOL(false)}},
    {&bwi_op_thin_relu_maxpool, {CONV(3, 3, 1, 1, 1, 1, 1, false, 9, 7, 3, 17), RELU_POOL(false)}},
    {&bwi_op_thin_relu_maxpool, {CONV(3, 3, 1, 1, 1, 1, 1, true, 6, 8, 2, 32), RELU_POOL(true)}},
    {&bwi_op_winograd_relu_maxpool, {CONV(3, 3, 1, 1, 1, 1, 1, false, 6, 7, 16, 16), RELU_POOL(false)}},
    {&bwi_op_winograd_relu_maxpool, {CONV(3, 3, 1, 1, 1, 1, 1, true, 6, 4, 16, 32), RELU_POOL(true)}},
    {&bwi_op_winograd_relu, {CONV(3, 3, 1, 1, 1, 1, 1, true, 6, 8, 28, 30), KINKED(relu, 0)}},
    {&bwi_op_winograd, {CONV(3, 3, 1, 1, 1, 1, 1, true, 8, 8, 16, 20)}},
};

/* ---- Models: the samples of one that begins with an embedding are whole numbers below its rows ---- */

typedef struct model_case {
    const char *expression;
    bwi_shape input;
    int classes; /* 0: trained on numbers, with mean_squared_error */
} model_case;

static const model_case model_cases[] = {
    {"conv2d(5,3,sigmoid) conv2d(7,2,exponential) conv2d(3,1,softplus) flatten dense(3,softmax)", SHAPE(6, 5, 2), 3},
    {"a=conv2d(17,3,silu,padding=same) b=conv2d(17,3,gelu,padding=same) add(a) rescaling(0.5,1) multiply(a,b) global_avgpool2d "
     "dense(2)",
     SHAPE(4, 5, 2), 0},
    {"a=conv2d(5,2,tanh) global_avgpool2d(keepdims=true) conv2d(5,1,sigmoid) multiply(a) concat(a) conv2d(3,2) flatten dense(2)",
     SHAPE(5, 5, 2), 0},
    {"a=conv2d(5,2,tanh) batchnorm(trainable=false) layernorm conv2d(5,1) spatial_dropout2d(0.3) average(a) flatten dropout(0.4) "
     "dense(2)",
     SHAPE(5, 5, 2), 0},
    {"dense(7,relu) dense(5,relu) dense(3,softmax)", SHAPE(5), 3},
    {"dense(9,softmax) dense(2)", SHAPE(3), 0},
    {"conv2d(5,3,relu) maxpool2d(2) flatten dense(4,softmax)", SHAPE(9, 7, 2), 4},
    {"conv2d(4,3,relu,padding=same) conv2d(6,2,relu,strides=2) flatten dense(3)", SHAPE(6, 5, 3), 0},
    {"conv2d(3,3) maxpool2d(3,strides=2,padding=same) relu conv2d(2,1)", SHAPE(7, 7, 1), 0},
    {"conv2d(4,3,relu,groups=2) dense(3) flatten dense(3,softmax)", SHAPE(5, 5, 2), 3},
    {"dense(6) batchnorm relu dense(3,softmax)", SHAPE(4), 3},
    {"dense(5) batchnorm dense(4) batchnorm dense(2)", SHAPE(4), 0},
    {"batchnorm dense(3,relu) dense(3,softmax)", SHAPE(5), 3},
    {"conv2d(5,3,padding=same) batchnorm relu maxpool2d(2) conv2d(3,2) batchnorm relu flatten dense(3,softmax)", SHAPE(6, 6, 2), 3},
    {"conv2d(17,3) batchnorm maxpool2d(2) flatten dense(3,softmax)", SHAPE(6, 6, 1), 3},
    {"conv2d(3,3,relu) maxpool2d(2) batchnorm dense(2)", SHAPE(6, 4, 2), 0},
    {"conv1d(5,3,relu,padding=causal) maxpool1d(2) conv1d(4,2) global_avgpool1d dense(3,softmax)", SHAPE(9, 2), 3},
    {"conv2d(17,3,padding=same) depthwise_conv2d(3) avgpool2d(2) zero_padding2d(1) conv2d(4,3,strides=2) global_avgpool2d",
     SHAPE(6, 6, 2), 0},
    {"conv2d(4,3) zero_padding2d((1,2)) avgpool2d(3,strides=2) upsampling2d(2) cropping2d(1) permute(3,1,2) reshape(4,-1) dense(2)",
     SHAPE(7, 6, 2), 0},
    {"conv2d(6,2) upsampling2d(2,interpolation=bilinear) conv2d(3,3) global_avgpool2d(keepdims=true) flatten dense(3,softmax)",
     SHAPE(4, 4, 2), 3},
    {"conv2d(4,2,mish) separable_conv2d(6,3,hard_silu) groupnorm(2) layer_scale(0.5,6) dropout(0.4,noise_shape=(none,1,1,1)) "
     "flatten "
     "dense(3,softmax)",
     SHAPE(6, 5, 2), 3},
    {"conv1d(4,2) layernorm(axis=1) separable_conv1d(4,2,padding=causal) zero_padding1d((1,2)) rmsnorm upsampling1d(2) cropping1d "
     "depthwise_conv1d(3,padding=same) unitnorm(axis=1) softmax(axis=(1,2)) flatten dense(6,tanh) repeat_vector(2) flatten "
     "dense(2)",
     SHAPE(7, 3), 0},
    {"a=conv2d(17,2,squareplus) conv2d(17,1,log_sigmoid) custom_scale(a,scale=0.17) conv2d(2,1) rescaling((0.5,2)) flatten "
     "dense(3,log_softmax) "
     "alpha_dropout(0.3) dense(2)",
     SHAPE(4, 4, 2), 0},
    {"embedding(7,4) flatten dense(5,tanh) dense(3,softmax)", SHAPE(6), 3},
    {"embedding(4,3,random_normal(stddev=1),mask_zero=true) dense(5,tanh) global_avgpool1d dense(3,softmax)", SHAPE(6), 3},
    {"embedding(4,3,mask_zero=true) dense(5,tanh) dense(2)", SHAPE(6), 0},
    {"embedding(5,4,random_normal(stddev=1),mask_zero=true) a=dense(4,tanh) dense(4) add(a) dense(2)", SHAPE(5), 0},
    {"embedding(5,4,random_normal(stddev=1)) conv1d(4,3) batchnorm activation(tanh) flatten dense(2)", SHAPE(5), 0},
};

#endif
