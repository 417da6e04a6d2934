/* fit, evaluate and predict: options, history, callbacks, batches of any size, and what is refused before the first step. */
#include "support/planned.h"

#include "base/internal.h"

#include <math.h>
#include <pthread.h>

static const char *const plain = "flatten dense(12,relu) dense(10,softmax)";

static void open_model(planned *p, const char *text, int64_t samples)
{
    planned_model(p, text, samples, 4, 4, 2, 2);
    check_ok(p->ctx, bw_compile(p->model, "sgd(0.05,momentum=0.5)", NULL, NULL));
    check_ok(p->ctx, bw_build(p->model, 3, (const int64_t[]){4, 4, 2}, 7));
}

/* ---- Options ---- */

static void test_options_that_cannot_be(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 16);
    uint64_t before = bw_model_hash(p.model);
    static const struct {
        int epochs, accumulate;
        int64_t batch;
        double split;
        const char *message;
    } cases[] = {
        {0, 1, 4, 0, "epochs: expected at least 1, got 0"},
        {-3, 1, 4, 0, "epochs: expected at least 1, got -3"},
        {1, 0, 4, 0, "accumulate: expected at least 1, got 0"},
        {1, -1, 4, 0, "accumulate: expected at least 1, got -1"},
        {1, 1, 0, 0, "batch: expected at least 1 sample, got 0"},
        {1, 1, -32, 0, "batch: expected at least 1 sample, got -32"},
        {1, 1, INT64_MIN, 0, "batch: expected at least 1 sample"},
        {1, 1, 4, -0.1, "validation_split: expected a share from 0 to below 1, got -0.1"},
        {1, 1, 4, 1, "validation_split: expected a share from 0 to below 1, got 1"},
        {1, 1, 4, (double)NAN, "validation_split: expected a share from 0 to below 1"},
        {1, 1, 4, 0.999, "leaves no samples for training"},
        {1, 1, 4, 1e-9, ""}, /* Keras keeps floor(16 (1 - 1e-9)) = 15 */
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.epochs = cases[i].epochs;
        options.batch = cases[i].batch;
        options.accumulate = cases[i].accumulate;
        options.validation_split = cases[i].split;
        bw_history *history = (bw_history *)&p; /* is overwritten */
        bw_status status = bw_fit(p.model, p.data, &options, &history);
        if (*cases[i].message) {
            check_fails(p.ctx, status, BW_INVALID_ARGUMENT, cases[i].message);
            assert_null(history);
            assert_true(bw_model_hash(p.model) == before);
        } else {
            check_ok(p.ctx, status);
        }
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.validation = p.data;
    options.validation_split = 0.5;
    check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "validation: give data or a split, not both");
    options.size = 3;
    check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT,
                "bw_fit_options.size is 3|default initialiser");
    assert_int_equal(bw_fit(NULL, NULL, NULL, NULL), BW_INVALID_ARGUMENT);
    check_fails(p.ctx, bw_fit(p.model, NULL, NULL, NULL), BW_INVALID_ARGUMENT, "fit: there is no dataset");
    check_fails(p.ctx, bw_fit(NULL, p.data, NULL, NULL), BW_INVALID_ARGUMENT, "fit: there is no model");
    planned_close(&p);
}

/* ---- Batch sizes ---- */

enum { STEPS = 40 };

typedef struct steps {
    int count;
    int64_t before, size[STEPS], of[STEPS]; /* samples of each step, and how many steps its epoch was said to have */
} steps;

static bool note_step(void *user, const bw_progress *progress)
{
    steps *s = user;
    s->before = progress->step == 1 ? 0 : s->before;
    s->of[s->count] = progress->steps;
    s->size[s->count++] = progress->samples - s->before;
    s->before = progress->samples;
    return s->count < STEPS;
}

