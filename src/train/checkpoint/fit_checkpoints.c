/*
 * Checkpoints of a fit. They are taken between steps only, when every change of a step has been made and nothing of the next one
 * has begun; so a window of accumulated batches is never cut, and what validation has computed is computed again. Random draws and
 * orders are functions of seeds and counters, so the values of the state are all that a fit needs.
 */
#include "train/checkpoint/fit_checkpoints.h"

#include <inttypes.h>

/* ---- Taking one ---- */

static int64_t step_of(const bwi_cursor *cursor)
{
    return cursor->all_updates + cursor->all_skipped;
}

static bwi_training *training_of(const bwi_fit_checkpoints *c)
{
    return c->state.session->training;
}

/* Whether one is taken now. Where ranks have divided the optimizer's slots, the first one decides for all of them: it needs what
 * they have. The others wait for its decision even if they are cancelled, and even if it waits for a slow disk: without them the
 * last checkpoint of a training that ends would be lost. */
static bool is_taken(bwi_fit_checkpoints *c, bool due)
{
    bool taken = false;
    if (c->writer && due) {
        taken = bwi_writer_is_free(c->writer);
        c->waiting = !taken;
    }
    if (bwi_portion_tell(training_of(c), &taken, sizeof taken) != BW_OK) {
        return false; /* a rank is lost, and with it its part of the state: the checkpoint before this one stays */
    }
    return taken;
}

/* Takes one, if it is due and the writer is free; otherwise as soon as that is so. */
static void take(bwi_fit_checkpoints *c, bool due, bool between_epochs, bw_run_facts *facts)
{
    if (!is_taken(c, due)) {
        return;
    }
    if (!c->writer) {
        bwi_portion_show_all(training_of(c));
        return;
    }
    double begin = bwi_now();
    bwi_checkpoint_facts now = {.step = step_of(&c->state.cursor),
                                .epoch = c->state.cursor.epoch,
                                .seconds = c->seconds_before + begin - c->begin,
                                .between_epochs = between_epochs};
    bwi_writer_report(c->writer, facts);
    if (bwi_writer_take(c->writer, c->state.history->epochs, &now, &training_of(c)->optimizer.gathered)) {
        c->taken = now.step;
        c->taken_between = between_epochs;
        c->next = begin + c->times.seconds;
    }
    c->stood += bwi_now() - begin;
}

/* ---- Before the plan ---- */

static bw_status check_options(const bwi_fit_checkpoints *c, const bw_fit_options *o, const bw_dataset *training)
{
    if (o->checkpoint_keep < 0) {
        return bwi_fail(c->ctx, BW_INVALID_ARGUMENT, "checkpoint_keep: expected at least 1, or 0 for 3, got %d",
                        o->checkpoint_keep);
    }
    if (bwi_dataset_live(training)) {
        return bwi_fail(c->ctx, BW_UNIMPLEMENTED,
                        "checkpoint_dir: a stream cannot be resumed, since nobody can read it again from its middle; store it in a "
                        "file first");
    }
    return BW_OK;
}

/* The order of sums is that of the plan, so a run continues with the tile and the lanes that it has. */
static bw_status take_plan(const bwi_fit_checkpoints *c, bw_fit_options *o)
{
    const bwi_found_checkpoint *found = &c->found;
    bool tile = o->tile == 0 || o->tile == found->tile, lanes = o->lanes == 0 || o->lanes == found->lanes;
    if (!tile || !lanes) {
        return bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, found->path,
                             "it cannot be resumed with another number of %s: it was %" PRId64 ", it is %" PRId64 " now",
                             tile ? "lanes" : "samples in a tile", tile ? found->lanes : found->tile, tile ? o->lanes : o->tile);
    }
    o->tile = found->tile;
    o->lanes = found->lanes;
    return BW_OK;
}

/* Old checkpoints are neither continued nor overwritten unless that was asked for. */
static bw_status find(bwi_fit_checkpoints *c, bw_fit_options *o)
{
    if (!o->resume) {
        int64_t newest = bwi_store_newest(c->ctx, o->checkpoint_dir, INT64_MAX);
        return newest < 0
                   ? BW_OK
                   : bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, o->checkpoint_dir,
                                   "it holds a checkpoint of step %" PRId64 ": resume that run, or give another folder", newest);
    }
    bw_status status = bwi_checkpoint_find(c->ctx, &c->found, o->checkpoint_dir);
    if (status == BW_OK && c->found.step < 0) {
        bwi_log(c->ctx, BW_LOG_INFO, "%s: there is no checkpoint yet, so a new run begins", o->checkpoint_dir);
    }
    return status;
}

