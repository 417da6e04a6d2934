/*
 * Writes C source for operators on images and sequences: convolutions, pooling, padding, upsampling. A sequence is an image with
 * one row.
 */
#include "file/csource.h"

#define LINE(depth, ...) bwi_csource_line(s, depth, __VA_ARGS__)

/* Writes the position in the input of element k of window i, such as "i * 2 + k - 1". */
static void put_position(bwi_csource *s, int depth, const char *name, const char *window, const char *element, const bwi_sliding *w,
                         int axis)
{
    char strides[32] = "", dilation[32] = "", before[32] = "";
    if (w->strides[axis] > 1) {
        snprintf(strides, sizeof strides, " * %lld", (long long)w->strides[axis]);
    }
    if (w->dilation[axis] > 1) {
        snprintf(dilation, sizeof dilation, " * %lld", (long long)w->dilation[axis]);
    }
    if (w->before[axis] > 0) {
        snprintf(before, sizeof before, " - %lld", (long long)w->before[axis]);
    }
    LINE(depth, "const int %s = %s%s + %s%s%s;", name, window, strides, element, dilation, before);
}

static void put_bounds(bwi_csource *s, int depth, const char *name, const bwi_sliding *w, int axis)
{
    if (w->before[axis] > 0 || w->after[axis] > 0) {
        LINE(depth, "if (%s < 0 || %s >= %lld) {", name, name, (long long)w->in[axis]);
        LINE(depth + 1, "continue;");
        LINE(depth, "}");
    }
}

/* Opens loops over the outputs (i, j), in which y points to the channels of the present one. */
static void open_outputs(bwi_csource *s, const bwi_sliding *w, int64_t channels)
{
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)w->out[0]);
    LINE(3, "for (int j = 0; j < %lld; j++, y += %lld) {", (long long)w->out[1], (long long)channels);
}

/* Opens loops over those elements (k, l) of window (i, j) that lie inside the input; `from` is the pixel there. */
static void open_elements(bwi_csource *s, int depth, const bwi_sliding *w)
{
    LINE(depth, "for (int k = 0; k < %lld; k++) {", (long long)w->size[0]);
    put_position(s, depth + 1, "row", "i", "k", w, 0);
    put_bounds(s, depth + 1, "row", w, 0);
    LINE(depth + 1, "for (int l = 0; l < %lld; l++) {", (long long)w->size[1]);
    put_position(s, depth + 2, "column", "j", "l", w, 1);
    put_bounds(s, depth + 2, "column", w, 1);
    LINE(depth + 2, "const float *from = x + (row * %lld + column) * %lld;", (long long)w->in[1], (long long)w->channels);
}

static void close_loops(bwi_csource *s, int from, int to)
{
    for (int depth = from; depth >= to; depth--) {
        LINE(depth, "}");
    }
}

/* ---- Convolutions ---- */

/* The kernel is [height][width][channels of a group][filters]. */
static void put_conv(bwi_csource *s, const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_sliding w = bwi_export_convolution(node);
    long long filters = (long long)a->filters, inner = (long long)(w.channels / a->groups);
    char kernel[160], bias[160] = "";
    bwi_csource_variable(s, node->variable[0], kernel);
    if (node->variables > 1) {
        bwi_csource_variable(s, node->variable[1], bias);
    }
    open_outputs(s, &w, a->filters);
    LINE(4, "for (int o = 0; o < %lld; o++) {", filters);
    LINE(5, "y[o] = %s%s;", bias[0] ? bias : "0.0f", bias[0] ? "[o]" : "");
    LINE(4, "}");
    open_elements(s, 4, &w);
    LINE(6, "const float *w = %s + (k * %lld + l) * %lld;", kernel, (long long)w.size[1], inner * filters);
    LINE(6, "for (int c = 0; c < %lld; c++) {", inner);
    LINE(7, "for (int o = 0; o < %lld; o++) {", filters);
    if (a->groups == 1) {
        LINE(8, "y[o] += from[c] * w[c * %lld + o];", filters);
    } else {
        LINE(8, "y[o] += from[o / %lld * %lld + c] * w[c * %lld + o];", filters / (long long)a->groups, inner, filters);
    }
    close_loops(s, 7, 2);
}

