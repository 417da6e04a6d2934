/* Files whose weights are not finite: refused with the layer and the variable, and the model that was to take them is as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "batchwise.h"
#include "support/check.h"
#include "support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bw_model *model_with(bw_context *ctx, float value)
{
    float kernel[6] = {1, 2, 3, 4, value, 6};
    bw_model *model = bw_model_parse(ctx, "input(3) dense(2,name=first) dense(2)");
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    check_ok(ctx, bw_variable_set(model, 0, kernel, 6));
    return model;
}

static void check_file(const char *name, float value, const char *message)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bw_context *ctx = bw_open(NULL);
    check_ok(ctx, bw_save(model_with(ctx, value), path));
    bw_model *other = model_with(ctx, 5);
    check_fails(ctx, bw_load_weights(other, path), BW_DATA_LOSS, message);
    float kernel[6];
    check_ok(ctx, bw_variable_get(other, 0, kernel, 6));
    assert_memory_equal(kernel, ((const float[]){1, 2, 3, 4, 5, 6}), sizeof kernel);
    if (strstr(name, ".keras")) {
        assert_null(bw_load(ctx, path));
        assert_non_null(strstr(bw_message(ctx), "first/kernel"));
    }
    bw_close(ctx);
    remove(path);
}

static void test_weights(void **state)
{
    (void)state;
    static const char *const names[] = {"a.keras", "a.weights.h5", "a.safetensors"};
    for (int k = 0; k < 3; k++) {
        check_file(names[k], (float)NAN, "layer first|first/kernel|NaN at position 4");
        check_file(names[k], -(float)INFINITY, "layer first|first/kernel|infinity at position 4");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_weights, make_folder, remove_empty_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
