/*
 * Images: which decoder a file's first bytes ask for, and bringing rows to another size. Along an axis that shrinks a result is
 * the mean of the area it covers, shares of pixels counted; along one that grows it lies on the line between the centres
 * of its two neighbours. Everything is a function of the file alone: no thread, no machine changes a bit.
 */
#include "format/image.h"

#include <string.h>

static const struct {
    bool (*is)(const void *file, size_t size);
    bw_status (*look)(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error);
    bw_status (*decode)(bwi_canvas *canvas, const void *file, size_t size);
} decoders[] = {
    {bwi_png_is, bwi_png_look, bwi_png_decode},
    {bwi_jpeg_is, bwi_jpeg_look, bwi_jpeg_decode},
};

bw_status bwi_image_fail(char *error, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bwi_format(error, BWI_IMAGE_ERROR, format, arguments);
    va_end(arguments);
    return status;
}

bw_status bwi_image_check(const bwi_picture *image, size_t size, int64_t densest, char *error)
{
    const long long width = image->width, height = image->height;
    if (width < 1 || height < 1) {
        return bwi_image_fail(error, BW_DATA_LOSS, "an image of %lld x %lld pixels", width, height);
    }
    if (width > BWI_IMAGE_SIDE || height > BWI_IMAGE_SIDE || width > BWI_IMAGE_PIXELS / height) {
        return bwi_image_fail(error, BW_INVALID_ARGUMENT,
                              "an image of %lld x %lld pixels; at most %d a side and %d in all are read", width, height,
                              BWI_IMAGE_SIDE, BWI_IMAGE_PIXELS);
    }
    if (width * height / densest > (int64_t)size) {
        return bwi_image_fail(error, BW_DATA_LOSS, "a file of %zu bytes cannot hold the %lld x %lld pixels it declares", size,
                              width, height);
    }
    return BW_OK;
}

/* ---- Axes ---- */

static int64_t axis_weights(int64_t from, int64_t to)
{
    return from > to ? from + 2 * to : 2 * to;
}

/* Result j covers the source from j * from / to to (j + 1) * from / to. */
static void cover(bwi_axis *axis, int64_t j, float *weight)
{
    int64_t begin = j * axis->from, end = begin + axis->from; /* in units of 1 / to pixels */
    int64_t first = begin / axis->to, last = (end - 1) / axis->to;
    axis->first[j] = (int32_t)first;
    axis->count[j] = (int32_t)(last - first + 1);
    for (int64_t i = first; i <= last; i++) {
        int64_t left = i * axis->to > begin ? i * axis->to : begin;
        int64_t right = (i + 1) * axis->to < end ? (i + 1) * axis->to : end;
        weight[i - first] = (float)((double)(right - left) / (double)axis->from);
    }
}

/* The centre of result j lies at (j + 1/2) * from / to - 1/2, counted from the centre of the source's first pixel. */
static void interpolate(bwi_axis *axis, int64_t j, float *weight)
{
    double centre = ((double)j + 0.5) * (double)axis->from / (double)axis->to - 0.5;
    centre = centre < 0 ? 0 : centre;
    int64_t first = (int64_t)centre;
    if (first >= axis->from - 1) {
        first = axis->from - 1;
        centre = (double)first;
    }
    axis->first[j] = (int32_t)first;
    axis->count[j] = first + 1 < axis->from ? 2 : 1;
    weight[0] = (float)(1 - (centre - (double)first));
    if (axis->count[j] == 2) {
        weight[1] = (float)(centre - (double)first);
    }
}

static void fill_axis(bwi_axis *axis)
{
    int32_t used = 0;
    for (int64_t j = 0; j < axis->to; j++) {
        axis->first_weight[j] = used;
        if (axis->from > axis->to) {
            cover(axis, j, axis->weight + used);
        } else {
            interpolate(axis, j, axis->weight + used);
        }
        used += axis->count[j];
    }
}

/* ---- Canvas ---- */

typedef struct layout {
    unsigned char *memory; /* NULL: only counting */
    size_t bytes;
} layout;

static void *reserve(layout *l, int64_t count, size_t size)
{
    void *at = l->memory ? l->memory + l->bytes : NULL;
    l->bytes += bwi_size_align((size_t)count * size, BWI_CACHE_LINE);
    return at;
}

static void place_axis(layout *l, bwi_axis *axis, int64_t from, int64_t to)
{
    axis->from = from;
    axis->to = to;
    axis->first = reserve(l, to, sizeof *axis->first);
    axis->count = reserve(l, to, sizeof *axis->count);
    axis->first_weight = reserve(l, to, sizeof *axis->first_weight);
    axis->weight = reserve(l, axis_weights(from, to), sizeof *axis->weight);
}

static void place_all(bwi_canvas *canvas, layout *l)
{
    const bwi_picture *wanted = canvas->wanted;
    canvas->pixels = reserve(l, canvas->from.width * wanted->channels, 1);
    if (canvas->same) {
        return;
    }
    place_axis(l, &canvas->across, canvas->from.width, wanted->width);
    place_axis(l, &canvas->down, canvas->from.height, wanted->height);
    canvas->line = reserve(l, wanted->width * wanted->channels, sizeof *canvas->line);
    canvas->sums = reserve(l, wanted->height * wanted->width * wanted->channels, sizeof *canvas->sums);
}