/* The same for volumes, whose kernel is [depth][height][width][channels of a group][filters]. */
static void put_volume(bwi_csource *s, const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_sliding w = bwi_export_convolution(node);
    long long filters = (long long)a->filters, inner = (long long)(w.channels / a->groups);
    char kernel[160], bias[160] = "";
    bwi_csource_variable(s, node->variable[0], kernel);
    if (node->variables > 1) {
        bwi_csource_variable(s, node->variable[1], bias);
    }
    LINE(2, "for (int d = 0; d < %lld; d++)", (long long)w.out[2]);
    open_outputs(s, &w, a->filters);
    LINE(4, "for (int o = 0; o < %lld; o++) {", filters);
    LINE(5, "y[o] = %s%s;", bias[0] ? bias : "0.0f", bias[0] ? "[o]" : "");
    LINE(4, "}");
    LINE(4, "for (int m = 0; m < %lld; m++) {", (long long)w.size[2]);
    put_position(s, 5, "frame", "d", "m", &w, 2);
    put_bounds(s, 5, "frame", &w, 2);
    open_elements(s, 5, &w);
    LINE(7, "const float *v = from + frame * %lld;", (long long)(w.in[0] * w.in[1] * w.channels));
    LINE(7, "const float *w = %s + ((m * %lld + k) * %lld + l) * %lld;", kernel, (long long)w.size[0], (long long)w.size[1],
         inner * filters);
    LINE(7, "for (int c = 0; c < %lld; c++) {", inner);
    LINE(8, "for (int o = 0; o < %lld; o++) {", filters);
    LINE(9, "y[o] += v[o / %lld * %lld + c] * w[c * %lld + o];", filters / (long long)a->groups, inner, filters);
    close_loops(s, 8, 2);
}

/* ---- Pooling ---- */

static void put_maxpool(bwi_csource *s, const bw_node *node)
{
    bwi_sliding w = bwi_export_pooling(node);
    open_outputs(s, &w, w.channels);
    LINE(4, "for (int c = 0; c < %lld; c++) {", (long long)w.channels);
    LINE(5, "float most = -INFINITY;");
    open_elements(s, 5, &w);
    LINE(7, "most = from[c] > most || isnan(from[c]) ? from[c] : most;");
    close_loops(s, 6, 5);
    LINE(5, "y[c] = most;");
    close_loops(s, 4, 2);
}

static void put_avgpool(bwi_csource *s, const bw_node *node)
{
    bwi_sliding w = bwi_export_pooling(node);
    open_outputs(s, &w, w.channels);
    LINE(4, "for (int c = 0; c < %lld; c++) {", (long long)w.channels);
    LINE(5, "float sum = 0.0f, count = 0.0f;");
    open_elements(s, 5, &w);
    LINE(7, "sum += from[c];");
    LINE(7, "count += 1.0f;");
    close_loops(s, 6, 5);
    LINE(5, "y[c] = sum / count;");
    close_loops(s, 4, 2);
}

static void put_global_maxpool(bwi_csource *s, const bw_node *node)
{
    int64_t h, w, c;
    bwi_shape_image(&node->input[0]->shape, &h, &w, &c);
    LINE(2, "for (int c = 0; c < %lld; c++) {", (long long)c);
    LINE(3, "float most = x[c];");
    LINE(3, "for (int i = 1; i < %lld; i++) {", (long long)(h * w));
    LINE(4, "const float v = x[i * %lld + c];", (long long)c);
    LINE(4, "most = v > most || isnan(v) ? v : most;");
    LINE(3, "}");
    LINE(3, "y[c] = most;");
    LINE(2, "}");
}

/* ---- Other heights and widths ---- */

static void put_pad(bwi_csource *s, const bw_node *node)
{
    const bwi_pad2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape, *out = &node->shape;
    long long channels = (long long)out->extent[2];
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)out->extent[0]);
    LINE(3, "for (int j = 0; j < %lld; j++, y += %lld) {", (long long)out->extent[1], channels);
    LINE(4, "const int row = i - (%lld), column = j - (%lld);", (long long)a->amount[0][0], (long long)a->amount[1][0]);
    LINE(4, "const int inside = row >= 0 && row < %lld && column >= 0 && column < %lld;", (long long)in->extent[0],
         (long long)in->extent[1]);
    LINE(4, "for (int c = 0; c < %lld; c++) {", channels);
    LINE(5, "y[c] = inside ? x[(row * %lld + column) * %lld + c] : 0.0f;", (long long)in->extent[1], channels);
    close_loops(s, 4, 2);
}

/* Output i lies at (i + 1/2) / size - 1/2 of the input, between two pixels, neither of which is beyond the border. */
static void put_between(bwi_csource *s, int depth, const char *name, const char *counter, int64_t size, int64_t extent)
{
    LINE(depth, "const float %s = ((float)%s + 0.5f) / %lld.0f - 0.5f, %s_floor = floorf(%s);", name, counter, (long long)size,
         name, name);
    LINE(depth, "const int %s_low = %s_floor < 0.0f ? 0 : (int)%s_floor;", name, name, name);
    LINE(depth, "const int %s_high = (int)%s_floor + 1 < %lld ? (int)%s_floor + 1 : %lld;", name, name, (long long)extent, name,
         (long long)extent - 1);
}

