/*
 * label: thread
 * Checkpoints as files: every byte that is changed and every length that is cut off is noticed, and the one before is loaded
 * instead; custom loops continue from them; ranks do; and an allocation that fails while one is read or written leaves everything
 * as it was.
 */
#include "support/check.h"
#include "support/disk.h"
#include "support/folder.h"
#include "unit/base/faults.h"

#include <pthread.h>
#include <stdlib.h>

enum { SAMPLES = 40, WIDTH = 3, CLASSES = 2 };

static float x[SAMPLES][WIDTH];
static int32_t y[SAMPLES];

static void make_samples(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % CLASSES;
        for (int k = 0; k < WIDTH; k++) {
            x[i][k] = (float)((i * 31 + k * 17) % 23) / 23 + (k == y[i] ? 0.5F : 0);
        }
    }
}

static bw_dataset *samples(bw_context *ctx)
{
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    return bw_batches(bw_shuffle(bw_from_arrays(ctx, &inputs, &targets, NULL), 3), 7);
}

static bw_model *built(bw_context *ctx)
{
    bw_model *model = bw_model_parse(ctx, "input(3) dense(2,softmax)");
    check_ok(ctx, bw_compile(model, "adam", NULL, NULL));
    check_ok(ctx, bw_build(model, 0, NULL, 5));
    return model;
}

