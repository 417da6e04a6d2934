/*
 * What kinds of images share: the size that is asked for, and what a thread needs while it decodes: buffers that are handed from
 * sample to sample, so that nothing is allocated once they fit.
 */
#include "data/dataset.h"
#include "format/format.h"

/* Height, width and channels; or height and width of gray images without an axis of channels. */
static bool take_size(bwi_picture *size, int rank, const int64_t *shape)
{
    int64_t channels = rank == 3 ? shape[2] : 1;
    if ((rank != 2 && rank != 3) || shape[0] < 1 || shape[1] < 1 || (channels != 1 && channels != 3) || shape[0] > BWI_IMAGE_SIDE ||
        shape[1] > BWI_IMAGE_SIDE || shape[0] > BWI_IMAGE_PIXELS / shape[1]) {
        return false;
    }
    *size = (bwi_picture){.height = shape[0], .width = shape[1], .channels = (int)channels};
    return true;
}

bw_status bwi_picture_asked(bw_context *ctx, const bw_read_options *options, const char *path, bwi_picture *size, bool *asked)
{
    int rank = options->rank;
    const int64_t *shape = options->shape;
    int input = rank == 0 && options->like ? bwi_dataset_find(options->like, BWI_ROLE_INPUT, 0) : -1;
    char text[256];
    if (input >= 0) {
        const bwi_field *field = bwi_dataset_field(options->like, input);
        rank = field->rank;
        shape = field->shape;
    }
    *asked = rank != 0;
    if (rank == 0 || take_size(size, rank, shape)) {
        return BW_OK;
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                    "%s: images cannot have the shape %s; expected height, width and 1 (gray) or 3 (RGB) channels", path,
                    bwi_format_shape(text, rank > 0 && rank < BW_MAX_RANK ? rank : 0, shape));
}

void bwi_desks_open(bwi_desks *desks)
{
    pthread_mutex_init(&desks->lock, NULL);
    desks->idle = NULL;
}

void bwi_desks_close(bw_context *ctx, bwi_desks *desks)
{
    for (bwi_desk *desk = desks->idle; desk;) {
        bwi_desk *next = desk->next;
        bwi_buffer_free(ctx, &desk->file);
        bwi_buffer_free(ctx, &desk->scratch);
        bwi_release(ctx, desk);
        desk = next;
    }
    pthread_mutex_destroy(&desks->lock);
}

bwi_desk *bwi_desk_take(bw_context *ctx, bwi_desks *desks)
{
    pthread_mutex_lock(&desks->lock);
    bwi_desk *desk = desks->idle;
    if (desk) {
        desks->idle = desk->next;
    }
    pthread_mutex_unlock(&desks->lock);
    return desk ? desk : bwi_try_allocate(ctx, 1, sizeof *desk);
}

void bwi_desk_give(bwi_desks *desks, bwi_desk *desk)
{
    pthread_mutex_lock(&desks->lock);
    desk->next = desks->idle;
    desks->idle = desk;
    pthread_mutex_unlock(&desks->lock);
}