static void put_bilinear(bwi_csource *s, const bw_node *node)
{
    const bwi_upsample2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape, *out = &node->shape;
    long long width = (long long)in->extent[1], channels = (long long)in->extent[2];
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)out->extent[0]);
    put_between(s, 3, "h", "i", a->size[0], in->extent[0]);
    LINE(3, "for (int j = 0; j < %lld; j++, y += %lld) {", (long long)out->extent[1], channels);
    put_between(s, 4, "w", "j", a->size[1], in->extent[1]);
    LINE(4, "for (int c = 0; c < %lld; c++) {", channels);
    for (int k = 0; k < 2; k++) {
        const char *column = k ? "high" : "low";
        LINE(5, "const float %s = x[(h_low * %lld + w_%s) * %lld + c] * (1.0f - (h - h_floor))", column, width, column, channels);
        LINE(6, "+ x[(h_high * %lld + w_%s) * %lld + c] * (h - h_floor);", width, column, channels);
    }
    LINE(5, "y[c] = low + (w - w_floor) * (high - low);");
    close_loops(s, 4, 2);
}

static void put_upsample(bwi_csource *s, const bw_node *node)
{
    const bwi_upsample2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape, *out = &node->shape;
    long long channels = (long long)in->extent[2];
    if (a->bilinear) {
        put_bilinear(s, node);
        return;
    }
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)out->extent[0]);
    LINE(3, "for (int j = 0; j < %lld; j++, y += %lld) {", (long long)out->extent[1], channels);
    LINE(4, "for (int c = 0; c < %lld; c++) {", channels);
    LINE(5, "y[c] = x[(i / %lld * %lld + j / %lld) * %lld + c];", (long long)a->size[0], (long long)in->extent[1],
         (long long)a->size[1], channels);
    close_loops(s, 4, 2);
}

/* What a transposed kernel reaches before the output along an axis. */
static int64_t transposed_before(const bw_node *node, int axis, int64_t in, int64_t out)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
    int64_t reach = (a->kernel[axis] - 1) * a->dilation[axis], all = out - (in - 1) * a->strides[axis] - 1 + reach;
    int64_t half = all / 2 + all % 2;
    return a->same && half < reach ? reach - half : 0;
}

/* Every pixel of the input is added to the outputs that its kernel reaches. */
static void put_transposed(bwi_csource *s, const bw_node *node)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
    int64_t h, w, c, oh, ow, oc;
    char kernel[160];
    bwi_csource_variable(s, node->variable[0], kernel);
    bwi_shape_image(&node->input[0]->shape, &h, &w, &c);
    bwi_shape_image(&node->shape, &oh, &ow, &oc);
    LINE(2, "for (int o = 0; o < %lld; o++) {", (long long)(oh * ow * oc));
    LINE(3, "y[o] = 0.0f;");
    LINE(2, "}");
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)h);
    LINE(3, "for (int j = 0; j < %lld; j++, x += %lld) {", (long long)w, (long long)c);
    LINE(4, "for (int k = 0; k < %lld; k++) {", (long long)a->kernel[0]);
    LINE(5, "for (int l = 0; l < %lld; l++) {", (long long)a->kernel[1]);
    LINE(6, "const int row = i * %lld + k * %lld - %lld;", (long long)a->strides[0], (long long)a->dilation[0],
         (long long)transposed_before(node, 0, h, oh));
    LINE(6, "const int column = j * %lld + l * %lld - %lld;", (long long)a->strides[1], (long long)a->dilation[1],
         (long long)transposed_before(node, 1, w, ow));
    LINE(6, "if (row < 0 || row >= %lld || column < 0 || column >= %lld) {", (long long)oh, (long long)ow);
    LINE(7, "continue;");
    LINE(6, "}");
    LINE(6, "const float *w = %s + (k * %lld + l) * %lld;", kernel, (long long)a->kernel[1], (long long)(c * oc));
    LINE(6, "float *to = y + (row * %lld + column) * %lld;", (long long)ow, (long long)oc);
    LINE(6, "for (int o = 0; o < %lld; o++) {", (long long)oc);
    LINE(7, "for (int n = 0; n < %lld; n++) {", (long long)c);
    LINE(8, "to[o] += x[n] * w[o * %lld + n];", (long long)c);
    close_loops(s, 7, 2);
}

