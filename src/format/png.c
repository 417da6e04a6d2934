/*
 * PNG; the only file that includes libpng. Every kind becomes 8 bits, gray or RGB: palettes are looked up, 16 bits are scaled,
 * transparency is left out, gamma and profiles are ignored. Rows are decoded one at a time, except of interlaced files, which
 * are held as a whole. A failure of the library comes back by longjmp: what is needed then lives in the struct `reading`.
 */
#include "format/image.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

#define CHUNK_BYTES ((png_alloc_size_t)1 << 20) /* of a chunk beside the pixels */

/* Deflate expands at most 1032-fold, and a pixel may have a single bit. */
enum { DENSEST = 1032 * 8 };

typedef struct reading {
    bw_context *ctx;
    const unsigned char *at;
    size_t left;
    char *error;
    bw_status status;
    png_struct *png;
    png_info *info;
    bwi_picture image;
    int passes;
    void *memory;
    jmp_buf back;
} reading;

static void on_error(png_struct *png, const char *message)
{
    reading *r = png_get_error_ptr(png);
    if (!r->error[0]) {
        r->status = bwi_image_fail(r->error, BW_DATA_LOSS, "a damaged PNG file: %s", message);
    }
    longjmp(r->back, 1);
}

static void on_warning(png_struct *png, const char *message)
{
    (void)png, (void)message;
}

static void on_read(png_struct *png, unsigned char *to, size_t size)
{
    reading *r = png_get_io_ptr(png);
    if (size > r->left) {
        r->status = bwi_image_fail(r->error, BW_DATA_LOSS, "a PNG file that ends too early");
        longjmp(r->back, 1);
    }
    memcpy(to, r->at, size);
    r->at += size;
    r->left -= size;
}

static void *allocate(png_struct *png, png_alloc_size_t bytes)
{
    reading *r = png_get_mem_ptr(png);
    void *memory = bwi_try_allocate(r->ctx, bytes, 1);
    if (!memory) { /* what libpng then says of the file is not the reason */
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    }
    return memory;
}

static void release(png_struct *png, void *memory)
{
    reading *r = png_get_mem_ptr(png);
    bwi_release(r->ctx, memory);
}

bool bwi_png_is(const void *file, size_t size)
{
    return size >= 8 && png_sig_cmp(file, 0, 8) == 0;
}

static void open_reading(reading *r)
{
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, on_error, on_warning, r, allocate, release);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) {
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    }
}

static void close_reading(reading *r)
{
    if (r->png) {
        png_destroy_read_struct(&r->png, &r->info, NULL);
    }
    bwi_release(r->ctx, r->memory);
}

/* Reads the header, which decides what rows will look like. */
static void look(reading *r)
{
    size_t size = r->left;
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* checked here, with better words */
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES);
    png_set_chunk_cache_max(r->png, 16);
    png_set_read_fn(r->png, r, on_read);
    png_read_info(r->png, r->info);
    int type = png_get_color_type(r->png, r->info);
    r->image = (bwi_picture){.height = png_get_image_height(r->png, r->info),
                             .width = png_get_image_width(r->png, r->info),
                             .channels = type & PNG_COLOR_MASK_COLOR ? 3 : 1};
    r->status = bwi_image_check(&r->image, size, DENSEST, r->error);
}

static void prepare(reading *r)
{
    png_set_scale_16(r->png);
    png_set_expand(r->png);
    png_set_strip_alpha(r->png);
    r->passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != (size_t)(r->image.width * r->image.channels)) {
        png_error(r->png, "rows of another length than declared");
    }
}

/* Reads an interlaced file: seven passes, each over the rows of the whole image. */
static void read_passes(reading *r, bwi_canvas *canvas)
{
    size_t row = (size_t)(r->image.width * r->image.channels);
    size_t bytes = row * (size_t)r->image.height;
    if (bytes > IMAGE_MEMORY) {
        r->status = bwi_image_fail(r->error, BW_INVALID_ARGUMENT, "an interlaced PNG file of %zu bytes; at most %zu are held",
                                   bytes, IMAGE_MEMORY);
        return;
    }
    r->memory = bwi_try_allocate(r->ctx, bytes, 1);
    if (!r->memory) {
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory for %zu bytes to decode it", bytes);
        return;
    }
    for (int pass = 0; pass < r->passes; pass++) {
        for (int64_t i = 0; i < r->image.height; i++) {
            png_read_row(r->png, (unsigned char *)r->memory + (size_t)i * row, NULL);
        }
    }
    for (int64_t i = 0; i < r->image.height; i++) {
        bwi_canvas_row(canvas, (unsigned char *)r->memory + (size_t)i * row);
    }
}

static void read_rows(reading *r, bwi_canvas *canvas)
{
    r->memory = bwi_try_allocate(r->ctx, (size_t)(r->image.width * r->image.channels), 1);
    if (!r->memory) {
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    }
    for (int64_t i = 0; i < r->image.height && r->status == BW_OK; i++) {
        png_read_row(r->png, r->memory, NULL);
        bwi_canvas_row(canvas, r->memory);
    }
}

static void decode(reading *r, bwi_canvas *canvas)
{
    look(r);
    if (r->status != BW_OK) {
        return;
    }
    prepare(r);
    r->status = bwi_canvas_begin(canvas, &r->image);
    if (r->status == BW_OK && r->passes > 1) {
        read_passes(r, canvas);
    } else if (r->status == BW_OK) {
        read_rows(r, canvas);
    }
    if (r->status == BW_OK) {
        png_read_end(r->png, NULL);
    }
}

bw_status bwi_png_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error)
{
    reading r = {.ctx = ctx, .at = file, .left = size, .error = error};
    if (setjmp(r.back) == 0) {
        open_reading(&r);
        if (r.status == BW_OK) {
            look(&r);
        }
    }
    close_reading(&r);
    *found = r.image;
    return r.status;
}

bw_status bwi_png_decode(bwi_canvas *canvas, const void *file, size_t size)
{
    reading r = {.ctx = canvas->ctx, .at = file, .left = size, .error = canvas->error};
    if (setjmp(r.back) == 0) {
        open_reading(&r);
        if (r.status == BW_OK) {
            decode(&r, canvas);
        }
    }
    close_reading(&r);
    return r.status;
}