/* The same by a custom loop. */
static uint64_t train_by_hand(const char *text, int accumulate, int epochs)
{
    planned p;
    open_model(&p, plain, 20);
    bw_dataset *data = bw_batch_sizes(bw_shuffle(p.data, 3), text, false);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_gradients *gradients = bw_gradients_new(p.model, &options);
    for (int epoch = 0; epoch < epochs; epoch++) {
        bw_iterator *iterator = bw_iterate(data, epoch);
        bw_batch *batch;
        for (int k = 1; bw_next(iterator, &batch) == BW_OK; k++) {
            check_ok(p.ctx, bw_gradients_add(gradients, batch, NULL));
            if (k % accumulate == 0) {
                check_ok(p.ctx, bw_apply(p.model, gradients));
            }
        }
        if (bw_gradients_samples(gradients) > 0) {
            check_ok(p.ctx, bw_apply(p.model, gradients));
        }
        bw_iterator_free(iterator);
    }
    uint64_t hash = bw_model_hash(p.model);
    planned_close(&p);
    return hash;
}

static void test_batch_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int accumulate, epochs;
        bool drop, own; /* own: chosen for the dataset, not for fit */
        int count;
        int64_t size[STEPS], of[STEPS];
    } cases[] = {
        {"full", 1, 2, false, false, 2, {20, 20}, {1, 1}},
        {"7,5", 1, 1, false, false, 4, {7, 5, 7, 1}, {4, 4, 4, 4}},
        {"7,5", 1, 1, false, true, 4, {7, 5, 7, 1}, {4, 4, 4, 4}},
        {"7,5", 1, 1, true, false, 3, {7, 5, 7}, {3, 3, 3}},
        {"7,5", 1, 1, true, true, 3, {7, 5, 7}, {3, 3, 3}},
        {"8,4", 2, 1, false, false, 2, {12, 8}, {2, 2}},
        {"16@0,8@1,full@2", 1, 3, false, false, 6, {16, 4, 8, 8, 4, 20}, {2, 2, 3, 3, 3, 1}},
        {"16@0,8@1,full@2", 1, 3, false, true, 6, {16, 4, 8, 8, 4, 20}, {2, 2, 3, 3, 3, 1}},
        {"16@0,8@1", 1, 2, true, false, 3, {16, 8, 8}, {1, 2, 2}},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        steps seen = {0};
        open_model(&p, plain, 20);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        bw_dataset *data = bw_shuffle(p.data, 3);
        if (cases[i].own) {
            data = bw_batch_sizes(data, cases[i].text, false);
        } else {
            data = bw_batches(data, 2); /* goes for nothing: the options say otherwise */
            options.batch_sizes = cases[i].text;
        }
        options.drop_remainder = cases[i].drop;
        options.accumulate = cases[i].accumulate;
        options.epochs = cases[i].epochs;
        options.on_step = note_step;
        options.user = &seen;
        check_ok(p.ctx, bw_fit(p.model, data, &options, NULL));
        assert_int_equal(seen.count, cases[i].count);
        for (int k = 0; k < seen.count; k++) {
            assert_int_equal(seen.size[k], cases[i].size[k]);
            assert_int_equal(seen.of[k], cases[i].of[k]);
        }
        if (!cases[i].drop) {
            assert_true(bw_model_hash(p.model) == train_by_hand(cases[i].text, cases[i].accumulate, cases[i].epochs));
        }
        planned_close(&p);
    }
}

/* Batches of 4 of one dataset, then of 3 of the other; what cannot be is refused before the first step. */
static void test_batches_of_concatenated(void **state)
{
    (void)state;
    planned p, q;
    open_model(&p, plain, 20);
    uint64_t before = bw_model_hash(p.model);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch_sizes = "4@1";
    check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "batch sizes '4@1'");
    options.batch_sizes = "21";
    options.drop_remainder = true;
    check_fails(p.ctx, bw_fit(p.model, p.data, &options, NULL), BW_INVALID_ARGUMENT, "batches of 21: of 20 samples all");
    assert_true(bw_model_hash(p.model) == before);
    planned_close(&p);

    open_model(&q, plain, 10);
    static float more[7 * 4 * 4 * 2];
    static int32_t classes[7];
    bw_array x = {.data = more, .dtype = BW_F32, .ndim = 4, .shape = {7, 4, 4, 2}};
    bw_array y = {.data = classes, .dtype = BW_I32, .ndim = 1, .shape = {7}};
    bw_dataset *both = bw_concatenate(bw_batches(q.data, 4), bw_batches(bw_from_arrays(q.ctx, &x, &y, NULL), 3));
    steps seen = {0};
    options = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
    options.on_step = note_step;
    options.user = &seen;
    check_ok(q.ctx, bw_fit(q.model, both, &options, NULL));
    const int64_t expected[] = {4, 4, 2, 3, 3, 1};
    assert_int_equal(seen.count, 6);
    assert_memory_equal(seen.size, expected, sizeof expected);
    planned_close(&q);
}

