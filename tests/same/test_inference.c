/*
 * What only looks at a model: validation changes nothing, and predictions are the same bits on any number of workers.
 * label: thread
 */
#include "same/bits_test.h"

/* Validation sees more samples than a batch, and leaves no trace in the weights. */
static void test_validation_changes_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        uint64_t hashes[2];
        for (int validate = 0; validate < 2; validate++) {
            run r = run_of(&models[m]);
            bw_context *ctx = open_context(&r);
            bw_dataset *dataset = samples_of(ctx);
            bw_model *model = bw_model_parse(ctx, r.model->expression);
            r.options.tile = 1;
            r.options.batch = 3;
            r.options.validation = validate ? dataset : NULL;
            if (bw_fit(model, dataset, &r.options, NULL) != BW_OK) {
                fail_msg("%s: %s", r.model->expression, bw_message(ctx));
            }
            hashes[validate] = bw_model_hash(model);
            bw_close(ctx);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

static void predict(const model_row *row, int workers, float *predictions, double *loss)
{
    run r = run_of(row);
    r.workers = workers;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, row->expression);
    const int64_t shape[] = {SIDE, SIDE, CHANNELS};
    bw_history *result = NULL;
    assert_int_equal(bw_build(model, 3, shape, 4), BW_OK);
    assert_int_equal(bw_predict(model, dataset, predictions, SAMPLES * CLASSES), BW_OK);
    assert_int_equal(bw_evaluate(model, dataset, &result), BW_OK);
    *loss = bw_history_last(result, "loss");
    bw_close(ctx);
}

static void test_predictions(void **state)
{
    (void)state;
    static float alone[SAMPLES * CLASSES], shared[SAMPLES * CLASSES];
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        double loss, shared_loss;
        predict(&models[m], 1, alone, &loss);
        for (int s = 0; s < SAMPLES; s++) {
            double sum = 0;
            for (int c = 0; c < CLASSES; c++) {
                sum += (double)alone[s * CLASSES + c];
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
        bwi_pool_delay = delay;
        for (size_t w = 0; w < BWI_COUNT(worker_counts); w++) {
            memset(shared, 0, sizeof shared);
            predict(&models[m], worker_counts[w], shared, &shared_loss);
            assert_memory_equal(alone, shared, sizeof alone);
            assert_true(loss == shared_loss);
        }
        bwi_pool_delay = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_validation_changes_nothing),
        cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
