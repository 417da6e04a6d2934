/*
 * label: thread
 * A run that is killed and resumed ends like one that was never stopped: variables, optimizer state and history are the same bytes,
 * wherever it is killed. What is damaged is noticed, what was changed is refused by name, and a disk that fails does not end a
 * training.
 */
#include "support/check.h"
#include "support/disk.h"
#include "support/folder.h"

#include "train/internal.h"

#include <math.h>
#include <sys/wait.h>

enum { SAMPLES = 50, WIDTH = 6, CLASSES = 3 };

static float x[SAMPLES][WIDTH];
static int32_t y[SAMPLES];

/* What a run is, and when it ends too early. */
typedef struct trial {
    const char *model, *optimizer, *early_stopping, *plateau, *every, *sizes;
    int epochs, accumulate, workers, noise;
    double split;
    bool shuffled;
    uint64_t seed;
    bw_on_nan on_nan;
    int keep;
    bool resume;
    disk *disk;
    int64_t kill_at, cancel_at; /* after this update, from 1; 0: never */
    int64_t tile;
    size_t memory;
    const char *augment; /* changes of samples as images of 2 by 3 */
    bool words;          /* samples are texts */
    bool lengths;        /* samples are sequences of varying length, in buckets */
} trial;

typedef struct outcome {
    bw_status status;
    uint64_t hash; /* of variables, optimizer state and history */
    bw_run_facts facts;
    int epochs;
    char message[1024], log[4096];
} outcome;

enum { LONGEST = 9, TOKENS = 12 };

static bw_text texts[SAMPLES];
static int32_t tokens[SAMPLES * LONGEST];
static int64_t offsets[SAMPLES + 1];

static void make_samples(void)
{
    static const char *const some[] = {"the quick fox", "a lazy dog", "quick dog", "the lazy fox jumps", "jumps"};
    for (int i = 0; i < SAMPLES; i++) {
        const char *text = some[i * 3 % 5];
        texts[i] = (bw_text){text, (int64_t)strlen(text)};
        y[i] = (i * 7) % CLASSES;
        offsets[i + 1] = offsets[i] + 1 + (i * 5) % LONGEST;
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
            tokens[k] = (int32_t)(1 + (k * 3 + y[i]) % (TOKENS - 1));
        }
        for (int k = 0; k < WIDTH; k++) {
            x[i][k] = (float)((i * 31 + k * 17) % 23) / 23 + (k == y[i] ? 0.5F : 0);
        }
    }
}

static void on_log(void *user, bw_log_level level, const char *message)
{
    outcome *o = user;
    size_t used = strlen(o->log);
    if (level == BW_LOG_WARNING) {
        snprintf(o->log + used, sizeof o->log - used, "%s\n", message);
    }
}

typedef struct watching {
    const trial *trial;
    bw_context *ctx;
} watching;

static bool on_step(void *user, const bw_progress *progress)
{
    const watching *w = user;
    if (progress->update == w->trial->kill_at) {
        _exit(9);
    }
    if (progress->update == w->trial->cancel_at) {
        bw_cancel(w->ctx);
    }
    if (w->trial->disk && atomic_load(&w->trial->disk->stuck) && progress->update == 20) {
        atomic_store(&w->trial->disk->stuck, false); /* a training that waited for the disk would never come here */
    }
    return true;
}

static uint64_t hash_of(bw_model *model, const bw_history *history)
{
    bwi_state state = {.ctx = model->ctx};
    uint64_t hash = 1;
    bwi_training_state(model, &state);
    for (int k = 0; k < state.count; k++) {
        size_t bytes = bwi_state_bytes(&state.values[k]);
        void *values = malloc(bytes + 1);
        bwi_state_read(&state.values[k], values);
        hash = bwi_hash(hash, values, bytes);
        free(values);
    }
    bwi_state_free(&state);
    return bwi_hash(hash, history->values, (size_t)history->epochs * (size_t)history->width * sizeof(double));
}

static bw_dataset *sequences(bw_context *ctx, const bw_array *targets)
{
    static const int64_t lengths[] = {2, 5};
    bw_array values = {.data = tokens, .dtype = BW_I32, .ndim = 1, .shape = {offsets[SAMPLES]}};
    return bw_bucket(bw_from_sequences(ctx, &values, offsets, SAMPLES, targets, NULL), lengths, 2);
}