bw_status bwi_fit_checkpoints_find(bwi_fit_checkpoints *c, bw_fit_options *o, bw_dataset *training, const bw_dataset *validation)
{
    c->found.step = c->taken = -1;
    c->identity.ctx = c->ctx;
    bw_status status = check_options(c, o, training);
    if (status == BW_OK && c->ctx->rank == 0) { /* the others only read */
        status = bwi_folder_make(c->ctx, o->checkpoint_dir);
    }
    if (status == BW_OK) {
        status = find(c, o);
    }
    if (status == BW_OK) {
        const char *every = o->checkpoint_every ? o->checkpoint_every : c->found.every;
        status = bwi_checkpoint_times_read(c->ctx, &c->times, every ? every : "epoch");
    }
    bwi_identity_add_options(&c->identity, o);
    if (status == BW_OK) {
        status = bwi_identity_add_data(&c->identity, "training", training);
    }
    if (status == BW_OK) {
        status = bwi_identity_add_data(&c->identity, "validation", validation);
    }
    bwi_identity_add(&c->identity, "batches", "%016" PRIx64, bwi_dataset_batch_hash(training, 16));
    if (status == BW_OK && c->found.step >= 0) {
        status = bwi_checkpoint_compare(&c->found, &c->identity, false);
        status = status == BW_OK ? take_plan(c, o) : status;
    }
    return status;
}

/* ---- Opening ---- */

/* Loading sets variables as a file does; what was fitted or given by the user before stays marked as that. */
static bw_status load(bwi_fit_checkpoints *c, const bw_fit_options *o)
{
    const bwi_graph *graph = &c->state.model->graph;
    int64_t rows = bwi_checkpoint_rows(&c->found, BWI_STATE_HISTORY);
    if (rows < 0 || rows > o->epochs) {
        return bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, c->found.path, "it has %" PRId64 " epochs already, and epochs is %d",
                             rows, o->epochs);
    }
    bwi_state values = {.ctx = c->ctx};
    bool *given = bwi_allocate(c->ctx, (size_t)graph->variable_count, sizeof *given);
    bw_status status = given ? BW_OK : BW_RESOURCE_EXHAUSTED;
    bwi_fit_state_list(&c->state, rows, &values);
    for (int v = 0; given && v < graph->variable_count; v++) {
        given[v] = graph->variables[v]->given;
    }
    if (status == BW_OK) {
        status = values.failed ? BW_RESOURCE_EXHAUSTED : bwi_checkpoint_load(&c->found, &values);
    }
    for (int v = 0; given && v < graph->variable_count; v++) {
        graph->variables[v]->given = given[v];
    }
    bwi_release(c->ctx, given);
    bwi_state_free(&values);
    if (status == BW_OK && (c->state.cursor.epoch < rows || c->state.cursor.epoch > INT32_MAX)) {
        status = bwi_fail_file(c->ctx, BW_DATA_LOSS, c->found.path, "epoch %" PRId64 " with a history of %" PRId64 " epochs",
                               c->state.cursor.epoch, rows);
    }
    c->state.history->epochs = status == BW_OK ? (int)rows : 0;
    return status;
}

/* The thread writes on the first rank only: all of them have the same state. */
static bw_status start_writer(bwi_fit_checkpoints *c, const bw_fit_options *o)
{
    const bwi_plan *plan = bwi_exec_plan(c->state.session->exec);
    bwi_checkpoint_header header = {.identity = &c->identity,
                                    .every = o->checkpoint_every ? o->checkpoint_every : c->found.every,
                                    .seed = o->seed,
                                    .tile = plan->tile,
                                    .lanes = plan->lanes,
                                    .workers = plan->workers};
    bwi_state values = {.ctx = c->ctx};
    bwi_checkpoint_image image;
    int history = bwi_fit_state_list(&c->state, 0, &values);
    header.every = header.every ? header.every : "epoch";
    bw_status status = bwi_checkpoint_image_open(&image, &values, history, o->epochs, &header);
    if (status == BW_OK) {
        return bwi_writer_open(c->ctx, &c->writer, &image, o->checkpoint_dir, o->checkpoint_keep ? o->checkpoint_keep : 3);
    }
    bwi_checkpoint_image_free(&image);
    return status;
}

static void add_columns(bwi_identity *identity, const bw_history *history)
{
    bwi_text names = {.ctx = identity->ctx};
    for (int k = 0; k < history->columns; k++) {
        bwi_text_add(&names, "%s%s", k ? "," : "", history->names[k]);
    }
    bwi_identity_add(identity, "metrics", "%s", names.bytes ? names.bytes : "");
    identity->failed |= names.failed;
    bwi_text_free(&names);
}

