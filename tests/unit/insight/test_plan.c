/*
 * Plans for users: items that add up, figures that a run keeps, whole-batch figures by hand and beside TensorFlow's, and a model
 * that is left as it was.
 */
#include "support/planned.h"

#include "insight/internal.h"

static bw_plan *make(bw_context *ctx, const char *expression, int64_t batch, const bw_plan_options *options)
{
    return bw_plan_make(bw_model_parse(ctx, expression), NULL, batch, options);
}

static void check_sum(const bw_plan *plan)
{
    bw_memory_facts facts = bw_plan_facts(plan);
    size_t sum = 0;
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        assert_true(facts.items[k] <= facts.peak_bytes); /* none is negative */
        sum += facts.items[k];
    }
    assert_int_equal(sum, facts.peak_bytes);
}

/* A run's own plan says the same, for all kinds of models, batches and budgets. */
static void plans_are_those_of_fit(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, tile;
        int lanes, accumulate;
        double validation;
        size_t memory;
    } cases[] = {{1, 0, 0, 1, 0, 0}, {7, 4, 2, 1, 0, 0}, {16, 0, 0, 3, 0, 0}, {40, 0, 0, 1, 0.25, 0}, {32, 0, 0, 1, 0, 700000}};
    for (int e = 0; e < PLANNED_EXPRESSIONS; e++) {
        for (size_t c = 0; c < BWI_COUNT(cases); c++) {
            planned p;
            planned_model(&p, planned_expressions[e], 64, 9, 9, 3, 2);
            bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
            options.tile = cases[c].tile;
            options.lanes = cases[c].lanes;
            options.accumulate = cases[c].accumulate;
            options.validation = cases[c].validation > 0;
            options.memory = cases[c].memory;
            bw_plan *plan = bw_plan_make(p.model, p.data, cases[c].batch, &options);
            check_ok(p.ctx, plan ? BW_OK : bw_plan_print(plan, NULL));
            check_sum(plan);
            bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
            fit.batch = cases[c].batch;
            fit.tile = cases[c].tile;
            fit.lanes = cases[c].lanes;
            fit.accumulate = cases[c].accumulate;
            fit.validation_split = cases[c].validation;
            fit.memory = cases[c].memory;
            bw_history *history;
            check_ok(p.ctx, bw_fit(p.model, p.data, &fit, &history));
            bw_run_facts run = bw_history_facts(history);
            bw_memory_facts facts = bw_plan_facts(plan);
            assert_int_equal(facts.peak_bytes, run.planned_bytes);
            assert_int_equal(facts.tile, run.tile);
            assert_int_equal(facts.lanes, run.lanes);
            assert_int_equal(facts.workers, run.workers);
            planned_close(&p);
        }
    }
}

/* Parameters: 5 x 3 and 3 floats, Adam has two slots for each. */
static void items_by_hand(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.lanes = 4;
    bw_plan *plan = make(ctx, "input(5) dense(3)", 10, &options);
    assert_non_null(plan);
    bw_memory_facts facts = bw_plan_facts(plan);
    check_sum(plan);
    /* As stored: at most padded to whole vectors of 16 floats. */
    assert_in_range(facts.items[BW_PLAN_PARAMETERS], 18 * 4, 6 * 16 * 4);
    assert_int_equal(facts.items[BW_PLAN_OPTIMIZER], 2 * 2 * BWI_CACHE_LINE); /* each slot begins a cache line */
    assert_int_equal(facts.items[BW_PLAN_LANES], 3 * facts.items[BW_PLAN_GRADIENTS]);
    assert_int_equal(facts.items[BW_PLAN_DATA], 0);
    assert_int_equal(facts.items[BW_PLAN_STORE], 0);
    assert_int_equal(facts.lanes, 4);
    assert_int_equal(facts.phases, 1);
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        assert_non_null(bw_plan_item_name((bw_plan_item)k));
    }
    assert_null(bw_plan_item_name(BW_PLAN_ITEMS));
    bw_close(ctx);
}

/* The activations of a tile do not depend on the batch; what whole-batch systems need does. */
static void batches_change_nothing_here(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const char *model = "input(20,20,3) conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)";
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.memory = (size_t)64 << 20; /* without it what the machine has at the moment counts */
    bw_memory_facts small = bw_plan_facts(make(ctx, model, 1024, &options)); /* every lane has a tile */
    bw_memory_facts large = bw_plan_facts(make(ctx, model, 1000000, &options));
    assert_int_equal(small.peak_bytes, large.peak_bytes);
    assert_true(large.whole_batch_bytes > 900 * small.whole_batch_bytes);
    assert_int_equal(small.whole_batch_largest, large.whole_batch_largest);
    /* The largest batch fits the budget, one more does not. */
    bw_memory_facts budget = bw_plan_facts(make(ctx, model, 1, &options));
    assert_int_equal(budget.budget, options.memory);
    bw_memory_facts fits = bw_plan_facts(make(ctx, model, budget.whole_batch_largest, NULL));
    bw_memory_facts more = bw_plan_facts(make(ctx, model, budget.whole_batch_largest + 1, NULL));
    assert_true(fits.whole_batch_bytes <= options.memory && more.whole_batch_bytes > options.memory);
    bw_close(ctx);
}

