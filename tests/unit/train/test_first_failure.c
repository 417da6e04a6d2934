/* The first failure stays until somebody has been told of it, whichever function comes next: every one of batchwise.h that returns
 * a status, by name. */
#include "support/folder.h"
#include "support/planned.h"

#include "insight/tune/tune.h"

/* One object of each kind, and a dataset of one batch. */
typedef struct objects {
    planned p;
    bw_plan *plan;
    bw_iterator *iterator;
    bw_batch *batch;
    bw_gradients *gradients;
    bw_node *node;
    bw_history *history;
    bw_tensorboard *board;
} objects;

static float values[8 * 10];

static bw_status call_split(objects *o)
{
    bw_dataset *training, *validation;
    return bw_split(o->p.data, 0.5, &training, &validation);
}

static bw_status call_dataset_values(objects *o)
{
    float x[4];
    return bw_dataset_values(o->p.data, "x", 0, 1, x, 4);
}

static bw_status call_output(objects *o)
{
    return bw_output(o->node, NULL);
}

static bw_status call_add_loss(objects *o)
{
    return bw_add_loss(bw_sum(o->node, BW_ALL), "sum");
}

static bw_status call_compile(objects *o)
{
    return bw_compile(o->p.model, "sgd", NULL, NULL);
}

static bw_status call_recompile(objects *o)
{
    return bw_recompile(o->p.model, "sgd", NULL, NULL);
}

static bw_status call_build(objects *o)
{
    return bw_build(bw_model_parse(o->p.ctx, "input(3) dense(2)"), 0, NULL, 1);
}

static bw_status call_variable_get(objects *o)
{
    float bias[10];
    return bw_variable_get(o->p.model, 1, bias, 10);
}

static bw_status call_variable_set(objects *o)
{
    float bias[10] = {0};
    return bw_variable_set(o->p.model, 1, bias, 10);
}

static bw_status call_output_describe(objects *o)
{
    bw_output_facts facts;
    return bw_output_describe(o->p.model, 0, &facts);
}

static bw_status call_model_describe(objects *o)
{
    bw_model_facts facts;
    return bw_model_describe(o->p.model, &facts);
}

static bw_status call_layer_describe(objects *o)
{
    bw_layer_facts facts;
    return bw_layer_describe(o->p.model, 0, &facts);
}

static bw_status call_layer_input(objects *o)
{
    int from, use;
    return bw_layer_input(o->p.model, 1, 0, &from, &use);
}

static bw_status call_fit(objects *o)
{
    return bw_fit(o->p.model, o->p.data, NULL, NULL);
}

static bw_status call_adapt(objects *o)
{
    bw_model *model = bw_model_parse(o->p.ctx, "normalization dense(2)");
    return bw_adapt(model, o->p.data);
}

static bw_status call_history_part(objects *o)
{
    bw_part part;
    return bw_history_part(o->history, 0, &part);
}

static bw_status call_history_event(objects *o)
{
    bw_event event;
    return bw_history_event(o->history, 0, &event);
}

static bw_status call_history_refresh(objects *o)
{
    return bw_history_refresh(o->history);
}

static bw_status call_history_save_trace(objects *o)
{
    return bw_history_save_trace(o->history, inside("first_failure.json"));
}

static bw_status call_machine_limits(objects *o)
{
    bw_machine machine;
    setenv("XDG_CACHE_HOME", folder, 1);
    return bw_machine_limits(o->p.ctx, &machine);
}

static bw_status call_tune(objects *o)
{
    bw_tune_options options = BW_TUNE_OPTIONS_DEFAULT;
    bw_tuning *tuning = NULL;
    options.seconds = 0.02;
    bw_status status = bw_tune(o->p.model, o->p.data, &options, &tuning);
    bw_tuning_free(tuning);
    return status;
}

static bw_status call_tuning_apply(objects *o)
{
    const bwi_training *training = o->p.model->training;
    bw_tuning tuning = {.ctx = o->p.ctx, .facts = {.decided = true, .rate = 0.1}, .row = training->optimizer.row};
    memcpy(tuning.values, training->optimizer.values, sizeof tuning.values);
    return bw_tuning_apply(&tuning, o->p.model);
}