static void begin_anew(void)
{
    nftw(inside("run"), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- Damage ---- */

typedef struct content {
    unsigned char bytes[1 << 16];
    size_t size;
} content;

static void read_content(content *c, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    c->size = fread(c->bytes, 1, sizeof c->bytes, file);
    assert_true(c->size > 0 && c->size < sizeof c->bytes);
    fclose(file);
}

static void write_content(const content *c, const char *path, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(c->bytes, 1, size, file), size);
    fclose(file);
}

static int warnings;

static void count_warnings(void *user, bw_log_level level, const char *message)
{
    (void)user, (void)message;
    warnings += level == BW_LOG_WARNING;
}

/* The checkpoint of step 2 is damaged: that of step 1 is loaded, after a warning. */
static void expect_the_older(bw_context *ctx, bw_model *model, uint64_t older, const char *file, size_t at)
{
    int64_t step = 0;
    int before = warnings;
    check_ok(ctx, bw_resume(model, inside("run"), &step, NULL));
    if (step != 1 || bw_model_hash(model) != older || warnings != before + 1) {
        fail_msg("%s, byte %zu: step %lld was loaded, with %d warnings", file, at, (long long)step, warnings - before);
    }
}

static void damage_is_noticed(void **state)
{
    (void)state;
    static const char *const files[] = {"run/2/manifest.json", "run/2/step.safetensors"};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.log = count_warnings;
    bw_context *ctx = bw_open(&options);
    bw_model *model = built(ctx);
    begin_anew();
    uint64_t older = bw_model_hash(model);
    check_ok(ctx, bw_checkpoint(model, inside("run"), 1, NULL));
    const float bias[2] = {0.25F, -0.5F};
    check_ok(ctx, bw_variable_set(model, 1, bias, 2));
    uint64_t newer = bw_model_hash(model);
    check_ok(ctx, bw_checkpoint(model, inside("run"), 2, NULL));
    for (size_t f = 0; f < BWI_COUNT(files); f++) {
        content c;
        read_content(&c, inside(files[f]));
        for (size_t i = 0; i < c.size; i++) {
            c.bytes[i] ^= (unsigned char)(1U << i % 8);
            write_content(&c, inside(files[f]), c.size);
            expect_the_older(ctx, model, older, files[f], i);
            c.bytes[i] ^= (unsigned char)(1U << i % 8);
            write_content(&c, inside(files[f]), i);
            expect_the_older(ctx, model, older, files[f], i);
        }
        c.bytes[c.size] = ' ';
        write_content(&c, inside(files[f]), c.size + 1);
        expect_the_older(ctx, model, older, files[f], c.size);
        write_content(&c, inside(files[f]), c.size);
    }
    int64_t step;
    check_ok(ctx, bw_resume(model, inside("run"), &step, NULL));
    assert_int_equal(step, 2);
    assert_true(bw_model_hash(model) == newer);
    /* Nothing else to load: that is a failure, and the model stays as it is. */
    assert_int_equal(truncate(inside("run/2/manifest.json"), 10), 0);
    assert_int_equal(truncate(inside("run/1/step.safetensors"), 10), 0);
    check_fails(ctx, bw_resume(model, inside("run"), &step, NULL), BW_DATA_LOSS, "run/1/step.safetensors|has another length");
    assert_true(bw_model_hash(model) == newer);
    bw_close(ctx);
}

/* ---- Custom loops ---- */

typedef struct progress {
    int64_t epoch, position;
    double loss;
} progress;

/* Trains for some updates, beginning at a checkpoint if there is one; each update leaves one. */
static uint64_t loop(int64_t until, int keep, double *loss)
{
    progress at = {0};
    bw_checkpoint_value value = {.name = "progress", .data = &at, .bytes = sizeof at};
    bw_checkpoint_options options = BW_CHECKPOINT_OPTIONS_DEFAULT;
    options.values = &value;
    options.value_count = 1;
    options.keep = keep;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = built(ctx);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_dataset *data = samples(ctx);
    int64_t step;
    check_ok(ctx, bw_resume(model, inside("run"), &step, &options));
    step = step < 0 ? 0 : step;
    while (step < until) {
        bw_iterator *iterator = bw_iterate(data, (int)at.epoch);
        check_ok(ctx, bw_iterator_seek(iterator, at.position));
        bw_batch *batch;
        while (step < until && bw_next(iterator, &batch) == BW_OK) {
            double one;
            check_ok(ctx, bw_gradients_add(gradients, batch, &one));
            check_ok(ctx, bw_apply(model, gradients));
            at.loss += one;
            at.position = bw_iterator_position(iterator);
            check_ok(ctx, bw_checkpoint(model, inside("run"), ++step, &options));
        }
        if (step < until) {
            at.epoch++;
            at.position = 0;
        }
        bw_iterator_free(iterator);
    }
    uint64_t hash = bw_model_hash(model);
    *loss = at.loss;
    bw_close(ctx);
    return hash;
}

static void loops_go_on(void **state)
{
    (void)state;
    double whole_loss, loss;
    begin_anew();
    uint64_t whole = loop(14, 2, &whole_loss);
    begin_anew();
    uint64_t hash = 0;
    for (int64_t until = 1; until <= 14; until++) {
        hash = loop(until, 2, &loss);
    }
    assert_true(hash == whole);
    assert_true(loss == whole_loss);
    assert_int_equal(access(inside("run/13/manifest.json"), F_OK), 0);
    assert_int_equal(access(inside("run/12"), F_OK), -1);
}

static void another_model_is_refused(void **state)
{
    (void)state;
    double loss;
    int64_t step;
    begin_anew();
    loop(2, 1, &loss);
    bw_context *ctx = bw_open(NULL);
    bw_model *model = built(ctx);
    uint64_t hash = bw_model_hash(model);
    check_fails(ctx, bw_resume(model, inside("run"), &step, NULL), BW_INVALID_ARGUMENT, "expected 8 values, found 9");
    bw_checkpoint_value value = {.name = "progress", .data = &loss, .bytes = sizeof loss};
    bw_checkpoint_options options = BW_CHECKPOINT_OPTIONS_DEFAULT;
    options.values = &value;
    options.value_count = 1;
    check_fails(ctx, bw_resume(model, inside("run"), &step, &options), BW_INVALID_ARGUMENT, "program/progress");
    assert_true(bw_model_hash(model) == hash);
    bw_model *other = bw_model_parse(ctx, "input(3) dense(2,sigmoid)");
    check_ok(ctx, bw_build(other, 0, NULL, 5));
    check_fails(ctx, bw_resume(other, inside("run"), &step, &options), BW_INVALID_ARGUMENT, "another layer dense");
    check_fails(ctx, bw_checkpoint(bw_model_parse(ctx, "dense(2)"), inside("run"), 1, NULL), BW_INVALID_ARGUMENT, "built");
    check_fails(ctx, bw_checkpoint(model, inside("run"), -1, NULL), BW_INVALID_ARGUMENT, "step");
    check_ok(ctx, bw_resume(model, inside("nothing"), &step, NULL));
    assert_int_equal(step, -1);
    bw_close(ctx);
}

/* Sums that no update has used yet would be lost. */
static void pending_gradients_are_refused(void **state)
{
    (void)state;
    int64_t step;
    begin_anew();
    bw_context *ctx = bw_open(NULL);
    bw_model *model = built(ctx), *other = built(ctx);
    bw_dataset *data = bw_batches(samples(ctx), 4);
    bw_gradients *gradients = bw_gradients_new(model, NULL), *others = bw_gradients_new(other, NULL);
    bw_iterator *batches = bw_iterate(data, 0);
    bw_batch *batch = NULL;
    check_ok(ctx, bw_next(batches, &batch));
    check_ok(ctx, bw_gradients_add(others, batch, NULL)); /* of another model: no matter */
    check_ok(ctx, bw_checkpoint(model, inside("run"), 1, NULL));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    check_fails(ctx, bw_checkpoint(model, inside("run"), 2, NULL), BW_INVALID_ARGUMENT,
                "the gradients of 4 samples were added and not applied, and a checkpoint does not hold them");
    check_ok(ctx, bw_resume(model, inside("run"), &step, NULL));
    assert_int_equal(step, 1);
    bw_gradients_clear(gradients);
    check_ok(ctx, bw_checkpoint(model, inside("run"), 2, NULL));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    check_ok(ctx, bw_apply(model, gradients));
    check_ok(ctx, bw_checkpoint(model, inside("run"), 3, NULL));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    bw_gradients_free(gradients);
    check_ok(ctx, bw_checkpoint(model, inside("run"), 4, NULL));
    bw_close(ctx);
}

typedef bw_node *(*change)(bw_node *in);

static bw_node *twice(bw_node *in)
{
    return bw_affine(in, 2, 0);
}

static bw_node *thrice(bw_node *in)
{
    return bw_affine(in, 3, 0);
}

static bw_node *squared(bw_node *in)
{
    return bw_power(in, 2);
}

static bw_node *cubed(bw_node *in)
{
    return bw_power(in, 3);
}

static bw_node *first_two(bw_node *in)
{
    return bw_slice(in, 0, 0, 2);
}

static bw_node *last_two(bw_node *in)
{
    return bw_slice(in, 0, 1, 2);
}

static bw_node *summed(bw_node *in)
{
    return bw_sum(in, 0);
}

static bw_node *averaged(bw_node *in)
{
    return bw_mean(in, 0);
}

static bw_node *larger(bw_node *in)
{
    return bw_maximum(in, in);
}

static bw_node *smaller(bw_node *in)
{
    return bw_minimum(in, in);
}

static bw_node *added(bw_node *in)
{
    return bw_add(in, in);
}

static bw_node *subtracted(bw_node *in)
{
    return bw_subtract(in, in);
}

static bw_node *bent(bw_node *in)
{
    return bw_activation(in, "tanh");
}

static bw_node *cut(bw_node *in)
{
    return bw_activation(in, "sigmoid");
}

static bw_model *changed(bw_context *ctx, change how)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *in = bw_input(model, "x", BW_F32, 2, (int64_t[]){3, 2});
    check_ok(ctx, bw_output(bw_layer(how(in), "dense(1)"), NULL));
    check_ok(ctx, bw_build(model, 0, NULL, 5));
    return model;
}