/* Tiles never cost more than the batch that they replace, except for tables and scratch memory, which small models have too. */
static void tiles_cost_no_more_than_the_batch(void **state)
{
    (void)state;
    static const char *const models[] = {
        "input(2) dense(1)",
        "input(784) dense(128,relu) dense(10,softmax)",
        "input(784) dense(512,relu) dense(128,relu) dense(10,softmax)",
        "input(1024) dense(1024,relu) dense(1024,relu) dense(10,softmax)",
        "input(784) dense(512) batchnorm relu dense(256) batchnorm relu dense(10,softmax)",
        "input(784) dense(128,relu) dense(64,relu) dense(128,relu) dense(784,sigmoid)",
        "input(64) embedding(10000,32) flatten dense(64,relu) dense(1,sigmoid)",
        "input(28,28,1) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)",
        "input(28,28,1) conv2d(6,5,tanh,padding=same) avgpool2d(2) conv2d(16,5,tanh) avgpool2d(2) flatten dense(120,tanh) "
        "dense(84,tanh) dense(10,softmax)",
        "input(64,64,3) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)",
        "input(32,32,3) conv2d(32,3,relu,padding=same) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten "
        "dense(512,relu) dropout(0.5) dense(10,softmax)",
        "input(32,32,3) conv2d(16,3,padding=same) batchnorm a=relu conv2d(16,3,padding=same) batchnorm relu "
        "conv2d(16,3,padding=same) "
        "batchnorm add(a) relu conv2d(32,1,strides=2) batchnorm relu global_avgpool2d dense(10,softmax)",
        /* As the ends of ResNet50 and MobileNet: few pixels, many weights, a phase for each normalisation. */
        "input(4,4,128) conv2d(256,1,strides=2) batchnorm relu conv2d(128,3,padding=same) batchnorm relu conv2d(512,1) "
        "batchnorm relu conv2d(128,1) batchnorm relu conv2d(512,1) batchnorm relu global_avgpool2d dense(10,softmax)",
        "input(2,2,512) conv2d(512,3,padding=same) batchnorm relu conv2d(512,3,padding=same) batchnorm relu global_avgpool2d "
        "dense(10,softmax)",
        "input(2,2,64) depthwise_conv2d(3,padding=same) conv2d(512,1) depthwise_conv2d(3,padding=same) conv2d(512,1) relu "
        "global_avgpool2d dense(10,softmax)",
        "input(100,16) lstm(128,return_sequences=true) lstm(64) dense(10,softmax)",
        /* As the end of ConvNeXt: channels by themselves, and dense layers over few positions. */
        "input(2,2,192) a=conv2d(192,7,padding=same,groups=192) layernorm dense(768,gelu) dense(192) add(a) "
        "b=conv2d(192,7,padding=same,groups=192) layernorm dense(768,gelu) dense(192) add(b) global_avgpool2d dense(10,softmax)",
    };
    static const int64_t batches[] = {32, 33, 100, 256, 1000, 1024}; /* also a tile and a remainder */
    for (int workers = 2; workers <= 4; workers += 2) {
        bw_context_options opening = BW_CONTEXT_OPTIONS_DEFAULT;
        opening.workers = workers;
        bw_context *ctx = bw_open(&opening);
        bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
        options.memory = (size_t)4 << 30;
        for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
            for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
                bw_memory_facts facts = bw_plan_facts(make(ctx, models[m], batches[b], &options));
                assert_int_equal(facts.workers, workers);
                if (facts.peak_bytes > facts.whole_batch_bytes + ((size_t)2 << 20)) {
                    fail_msg("%s, batch %d, %d workers: %zu bytes, %zu for the whole batch", models[m], (int)batches[b], workers,
                             facts.peak_bytes, facts.whole_batch_bytes);
                }
            }
        }
        bw_close(ctx);
    }
}