/* Augmented samples train on any number of workers alike, and are as they were for validation, evaluation and prediction. */
static void test_augmented(void **state)
{
    (void)state;
    static const char *const text = "flip,shift=1,brightness=0.5,noise=0.2";
    uint64_t hash[3];
    double loss[3];
    float predictions[2][12 * 10];
    for (int k = 0; k < 3; k++) {
        planned p;
        planned_model(&p, plain, 60, 4, 4, 2, k == 1 ? 2 : 1);
        check_ok(p.ctx, bw_compile(p.model, "sgd(0.05)", NULL, NULL));
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.validation_split = 0.2;
        options.batch = 10;
        options.epochs = 2;
        options.seed = 3;
        bw_history *history, *again;
        bw_dataset *data = k == 2 ? p.data : bw_augment(p.data, text, 8);
        check_ok(p.ctx, bw_fit(p.model, data, &options, &history));
        hash[k] = bw_model_hash(p.model);
        loss[k] = bw_history_last(history, "val_loss");
        /* The last fifth as it is in memory. */
        bw_array x = {.data = p.x + 48 * 32, .dtype = BW_F32, .ndim = 4, .shape = {12, 4, 4, 2}};
        bw_array y = {.data = p.y + 48, .dtype = BW_I32, .ndim = 1, .shape = {12}};
        check_ok(p.ctx, bw_evaluate(p.model, bw_from_arrays(p.ctx, &x, &y, NULL), &again));
        assert_true(fabs(bw_history_last(again, "loss") - loss[k]) < 1e-6);
        check_ok(p.ctx, bw_predict(p.model, bw_from_arrays(p.ctx, &x, NULL, NULL), predictions[0], 120));
        check_ok(p.ctx, bw_predict(p.model, bw_skip(data, 48), predictions[1], 120));
        assert_memory_equal(predictions[0], predictions[1], sizeof predictions[0]);
        planned_close(&p);
    }
    assert_true(hash[0] == hash[1] && hash[0] != hash[2]);
    assert_true(loss[0] == loss[1]);
}

/* Options of an older program: what its size does not cover keeps the default. */
static void test_shorter_options(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 16);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.size = offsetof(bw_fit_options, validation_split);
    options.batch = 8;
    options.validation_split = 77; /* not seen */
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    assert_int_equal(bw_history_facts(history).updates, 2);
    planned_close(&p);
}

/* ---- History ---- */

/* With a rate of 0 each epoch's loss and accuracy are those of the model, which the predictions give. */
static void test_values_of_the_history(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 50);
    check_ok(p.ctx, bw_compile(p.model, "sgd(0)", NULL, "accuracy"));
    float y[50 * 10];
    check_ok(p.ctx, bw_predict(p.model, p.data, y, 500));
    double loss[2] = {0}, hits[2] = {0};
    for (int i = 0; i < 50; i++) {
        int best = 0;
        for (int k = 1; k < 10; k++) {
            best = y[i * 10 + k] > y[i * 10 + best] ? k : best;
        }
        loss[i >= 40] -= log((double)y[i * 10 + p.y[i]]);
        hits[i >= 40] += best == p.y[i];
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 3;
    options.batch = 7;
    options.validation_split = 0.2;
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    assert_int_equal(bw_history_epochs(history), 3);
    assert_int_equal(bw_history_columns(history), 4);
    static const char *const names[] = {"accuracy", "loss", "val_accuracy", "val_loss"};
    const double expected[] = {hits[0] / 40, loss[0] / 40, hits[1] / 10, loss[1] / 10};
    for (int c = 0; c < 4; c++) {
        assert_string_equal(bw_history_column(history, c), names[c]);
        for (int e = 0; e < 3; e++) {
            assert_true(fabs(bw_history_value(history, names[c], e) - expected[c]) < 1e-5);
        }
        assert_true(bw_history_last(history, names[c]) == bw_history_value(history, names[c], 2));
    }
    assert_true(isnan(bw_history_value(history, "loss", 3)));
    assert_true(isnan(bw_history_value(history, "loss", -1)));
    assert_true(isnan(bw_history_value(history, "nothing", 0)));
    assert_true(isnan(bw_history_value(NULL, "loss", 0)));
    assert_null(bw_history_column(history, 4));
    assert_null(bw_history_column(history, -1));
    bw_run_facts facts = bw_history_facts(history);
    assert_int_equal(facts.updates, 3 * 6); /* ceil(40 / 7) */
    assert_int_equal(facts.samples, 3 * 40);
    assert_true(facts.seconds > 0 && facts.tile > 0 && facts.lanes > 0 && facts.workers > 0 && facts.planned_bytes > 0);
    bw_history_free(history);

    bw_history *result;
    check_ok(p.ctx, bw_evaluate(p.model, p.data, &result));
    assert_true(fabs(bw_history_last(result, "loss") - (loss[0] + loss[1]) / 50) < 1e-5);
    assert_true(fabs(bw_history_last(result, "accuracy") - (hits[0] + hits[1]) / 50) < 1e-12);
    planned_close(&p);
}

