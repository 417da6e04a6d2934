/*
 * Measures the memory that a run takes, so that the plan can be compared with it. Three parts of the resident size do not belong to
 * the run: the process before the plan was made, with the workers' stacks; what oneDNN allocated while the plan was made (the
 * growth, minus what the context's allocator gave, which is touched as a whole); and pages of files, which mapped data and
 * libraries bring in as they are used.
 */
#include "train/internal.h"

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

size_t bwi_held_bytes(const bw_model *model)
{
    const bwi_training *training = model->training;
    size_t bytes = 0;
    for (int v = 0; v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        bytes += variable->data ? (size_t)variable->count * sizeof(float) : 0;
    }
    return bytes + (training && training->optimizer.slots ? training->optimizer.arena_bytes : 0);
}

void bwi_measure_begin(bwi_measure *m, bw_model *model)
{
    *m = (bwi_measure){.held = bwi_held_bytes(model)};
    bwi_memory_reset_peak(model->ctx);
    m->resident = bwi_memory_resident(model->ctx);
    m->files = bwi_memory_of_files(model->ctx);
    m->allocated = bwi_allocated_bytes(model->ctx);
    m->swapped = bwi_memory_swapped(model->ctx);
    m->faults = bwi_memory_faults();
}

void bwi_measure_opened(bwi_measure *m, bw_context *ctx)
{
    size_t own = less(bwi_allocated_bytes(ctx), m->allocated), files = less(bwi_memory_of_files(ctx), m->files);
    m->code = less(less(bwi_memory_resident(ctx), m->resident), own + files);
}

/* A step that waits for the disk page by page takes a thousand times as long, and nothing else would tell the user why. */
void bwi_measure_warn(bw_context *ctx, const bw_run_facts *facts)
{
    enum { FEW = 100 }; /* code that runs for the first time causes about as many */
    char swapped[32];
    if (facts->swapped_bytes > 0) {
        bwi_log(ctx, BW_LOG_WARNING, "memory was short: %s were swapped out while training, %lld pages came back from disk",
                bwi_format_bytes(swapped, facts->swapped_bytes), (long long)facts->major_faults);
    } else if (facts->major_faults > FEW) {
        bwi_log(ctx, BW_LOG_INFO, "%lld pages were read from disk while training, each while a thread waited for it",
                (long long)facts->major_faults);
    }
}

void bwi_measure_take(const bwi_measure *m, bw_context *ctx, bw_run_facts *facts)
{
    facts->swapped_bytes = less(bwi_memory_swapped(ctx), m->swapped);
    facts->major_faults = bwi_memory_faults() - m->faults;
    facts->process_bytes = less(m->resident, m->held);
    facts->code_bytes = m->code;
    facts->mapped_bytes = less(bwi_memory_of_files(ctx), m->files);
    facts->peak_bytes = less(bwi_memory_peak(ctx), facts->process_bytes + facts->code_bytes + facts->mapped_bytes);
}