static bw_status call_history_predict(objects *o)
{
    bw_prediction prediction;
    bw_machine machine = {.cores = 1,
                          .core_flops = 1,
                          .flops = 1,
                          .core_bandwidth = 1,
                          .bandwidth = 1,
                          .exchange_bandwidth = 1,
                          .meeting_seconds = 1};
    return bw_history_predict(o->history, &machine, NULL, &prediction);
}

static bw_status call_tensorboard_number(objects *o)
{
    return bw_tensorboard_number(o->board, "rate", 1);
}

static bw_status call_tensorboard_text(objects *o)
{
    return bw_tensorboard_text(o->board, "note", "none");
}

static bw_status call_tensorboard_scalar(objects *o)
{
    return bw_tensorboard_scalar(o->board, "train", "mine", 1, 1);
}

static bw_status call_set_learning_rate(objects *o)
{
    return bw_set_learning_rate(o->p.model, 0.5);
}

static bw_status call_evaluate(objects *o)
{
    bw_history *result;
    return bw_evaluate(o->p.model, o->p.data, &result);
}

static bw_status call_predict(objects *o)
{
    return bw_predict(o->p.model, o->p.data, values, 80);
}

static bw_status call_predict_all(objects *o)
{
    float *predictions[1] = {values};
    size_t counts[1] = {80};
    return bw_predict_all(o->p.model, o->p.data, predictions, counts, 1);
}

static bw_status call_save(objects *o)
{
    return bw_save(o->p.model, inside("first_failure.json"));
}

static bw_status call_load_weights(objects *o)
{
    return bw_load_weights(o->p.model, inside("first_failure.safetensors"));
}

static bw_status call_checkpoint(objects *o)
{
    bw_gradients_clear(o->gradients); /* a checkpoint has no place for what is not applied */
    return bw_checkpoint(o->p.model, inside("checkpoints"), 1, NULL);
}

static bw_status call_resume(objects *o)
{
    int64_t step;
    return bw_resume(o->p.model, inside("checkpoints"), &step, NULL);
}

static bw_status call_iterator_seek(objects *o)
{
    return bw_iterator_seek(o->iterator, 0);
}

static bw_status call_plan_print(objects *o)
{
    FILE *file = tmpfile();
    bw_status status = bw_plan_print(o->plan, file);
    fclose(file);
    return status;
}

static bw_status call_doctor(objects *o)
{
    bw_findings *findings;
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    options.seconds = 0.01;
    return bw_doctor(o->p.model, o->p.data, &options, &findings);
}

static bw_status call_review(objects *o)
{
    bw_findings *findings;
    return bw_review(o->p.model, o->p.data, NULL, o->history, &findings);
}

static bw_status call_next(objects *o)
{
    bw_iterator *iterator = bw_iterate(o->p.data, 0);
    bw_batch *batch;
    bw_status status = bw_next(iterator, &batch);
    bw_iterator_free(iterator);
    return status;
}

static bw_status call_gradients_add(objects *o)
{
    return bw_gradients_add(o->gradients, o->batch, NULL);
}

static bw_status call_gradients_norm(objects *o)
{
    double norm;
    return bw_gradients_norm(o->gradients, &norm);
}

static bw_status call_gradients_scale(objects *o)
{
    return bw_gradients_scale(o->gradients, 0.5);
}

static bw_status call_gradients_get(objects *o)
{
    float bias[10];
    return bw_gradients_get(o->gradients, 1, bias, 10);
}

static bw_status call_gradients_set(objects *o)
{
    float bias[10] = {0};
    return bw_gradients_set(o->gradients, 1, bias, 10);
}

static bw_status call_gradients_predict(objects *o)
{
    return bw_gradients_predict(o->gradients, o->batch, 0, values, 80);
}