/* Training and validation data from the same file or not: the same numbers. */
static void test_validation_data(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 50);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.validation_split = 0.2;
    bw_history *a, *b;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &a));
    planned q;
    open_model(&q, plain, 50);
    bw_array x = {.data = q.x, .dtype = BW_F32, .ndim = 4, .shape = {40, 4, 4, 2}},
             y = {.data = q.y, .dtype = BW_I32, .ndim = 1, .shape = {40}},
             vx = {.data = q.x + 40 * 32, .dtype = BW_F32, .ndim = 4, .shape = {10, 4, 4, 2}},
             vy = {.data = q.y + 40, .dtype = BW_I32, .ndim = 1, .shape = {10}},
             w = {.data = q.x, .dtype = BW_F32, .ndim = 1, .shape = {10}},
             other = {.data = q.x, .dtype = BW_F32, .ndim = 4, .shape = {10, 4, 2, 2}},
             labels = {.data = q.y, .dtype = BW_I32, .ndim = 2, .shape = {10, 2}};
    bw_dataset *training = bw_from_arrays(q.ctx, &x, &y, NULL);
    options.validation_split = 0;
    options.validation = bw_from_arrays(q.ctx, &vx, &vy, NULL);
    check_ok(q.ctx, bw_fit(q.model, training, &options, &b));
    assert_true(bw_history_last(a, "val_loss") == bw_history_last(b, "val_loss"));
    assert_true(bw_model_hash(p.model) == bw_model_hash(q.model));

    uint64_t before = bw_model_hash(q.model);
    static const char *const messages[] = {"validation: expected the target that the training data has, found none",
                                           "validation: found one sample weight more than the training data has",
                                           "validation: input: expected shape (4, 4, 2) as the training data has, found (4, 2, 2)",
                                           "validation: target: expected shape () as the training data has, found (2,)"};
    bw_dataset *wrong[] = {bw_from_arrays(q.ctx, &vx, NULL, NULL), bw_from_arrays(q.ctx, &vx, &vy, &w),
                           bw_from_arrays(q.ctx, &other, &vy, NULL), bw_from_arrays(q.ctx, &vx, &labels, NULL)};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        options.validation = wrong[i];
        check_fails(q.ctx, bw_fit(q.model, training, &options, NULL), BW_INVALID_ARGUMENT, messages[i]);
        assert_true(bw_model_hash(q.model) == before);
    }
    planned_close(&p);
    planned_close(&q);
}

/* ---- Batches ---- */

static uint64_t hash_after(int64_t batch, int accumulate, int epochs)
{
    planned p;
    open_model(&p, plain, 50);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = batch;
    options.accumulate = accumulate;
    options.epochs = epochs;
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    int64_t window = batch > 50 || accumulate > 50 || batch * accumulate > 50 ? 50 : batch * accumulate;
    assert_int_equal(bw_history_facts(history).updates, epochs * ((50 + window - 1) / window));
    uint64_t hash = bw_model_hash(p.model);
    planned_close(&p);
    return hash;
}

