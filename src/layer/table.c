/* The table of layers. */
#include "layer/internal.h"

#include <string.h>

const bwi_layer_row *const bwi_layer_rows[] = {&bwi_layer_conv2d,
                                               &bwi_layer_maxpool2d,
                                               &bwi_layer_flatten,
                                               &bwi_layer_dense,
                                               &bwi_layer_batchnorm,
                                               &bwi_layer_activation,
                                               &bwi_layer_relu,
                                               &bwi_layer_softmax,
                                               &bwi_layer_leaky_relu,
                                               &bwi_layer_elu,
                                               &bwi_layer_prelu,
                                               &bwi_layer_dropout,
                                               &bwi_layer_spatial_dropout2d,
                                               &bwi_layer_gaussian_noise,
                                               &bwi_layer_layernorm,
                                               &bwi_layer_normalization,
                                               &bwi_layer_rescaling,
                                               &bwi_layer_add,
                                               &bwi_layer_subtract,
                                               &bwi_layer_multiply,
                                               &bwi_layer_average,
                                               &bwi_layer_maximum,
                                               &bwi_layer_minimum,
                                               &bwi_layer_concatenate,
                                               &bwi_layer_dot,
                                               &bwi_layer_conv1d,
                                               &bwi_layer_depthwise_conv2d,
                                               &bwi_layer_maxpool1d,
                                               &bwi_layer_avgpool1d,
                                               &bwi_layer_avgpool2d,
                                               &bwi_layer_global_maxpool1d,
                                               &bwi_layer_global_maxpool2d,
                                               &bwi_layer_global_avgpool1d,
                                               &bwi_layer_global_avgpool2d,
                                               &bwi_layer_reshape,
                                               &bwi_layer_permute,
                                               &bwi_layer_zero_padding2d,
                                               &bwi_layer_cropping2d,
                                               &bwi_layer_upsampling2d,
                                               &bwi_layer_embedding,
                                               NULL};

const bwi_layer_row *bwi_layer_row_find(const char *name, int length)
{
    for (int i = 0; bwi_layer_rows[i]; i++) {
        for (const char *at = bwi_layer_rows[i]->names; *at;) {
            size_t n = strcspn(at, " ");
            if (n == (size_t)length && memcmp(at, name, n) == 0) {
                return bwi_layer_rows[i];
            }
            at += n + strspn(at + n, " ");
        }
    }
    return NULL;
}

/* Names of Keras that are known and not supported, so that they are refused as what they are. */
static const struct {
    const char *names, *kind;
} absent[] = {
    {"lstm gru simple_rnn rnn bidirectional time_distributed conv_lstm2d", "recurrent layers are"},
    {"multi_head_attention attention additive_attention group_query_attention", "attention layers are"},
    {"conv3d conv3d_transpose max_pooling3d maxpool3d average_pooling3d avgpool3d zero_padding3d cropping3d up_sampling3d",
     "3D layers are"},
    {"lambda", "layers that carry code are"},
};

bw_status bwi_layer_row_refuse(bw_context *ctx, const bwi_term *term)
{
    for (size_t i = 0; i < BWI_COUNT(absent); i++) {
        for (const char *at = absent[i].names; *at;) {
            size_t n = strcspn(at, " ");
            if (n == (size_t)term->length && memcmp(at, term->text, n) == 0) {
                return bwi_fail_text(ctx, BW_UNIMPLEMENTED, "model", term->argument, term->column, "%.*s: %s not supported",
                                     term->length, term->text, absent[i].kind);
            }
            at += n + strspn(at + n, " ");
        }
    }
    return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column, "there is no layer '%.*s'", term->length,
                         term->text);
}