static void fit_in(bw_context *ctx, outcome *o, const trial *t)
{
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array images = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, 2, 3, 1}};
    bw_array words = {.data = texts, .dtype = BW_TEXT, .ndim = 2, .shape = {SAMPLES, 1}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    const bw_array *samples = t->words ? &words : t->augment ? &images : &inputs;
    bw_dataset *data = t->lengths ? sequences(ctx, &targets) : bw_from_arrays(ctx, samples, &targets, NULL);
    data = t->augment ? bw_augment(data, t->augment, t->seed) : data;
    data = t->shuffled ? bw_shuffle(data, t->seed) : data;
    bw_model *model = bw_model_parse(ctx, t->model);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    watching w = {.trial = t, .ctx = ctx};
    options.epochs = t->epochs;
    options.batch_sizes = t->sizes ? t->sizes : "8";
    options.accumulate = t->accumulate ? t->accumulate : 1;
    options.validation_split = t->split;
    options.seed = t->seed;
    options.early_stopping = t->early_stopping;
    options.reduce_lr_on_plateau = t->plateau;
    options.on_step = on_step;
    options.user = &w;
    options.on_nan = t->on_nan;
    options.noise_every = t->noise;
    options.tile = t->tile;
    options.memory = t->memory;
    options.checkpoint_dir = t->every ? inside("run") : NULL;
    options.checkpoint_every = t->every;
    options.checkpoint_keep = t->keep;
    options.resume = t->resume;
    bw_history *history = NULL;
    bw_status status = bw_compile(model, t->optimizer, NULL, NULL);
    o->status = status == BW_OK ? bw_fit(model, data, &options, &history) : status;
    snprintf(o->message, sizeof o->message, "%s", o->status == BW_OK ? "" : bw_message(ctx));
    if (history) {
        o->facts = bw_history_facts(history);
        o->epochs = bw_history_epochs(history);
        o->hash = hash_of(model, history);
    }
}

static outcome fit(const trial *t)
{
    outcome o = {.status = BW_INTERNAL};
    bw_io io;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = t->workers ? t->workers : 1;
    options.log = on_log;
    options.log_user = &o;
    if (t->disk) {
        io = disk_io(t->disk);
        options.io = &io;
    }
    bw_context *ctx = bw_open(&options);
    fit_in(ctx, &o, t);
    bw_close(ctx);
    return o;
}

/* Runs it in a child, which is killed or comes to its end; its exit code. */
static int fit_and_die(const trial *t)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        outcome o = fit(t);
        _exit(o.status == BW_OK ? 0 : 1);
    }
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state));
    return WEXITSTATUS(state);
}