static void test_batches_larger_than_the_data(void **state)
{
    (void)state;
    uint64_t whole = hash_after(50, 1, 3);
    assert_true(hash_after(51, 1, 3) == whole);
    assert_true(hash_after(100000, 1, 3) == whole);
    assert_true(hash_after(INT64_MAX, 1, 3) == whole);
    assert_true(hash_after(INT64_MAX / 2, 1000, 3) == whole);
    assert_true(hash_after(25, 1, 3) != whole);
}

static void test_accumulation(void **state)
{
    (void)state;
    assert_true(hash_after(5, 4, 2) == hash_after(20, 1, 2));
    assert_true(hash_after(1, 50, 2) == hash_after(50, 1, 2));
}

/* ---- Callbacks ---- */

typedef struct calls {
    const planned *p;
    int steps, epochs, stop_at_step, stop_at_epoch;
    int64_t last_update;
    bool wrong;
    uint64_t hash; /* after the last step */
} calls;

static bool on_step(void *user, const bw_progress *progress)
{
    calls *c = user;
    c->steps++;
    c->wrong |= progress->update != c->last_update + 1 || progress->steps != 4 || progress->step != (c->steps - 1) % 4 + 1 ||
                progress->epoch != (c->steps - 1) / 4 || progress->samples > 50 || !(progress->seconds >= 0) ||
                !(bw_history_last(progress->logs, "loss") > 0);
    c->last_update = progress->update;
    c->hash = bw_model_hash(c->p->model);
    return c->steps != c->stop_at_step;
}

static bool on_epoch(void *user, const bw_progress *progress)
{
    calls *c = user;
    c->epochs++;
    c->wrong |= progress->epoch != c->epochs - 1;
    return c->epochs != c->stop_at_epoch;
}

static void test_callbacks_stop(void **state)
{
    (void)state;
    static const struct {
        int step, epoch, steps, epochs;
    } cases[] = {{0, 0, 12, 3}, {1, 0, 1, 1}, {6, 0, 6, 2}, {4, 0, 4, 1}, {0, 1, 4, 1}, {0, 2, 8, 2}, {0, 3, 12, 3}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        open_model(&p, plain, 50);
        calls c = {.p = &p, .stop_at_step = cases[i].step, .stop_at_epoch = cases[i].epoch};
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.epochs = 3;
        options.batch = 15; /* 15, 15, 15, 5 */
        options.on_step = on_step;
        options.on_epoch = on_epoch;
        options.user = &c;
        bw_history *history;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
        assert_false(c.wrong);
        assert_int_equal(c.steps, cases[i].steps);
        assert_int_equal(c.epochs, cases[i].epochs);
        assert_int_equal(bw_history_epochs(history), cases[i].epochs);
        assert_int_equal(bw_history_facts(history).updates, cases[i].steps);
        assert_true(c.hash == bw_model_hash(p.model));
        /* Counting goes on from there. */
        c.steps = c.epochs = c.stop_at_step = c.stop_at_epoch = 0;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, NULL));
        assert_int_equal(c.last_update, cases[i].steps + 12);
        planned_close(&p);
    }
}

/* What callbacks may do: look at the model, predict, evaluate; training is as it would have been. */
static bool use_the_model(void *user, const bw_progress *progress)
{
    const planned *p = user;
    (void)progress;
    float y[50 * 10];
    bw_history *history;
    bool fine = bw_predict(p->model, p->data, y, 500) == BW_OK && bw_evaluate(p->model, p->data, &history) == BW_OK;
    bw_history_free(fine ? history : NULL);
    return fine;
}

static void test_callbacks_use_the_model(void **state)
{
    (void)state;
    uint64_t hash[2];
    for (int used = 0; used < 2; used++) {
        planned p;
        open_model(&p, "flatten dense(12) batchnorm relu dense(10,softmax)", 50);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = 15;
        options.on_step = used ? use_the_model : NULL;
        options.user = &p;
        bw_history *history;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
        assert_int_equal(bw_history_facts(history).updates, 4);
        hash[used] = bw_model_hash(p.model);
        planned_close(&p);
    }
    assert_true(hash[0] == hash[1]);
}

