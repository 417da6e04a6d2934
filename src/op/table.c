/* The tables of operators and of fusions. */
#include "op/internal.h"

const bwi_op *const bwi_ops[] = {&bwi_op_activation,
                                 &bwi_op_activation_of_input,
                                 &bwi_op_softmax_axis,
                                 &bwi_op_prelu,
                                 &bwi_op_dropout,
                                 &bwi_op_shared_dropout,
                                 &bwi_op_gaussian_dropout,
                                 &bwi_op_alpha_dropout,
                                 &bwi_op_channel_affine,
                                 &bwi_op_channel_map,
                                 &bwi_op_spatial_dropout,
                                 &bwi_op_gaussian_noise,
                                 &bwi_op_layernorm,
                                 &bwi_op_batchnorm_frozen,
                                 &bwi_op_batchnorm_ghost,
                                 &bwi_op_normalization,
                                 &bwi_op_l2_normalize,
                                 &bwi_op_scale,
                                 &bwi_op_unary,
                                 &bwi_op_add,
                                 &bwi_op_binary,
                                 &bwi_op_broadcast,
                                 &bwi_op_reduce,
                                 &bwi_op_reduce_extreme,
                                 &bwi_op_dot,
                                 &bwi_op_slice,
                                 &bwi_op_concatenate,
                                 &bwi_op_input,
                                 &bwi_op_conv2d,
                                 &bwi_op_maxpool2d,
                                 &bwi_op_relu,
                                 &bwi_op_relu_maxpool,
                                 &bwi_op_conv_relu_maxpool,
                                 &bwi_op_thin_relu_maxpool,
                                 &bwi_op_winograd_relu_maxpool,
                                 &bwi_op_winograd_relu,
                                 &bwi_op_winograd,
                                 &bwi_op_softmax,
                                 &bwi_op_reshape,
                                 &bwi_op_dense,
                                 &bwi_op_recurrent,
                                 &bwi_op_attention,
                                 &bwi_op_reverse,
                                 &bwi_op_batchnorm,
                                 &bwi_op_reorder,
                                 &bwi_op_crossentropy,
                                 &bwi_op_accuracy,
                                 &bwi_op_mean,
                                 &bwi_op_avgpool2d,
                                 &bwi_op_global_maxpool,
                                 &bwi_op_pad2d,
                                 &bwi_op_upsample2d,
                                 &bwi_op_permute,
                                 &bwi_op_depthwise,
                                 &bwi_op_conv2d_transpose,
                                 &bwi_op_conv3d,
                                 &bwi_op_random_view,
                                 &bwi_op_random_contrast,
                                 &bwi_op_random_color,
                                 &bwi_op_resample,
                                 &bwi_op_conv3d_transpose,
                                 &bwi_op_loss,
                                 &bwi_op_graded_loss,
                                 &bwi_op_ctc,
                                 &bwi_op_sparsemax,
                                 &bwi_op_confusion,
                                 &bwi_op_variation,
                                 &bwi_op_agreement,
                                 &bwi_op_match,
                                 &bwi_op_correlation,
                                 &bwi_op_moments,
                                 &bwi_op_class_weight,
                                 &bwi_op_embedding,
                                 &bwi_op_index_mask,
                                 &bwi_op_masked_average,
                                 &bwi_op_mask_any,
                                 &bwi_op_value_mask,
                                 &bwi_op_mask_weights,
                                 &bwi_op_ignored_mask,
                                 &bwi_op_ignored_labels,
                                 &bwi_op_balance,
                                 NULL};

static bool pools_two_by_two(const bw_node *relu, const bw_node *pool)
{
    const bwi_pool2d_attributes *a = pool->attributes;
    const bwi_shape *in = &relu->shape;
    bool covers = !a->same || (in->extent[0] % 2 == 0 && in->extent[1] % 2 == 0);
    return a->window[0] == 2 && a->window[1] == 2 && a->strides[0] == 2 && a->strides[1] == 2 && covers;
}

static bool relu_maxpool_fits(const bw_node *const *chain)
{
    return pools_two_by_two(chain[0], chain[1]);
}

static bool conv_relu_maxpool_fits(const bw_node *const *chain)
{
    return pools_two_by_two(chain[1], chain[2]) && bwi_conv_pool_fusion(chain[0], &bwi_op_conv_relu_maxpool);
}

static bool thin_relu_maxpool_fits(const bw_node *const *chain)
{
    return pools_two_by_two(chain[1], chain[2]) && bwi_conv_pool_fusion(chain[0], &bwi_op_thin_relu_maxpool);
}

static bool winograd_relu_maxpool_fits(const bw_node *const *chain)
{
    return pools_two_by_two(chain[1], chain[2]) && bwi_conv_pool_fusion(chain[0], &bwi_op_winograd_relu_maxpool);
}

static bool winograd_relu_fits(const bw_node *const *chain)
{
    return bwi_conv_pool_fusion(chain[0], &bwi_op_winograd_relu);
}

static bool winograd_fits(const bw_node *const *chain)
{
    return bwi_conv_pool_fusion(chain[0], &bwi_op_winograd);
}

#define CONV_RELU_POOL .chain = {&bwi_op_conv2d, &bwi_op_relu, &bwi_op_maxpool2d}, .length = 3

const bwi_fusion bwi_fusions[] = {
    {CONV_RELU_POOL, .fused = &bwi_op_thin_relu_maxpool, .fits = thin_relu_maxpool_fits, .inexact = true},
    {CONV_RELU_POOL, .fused = &bwi_op_conv_relu_maxpool, .fits = conv_relu_maxpool_fits},
    {CONV_RELU_POOL, .fused = &bwi_op_winograd_relu_maxpool, .fits = winograd_relu_maxpool_fits, .inexact = true},
    {.chain = {&bwi_op_relu, &bwi_op_maxpool2d},
     .length = 2,
     .attributes = 1,
     .fused = &bwi_op_relu_maxpool,
     .fits = relu_maxpool_fits},
    {.chain = {&bwi_op_conv2d, &bwi_op_relu},
     .length = 2,
     .fused = &bwi_op_winograd_relu,
     .fits = winograd_relu_fits,
     .inexact = true},
    {.chain = {&bwi_op_conv2d}, .length = 1, .fused = &bwi_op_winograd, .fits = winograd_fits, .inexact = true},
    {.fused = NULL},
};

bwi_image bwi_node_image(const bw_node *node, int64_t n)
{
    bwi_image image = {.n = n, .block = node->block};
    bwi_shape_image(&node->shape, &image.h, &image.w, &image.c);
    return image;
}

bw_status bwi_shape_check(bwi_graph *graph, const bw_node *node)
{
    char text[160];
    if (bwi_shape_count(&node->shape) > BWI_MOST_VALUES) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: an output of %s a sample is too large", node->name,
                        bwi_format_shape(text, node->shape.ndim, node->shape.extent));
    }
    return BW_OK;
}

void bwi_pool_extent(int64_t extent, int64_t size, int64_t stride, bool same, int64_t *out, int64_t *before, int64_t *after)
{
    *before = *after = 0;
    if (!same) {
        *out = extent < size ? 0 : (extent - size) / stride + 1;
        return;
    }
    *out = (extent + stride - 1) / stride;
    int64_t pad = (*out - 1) * stride + size - extent;
    if (pad > 0) {
        *before = pad / 2;
        *after = pad - pad / 2;
    }
}
