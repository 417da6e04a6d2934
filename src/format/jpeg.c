/*
 * JPEG; the only file that includes libjpeg-turbo. Decoded at the smallest of 1/8, 1/4, 1/2 and the whole size that is no smaller
 * than what is wanted: most of the arithmetic is never done. Gray is the luma channel, as it stands in the file. A failure of
 * the library comes back by longjmp (its own way is to end the process): what is needed then lives in the struct `reading`.
 * Data that libjpeg-turbo would only warn of and replace by gray is a failure too.
 */
#include "format/image.h"

#include <jpeglib.h>
/* This must follow jpeglib.h. */
#include <jerror.h>
#include <setjmp.h>
#include <string.h>

/* Every block of 8 x 8 pixels takes at least a bit of the Huffman code. A progressive file reads the image again for each scan. */
enum { DENSEST = 64 * 8, SCAN_LIMIT = 32 };

typedef struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    bw_context *ctx;
    char *error;
    bw_status status;
    bwi_picture image;
    unsigned char *row;
    jmp_buf back;
} reading;

static void on_error(j_common_ptr common)
{
    reading *r = common->client_data;
    char message[JMSG_LENGTH_MAX];
    int code = common->err->msg_code;
    common->err->format_message(common, message);
    if (code == JERR_OUT_OF_MEMORY) {
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
    } else if (code == JERR_NO_BACKING_STORE) {
        r->status = bwi_image_fail(r->error, BW_INVALID_ARGUMENT, "a progressive JPEG file that needs more than %zu MiB to decode",
                                   IMAGE_MEMORY >> 20);
    } else {
        r->status = bwi_image_fail(r->error, BW_DATA_LOSS, "a damaged JPEG file: %s", message);
    }
    longjmp(r->back, 1);
}

static void on_message(j_common_ptr common, int level)
{
    reading *r = common->client_data;
    if (level >= 0) {
        return;
    }
    switch (common->err->msg_code) {
    case JWRN_JPEG_EOF:
        r->status = bwi_image_fail(r->error, BW_DATA_LOSS, "a JPEG file that ends too early");
        longjmp(r->back, 1);
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
        on_error(common);
    }
}

static void on_progress(j_common_ptr common)
{
    reading *r = common->client_data;
    if (r->jpeg.input_scan_number <= SCAN_LIMIT) {
        return;
    }
    r->status = bwi_image_fail(r->error, BW_INVALID_ARGUMENT, "a JPEG file of more than %d scans", SCAN_LIMIT);
    longjmp(r->back, 1);
}

static void on_output(j_common_ptr common)
{
    (void)common;
}

bool bwi_jpeg_is(const void *file, size_t size)
{
    return size >= 3 && memcmp(file, "\xFF\xD8\xFF", 3) == 0;
}

static void look(reading *r, const void *file, size_t size)
{
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->errors.output_message = on_output;
    r->progress.progress_monitor = on_progress;
    r->jpeg.client_data = r;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.progress = &r->progress;
    r->jpeg.mem->max_memory_to_use = (long)IMAGE_MEMORY;
    jpeg_mem_src(&r->jpeg, file, size);
    jpeg_read_header(&r->jpeg, TRUE);
    r->image = (bwi_picture){.height = r->jpeg.image_height,
                             .width = r->jpeg.image_width,
                             .channels = r->jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3};
    r->status = bwi_image_check(&r->image, size, DENSEST, r->error);
    if (r->status == BW_OK && r->jpeg.arith_code) {
        r->status =
            bwi_image_fail(r->error, BW_UNIMPLEMENTED, "a JPEG file with arithmetic coding; only Huffman coding is supported");
    }
}

static void choose_scale(reading *r, const bwi_picture *wanted)
{
    unsigned scale = 1;
    while (scale < 8 && ((r->image.width * scale + 7) / 8 < wanted->width || (r->image.height * scale + 7) / 8 < wanted->height)) {
        scale *= 2;
    }
    r->jpeg.scale_num = scale;
    r->jpeg.scale_denom = 8;
}

/* Converts inks (CMYK) to RGB. Files with Adobe's marker store them inverted. */
static void print_inks(const reading *r, unsigned char *row, int64_t width)
{
    unsigned invert = r->jpeg.saw_Adobe_marker ? 0 : 255;
    for (int64_t i = 0; i < width; i++) {
        const unsigned char *inks = row + 4 * i;
        unsigned black = inks[3] ^ invert;
        const unsigned light[3] = {inks[0] ^ invert, inks[1] ^ invert, inks[2] ^ invert};
        for (int c = 0; c < 3; c++) {
            row[3 * i + c] = (unsigned char)((light[c] * black + 127) / 255);
        }
    }
}

/* The library reduces the image while it decodes, as far as that leaves enough pixels, which is several times faster than
 * resizing afterwards. */
static void decode(reading *r, bwi_canvas *canvas)
{
    bool inks = r->jpeg.num_components == 4;
    r->jpeg.out_color_space = inks ? JCS_CMYK : canvas->wanted->channels == 1 || r->image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    choose_scale(r, canvas->wanted);
    jpeg_start_decompress(&r->jpeg);
    bwi_picture from = {
        .height = r->jpeg.output_height, .width = r->jpeg.output_width, .channels = inks ? 3 : r->jpeg.out_color_components};
    r->status = bwi_canvas_begin(canvas, &from);
    if (r->status != BW_OK) {
        return;
    }
    r->row = bwi_try_allocate(r->ctx, (size_t)from.width, (size_t)r->jpeg.output_components);
    if (!r->row) {
        r->status = bwi_image_fail(r->error, BW_RESOURCE_EXHAUSTED, "no memory to decode it");
        return;
    }
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        unsigned char *place = inks ? NULL : bwi_canvas_place(canvas), *row = place ? place : r->row;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
        if (inks) {
            print_inks(r, row, from.width);
        }
        bwi_canvas_row(canvas, row);
    }
    jpeg_finish_decompress(&r->jpeg);
}

static void close_reading(reading *r)
{
    jpeg_destroy_decompress(&r->jpeg);
    bwi_release(r->ctx, r->row);
}

bw_status bwi_jpeg_look(bw_context *ctx, const void *file, size_t size, bwi_picture *found, char *error)
{
    reading r = {.ctx = ctx, .error = error};
    if (setjmp(r.back) == 0) {
        look(&r, file, size);
    }
    close_reading(&r);
    *found = r.image;
    return r.status;
}

bw_status bwi_jpeg_decode(bwi_canvas *canvas, const void *file, size_t size)
{
    reading r = {.ctx = canvas->ctx, .error = canvas->error};
    if (setjmp(r.back) == 0) {
        look(&r, file, size);
        if (r.status == BW_OK) {
            decode(&r, canvas);
        }
    }
    close_reading(&r);
    return r.status;
}