/* What TensorFlow 2.21 took in MB, its process aside (bench/RESULTS.md): within 25 percent. */
static void whole_batches_beside_tensorflow(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t batch;
        double took;
    } cases[] = {
        {"input(128,128,3) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)", 128, 1060},
        {"input(128,128,3) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)", 512, 3990},
        {"input(28,28,1) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)", 1024, 314},
        {"input(1024) dense(1024,relu) dense(1024,relu) dense(10,softmax)", 32768, 791},
        {"input(32,32,3) conv2d(32,3,padding=same) batchnorm relu conv2d(32,3,padding=same) batchnorm relu maxpool2d(2) "
         "conv2d(64,3,padding=same) batchnorm relu global_avgpool2d dense(10,softmax)",
         2048, 2203},
        {"input(64,64,3) conv2d(16,5,tanh,strides=2) conv2d(32,3,tanh) avgpool2d(2) flatten dense(128,tanh) dense(10,softmax)",
         1024, 503},
    };
    bw_context *ctx = bw_open(NULL);
    for (size_t c = 0; c < BWI_COUNT(cases); c++) {
        bw_plan *plan = make(ctx, cases[c].model, cases[c].batch, NULL);
        double said = (double)bw_plan_facts(plan).whole_batch_bytes / 1e6;
        if (said < 0.75 * cases[c].took || said > 1.25 * cases[c].took) {
            fail_msg("%s at %lld: %.0f MB said, %.0f taken", cases[c].model, (long long)cases[c].batch, said, cases[c].took);
        }
    }
    bw_close(ctx);
}

/* By hand, with SGD: parameters and gradients of 18 and 63 floats. Of dense 5 to 3, fullest is the loss's backward pass: input 5,
 * prediction, target and difference 3 each, the loss's own 1. Of dense 20 to 3, that of the weights: input, its transposed copy
 * and the difference. */
static void whole_batch_by_hand(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(5) dense(3)");
    check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
    bw_memory_facts facts = bw_plan_facts(bw_plan_make(model, NULL, 10, NULL));
    assert_int_equal(facts.whole_batch_bytes, 4 * (10 * (5 + 3 + 3 + 3 + 1) + 18 + 18));
    model = bw_model_parse(ctx, "input(20) dense(3)");
    check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
    facts = bw_plan_facts(bw_plan_make(model, NULL, 10, NULL));
    assert_int_equal(facts.whole_batch_bytes, 4 * (10 * (20 + 20 + 3) + 63 + 63));
    bw_close(ctx);
}

static void layers_add_up(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_plan *plan = make(ctx, "input(20,20,3) conv2d(8,3) relu maxpool2d(2) flatten dense(10,softmax)", 50, NULL);
    bw_memory_facts facts = bw_plan_facts(plan);
    static const char *const names[] = {"input", "conv2d", "re_lu", "max_pooling2d", "flatten", "dense", "loss and metrics"};
    assert_int_equal(bw_plan_layers(plan), BWI_COUNT(names));
    size_t parameters = 0, whole = 0, region = 0, workspace = 0;
    for (int k = 0; k < bw_plan_layers(plan); k++) {
        bw_layer_memory layer = bw_plan_layer(plan, k);
        assert_string_equal(layer.name, names[k]);
        parameters += layer.parameters;
        whole += layer.whole_batch;
        region += layer.activations;
        workspace += layer.workspace;
    }
    assert_int_equal(parameters, facts.items[BW_PLAN_PARAMETERS]);
    /* Gaps belong to no layer, statistics to no workspace. */
    assert_true(region > 0 && region <= facts.items[BW_PLAN_ACTIVATIONS] + facts.items[BW_PLAN_INPUT]);
    assert_true(workspace > 0 && workspace <= facts.items[BW_PLAN_WORKSPACE]);
    /* Of the whole batch all but parameters (224 and 6490 floats), gradients and Adam's two slots, as stored. */
    size_t fixed = facts.whole_batch_bytes - whole, floats = 8 * 3 * 3 * 3 + 8 + 9 * 9 * 8 * 10 + 10;
    assert_int_equal(fixed, floats * 4 * 2 + facts.items[BW_PLAN_OPTIMIZER]);
    bw_layer_memory conv = bw_plan_layer(plan, 1);
    assert_int_equal(conv.ndim, 3);
    assert_int_equal(conv.shape[0], 18);
    assert_int_equal(conv.shape[2], 8);
    assert_null(bw_plan_layer(plan, 7).name);
    assert_null(bw_plan_layer(plan, -1).name);
    bw_close(ctx);
}

/* A model with parameters of 4 GB is planned in a few MB. */
static void nothing_is_allocated(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.memory = (size_t)1 << 40;
    bw_model *model = bw_model_parse(ctx, "input(32768) dense(32768) dense(10,softmax)");
    bwi_memory_reset_peak(ctx);
    size_t before = bwi_memory_resident(ctx);
    bw_plan *plan = bw_plan_make(model, NULL, 1024, &options);
    assert_non_null(plan);
    assert_true(bw_plan_facts(plan).peak_bytes > (size_t)16 << 30);
    assert_true(bwi_memory_peak(ctx) - before < (size_t)256 << 20);
    bw_close(ctx);
}

