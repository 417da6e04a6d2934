/*
 * The same bits in less memory.
 * label: thread
 */
#include "same/bits_test.h"

/* The smallest budget that the refusal names suffices; one byte less does not. */
static void check_refusal(const run *refused)
{
    const char *named = strchr(refused->message, '(');
    assert_int_equal(refused->status, BW_RESOURCE_EXHAUSTED);
    assert_non_null(named);
    for (size_t less = 0; less < 2; less++) {
        run r = run_of(refused->model);
        r.options.tile = refused->options.tile;
        r.options.memory = strtoull(named + 1, NULL, 10) - less;
        train(&r);
        if (r.status != (less ? BW_RESOURCE_EXHAUSTED : BW_OK)) {
            fail_msg("%s in %zu bytes: %s: %s", r.model->expression, r.options.memory, bw_status_name(r.status), r.message);
        }
        release(&r);
    }
}

/* Its activations outweigh everything else, so that segments pay. */
static const model_row deep = {"conv2d(16,3,tanh,padding=same) conv2d(16,3,tanh,padding=same) conv2d(16,3,tanh,padding=same) "
                               "conv2d(16,3,tanh,padding=same) conv2d(16,3,tanh,padding=same) conv2d(4,3,tanh,strides=3) flatten "
                               "dense(10,softmax)",
                               false, 1};

/* As a budget asks: values of a batch kept, computed again or spilled, activations in segments; the same bits. A tile of one sample
 * and one worker from the beginning on; fewer lanes, which are the last resort, are another order of sums. */
static void test_budgets(void **state)
{
    (void)state;
    int kept_less = 0, spilled = 0, segmented = 0;
    for (size_t m = 0; m <= BWI_COUNT(models); m++) {
        const model_row *model = m < BWI_COUNT(models) ? &models[m] : &deep;
        run roomy = run_of(model);
        roomy.options.tile = 1;
        execute(&roomy);
        assert_true(roomy.facts.segments == 1 && roomy.facts.spilled_bytes == 0);
        size_t budget = roomy.facts.planned_bytes - 1;
        for (;; budget -= budget / 12) {
            run tight = run_of(model);
            tight.options.tile = 1;
            tight.options.memory = budget;
            train(&tight);
            if (tight.status != BW_OK) {
                check_refusal(&tight);
                break;
            }
            assert_true(tight.facts.planned_bytes <= budget);
            if (tight.facts.lanes != roomy.facts.lanes) {
                release(&tight);
                continue;
            }
            kept_less += tight.facts.kept_bytes < roomy.facts.kept_bytes;
            spilled += tight.facts.spilled_bytes > 0;
            segmented += tight.facts.segments > 1;
            assert_same_bits(&roomy, &tight, "a budget");
            release(&tight);
        }
        release(&roomy);
    }
    print_message("%d runs kept less, %d spilled, %d had segments\n", kept_less, spilled, segmented);
    assert_true(kept_less > 0 && segmented > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