/* The same for volumes. */
static void put_transposed_volume(bwi_csource *s, const bw_node *node)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
    const int64_t *in = node->input[0]->shape.extent, *out = node->shape.extent;
    char kernel[160];
    bwi_csource_variable(s, node->variable[0], kernel);
    LINE(2, "for (int o = 0; o < %lld; o++) {", (long long)bwi_shape_count(&node->shape));
    LINE(3, "y[o] = 0.0f;");
    LINE(2, "}");
    LINE(2, "for (int d = 0; d < %lld; d++)", (long long)in[0]);
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)in[1]);
    LINE(3, "for (int j = 0; j < %lld; j++, x += %lld) {", (long long)in[2], (long long)in[3]);
    LINE(4, "for (int k = 0; k < %lld; k++) {", (long long)(a->kernel[2] * a->kernel[0]));
    LINE(5, "for (int l = 0; l < %lld; l++) {", (long long)a->kernel[1]);
    LINE(6, "const int frame = d * %lld + k / %lld * %lld - %lld;", (long long)a->strides[2], (long long)a->kernel[0],
         (long long)a->dilation[2], (long long)transposed_before(node, 2, in[0], out[0]));
    LINE(6, "const int row = i * %lld + k %% %lld * %lld - %lld;", (long long)a->strides[0], (long long)a->kernel[0],
         (long long)a->dilation[0], (long long)transposed_before(node, 0, in[1], out[1]));
    LINE(6, "const int column = j * %lld + l * %lld - %lld;", (long long)a->strides[1], (long long)a->dilation[1],
         (long long)transposed_before(node, 1, in[2], out[2]));
    LINE(6, "if (frame < 0 || frame >= %lld || row < 0 || row >= %lld || column < 0 || column >= %lld) {", (long long)out[0],
         (long long)out[1], (long long)out[2]);
    LINE(7, "continue;");
    LINE(6, "}");
    LINE(6, "const float *w = %s + (k * %lld + l) * %lld;", kernel, (long long)a->kernel[1], (long long)(in[3] * out[3]));
    LINE(6, "float *to = y + ((frame * %lld + row) * %lld + column) * %lld;", (long long)out[1], (long long)out[2],
         (long long)out[3]);
    LINE(6, "for (int o = 0; o < %lld; o++) {", (long long)out[3]);
    LINE(7, "for (int n = 0; n < %lld; n++) {", (long long)in[3]);
    LINE(8, "to[o] += x[n] * w[o * %lld + n];", (long long)in[3]);
    close_loops(s, 7, 2);
}

static void put_resample(bwi_csource *s, const bw_node *node)
{
    const bwi_resample_attributes *a = node->attributes;
    bwi_around around = bwi_shape_around(&node->input[0]->shape, a->axis);
    long long from = (long long)around.extent, to = (long long)a->extent, inner = (long long)around.inner;
    char name[160];
    float *weights = bwi_export_resampling(s->ctx, node);
    if (!weights) {
        s->status = BW_RESOURCE_EXHAUSTED;
        return;
    }
    bwi_csource_array(s, node->name, "resampling", weights, around.extent * a->extent, name);
    bwi_release(s->ctx, weights);
    LINE(2, "for (int i = 0; i < %lld; i++) {", (long long)around.outer * to);
    LINE(3, "for (int j = 0; j < %lld; j++) {", inner);
    LINE(4, "float sum = 0.0f;");
    LINE(4, "for (int k = 0; k < %lld; k++) {", from);
    LINE(5, "sum += %s[i %% %lld * %lld + k] * x[(i / %lld * %lld + k) * %lld + j];", name, to, from, to, from, inner);
    LINE(4, "}");
    LINE(4, "y[i * %lld + j] = sum;", inner);
    close_loops(s, 3, 2);
}

const bwi_csource_row bwi_csource_spatial[] = {
    {&bwi_op_conv3d, put_volume, false},
    {&bwi_op_conv3d_transpose, put_transposed_volume, false},
    {&bwi_op_conv2d, put_conv, false},
    {&bwi_op_depthwise, put_conv, false},
    {&bwi_op_conv2d_transpose, put_transposed, false},
    {&bwi_op_maxpool2d, put_maxpool, false},
    {&bwi_op_avgpool2d, put_avgpool, false},
    {&bwi_op_global_maxpool, put_global_maxpool, false},
    {&bwi_op_pad2d, put_pad, false},
    {&bwi_op_upsample2d, put_upsample, false},
    {&bwi_op_resample, put_resample, false},
    {NULL, NULL, false},
};