static bw_status call_gradients_losses(objects *o)
{
    return bw_gradients_losses(o->gradients, o->batch, values, 8);
}

static bw_status call_batch_values(objects *o)
{
    return bw_batch_values(o->batch, "x", values, 32);
}

static bw_status call_apply(objects *o)
{
    return bw_apply(o->p.model, o->gradients);
}

static bw_status call_apply_averages(objects *o)
{
    return bw_apply_averages(o->p.model);
}

static const struct {
    const char *name;
    bw_status (*call)(objects *o);
} calls[] = {
    {"bw_split", call_split},
    {"bw_dataset_values", call_dataset_values},
    {"bw_output", call_output},
    {"bw_add_loss", call_add_loss},
    {"bw_build", call_build},
    {"bw_variable_get", call_variable_get},
    {"bw_variable_set", call_variable_set},
    {"bw_output_describe", call_output_describe},
    {"bw_model_describe", call_model_describe},
    {"bw_layer_describe", call_layer_describe},
    {"bw_layer_input", call_layer_input},
    {"bw_fit", call_fit},
    {"bw_adapt", call_adapt},
    {"bw_history_part", call_history_part},
    {"bw_history_event", call_history_event},
    {"bw_history_refresh", call_history_refresh},
    {"bw_history_save_trace", call_history_save_trace},
    {"bw_machine_limits", call_machine_limits},
    {"bw_tune", call_tune},
    {"bw_tuning_apply", call_tuning_apply},
    {"bw_history_predict", call_history_predict},
    {"bw_tensorboard_number", call_tensorboard_number},
    {"bw_tensorboard_text", call_tensorboard_text},
    {"bw_tensorboard_scalar", call_tensorboard_scalar},
    {"bw_set_learning_rate", call_set_learning_rate},
    {"bw_evaluate", call_evaluate},
    {"bw_predict", call_predict},
    {"bw_predict_all", call_predict_all},
    {"bw_save", call_save},
    {"bw_load_weights", call_load_weights},
    {"bw_checkpoint", call_checkpoint},
    {"bw_resume", call_resume},
    {"bw_iterator_seek", call_iterator_seek},
    {"bw_plan_print", call_plan_print},
    {"bw_doctor", call_doctor},
    {"bw_review", call_review},
    {"bw_next", call_next},
    {"bw_gradients_add", call_gradients_add},
    {"bw_gradients_norm", call_gradients_norm},
    {"bw_gradients_scale", call_gradients_scale},
    {"bw_gradients_get", call_gradients_get},
    {"bw_gradients_set", call_gradients_set},
    {"bw_gradients_predict", call_gradients_predict},
    {"bw_gradients_losses", call_gradients_losses},
    {"bw_batch_values", call_batch_values},
    {"bw_apply", call_apply},
    {"bw_apply_averages", call_apply_averages},
    {"bw_compile", call_compile}, /* the last ones: gradients that were begun before them are refused */
    {"bw_recompile", call_recompile},
};

static void open_objects(objects *o)
{
    *o = (objects){.batch = NULL};
    planned_model(&o->p, "flatten dense(10,softmax)", 8, 2, 2, 1, 1);
    bw_context *ctx = o->p.ctx;
    check_ok(ctx, bw_compile(o->p.model, "adam(use_ema=true)", NULL, NULL));
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 1;
    options.epochs = 20;
    options.trace_steps = 2;
    check_ok(ctx, bw_fit(o->p.model, o->p.data, &options, &o->history));
    o->board = bw_tensorboard_new(ctx, inside("board"), NULL);
    check_ok(ctx, bw_save(o->p.model, inside("first_failure.safetensors")));
    o->plan = bw_plan_make(o->p.model, o->p.data, 8, NULL);
    o->iterator = bw_iterate(o->p.data, 0);
    o->gradients = bw_gradients_new(o->p.model, NULL);
    check_ok(ctx, bw_next(o->iterator, &o->batch));
    check_ok(ctx, bw_gradients_add(o->gradients, o->batch, NULL));
    o->node = bw_layer(bw_input(bw_model_new(ctx), "x", BW_F32, 1, (int64_t[]){3}), "dense(4)");
    assert_non_null(o->node);
}