/* Of two models that differ in a number within an operator, one does not resume the other; each resumes itself. */
static void operators_are_compared(void **state)
{
    (void)state;
    static const change pairs[][2] = {{twice, thrice},    {squared, cubed},  {first_two, last_two},
                                      {summed, averaged}, {larger, smaller}, {added, subtracted},
                                      {bent, cut}};
    for (size_t i = 0; i < BWI_COUNT(pairs); i++) {
        int64_t step;
        begin_anew();
        bw_context *ctx = bw_open(NULL);
        check_ok(ctx, bw_checkpoint(changed(ctx, pairs[i][0]), inside("run"), 1, NULL));
        check_ok(ctx, bw_resume(changed(ctx, pairs[i][0]), inside("run"), &step, NULL));
        check_fails(ctx, bw_resume(changed(ctx, pairs[i][1]), inside("run"), &step, NULL), BW_INVALID_ARGUMENT, "connect");
        bw_close(ctx);
    }
}

/* ---- Ranks ---- */

typedef struct member {
    bw_ranks *ranks;
    int rank;
    int64_t cancel_at;
    bool resume;
    bw_context *ctx;
    bw_status status;
    uint64_t hash;
    double loss;
} member;

static bool on_step(void *user, const bw_progress *now)
{
    const member *m = user;
    if (now->update == m->cancel_at) {
        bw_cancel(m->ctx);
    }
    return true;
}

