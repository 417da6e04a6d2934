/*
 * The context: opening, closing, what it owns, and its cancel flag. Objects are kept in a list, newest first, and
 * freed in that order, because later ones may refer to earlier ones.
 */
#include "base/internal.h"

#include <string.h>

#define LARGEST_OPTIONS 4096

bw_status bwi_options_copy(bw_context *ctx, void *options, size_t size, const void *given, const char *name)
{
    if (!given) {
        return BW_OK;
    }
    size_t given_size;
    memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size || given_size > LARGEST_OPTIONS) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s.size is %zu, expected %zu: begin with the default initialiser", name,
                        given_size, size);
    }
    for (size_t i = size; i < given_size; i++) {
        if (((const unsigned char *)given)[i] != 0) {
            return bwi_fail(ctx, BW_UNIMPLEMENTED, "%s of %zu bytes sets an option at byte %zu; version %s knows %zu bytes", name,
                            given_size, i, bw_version(), size);
        }
    }
    memcpy(options, given, given_size < size ? given_size : size);
    memcpy(options, &size, sizeof size);
    return BW_OK;
}

static bool complete_io(const bw_io *io)
{
    return io->open && io->read && io->write && io->size && io->sync && io->close && io->rename && io->remove && io->map &&
           io->unmap && io->list;
}

static void join_ranks(bw_context *ctx, const bw_context_options *options)
{
    bw_ranks *ranks = options->ranks;
    int count = ranks ? ranks->count : 1;
    if (ranks && ranks->failure) {
        bwi_fail_build(ctx, BW_UNAVAILABLE, "%s", ranks->failure);
    } else if (options->rank < 0 || options->rank >= count) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_context_options.rank is %d, expected 0 to %d", options->rank, count - 1);
    } else if (ranks && !ranks->join(ranks, options->rank)) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "rank %d of the group of %d has or had a context already", options->rank, count);
    } else {
        ctx->ranks = ranks;
        ctx->rank = options->rank;
        if (ranks && options->watchdog > 0) {
            ranks->watchdog = options->watchdog;
        }
    }
}

/* An error in the options is kept for the next call that returns a status. */
static void apply(bw_context *ctx, const bw_context_options *options)
{
    if (options->io && complete_io(options->io)) {
        ctx->io = *options->io;
    } else if (options->io) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_context_options.io lacks a function; all but map_shared are needed");
    }
    if (options->workers < 0 || options->workers > BWI_MAX_WORKERS) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_context_options.workers is %d, expected 0 to %d", options->workers,
                       BWI_MAX_WORKERS);
    } else {
        ctx->workers = options->workers ? options->workers : bwi_cpus();
    }
    if (options->instruction_set && !(ctx->instruction_set = bwi_copy_text(ctx, options->instruction_set))) {
        bwi_pass_on(ctx);
    }
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    ctx->exact_kernels = options->exact_kernels;
    ctx->memory = options->memory;
    join_ranks(ctx, options);
}

bw_context *bw_open(const bw_context_options *options)
{
    bw_context_options chosen = BW_CONTEXT_OPTIONS_DEFAULT;
    bool readable = bwi_options_copy(NULL, &chosen, sizeof chosen, options, "bw_context_options") == BW_OK;
    const bw_allocator *allocator = &bwi_system_allocator;
    bool usable = !chosen.allocator || (chosen.allocator->allocate && chosen.allocator->release);
    if (chosen.allocator && usable) {
        allocator = chosen.allocator;
    }
    bw_context *ctx = allocator->allocate(allocator->user, sizeof *ctx, BWI_CACHE_LINE);
    if (!ctx) {
        return NULL;
    }
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = *allocator;
    ctx->io = bwi_system_io;
    ctx->workers = 1;
    atomic_init(&ctx->cancelled, false);
    atomic_init(&ctx->allocated, 0);
    if (!readable) {
        bwi_options_copy(ctx, &chosen, sizeof chosen, options, "bw_context_options");
        bwi_pass_on(ctx);
    }
    if (!usable) {
        bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_context_options.allocator lacks a function; both are needed");
    }
    apply(ctx, &chosen);
    return ctx;
}

void bw_ranks_part(bw_context *ctx)
{
    if (ctx && ctx->ranks) {
        ctx->ranks->part(ctx->ranks, ctx->rank);
        ctx->ranks = NULL;
        ctx->rank = 0;
    }
}

void bw_close(bw_context *ctx)
{
    if (!ctx) {
        return;
    }
    bw_ranks_part(ctx);
    ctx->closing = true;
    while (ctx->owned) {
        bwi_disown(ctx->owned);
    }
    bwi_pool_close(ctx);
    bwi_release(ctx, ctx->instruction_set);
    bw_allocator allocator = ctx->allocator;
    allocator.release(allocator.user, ctx, sizeof *ctx);
}

void *bwi_own(bw_context *ctx, size_t size, void (*destroy)(bwi_owned *object))
{
    if (!ctx) {
        return NULL;
    }
    bwi_owned *object = bwi_allocate(ctx, 1, size);
    if (!object) {
        return bwi_pass_on(ctx);
    }
    object->ctx = ctx;
    object->destroy = destroy;
    object->next = ctx->owned;
    if (ctx->owned) {
        ctx->owned->previous = object;
    }
    ctx->owned = object;
    return object;
}

/* The object leaves the list first, because destroying it may free other objects, and closing must not meet it again. */
void bwi_disown(void *object)
{
    bwi_owned *owned = object;
    if (!owned) {
        return;
    }
    bw_context *ctx = owned->ctx;
    if (owned->next) {
        owned->next->previous = owned->previous;
    }
    if (owned->previous) {
        owned->previous->next = owned->next;
    } else {
        ctx->owned = owned->next;
    }
    if (owned->destroy) {
        owned->destroy(owned);
    }
    bwi_release(ctx, owned);
}

void bw_cancel(bw_context *ctx)
{
    if (ctx) {
        atomic_store(&ctx->cancelled, true);
    }
}

bool bwi_cancelled(const bw_context *ctx)
{
    return atomic_load_explicit(&ctx->cancelled, memory_order_relaxed);
}

/* If the flag is not set, another rank stopped the call, and its message stands. */
bw_status bwi_cancel_report(bw_context *ctx)
{
    if (atomic_exchange(&ctx->cancelled, false) || ctx->error.status != BW_CANCELLED) {
        return bwi_fail(ctx, BW_CANCELLED, "cancelled");
    }
    return BW_CANCELLED;
}