bw_status bwi_canvas_begin(bwi_canvas *canvas, const bwi_picture *from)
{
    const bwi_picture *wanted = canvas->wanted;
    layout l = {.memory = NULL};
    canvas->from = *from;
    canvas->row = canvas->finished = 0;
    canvas->same = from->height == wanted->height && from->width == wanted->width;
    place_all(canvas, &l);
    if (!bwi_buffer_reserve(canvas->ctx, canvas->scratch, l.bytes)) {
        return bwi_image_fail(canvas->error, BW_RESOURCE_EXHAUSTED, "no memory for %zu bytes to decode it", l.bytes);
    }
    l = (layout){.memory = canvas->scratch->memory};
    place_all(canvas, &l);
    if (!canvas->same) {
        fill_axis(&canvas->across);
        fill_axis(&canvas->down);
        memset(canvas->sums, 0, (size_t)(wanted->height * wanted->width * wanted->channels) * sizeof *canvas->sums);
    }
    return BW_OK;
}

/* Gray is ITU-R 601's luma, in 1/65536, rounded; RGB of gray is gray three times. */
static void convert(unsigned char *to, int channels, const unsigned char *from, int from_channels, int64_t width)
{
    if (channels == from_channels) {
        memcpy(to, from, (size_t)(width * channels));
    } else if (channels == 1) {
        for (int64_t i = 0; i < width; i++, from += 3) {
            to[i] = (unsigned char)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
        }
    } else {
        for (int64_t i = 0; i < width; i++, to += 3) {
            to[0] = to[1] = to[2] = from[i];
        }
    }
}

static void resize_across(bwi_canvas *canvas, const unsigned char *row)
{
    const bwi_axis *axis = &canvas->across;
    int channels = canvas->wanted->channels;
    float *to = canvas->line;
    for (int64_t j = 0; j < axis->to; j++) {
        const float *weight = axis->weight + axis->first_weight[j];
        const unsigned char *from = row + (int64_t)axis->first[j] * channels;
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < axis->count[j]; k++) {
                sum += weight[k] * (float)from[k * channels + c];
            }
            *to++ = sum;
        }
    }
}

static void round_row(unsigned char *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float value = from[i] + 0.5f;
        to[i] = value < 0 ? 0 : value > 255 ? 255 : (unsigned char)value;
    }
}

/* Adds the line to every result that it is a part of; those that get no more are rounded. */
static void resize_down(bwi_canvas *canvas)
{
    const bwi_axis *axis = &canvas->down;
    int64_t values = canvas->wanted->width * canvas->wanted->channels, row = canvas->row;
    for (int64_t j = canvas->finished; j < axis->to && axis->first[j] <= row; j++) {
        float weight = axis->weight[axis->first_weight[j] + row - axis->first[j]];
        float *sums = canvas->sums + j * values;
        for (int64_t i = 0; i < values; i++) {
            sums[i] += weight * canvas->line[i];
        }
        if (row == axis->first[j] + axis->count[j] - 1) {
            round_row(canvas->to + j * values, sums, values);
            canvas->finished = j + 1;
        }
    }
}

unsigned char *bwi_canvas_place(const bwi_canvas *canvas)
{
    const bwi_picture *wanted = canvas->wanted;
    if (!canvas->same || canvas->from.channels != wanted->channels || canvas->row >= wanted->height) {
        return NULL;
    }
    return canvas->to + canvas->row * wanted->width * wanted->channels;
}

void bwi_canvas_row(bwi_canvas *canvas, const unsigned char *row)
{
    int channels = canvas->wanted->channels;
    int64_t values = canvas->wanted->width * channels;
    if (row == bwi_canvas_place(canvas)) {
        canvas->row++;
        return;
    }
    if (canvas->same) {
        convert(canvas->to + canvas->row * values, channels, row, canvas->from.channels, canvas->from.width);
    } else {
        if (channels != canvas->from.channels) {
            convert(canvas->pixels, channels, row, canvas->from.channels, canvas->from.width);
            row = canvas->pixels;
        }
        resize_across(canvas, row);
        resize_down(canvas);
    }
    canvas->row++;
}

/* ---- Files ---- */

static bw_status fail_kind(const void *file, size_t size, char *error)
{
    char quoted[BWI_QUOTE_SIZE];
    if (size == 0) {
        return bwi_image_fail(error, BW_DATA_LOSS, "the file is empty");
    }
    return bwi_image_fail(error, BW_DATA_LOSS, "neither PNG nor JPEG: it begins with %s",
                          bwi_quote(quoted, file, size < 8 ? size : 8));
}

bool bwi_picture_is(const void *file, size_t size)
{
    for (size_t i = 0; i < BWI_COUNT(decoders); i++) {
        if (decoders[i].is(file, size)) {
            return true;
        }
    }
    return false;
}

bw_status bwi_picture_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error)
{
    error[0] = 0;
    for (size_t i = 0; i < BWI_COUNT(decoders); i++) {
        if (decoders[i].is(file, size)) {
            return decoders[i].look(ctx, file, size, found, error);
        }
    }
    return fail_kind(file, size, error);
}

bw_status bwi_picture_decode(bw_context *ctx, bwi_buffer *scratch, const void *file, size_t size, const bwi_picture *wanted,
                             unsigned char *to, char *error)
{
    bwi_canvas canvas = {.ctx = ctx, .scratch = scratch, .wanted = wanted, .to = to, .error = error};
    error[0] = 0;
    for (size_t i = 0; i < BWI_COUNT(decoders); i++) {
        if (decoders[i].is(file, size)) {
            return decoders[i].decode(&canvas, file, size);
        }
    }
    return fail_kind(file, size, error);
}