static void *train(void *user)
{
    member *m = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.ranks = m->ranks;
    options.rank = m->rank;
    m->ctx = bw_open(&options);
    bw_model *model = built(m->ctx);
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    fitting.epochs = 3;
    fitting.tile = 2;
    fitting.lanes = 4;
    fitting.checkpoint_dir = inside("run");
    fitting.checkpoint_every = "2";
    fitting.resume = m->resume;
    fitting.on_step = on_step;
    fitting.user = m;
    bw_history *history = NULL;
    m->status = bw_fit(model, samples(m->ctx), &fitting, &history);
    m->hash = bw_model_hash(model);
    m->loss = bw_history_last(history, "loss");
    bw_close(m->ctx);
    return NULL;
}

static member train_together(int count, int64_t cancel_at, bool resume)
{
    bw_ranks *ranks = count > 1 ? bw_ranks_open(count) : NULL;
    member members[4];
    pthread_t threads[4];
    for (int r = 0; r < count; r++) {
        members[r] = (member){.ranks = ranks, .rank = r, .cancel_at = cancel_at, .resume = resume};
        assert_int_equal(pthread_create(&threads[r], NULL, train, &members[r]), 0);
    }
    for (int r = 0; r < count; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(members[r].status, members[0].status);
        assert_true(members[r].hash == members[0].hash);
    }
    if (ranks) {
        bw_ranks_close(ranks);
    }
    return members[0];
}

static void ranks_go_on_in_other_numbers(void **state)
{
    (void)state;
    begin_anew();
    member whole = train_together(1, 0, false);
    assert_int_equal(whole.status, BW_OK);
    for (int first = 1; first <= 4; first *= 2) {
        begin_anew();
        assert_int_equal(train_together(first, 4, false).status, BW_CANCELLED);
        assert_int_equal(train_together(4 / first, 8, true).status, BW_CANCELLED);
        member resumed = train_together(2, 0, true);
        assert_int_equal(resumed.status, BW_OK);
        assert_true(resumed.hash == whole.hash);
        assert_true(resumed.loss == whole.loss);
    }
}

/* ---- No memory ---- */

/* Every allocation of writing and of reading fails once. */
static void failing_allocations_change_nothing(void **state)
{
    (void)state;
    begin_anew();
    bool failed = true;
    for (int n = 1; failed; n++) {
        faults f = {0};
        bw_allocator allocator = faults_allocator(&f);
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.allocator = &allocator;
        options.workers = 1;
        bw_context *ctx = bw_open(&options);
        bw_model *model = built(ctx);
        uint64_t hash = bw_model_hash(model);
        int64_t step = -7;
        f.fail_at = f.calls + n;
        bw_status status = bw_checkpoint(model, inside("run"), 3, NULL);
        if (status == BW_OK) {
            status = bw_resume(model, inside("run"), &step, NULL);
        }
        failed = f.failed;
        assert_int_equal(status, failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        f.fail_at = 0;
        (void)bw_message(ctx);
        assert_true(bw_model_hash(model) == hash);
        check_ok(ctx, bw_checkpoint(model, inside("run"), 3, NULL));
        check_ok(ctx, bw_resume(model, inside("run"), &step, NULL));
        assert_int_equal(step, 3);
        bw_close(ctx);
        assert_int_equal(f.blocks, 0);
    }
}

/* In memory where that is possible: thousands of small files are made and removed. */
static int make_quick_folder(void **state)
{
    strcpy(folder, "/dev/shm/batchwise-test-XXXXXX");
    return mkdtemp(folder) ? 0 : make_folder(state);
}

int main(void)
{
    make_samples();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(loops_go_on),
        cmocka_unit_test(another_model_is_refused),
        cmocka_unit_test(ranks_go_on_in_other_numbers),
        cmocka_unit_test(pending_gradients_are_refused),
        cmocka_unit_test(operators_are_compared),
        cmocka_unit_test(failing_allocations_change_nothing),
    };
    return cmocka_run_group_tests(tests, make_quick_folder, remove_folder);
}
