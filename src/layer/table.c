/* The table of layers, and the names under which they are found: ours, Keras's, and Keras's other names. */
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
                                               &bwi_layer_conv1d_transpose,
                                               &bwi_layer_conv2d_transpose,
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
                                               &bwi_layer_text_vectorization,
                                               &bwi_layer_string_lookup,
                                               &bwi_layer_integer_lookup,
                                               &bwi_layer_hashing,
                                               &bwi_layer_hashed_crossing,
                                               &bwi_layer_discretization,
                                               &bwi_layer_category_encoding,
                                               &bwi_layer_activity_regularization,
                                               &bwi_layer_rnn,
                                               &bwi_layer_simple_rnn_cell,
                                               &bwi_layer_lstm_cell,
                                               &bwi_layer_gru_cell,
                                               &bwi_layer_stacked_rnn_cells,
                                               &bwi_layer_resizing,
                                               &bwi_layer_random_grayscale,
                                               &bwi_layer_random_color_degeneration,
                                               &bwi_layer_random_invert,
                                               &bwi_layer_random_posterization,
                                               &bwi_layer_solarization,
                                               &bwi_layer_simple_rnn,
                                               &bwi_layer_lstm,
                                               &bwi_layer_gru,
                                               &bwi_layer_masking,
                                               &bwi_layer_bidirectional,
                                               &bwi_layer_time_distributed,
                                               &bwi_layer_einsum_dense,
                                               &bwi_layer_multi_head_attention,
                                               &bwi_layer_group_query_attention,
                                               &bwi_layer_attention,
                                               &bwi_layer_additive_attention,
                                               &bwi_layer_separable_conv1d,
                                               &bwi_layer_separable_conv2d,
                                               &bwi_layer_depthwise_conv1d,
                                               &bwi_layer_layer_scale,
                                               &bwi_layer_stochastic_depth,
                                               &bwi_layer_custom_scale,
                                               &bwi_layer_group_norm,
                                               &bwi_layer_rms_norm,
                                               &bwi_layer_unit_norm,
                                               &bwi_layer_spatial_dropout1d,
                                               &bwi_layer_gaussian_dropout,
                                               &bwi_layer_alpha_dropout,
                                               &bwi_layer_identity,
                                               &bwi_layer_repeat_vector,
                                               &bwi_layer_zero_padding1d,
                                               &bwi_layer_cropping1d,
                                               &bwi_layer_upsampling1d,
                                               &bwi_layer_conv3d,
                                               &bwi_layer_random_flip,
                                               &bwi_layer_random_translation,
                                               &bwi_layer_random_rotation,
                                               &bwi_layer_random_zoom,
                                               &bwi_layer_random_brightness,
                                               &bwi_layer_random_contrast,
                                               &bwi_layer_adaptive_avgpool1d,
                                               &bwi_layer_adaptive_avgpool2d,
                                               &bwi_layer_adaptive_avgpool3d,
                                               &bwi_layer_adaptive_maxpool1d,
                                               &bwi_layer_adaptive_maxpool2d,
                                               &bwi_layer_adaptive_maxpool3d,
                                               &bwi_layer_center_crop,
                                               &bwi_layer_conv3d_transpose,
                                               &bwi_layer_maxpool3d,
                                               &bwi_layer_avgpool3d,
                                               &bwi_layer_global_maxpool3d,
                                               &bwi_layer_global_avgpool3d,
                                               &bwi_layer_zero_padding3d,
                                               &bwi_layer_cropping3d,
                                               &bwi_layer_upsampling3d,
                                               &bwi_layer_spatial_dropout3d,
                                               NULL};

/* Accepts Keras's class, its other names for it, and ours: Conv2D, Convolution2D, conv2d. */
const bwi_layer_row *bwi_layer_row_find(const bwi_term *term)
{
    static const struct {
        const char *name, *class_name;
    } others[] = {{"Convolution1D", "Conv1D"},
                  {"Convolution2D", "Conv2D"},
                  {"Convolution3D", "Conv3D"},
                  {"Convolution3DTranspose", "Conv3DTranspose"},
                  {"Convolution1DTranspose", "Conv1DTranspose"},
                  {"Convolution2DTranspose", "Conv2DTranspose"},
                  {"SeparableConvolution1D", "SeparableConv1D"},
                  {"SeparableConvolution2D", "SeparableConv2D"}};
    for (int i = 0; bwi_layer_rows[i]; i++) {
        const bwi_layer_row *row = bwi_layer_rows[i];
        bool found = bwi_term_resembles_any(term, row->names) || bwi_term_resembles(term, row->class_name);
        for (size_t k = 0; k < BWI_COUNT(others); k++) {
            found = found || (bwi_term_resembles(term, others[k].name) && strcmp(row->class_name, others[k].class_name) == 0);
        }
        if (found) {
            return row;
        }
    }
    return NULL;
}

bool bwi_layer_is_class(const bwi_term *term)
{
    for (int i = 0; i < term->length; i++) {
        if (term->text[i] >= 'A' && term->text[i] <= 'Z') {
            return true;
        }
    }
    return false;
}