static bool stop_at_third(void *user, const bw_progress *progress)
{
    (void)user;
    return progress->epoch < 2;
}

/* Epochs that may come take no room but for their columns, and no pages before they come. */
static void test_many_epochs(void **state)
{
    (void)state;
    enum { EPOCHS = 1000000, COLUMNS = 4 };
    planned p;
    open_model(&p, plain, 50);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = EPOCHS;
    options.validation_split = 0.2;
    options.on_epoch = stop_at_third;
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    assert_int_equal(bw_history_columns(history), COLUMNS);
    assert_int_equal(bw_history_epochs(history), 3);
    assert_true(bw_history_value(history, "val_loss", 2) > 0);
    bw_run_facts facts = bw_history_facts(history);
    size_t values = (size_t)EPOCHS * COLUMNS * sizeof(double);
    assert_true(facts.planned_bytes > values && facts.planned_bytes < values + values / 4);
    if (bwi_system_zeroes(values)) { /* not under the address sanitizer */
        assert_true(facts.peak_bytes < values / 4);
    }
    planned_close(&p);
}

/* ---- Predictions ---- */

static void test_predictions(void **state)
{
    (void)state;
    planned p;
    open_model(&p, plain, 50);
    float y[500];
    check_fails(p.ctx, bw_predict(p.model, p.data, y, 499), BW_INVALID_ARGUMENT,
                "predict: expected an array of 500 numbers, got 499");
    check_fails(p.ctx, bw_predict(p.model, p.data, y, 5000), BW_INVALID_ARGUMENT,
                "predict: expected an array of 500 numbers, got 5000");
    check_ok(p.ctx, bw_predict(p.model, p.data, y, 500));
    for (int i = 0; i < 50; i++) {
        double sum = 0;
        for (int k = 0; k < 10; k++) {
            sum += (double)y[i * 10 + k];
        }
        assert_true(fabs(sum - 1) < 1e-5);
    }
    /* A shuffled dataset predicts in its own order. */
    float z[500];
    bw_dataset *shuffled = bw_shuffle(bw_take(p.data, 50), 5);
    check_ok(p.ctx, bw_predict(p.model, shuffled, z, 500));
    for (int i = 0; i < 50; i++) {
        int64_t number = bwi_dataset_number(shuffled, 0, i);
        for (int k = 0; k < 10; k++) {
            assert_true(fabsf(z[i * 10 + k] - y[number * 10 + k]) < 1e-6F);
        }
    }
    planned_close(&p);
}

/* ---- Ranks ---- */

typedef struct member {
    bw_context *ctx;
    const char *sizes; /* of batches; NULL: as they are */
    int epochs;
    const char *model; /* NULL: "dense(1)" */
    int lanes, tile;
    unsigned seed;
    float weight; /* that is not as the seed makes it; 0: all are */
    bw_status status;
    char message[200];
} member;

static void *fit_member(void *user)
{
    static const float x[8], y[8];
    member *m = user;
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {8, 1}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {8, 1}};
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = m->epochs;
    options.lanes = m->lanes;
    options.tile = m->tile;
    options.seed = m->seed ? m->seed : options.seed;
    bw_dataset *data = bw_from_arrays(m->ctx, &inputs, &targets, NULL);
    bw_model *model = bw_model_parse(m->ctx, m->model ? m->model : "dense(1)");
    if (m->weight != 0) {
        bw_build(model, 1, (const int64_t[]){1}, 0);
        bw_variable_set(model, 0, &m->weight, 1);
    }
    if (m->sizes) {
        data = bw_batch_sizes(data, m->sizes, false);
    }
    m->status = bw_fit(model, data, &options, NULL);
    return NULL;
}

static void fit_two(member members[2])
{
    bw_ranks *ranks = bw_ranks_open(2);
    pthread_t threads[2];
    for (int r = 0; r < 2; r++) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.ranks = ranks;
        options.rank = r;
        members[r].ctx = bw_open(&options);
        assert_int_equal(pthread_create(&threads[r], NULL, fit_member, &members[r]), 0);
    }
    for (int r = 0; r < 2; r++) {
        pthread_join(threads[r], NULL);
    }
    for (int r = 0; r < 2; r++) {
        if (members[r].status != BW_OK) {
            snprintf(members[r].message, sizeof members[r].message, "%s", bw_message(members[r].ctx));
        }
        bw_close(members[r].ctx);
    }
    bw_ranks_close(ranks);
}

