/*
 * The folder of checkpoints. A checkpoint is written values first and manifest last, each synced and renamed, so whatever is killed
 * when, the last one with a manifest is whole; it is removed manifest first, so what remains of it is nobody's checkpoint. Nothing
 * here allocates, and nothing touches the context's message, since a thread of its own does this while training goes on.
 */
#include "train/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static const char manifest[] = "manifest.json";

static bool put(bw_context *ctx, const char *path, const void *data, size_t size, bwi_store_failure *failure)
{
    failure->code = bwi_durable_write(ctx, path, data, size, &failure->what);
    if (failure->code < 0) {
        snprintf(failure->path, sizeof failure->path, "%s", path);
    }
    return failure->code >= 0;
}

static void path_of(char path[BWI_DURABLE_PATH], const char *folder, int64_t step, const char *file)
{
    snprintf(path, BWI_DURABLE_PATH, "%s/%" PRId64 "%s%s", folder, step, file[0] ? "/" : "", file);
}

/* The values' file of the other kind belongs to the manifest that was just replaced, if there was one. */
bool bwi_store_write(const bwi_checkpoint_image *image, const char *folder, bwi_store_failure *failure)
{
    char path[BWI_DURABLE_PATH];
    bw_context *ctx = image->ctx;
    int64_t step = image->facts.step;
    *failure = (bwi_store_failure){0};
    path_of(path, folder, step, "");
    failure->code = bwi_durable_folder(ctx, path, &failure->what);
    if (failure->code < 0) {
        snprintf(failure->path, sizeof failure->path, "%s", path);
        return false;
    }
    path_of(path, folder, step, bwi_checkpoint_file(image->facts.between_epochs));
    if (!put(ctx, path, image->bytes, image->size, failure)) {
        return false;
    }
    path_of(path, folder, step, manifest);
    if (!put(ctx, path, image->manifest, image->manifest_size, failure)) {
        return false;
    }
    path_of(path, folder, step, bwi_checkpoint_file(!image->facts.between_epochs));
    (void)ctx->io.remove(ctx->io.user, path);
    return true;
}

/* ---- Looking and removing ---- */

/* Whether a name is a step's: digits that begin with none too many. */
static bool is_step(const char *name, int64_t *step)
{
    return bwi_parse_int(name, name + strlen(name), step) && *step >= 0 && (name[0] != '0' || !name[1]) && name[0] != '+';
}

static bool has_manifest(bw_context *ctx, const char *folder, int64_t step)
{
    char path[BWI_DURABLE_PATH];
    path_of(path, folder, step, manifest);
    int file = ctx->io.open(ctx->io.user, path, O_RDONLY, 0);
    if (file >= 0) {
        (void)ctx->io.close(ctx->io.user, file);
    }
    return file >= 0;
}

typedef struct search {
    int64_t from, below; /* looks for the highest step below `below`, or the lowest from `from` on */
    int64_t found;       /* -1: none */
    bool lowest;
} search;

static int look(void *user, const char *name, bw_entry entry)
{
    search *s = user;
    int64_t step;
    if (entry == BW_ENTRY_FOLDER && is_step(name, &step) && step >= s->from && step < s->below) {
        bool better = s->found < 0 || (s->lowest ? step < s->found : step > s->found);
        s->found = better ? step : s->found;
    }
    return 0;
}

static int64_t find(bw_context *ctx, const char *folder, search s)
{
    s.found = -1;
    int result;
    do {
        result = ctx->io.list(ctx->io.user, folder, look, &s);
    } while (result == -EINTR);
    return result < 0 ? -1 : s.found;
}

int64_t bwi_store_newest(bw_context *ctx, const char *folder, int64_t below)
{
    int64_t step = find(ctx, folder, (search){.below = below});
    while (step >= 0 && !has_manifest(ctx, folder, step)) {
        step = find(ctx, folder, (search){.below = step});
    }
    return step;
}

static bool remove_step(bw_context *ctx, const char *folder, int64_t step)
{
    static const char *const files[] = {"manifest.json",
                                        "manifest.json.tmp",
                                        "step.safetensors",
                                        "step.safetensors.tmp",
                                        "epoch.safetensors",
                                        "epoch.safetensors.tmp",
                                        ""};
    int result = 0;
    for (size_t i = 0; i < BWI_COUNT(files); i++) {
        char path[BWI_DURABLE_PATH];
        path_of(path, folder, step, files[i]);
        result = ctx->io.remove(ctx->io.user, path);
    }
    return result >= 0;
}

void bwi_store_prune(bw_context *ctx, const char *folder, int keep)
{
    int64_t oldest = INT64_MAX;
    for (int k = 0; k < keep && oldest > 0; k++) {
        int64_t next = bwi_store_newest(ctx, folder, oldest);
        oldest = next >= 0 ? next : oldest;
    }
    for (int64_t step = find(ctx, folder, (search){.below = oldest}); step >= 0;) {
        int64_t below = step;
        (void)remove_step(ctx, folder, step);
        step = find(ctx, folder, (search){.below = below});
    }
}

void bwi_store_cut(bw_context *ctx, const char *folder, int64_t last)
{
    for (int64_t step = last; (step = find(ctx, folder, (search){.from = step + 1, .below = INT64_MAX, .lowest = true})) >= 0;) {
        (void)remove_step(ctx, folder, step);
    }
}