/* For these layers, arguments by position have a different order here, with the usual ones first. */
const char *bwi_layer_order(const bwi_layer_row *row)
{
    static const char convolution[] = "filters kernel_size strides padding data_format dilation_rate groups activation use_bias "
                                      "kernel_initializer bias_initializer kernel_regularizer bias_regularizer";
    static const char simple[] = "units activation use_bias kernel_initializer recurrent_initializer bias_initializer "
                                 "kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint "
                                 "recurrent_constraint bias_constraint dropout recurrent_dropout return_sequences return_state "
                                 "go_backwards stateful unroll seed";
    static const char lstm[] = "units activation recurrent_activation use_bias kernel_initializer recurrent_initializer "
                               "bias_initializer unit_forget_bias kernel_regularizer recurrent_regularizer bias_regularizer "
                               "activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout "
                               "recurrent_dropout seed return_sequences return_state go_backwards stateful unroll";
    static const char gru[] = "units activation recurrent_activation use_bias kernel_initializer recurrent_initializer "
                              "bias_initializer kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer "
                              "kernel_constraint recurrent_constraint bias_constraint dropout recurrent_dropout seed "
                              "return_sequences return_state go_backwards stateful unroll reset_after";
    static const char depthwise[] = "kernel_size strides padding depth_multiplier data_format dilation_rate activation use_bias "
                                    "depthwise_initializer bias_initializer depthwise_regularizer bias_regularizer";
    static const char separable[] = "filters kernel_size strides padding data_format dilation_rate depth_multiplier activation "
                                    "use_bias depthwise_initializer pointwise_initializer bias_initializer depthwise_regularizer "
                                    "pointwise_regularizer bias_regularizer";
    static const char global[] = "data_format keepdims";
    static const struct {
        const char *class_name, *order;
    } orders[] = {
        {"Conv1D", convolution},
        {"Conv2D", convolution},
        {"Conv3D", convolution},
        {"DepthwiseConv2D", depthwise},
        {"DepthwiseConv1D", depthwise},
        {"SeparableConv1D", separable},
        {"SeparableConv2D", separable},
        {"GlobalMaxPooling1D", global},
        {"GlobalMaxPooling2D", global},
        {"GlobalMaxPooling3D", global},
        {"GlobalAveragePooling3D", global},
        {"GlobalAveragePooling1D", global},
        {"GlobalAveragePooling2D", global},
        {"UpSampling2D", "size data_format interpolation"},
        {"Bidirectional", "layer merge_mode weights backward_layer"},
        {"TimeDistributed", "layer"},
        {"SimpleRNN", simple},
        {"LSTM", lstm},
        {"GRU", gru},
        {"PReLU", "alpha_initializer alpha_regularizer alpha_constraint shared_axes"},
        {"Dropout", "rate noise_shape seed"},
        {"AlphaDropout", "rate noise_shape seed"},
        {"SpatialDropout2D", "rate data_format seed"},
        {"SpatialDropout3D", "rate data_format seed"},
        {"RandomFlip", "mode seed"},
        {"RandomTranslation", "height_factor width_factor fill_mode interpolation seed fill_value"},
        {"RandomZoom", "height_factor width_factor fill_mode interpolation seed fill_value"},
        {"RandomRotation", "factor fill_mode interpolation seed fill_value"},
        {"UpSampling3D", "size data_format"},
        {"Embedding", "input_dim output_dim embeddings_initializer embeddings_regularizer embeddings_constraint mask_zero"},
    };
    for (size_t i = 0; i < BWI_COUNT(orders); i++) {
        if (strcmp(row->class_name, orders[i].class_name) == 0) {
            return orders[i].order;
        }
    }
    return NULL;
}

/* These names of Keras are known but not supported, so that the message can say so. */
static const struct {
    const char *names, *kind;
} absent[] = {
    {"conv_lstm1d conv_lstm2d conv_lstm3d", "recurrent layers of this kind are"},
    {"spectral_normalization", "normalisation of weights is"},
    {"random_crop random_shear random_hue random_saturation random_erasing random_gaussian_blur "
     "random_perspective random_sharpness random_elastic_transform random_color_jitter "
     "rand_augment aug_mix auto_contrast cut_mix mix_up equalization "
     "contrast_limited_adaptive_histogram_equalization max_num_bounding_boxes pipeline",
     "layers of this kind, which prepare images, are"},
    {"mel_spectrogram stft_spectrogram", "layers that prepare sound are"},
    {"reversible_embedding", "a transposed embedding is"},
    {"flax_layer jax_layer tfsm_layer torch_module_wrapper", "layers that carry other programs are"},
    {"lambda", "layers that carry code are"},
};

bw_status bwi_layer_row_refuse(bw_context *ctx, const bwi_term *term)
{
    for (size_t i = 0; i < BWI_COUNT(absent); i++) {
        if (bwi_term_resembles_any(term, absent[i].names)) {
            return bwi_fail_text(ctx, BW_UNIMPLEMENTED, "model", term->argument, term->column, "%.*s: %s not supported",
                                 term->length, term->text, absent[i].kind);
        }
    }
    size_t least = SIZE_MAX;
    char nearest[64] = "";
    for (int i = 0; bwi_layer_rows[i]; i++) {
        const char *names = bwi_layer_is_class(term) ? bwi_layer_rows[i]->class_name : bwi_layer_rows[i]->names;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(names, " "), names);
        if (bwi_nearer(&least, term->text, (size_t)term->length, name)) {
            memcpy(nearest, name, sizeof nearest);
        }
    }
    return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column, "there is no layer '%.*s'%s%s%s",
                         term->length, term->text, nearest[0] ? "; did you mean '" : "", nearest, nearest[0] ? "'?" : "");
}