static void begin_anew(void)
{
    nftw(inside("run"), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const trial trials[] = {
    {.model = "dense(5,relu) dense(3,softmax)",
     .optimizer = "adam",
     .every = "2",
     .epochs = 4,
     .shuffled = true,
     .tile = 2,
     .noise = 3},
    {.model = "batchnorm dense(5,relu) dropout(0.3) dense(3,softmax)",
     .optimizer = "adamw(use_ema=true,ema_momentum=0.9)",
     .every = "3",
     .epochs = 3,
     .split = 0.2,
     .accumulate = 2,
     .sizes = "3,5"},
    {.model = "embedding(12,4,mask_zero=true) lstm(3) dropout(0.2) dense(3,softmax)",
     .optimizer = "nadam",
     .every = "2",
     .epochs = 2,
     .split = 0.2,
     .accumulate = 2,
     .shuffled = true,
     .lengths = true},
    {.model = "normalization dense(4,tanh,kernel_regularizer=l2(0.01)) dense(3,softmax)",
     .optimizer = "nadam(lr=0.05)",
     .every = "1",
     .epochs = 6,
     .split = 0.3,
     .early_stopping = "patience=2,restore_best_weights=true",
     .plateau = "factor=0.5,patience=1",
     .shuffled = true},
    {.model = "dense(3,softmax)",
     .optimizer = "sgd(lr=exponential_decay(0.3,4,0.5),momentum=0.9)",
     .every = "epoch",
     .epochs = 6,
     .split = 0.2,
     .plateau = "factor=0.5,patience=1,monitor=loss,min_delta=1"},
    {.model = "reshape(2,3,1) random_flip(horizontal) random_translation(0.3,0.3) random_contrast(0.4) flatten dense(3,softmax)",
     .optimizer = "lamb(lr=0.01)",
     .every = "3",
     .epochs = 2,
     .accumulate = 2,
     .sizes = "9",
     .shuffled = true},
    {.model = "flatten dense(6,relu,kernel_constraint=max_norm(1)) dropout(0.4) dense(3,softmax)",
     .optimizer = "ftrl(lr=0.1)",
     .every = "2",
     .epochs = 2,
     .sizes = "13",
     .split = 0.2,
     .augment = "flip,shift=0.4,brightness=0.2,noise=0.1",
     .shuffled = true,
     .seed = 6},
    {.model = "dense(5,relu,kernel_constraint=unit_norm) dense(3,softmax,bias_constraint=non_neg)",
     .optimizer = "adafactor(lr=0.05)",
     .every = "3",
     .epochs = 2,
     .sizes = "13"},
    {.model = "dense(6,tanh) dense(5,relu) dense(3,softmax)",
     .optimizer = "muon(lr=0.02)",
     .every = "2",
     .epochs = 2,
     .sizes = "13",
     .shuffled = true},
    {.model = "text_vectorization(max_tokens=9,output_sequence_length=4) embedding(9,3) global_avgpool1d dense(3,softmax)",
     .optimizer = "adam",
     .every = "2",
     .epochs = 2,
     .sizes = "13",
     .split = 0.2,
     .words = true,
     .shuffled = true},
};

/* ---- Tests ---- */

/* Killed after the first update, after some others, and resumed once. */
static void killed_runs_go_on(void **state)
{
    (void)state;
    for (size_t k = 0; k < BWI_COUNT(trials); k++) {
        trial t = trials[k];
        t.disk = &(disk){.quick = true};
        begin_anew();
        outcome whole = fit(&t);
        assert_int_equal(whole.status, BW_OK);
        assert_true(whole.facts.checkpoints >= 2);
        trial plain = t;
        plain.every = NULL;
        assert_true(fit(&plain).hash == whole.hash); /* checkpoints change nothing */
        for (int64_t at = 1; at <= whole.facts.updates; at += 1 + (at + (int64_t)k) % 4) {
            begin_anew();
            t.kill_at = at;
            t.resume = false;
            assert_int_equal(fit_and_die(&t), 9);
            t.kill_at = 0;
            t.resume = true;
            outcome resumed = fit(&t);
            assert_string_equal(resumed.message, "");
            assert_true(resumed.facts.resumed_step <= at);
            assert_true(resumed.hash == whole.hash);
            assert_int_equal(resumed.facts.updates, whole.facts.updates);
            assert_int_equal(resumed.facts.samples, whole.facts.samples);
        }
    }
}

/* Cancelled after each update, which at the end of an epoch is within its validation, again and again in one run. */
static void cancelled_runs_go_on_from_the_very_step(void **state)
{
    (void)state;
    for (size_t k = 0; k < BWI_COUNT(trials); k++) {
        trial t = trials[k];
        t.disk = &(disk){.quick = true};
        begin_anew();
        outcome whole = fit(&t);
        begin_anew();
        for (int64_t at = 1; at <= whole.facts.updates; at++) {
            t.cancel_at = at;
            outcome stopped = fit(&t);
            assert_int_equal(stopped.status, BW_CANCELLED);
            assert_int_equal(stopped.facts.updates, at);
            assert_int_equal(stopped.facts.last_checkpoint, at);
            assert_int_equal(stopped.facts.resumed_step, at == 1 ? -1 : at - 1);
            t.resume = true;
            t.workers = (int)(at % 3) + 1;
        }
        t.cancel_at = 0;
        outcome resumed = fit(&t);
        assert_int_equal(resumed.status, BW_OK);
        assert_true(resumed.hash == whole.hash);
        outcome again = fit(&t); /* of a run that is complete, nothing is left to do */
        assert_int_equal(again.status, BW_OK);
        assert_true(again.hash == whole.hash);
    }
}

/* At every call of the writer and of what comes before and after it. */
static void killed_at_every_call_it_loads(void **state)
{
    (void)state;
    trial t = trials[0];
    t.epochs = 1;
    t.every = "2";
    t.keep = 1;
    begin_anew();
    t.disk = &(disk){.quick = true};
    outcome whole = fit(&t);
    int calls = atomic_load(&t.disk->calls), killed = 0;
    assert_true(calls > 20);
    for (int n = 1; n <= calls + 20; n++) {
        begin_anew();
        t.resume = false;
        t.disk = &(disk){.quick = true, .kill_at = n};
        int code = fit_and_die(&t);
        assert_true(code == 9 || code == 0); /* how many checkpoints there are depends on timing */
        killed += code == 9;
        t.resume = true;
        t.disk = &(disk){.quick = true};
        outcome resumed = fit(&t);
        assert_string_equal(resumed.message, "");
        assert_string_equal(resumed.log, ""); /* nothing was damaged */
        assert_true(resumed.hash == whole.hash);
    }
    assert_true(killed > 20);
    begin_anew();
}

static void budgets_and_workers_may_differ_but_not_the_tile(void **state)
{
    (void)state;
    trial t = trials[0];
    t.disk = &(disk){.quick = true};
    t.tile = 4;
    begin_anew();
    outcome whole = fit(&t);
    begin_anew();
    t.cancel_at = 5;
    assert_int_equal(fit(&t).status, BW_CANCELLED);
    t.cancel_at = 0;
    t.resume = true;
    t.tile = 0;
    t.memory = 64 << 20;
    t.workers = 3;
    outcome resumed = fit(&t);
    assert_int_equal(resumed.status, BW_OK);
    assert_true(resumed.hash == whole.hash);
    assert_int_equal(resumed.facts.tile, 4);
    t.tile = 8;
    outcome refused = fit(&t);
    assert_int_equal(refused.status, BW_INVALID_ARGUMENT);
    assert_non_null(strstr(refused.message, "samples in a tile: it was 4, it is 8 now"));
}

static void expect_refused(const trial *t, const char *text)
{
    outcome o = fit(t);
    assert_int_equal(o.status, BW_INVALID_ARGUMENT);
    if (!strstr(o.message, text)) {
        fail_msg("expected '%s' in '%s'", text, o.message);
    }
}

static void changes_are_refused_by_name(void **state)
{
    (void)state;
    trial first = trials[0], t;
    first.disk = &(disk){.quick = true};
    first.cancel_at = 5;
    first.model = "dense(5,relu) dropout(0.5) dense(3,softmax)";
    begin_anew();
    assert_int_equal(fit(&first).status, BW_CANCELLED);
    first.cancel_at = 0;
    expect_refused(&first, "holds a checkpoint of step 5: resume that run, or give another folder");
    first.resume = true;
#define CHANGED(member, value, text) \
    t = first;                       \
    t.member = value;                \
    expect_refused(&t, text)
    CHANGED(seed, 3, "another seed: it was '0', it is '3' now");
    CHANGED(sizes, "4", "another batch: it was '8'");
    CHANGED(accumulate, 2, "another accumulate");
    CHANGED(split, 0.2, "another validation_split");
    CHANGED(shuffled, false, "another training: order of samples");
    CHANGED(model, "dense(5,relu) dropout(0.4) dense(3,softmax)", "another layer dropout");
    CHANGED(model, "dense(5,tanh) dropout(0.5) dense(3,softmax)", "another layer dense");
    CHANGED(model, "dense(5,relu) dropout(0.5) dense(8,relu) dense(3,softmax)", "another layers");
    CHANGED(optimizer, "adam(lr=0.01)", "another optimizer");
    CHANGED(on_nan, BW_NAN_SKIP, "another on_nan");
    CHANGED(early_stopping, "monitor=loss", "another early_stopping");
    float kept = x[40][2];
    x[40][2] += 1;
    expect_refused(&first, "another training: values");
    x[40][2] = kept;
    assert_int_equal(fit(&first).status, BW_OK);
    first.epochs = 2;
    expect_refused(&first, "it has 4 epochs already");
}

static void more_epochs_follow(void **state)
{
    (void)state;
    trial t = trials[1];
    t.disk = &(disk){.quick = true};
    t.epochs = 5;
    begin_anew();
    outcome whole = fit(&t);
    begin_anew();
    t.epochs = 2;
    assert_int_equal(fit(&t).status, BW_OK);
    t.epochs = 5;
    t.resume = true;
    outcome extended = fit(&t);
    assert_int_equal(extended.status, BW_OK);
    assert_true(extended.hash == whole.hash);
    assert_int_equal(extended.epochs, 5);
}

static void training_survives_its_disk(void **state)
{
    (void)state;
    static const int errors[] = {ENOSPC, EROFS, EDQUOT, EFBIG, EIO};
    trial t = trials[0];
    t.disk = &(disk){.quick = true};
    begin_anew();
    outcome whole = fit(&t);
    for (size_t k = 0; k < BWI_COUNT(errors); k++) {
        begin_anew();
        t.resume = false;
        t.cancel_at = 5;
        assert_int_equal(fit(&t).status, BW_CANCELLED);
        t.cancel_at = 0;
        t.resume = true;
        atomic_store(&t.disk->error, errors[k]);
        outcome failed = fit(&t);
        assert_int_equal(failed.status, BW_OK);
        assert_true(failed.hash == whole.hash);
        assert_true(failed.facts.failed_checkpoints > 0);
        assert_int_equal(failed.facts.checkpoints, 0);
        assert_int_equal(failed.facts.last_checkpoint, 5);
        assert_non_null(strstr(failed.log, "CHECKPOINT FAILED: cannot write "));
        assert_non_null(strstr(failed.log, "training goes on, the last whole one is that of step 5"));
        atomic_store(&t.disk->error, 0);
        outcome resumed = fit(&t); /* from that one */
        assert_int_equal(resumed.facts.resumed_step, 5);
        assert_true(resumed.hash == whole.hash);
    }
}

/* The disk is stuck until the twentieth update. */
static void training_does_not_wait_for_the_disk(void **state)
{
    (void)state;
    trial t = trials[0];
    disk slow = {.quick = true, .main = pthread_self()};
    atomic_init(&slow.stuck, true);
    t.disk = &slow;
    begin_anew();
    outcome o = fit(&t);
    assert_int_equal(o.status, BW_OK);
    assert_int_equal(o.facts.last_checkpoint, o.facts.updates);
    assert_true(o.facts.checkpoints < 8); /* those that were due meanwhile are one */
}

/* ---- NaN ---- */

static void steps_with_nan_are_left_out(void **state)
{
    (void)state;
    trial t = {.model = "batchnorm dense(5,relu) dense(3,softmax)", .optimizer = "adam", .epochs = 2};
    float kept = x[19][1];
    x[19][1] = (float)NAN; /* in the third batch of 8 */
    outcome stopped = fit(&t);
    assert_int_equal(stopped.status, BW_INVALID_ARGUMENT);
    assert_non_null(strstr(stopped.message, "sample 19"));
    t.on_nan = BW_NAN_SKIP;
    outcome skipped = fit(&t);
    assert_int_equal(skipped.status, BW_OK);
    assert_int_equal(skipped.facts.skipped_steps, 2);
    assert_int_equal(skipped.facts.updates, 2 * 6);
    assert_non_null(strstr(skipped.log, "epoch 2, step 3 is left out: sample 19"));
    /* The same as training without that batch. */
    x[19][1] = kept;
    float without[SAMPLES - 8][WIDTH];
    int32_t classes[SAMPLES - 8];
    memcpy(without, x, 16 * sizeof x[0]);
    memcpy(without + 16, x + 24, (SAMPLES - 24) * sizeof x[0]);
    memcpy(classes, y, 16 * sizeof y[0]);
    memcpy(classes + 16, y + 24, (SAMPLES - 24) * sizeof y[0]);
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    bw_context *ctx = bw_open(&options);
    bw_array inputs = {.data = without, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES - 8, WIDTH}};
    bw_array targets = {.data = classes, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES - 8}};
    bw_model *model = bw_model_parse(ctx, t.model);
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history;
    fitting.epochs = 2;
    fitting.batch = 8;
    check_ok(ctx, bw_compile(model, "adam", NULL, NULL));
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &inputs, &targets, NULL), &fitting, &history));
    assert_true(hash_of(model, history) == skipped.hash);
    bw_close(ctx);
    /* Killed and resumed around the step that is left out. */
    x[19][1] = (float)NAN;
    t.every = "1";
    t.disk = &(disk){.quick = true};
    for (int64_t at = 1; at <= 12; at++) {
        begin_anew();
        t.resume = false;
        t.cancel_at = at;
        assert_int_equal(fit(&t).status, BW_CANCELLED);
        t.resume = true;
        t.cancel_at = 0;
        outcome resumed = fit(&t);
        assert_true(resumed.hash == skipped.hash);
        assert_int_equal(resumed.facts.skipped_steps, 2);
    }
    x[19][1] = kept;
}

