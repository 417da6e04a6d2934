/* Keras's progress: a line an epoch in a file, a bar on a terminal. */
#include "support/planned.h"

#include <regex.h>

static char *text;
static size_t length;

static void matches(const char *recipe)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, recipe, REG_EXTENDED | REG_NOSUB), 0);
    int result = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    if (result != 0) {
        print_error("'%s' does not match '%s'\n", text, recipe);
        fail();
    }
}

#define TIME "[0-9]+s - [0-9]+(s|ms|us)/step"
#define VALUE "[0-9]+\\.[0-9]{4}(e[-+][0-9]+)?"

static void fit_with_progress(double split, int epochs, const char *metrics)
{
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 40, 4, 4, 1, 1);
    check_ok(p.ctx, bw_compile(p.model, "sgd", NULL, metrics));
    FILE *file = open_memstream(&text, &length);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = epochs;
    options.batch = 8;
    options.validation_split = split;
    options.progress = file;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, NULL));
    fclose(file);
    planned_close(&p);
}

static void test_lines(void **state)
{
    (void)state;
    fit_with_progress(0, 2, "accuracy");
    matches("^Epoch 1/2\n5/5 - " TIME " - accuracy: " VALUE " - loss: " VALUE "\nEpoch 2/2\n5/5 - " TIME " - accuracy: " VALUE
            " - loss: " VALUE "\n$");
    free(text);
    fit_with_progress(0.2, 1, "accuracy");
    matches("^Epoch 1/1\n4/4 - " TIME " - accuracy: " VALUE " - loss: " VALUE " - val_accuracy: " VALUE " - val_loss: " VALUE
            "\n$");
    free(text);
    fit_with_progress(0, 1, "");
    matches("^Epoch 1/1\n5/5 - " TIME " - loss: " VALUE "\n$");
    free(text);
}

/* The bar, drawn as on a terminal: without colours if NO_COLOR is set, and in Keras's. */
static void test_bar(void **state)
{
    (void)state;
    setenv("NO_COLOR", "1", 1);
    setenv("TERM", "xterm", 1);
    bw_context *ctx = bw_open(NULL);
    bw_history *logs = bwi_history_new(ctx, 1, 2);
    logs->epochs = 1;
    logs->values[bwi_history_add_column(logs, "", "accuracy")] = 0.5;
    logs->values[bwi_history_add_column(logs, "", "loss")] = 0.00001234;
    FILE *file = open_memstream(&text, &length);
    bwi_painter painter = {.file = file};
    bw_progress p = {.epoch = 1, .epochs = 3, .steps = 100, .logs = logs};
    bwi_painter_epoch(&painter, &p);
    assert_false(painter.terminal); /* a file is none */
    painter.terminal = true;
    p.step = 25;
    p.seconds = 2.5;
    bwi_painter_step(&painter, &p);
    fflush(file);
    matches("^Epoch 2/3\n\r\033\\[K 25/100 (━){5}(─){15} 8s 100ms/step - accuracy: 0\\.5000 - loss: 1\\.2340e-05$");
    size_t drawn = length;
    p.step = 26;
    p.seconds = 2.51; /* too soon to be drawn again */
    bwi_painter_step(&painter, &p);
    fflush(file);
    assert_int_equal(length, drawn);
    p.step = 100;
    p.seconds = 3;
    bwi_painter_end(&painter, &p);
    fclose(file);
    matches("\r\033\\[K100/100 (━){20} 3s 30ms/step - accuracy: 0\\.5000 - loss: 1\\.2340e-05\n$");
    free(text);
    unsetenv("NO_COLOR");
    painter.file = file = open_memstream(&text, &length);
    painter.drawn = 0;
    p.step = 25;
    bwi_painter_step(&painter, &p);
    fclose(file);
    matches("^\r\033\\[K\033\\[1m 25/100\033\\[0m \033\\[32m(━){5}\033\\[0;37m(━){15}\033\\[0m 9s 120ms/step - accuracy");
    free(text);
    bw_close(ctx);
}

static void test_silence(void **state)
{
    (void)state;
    bwi_painter painter = {0};
    bw_progress p = {.steps = 1};
    bwi_painter_epoch(&painter, &p);
    bwi_painter_step(&painter, &p);
    bwi_painter_end(&painter, &p);
    assert_null(painter.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_bar), cmocka_unit_test(test_silence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