static void close_objects(objects *o)
{
    planned_close(&o->p);
}

static void test_every_function_returns_it(void **state)
{
    (void)state;
    objects o;
    open_objects(&o);
    bw_context *ctx = o.p.ctx;
    for (size_t i = 0; i < BWI_COUNT(calls); i++) {
        uint64_t hash = bw_model_hash(o.p.model);
        assert_int_equal(bw_load_weights(o.p.model, "missing.safetensors"), BW_NOT_FOUND);
        assert_null(bw_model_parse(ctx, "dens(3)")); /* a second failure does not cover the first */
        bw_status status = calls[i].call(&o);
        if (status != BW_NOT_FOUND) {
            fail_msg("%s: %s", calls[i].name, bw_status_name(status));
        }
        assert_int_equal(bw_model_hash(o.p.model), hash);
        if (i % 2 == 0) {
            assert_non_null(strstr(bw_message(ctx), "missing.safetensors"));
        }
        check_ok(ctx, calls[i].call(&o)); /* it was told: the same call goes on, whether its message was asked for or not */
    }
    close_objects(&o);
}

static void test_asking_is_being_told(void **state)
{
    (void)state;
    objects o;
    open_objects(&o);
    bw_context *ctx = o.p.ctx;
    assert_int_equal(bw_load_weights(o.p.model, "missing.safetensors"), BW_NOT_FOUND);
    assert_int_equal(bw_last_error(ctx)->status, BW_NOT_FOUND);
    check_ok(ctx, call_fit(&o));
    assert_null(bw_load(ctx, "missing.keras"));
    assert_non_null(strstr(bw_message(ctx), "missing.keras"));
    check_ok(ctx, call_fit(&o));
    close_objects(&o);
}

/* Neither the end of the data nor a cancellation is a failure of the program's. */
static void test_what_does_not_stay(void **state)
{
    (void)state;
    objects o;
    open_objects(&o);
    assert_int_equal(bw_next(o.iterator, &o.batch), BW_OUT_OF_RANGE);
    assert_int_equal(call_predict(&o), BW_OK);
    bw_cancel(o.p.ctx);
    assert_int_equal(call_fit(&o), BW_CANCELLED);
    assert_int_equal(call_save(&o), BW_OK);
    close_objects(&o);
}

static bool save_nowhere(void *model, const bw_progress *progress)
{
    (void)progress;
    (void)bw_save(model, "no/such/folder/model.keras");
    return true;
}

static void test_in_a_callback(void **state)
{
    (void)state;
    objects o;
    open_objects(&o);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.on_epoch = save_nowhere;
    options.user = o.p.model;
    check_fails(o.p.ctx, bw_fit(o.p.model, o.p.data, &options, NULL), BW_NOT_FOUND, "no/such/folder/model.keras");
    check_ok(o.p.ctx, call_fit(&o));
    close_objects(&o);
}

/* A function that is added to the header and not here fails this test. */
static void test_all_are_here(void **state)
{
    (void)state;
    FILE *header = fopen(BW_DATA "/../include/batchwise.h", "r");
    assert_non_null(header);
    char line[400], name[64];
    size_t found = 0;
    while (fgets(line, sizeof line, header)) {
        if (sscanf(line, "BW_API bw_status %63[a-z_](", name) == 1) {
            size_t i = 0;
            while (i < BWI_COUNT(calls) && strcmp(calls[i].name, name) != 0) {
                i++;
            }
            if (i == BWI_COUNT(calls)) {
                fail_msg("%s is not among the calls", name);
            }
            found++;
        }
    }
    fclose(header);
    assert_int_equal(found, BWI_COUNT(calls));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_returns_it),
        cmocka_unit_test(test_asking_is_being_told),
        cmocka_unit_test(test_what_does_not_stay),
        cmocka_unit_test(test_in_a_callback),
        cmocka_unit_test(test_all_are_here),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