/* Planned for one shape, trained with another; and planned twice. */
static void model_is_left_as_it_was(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 16, 9, 9, 3, 1);
    const float x[4] = {0, 1, 2, 3}, y[4] = {1, 1, 0, 0};
    bw_array other = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {4, 1}};
    bw_array target = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {4}};
    bw_plan *first = bw_plan_make(p.model, p.data, 8, NULL);
    size_t kept = bwi_allocated_bytes(p.ctx);
    bw_plan *again = bw_plan_make(p.model, p.data, 8, NULL);
    assert_int_equal(bw_plan_facts(first).peak_bytes, bw_plan_facts(again).peak_bytes);
    bw_plan_free(again);
    assert_int_equal(bwi_allocated_bytes(p.ctx), kept);
    assert_int_equal(bw_variable_count(p.model), 0);
    check_ok(p.ctx, bw_fit(p.model, bw_from_arrays(p.ctx, &other, &target, NULL), NULL, NULL));
    planned_close(&p);
}

static void refusals(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    assert_null(make(ctx, "dense(3)", 10, NULL));
    assert_non_null(strstr(bw_message(ctx), "input(28,28,1)"));
    bw_compile(bw_model_parse(ctx, "dense(3)"), NULL, NULL, NULL); /* reports it */
    assert_null(make(ctx, "input(5) dense(3)", 0, NULL));
    assert_non_null(strstr(bw_message(ctx), "at least 1"));
    bw_compile(bw_model_parse(ctx, "dense(3)"), NULL, NULL, NULL);
    options.memory = 1000;
    assert_null(make(ctx, "input(5) dense(3)", 10, &options));
    assert_non_null(strstr(bw_message(ctx), "1000 B"));
    bw_compile(bw_model_parse(ctx, "dense(3)"), NULL, NULL, NULL);
    assert_null(bw_plan_make(NULL, NULL, 10, NULL));
    assert_int_equal(bw_plan_print(NULL, stdout), BW_INVALID_ARGUMENT);
    assert_int_equal(bw_plan_facts(NULL).peak_bytes, 0);
    bw_close(ctx);
}

/* Several inputs and outputs, a loss of one's own, an embedding: no data is needed for any. */
static void models_without_data(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_node *a = bw_input(model, "a", BW_F32, 1, (int64_t[]){4}), *b = bw_input(model, "b", BW_F32, 1, (int64_t[]){6});
    bw_node *both = bw_merge("concat", (bw_node *[]){a, b}, 2);
    check_ok(ctx, bw_output(bw_layer(both, "dense(3,softmax)"), "kind"));
    check_ok(ctx, bw_output(bw_layer(both, "dense(1)"), "size"));
    bw_plan *plan = bw_plan_make(model, NULL, 32, NULL);
    check_ok(ctx, plan ? BW_OK : bw_compile(model, NULL, NULL, NULL));
    check_sum(plan);
    bw_model *own = bw_model_new(ctx);
    bw_node *x = bw_input(own, "", BW_F32, 1, (int64_t[]){4}), *y = bw_target(own, "", BW_F32, 1, (int64_t[]){2});
    bw_node *error = bw_mean(bw_square(bw_subtract(bw_layer(x, "dense(2)"), y)), BW_ALL);
    check_ok(ctx, bw_add_loss(error, "error"));
    plan = bw_plan_make(own, NULL, 32, NULL);
    check_ok(ctx, plan ? BW_OK : bw_compile(own, NULL, NULL, NULL));
    check_sum(plan);
    plan = make(ctx, "input(12) embedding(1000,16) flatten dense(4,softmax)", 32, NULL);
    assert_non_null(plan);
    check_sum(plan);
    bw_close(ctx);
}

static void prints_tables(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    FILE *file = tmpfile();
    char text[8192];
    check_ok(ctx, bw_plan_print(make(ctx, "input(8,8,1) conv2d(4,3,relu) flatten dense(10,softmax)", 32, NULL), file));
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char *const parts[] = {"batch 32: tile ", "parameters", "together", "whole batch", "conv2d", "6x6x4", "━"};
    for (size_t k = 0; k < BWI_COUNT(parts); k++) {
        assert_non_null(strstr(text, parts[k]));
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_fit),
        cmocka_unit_test(items_by_hand),
        cmocka_unit_test(batches_change_nothing_here),
        cmocka_unit_test(tiles_cost_no_more_than_the_batch),
        cmocka_unit_test(whole_batches_beside_tensorflow),
        cmocka_unit_test(whole_batch_by_hand),
        cmocka_unit_test(layers_add_up),
        cmocka_unit_test(nothing_is_allocated),
        cmocka_unit_test(model_is_left_as_it_was),
        cmocka_unit_test(refusals),
        cmocka_unit_test(models_without_data),
        cmocka_unit_test(prints_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