static void an_epoch_without_steps_stops(void **state)
{
    (void)state;
    trial t = {.model = "dense(3,softmax)", .optimizer = "sgd", .epochs = 2, .sizes = "full", .on_nan = BW_NAN_SKIP};
    float kept = x[7][0];
    x[7][0] = (float)INFINITY;
    outcome o = fit(&t);
    x[7][0] = kept;
    assert_int_equal(o.status, BW_INVALID_ARGUMENT);
    assert_non_null(strstr(o.message, "epoch 1: all of its 1 steps were left out; the last one: sample 7"));
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
        cmocka_unit_test(killed_runs_go_on),
        cmocka_unit_test(cancelled_runs_go_on_from_the_very_step),
        cmocka_unit_test(killed_at_every_call_it_loads),
        cmocka_unit_test(budgets_and_workers_may_differ_but_not_the_tile),
        cmocka_unit_test(changes_are_refused_by_name),
        cmocka_unit_test(more_epochs_follow),
        cmocka_unit_test(training_survives_its_disk),
        cmocka_unit_test(training_does_not_wait_for_the_disk),
        cmocka_unit_test(steps_with_nan_are_left_out),
        cmocka_unit_test(an_epoch_without_steps_stops),
    };
    return cmocka_run_group_tests(tests, make_quick_folder, remove_folder);
}