/* A budget that is too small for the recorded tile or lanes would change the order of sums, and with it the bits. */
static bw_status check_plan(const bwi_fit_checkpoints *c)
{
    const bwi_plan *plan = bwi_exec_plan(c->state.session->exec);
    if (plan->tile == c->found.tile && plan->lanes == c->found.lanes) {
        return BW_OK;
    }
    return bwi_fail_file(c->ctx, BW_RESOURCE_EXHAUSTED, c->found.path,
                         "it was trained with tiles of %" PRId64
                         " samples and %d lanes, for which there is not enough memory now (%" PRId64
                         " and %d would fit, with other bits): give it more",
                         c->found.tile, (int)c->found.lanes, plan->tile, plan->lanes);
}

bw_status bwi_fit_checkpoints_open(bwi_fit_checkpoints *c, const bw_fit_options *o)
{
    c->begin = bwi_now();
    bwi_identity_add_training(&c->identity, c->state.session->training, true);
    add_columns(&c->identity, c->state.history);
    bwi_identity_add_model(&c->identity, c->state.model);
    bw_status status = bwi_fit_state_open(&c->state);
    if (status == BW_OK && c->found.step >= 0) {
        status = check_plan(c);
        status = status == BW_OK ? bwi_checkpoint_compare(&c->found, &c->identity, true) : status;
        status = status == BW_OK ? load(c, o) : status;
    }
    if (status == BW_OK && c->identity.failed) {
        status = bwi_fail(c->ctx, BW_RESOURCE_EXHAUSTED, "no memory for a checkpoint's manifest");
    }
    if (status == BW_OK && c->found.step >= 0) {
        c->seconds_before = c->found.seconds;
        c->taken = c->found.step;
        c->taken_between = c->state.cursor.step == 0 && c->state.cursor.position == 0 && c->state.cursor.epoch > 0;
        bwi_log(c->ctx, BW_LOG_INFO, "%s: training continues from step %" PRId64 ", epoch %" PRId64, o->checkpoint_dir,
                c->found.step, c->state.cursor.epoch + 1);
    }
    if (status == BW_OK && c->ctx->rank == 0) {
        bwi_store_cut(c->ctx, o->checkpoint_dir, c->found.step);
        status = start_writer(c, o);
    }
    c->next = c->begin + c->times.seconds;
    bw_run_facts *facts = &c->state.history->facts;
    facts->resumed_step = facts->last_checkpoint = c->found.step;
    facts->updates = c->state.cursor.all_updates;
    facts->samples = c->state.cursor.all_samples;
    facts->skipped_steps = c->state.cursor.all_skipped;
    return status;
}

/* This also shows at once whether the folder can be written. */
void bwi_fit_checkpoints_begin(bwi_fit_checkpoints *c, bw_run_facts *facts)
{
    if (c->found.step < 0) {
        take(c, true, false, facts);
    }
}

int64_t bwi_fit_checkpoints_step_found(const bwi_fit_checkpoints *c)
{
    return c->asked ? c->found.step : -1;
}

void bwi_fit_checkpoints_close(bwi_fit_checkpoints *c)
{
    bwi_writer_close(c->writer);
    bwi_fit_state_close(&c->state);
    bwi_identity_free(&c->identity);
    bwi_checkpoint_found_close(&c->found);
}

/* ---- While training runs ---- */

void bwi_fit_checkpoints_step(bwi_fit_checkpoints *c, bw_run_facts *facts)
{
    bool due = c->waiting || (c->times.steps > 0 && step_of(&c->state.cursor) % c->times.steps == 0) ||
               (c->times.seconds > 0 && bwi_now() >= c->next);
    if (c->writer && !due && bwi_writer_alarm(c->writer)) {
        bwi_writer_report(c->writer, facts);
    }
    take(c, due, false, facts);
}

void bwi_fit_checkpoints_epoch(bwi_fit_checkpoints *c, bw_run_facts *facts)
{
    bool due = c->waiting || (c->times.steps == 0 && c->times.seconds <= 0) || (c->times.seconds > 0 && bwi_now() >= c->next);
    take(c, due, true, facts);
}

/* A run ends with a checkpoint of its last state, from which more epochs can follow, unless the newest is of that state already. */
void bwi_fit_checkpoints_end(bwi_fit_checkpoints *c, bw_run_facts *facts)
{
    const bwi_cursor *cursor = &c->state.cursor;
    bool between = cursor->epoch > 0 && cursor->position == 0 && cursor->step == 0;
    double begin = bwi_now();
    if (!c->writer) {
        take(c, false, between, facts);
        return;
    }
    bwi_writer_wait(c->writer);
    bwi_writer_report(c->writer, facts);
    c->stood += bwi_now() - begin;
    take(c, c->taken != step_of(cursor) || c->taken_between != between || facts->last_checkpoint != c->taken, between, facts);
    begin = bwi_now();
    bwi_writer_wait(c->writer);
    bwi_writer_report(c->writer, facts);
    facts->checkpoint_seconds = c->stood + bwi_now() - begin;
}
