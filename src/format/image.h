/*
 * Inside of format: what decoders of images share. A decoder reads the header, begins the canvas with the size of the rows it
 * will give, and gives them from top to bottom. The canvas brings them to the size that is wanted, a row at a time: no whole
 * image of the source's size is ever held.
 */
#ifndef BWI_FORMAT_IMAGE_H
#define BWI_FORMAT_IMAGE_H

#include "format/format.h"

#define IMAGE_MEMORY ((size_t)48 << 20) /* that decoding may take where a file must be held as a whole */

/* One axis: what is wanted at j is the sum of weight[first_weight[j] + k] * source[first[j] + k] over k < count[j]. */
typedef struct bwi_axis {
    int64_t from, to;
    int32_t *first, *count, *first_weight;
    float *weight;
} bwi_axis;

typedef struct bwi_canvas {
    bw_context *ctx;
    bwi_buffer *scratch;
    const bwi_picture *wanted;
    unsigned char *to;
    char *error; /* BWI_IMAGE_ERROR bytes */
    bwi_picture from;
    bool same; /* no resizing */
    bwi_axis across, down;
    int64_t row, finished; /* of the source, next; of the result, done */
    unsigned char *pixels; /* a row with the wanted channels */
    float *line, *sums;    /* a row of the wanted width; the result before it is rounded */
} bwi_canvas;

/* Leaves the text in `error` and returns the status. */
bw_status bwi_image_fail(char *error, bw_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether sizes are within limits; `densest` is the number of pixels that a byte of the file can stand for at most. */
bw_status bwi_image_check(const bwi_picture *image, size_t size, int64_t densest, char *error);
/* `from` is what the rows have: any size within limits, 1 or 3 channels. */
bw_status bwi_canvas_begin(bwi_canvas *canvas, const bwi_picture *from);
void bwi_canvas_row(bwi_canvas *canvas, const unsigned char *row);
/* Where the next row may be written before it is handed over, if it needs no change; otherwise NULL. */
unsigned char *bwi_canvas_place(const bwi_canvas *canvas);

bool bwi_png_is(const void *file, size_t size);
bw_status bwi_png_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error);
bw_status bwi_png_decode(bwi_canvas *canvas, const void *file, size_t size);
bool bwi_jpeg_is(const void *file, size_t size);
bw_status bwi_jpeg_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error);
bw_status bwi_jpeg_decode(bwi_canvas *canvas, const void *file, size_t size);

#endif
