/*
 * What the readers of images share: the size that is asked for, and the buffers that a thread needs while it decodes. Buffers are
 * handed from sample to sample, so that nothing is allocated once they are large enough.
 */
#include "data/read/read.h"
#include "format/format.h"

/* Takes a size from a shape: height, width and channels, or height and width of gray images without an axis for channels. */
static bool take_size(bwi_picture *size, int ndim, const int64_t *shape)
{
    int64_t channels = ndim == 3 ? shape[2] : 1;
    if ((ndim != 2 && ndim != 3) || shape[0] < 1 || shape[1] < 1 || (channels != 1 && channels != 3) || shape[0] > BWI_IMAGE_SIDE ||
        shape[1] > BWI_IMAGE_SIDE || shape[0] > BWI_IMAGE_PIXELS / shape[1]) {
        return false;
    }
    *size = (bwi_picture){.height = shape[0], .width = shape[1], .channels = (int)channels};
    return true;
}

bw_status bwi_picture_asked(bw_context *ctx, const bw_read_options *options, const char *path, bwi_picture *size, bool *asked)
{
    int ndim = options->ndim;
    const int64_t *shape = options->shape;
    int input = ndim == 0 && options->like ? bwi_dataset_find(options->like, BWI_ROLE_INPUT, 0) : -1;
    char text[256];
    if (input >= 0) {
        const bwi_field *field = bwi_dataset_field(options->like, input);
        ndim = field->ndim;
        shape = field->shape;
    }
    *asked = ndim != 0;
    if (ndim == 0 || take_size(size, ndim, shape)) {
        return BW_OK;
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                    "%s: images cannot have the shape %s; expected height, width and 1 (gray) or 3 (RGB) channels", path,
                    bwi_format_shape(text, ndim > 0 && ndim < BW_MAX_NDIM ? ndim : 0, shape));
}

/* zlib's window and tables and libpng's own, or libjpeg's tables, with the pages that a thread's heap begins, are about 112 KiB;
 * libjpeg holds some rows of blocks; the canvas holds a row, and sums of the result as float if the sizes differ. Progressive JPEG
 * files and interlaced PNG files need more. */
size_t bwi_decoder_bytes(size_t file_bytes, const bwi_picture *from, const bwi_picture *to)
{
    enum { LIBRARIES = 112 << 10, ROWS = 48 };
    size_t row = bwi_size_multiply((size_t)from->width, 3), result = bwi_size_multiply((size_t)(to->height * to->width), 3);
    bool same = from->height == to->height && from->width == to->width;
    size_t canvas = same ? 0 : bwi_size_multiply(result, sizeof(float));
    return bwi_size_add(bwi_size_add(LIBRARIES, bwi_allocation_bytes(file_bytes)),
                        bwi_size_add(bwi_size_multiply(row, ROWS), canvas));
}

void bwi_decode_buffers_open(bwi_decode_buffers *buffers)
{
    buffers->idle = NULL;
}

void bwi_decode_buffers_close(bw_context *ctx, bwi_decode_buffers *buffers)
{
    for (bwi_decode_buffer *buffer = buffers->idle; buffer;) {
        bwi_decode_buffer *next = buffer->next;
        bwi_buffer_free(ctx, &buffer->file);
        bwi_buffer_free(ctx, &buffer->scratch);
        bwi_release(ctx, buffer);
        buffer = next;
    }
}

bwi_decode_buffer *bwi_decode_buffer_take(bw_context *ctx, bwi_decode_buffers *buffers)
{
    bwi_moment_begin();
    bwi_decode_buffer *buffer = buffers->idle;
    if (buffer) {
        buffers->idle = buffer->next;
    }
    bwi_moment_end();
    return buffer ? buffer : bwi_try_allocate(ctx, 1, sizeof *buffer);
}

void bwi_decode_buffer_give(bwi_decode_buffers *buffers, bwi_decode_buffer *buffer)
{
    bwi_moment_begin();
    buffer->next = buffers->idle;
    buffers->idle = buffer;
    bwi_moment_end();
}