/* A rank whose options are refused lets the other go on, though its context stays open. */
static void test_ranks_begin_together(void **state)
{
    (void)state;
    member members[2] = {{.epochs = 1}, {.epochs = 0}};
    fit_two(members);
    assert_int_equal(members[0].status, BW_INVALID_ARGUMENT);
    assert_string_equal(members[0].message, "rank 1 of 2: epochs: expected at least 1, got 0");
    assert_int_equal(members[1].status, BW_INVALID_ARGUMENT);
    assert_non_null(strstr(members[1].message, "epochs: expected at least 1, got 0"));
}

/* Batches are compared as they will be in all epochs, not as they were asked for; of 8 samples. */
static void test_ranks_with_other_batches(void **state)
{
    (void)state;
    static const struct {
        const char *sizes[2];
        bool same;
    } cases[] = {
        {{"4", "4@0"}, true},
        {{"4@0,8@1", "4@0,8@1,8@2"}, true},
        {{"4@0,8@1", "4@0,8@1,4@3"}, true}, /* after the last */
        {{"4@0,8@1", "4@0,8@2"}, false},
        {{"4@0,8@1", "4@0,8@1,4@2"}, false},
        {{"2,4", "4,2"}, false}, /* as many, and as large */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        member members[2] = {{.epochs = 3, .sizes = cases[i].sizes[0]}, {.epochs = 3, .sizes = cases[i].sizes[1]}};
        fit_two(members);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(members[r].status, cases[i].same ? BW_OK : BW_INVALID_ARGUMENT);
            if (!cases[i].same) {
                assert_string_equal(members[r].message,
                                    r ? "ranks differ in their batch sizes, or in the epochs at which these change"
                                      : "rank 1 of 2: ranks differ in their batch sizes, or in the epochs at "
                                        "which these change");
            }
        }
    }
}

/* What ranks train, and how, is compared before the first step; a difference is named, and the rank that has it. */
static void test_ranks_that_differ(void **state)
{
    (void)state;
    static const struct {
        member other;
        const char *message;
    } cases[] = {
        {{.epochs = 1, .seed = 77}, "ranks differ in seed: here it is 77, on rank 0 another"},
        {{.epochs = 1, .lanes = 32}, "ranks differ in lanes: here it is 32, on rank 0 another"},
        {{.epochs = 1, .tile = 2}, "ranks differ in tile: here it is 2 samples, on rank 0 another"},
        {{.epochs = 1, .model = "dense(1,tanh)"}, "ranks differ in layer dense"},
        {{.epochs = 1, .model = "dense(1,use_bias=false)"}, "ranks differ in their number of variables: 1 here, 2 on rank 0"},
        {{.epochs = 2}, "ranks differ in their number of epochs: 2 here, 1 on rank 0"},
        {{.epochs = 1, .weight = 3}, "ranks differ in weights: here it is those with hash "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        member members[2] = {{.epochs = 1}, cases[i].other};
        fit_two(members);
        assert_int_equal(members[0].status, BW_INVALID_ARGUMENT);
        assert_int_equal(members[1].status, BW_INVALID_ARGUMENT);
        assert_non_null(strstr(members[0].message, "rank 1 of 2: ranks differ"));
        assert_non_null(strstr(members[1].message, cases[i].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_that_cannot_be),
        cmocka_unit_test(test_batch_sizes),
        cmocka_unit_test(test_batches_of_concatenated),
        cmocka_unit_test(test_augmented),
        cmocka_unit_test(test_shorter_options),
        cmocka_unit_test(test_values_of_the_history),
        cmocka_unit_test(test_validation_data),
        cmocka_unit_test(test_batches_larger_than_the_data),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_callbacks_stop),
        cmocka_unit_test(test_callbacks_use_the_model),
        cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_ranks_begin_together),
        cmocka_unit_test(test_ranks_with_other_batches),
        cmocka_unit_test(test_ranks_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
