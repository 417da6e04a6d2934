/*
 * Every row of every table (layers, activations, losses, optimizers, schedules, metrics, initialisers, regularisers) must
 * have a training case recorded from the real Keras: its name stands as a word in the text of some case.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case_file.h"
#include "layer/internal.h"
#include "train/internal.h"

#include <ctype.h>
#include <dirent.h>

static char *texts[2048]; /* of all cases */
static int text_count;

static int load(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    DIR *folder = opendir(BW_TEST_KERAS "/cases");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        static case_file file;
        char path[1024];
        snprintf(path, sizeof path, BW_TEST_KERAS "/cases/%s", entry->d_name);
        if (entry->d_name[0] != '.' && case_read(ctx, &file, path)) {
            texts[text_count++] = strdup(file.text);
            case_free(&file);
        }
    }
    if (folder) {
        closedir(folder);
    }
    bw_close(ctx);
    return text_count > 100 ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    for (int i = 0; i < text_count; i++) {
        free(texts[i]);
    }
    return 0;
}

static bool is_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Does the word stand in a line of a case that begins with `key` ("" for any)? */
static bool stands(const char *key, const char *word, size_t length)
{
    for (int i = 0; i < text_count; i++) {
        for (const char *at = texts[i]; (at = strstr(at, word)); at++) {
            const char *line = at;
            while (line > texts[i] && line[-1] != '\n') {
                line--;
            }
            bool whole = !(at > texts[i] && is_part(at[-1])) && !is_part(at[length]);
            if (whole && strncmp(line, key, strlen(key)) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* One of the row's names, separated by blanks. */
static void expect(const char *table, const char *key, const char *names)
{
    for (const char *at = names; *at;) {
        char word[64];
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (stands(key, word, n)) {
            return;
        }
        at += n + strspn(at + n, " ");
    }
    fail_msg("%s '%s' has no case recorded from Keras: add a row to tests/keras/table.py", table, names);
}

static void test_layers(void **state)
{
    (void)state;
    for (int i = 0; bwi_layer_rows[i]; i++) {
        if (!bwi_layer_front_kind(bwi_layer_rows[i])) { /* those for text and categories have cases of their own: text.cases */
            expect("layer", "expression=", bwi_layer_rows[i]->names);
        }
    }
}

static void test_activations(void **state)
{
    (void)state;
    for (int i = 0; bwi_activation_name(i); i++) {
        expect("activation", "expression=", bwi_activation_name(i));
    }
}

static void test_losses(void **state)
{
    (void)state;
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        expect("loss", "loss=", row->names);
    }
}

static void test_metrics(void **state)
{
    (void)state;
    for (const bwi_metric_row *row = bwi_metric_rows; row->names; row++) {
        expect("metric", "", row->names);
    }
}

static void test_optimizers(void **state)
{
    (void)state;
    for (int i = 0; bwi_optimizer_rows[i]; i++) {
        expect("optimizer", "optimizer=", bwi_optimizer_rows[i]->name);
    }
    for (const bwi_schedule_row *row = bwi_schedule_rows; row->name; row++) {
        expect("schedule", "optimizer=", row->name);
    }
}

static void test_initializers_and_regularizers(void **state)
{
    (void)state;
    for (int i = 0; bwi_initializer_names(i); i++) {
        expect("initializer", "expression=", bwi_initializer_names(i));
    }
    for (int i = 0; bwi_regularizer_name(i); i++) {
        expect("regularizer", "expression=", bwi_regularizer_name(i));
    }
    for (int i = 0; bwi_constraint_name(i); i++) {
        expect("constraint", "expression=", bwi_constraint_name(i));
    }
}

static void test_the_test_can_fail(void **state)
{
    (void)state;
    assert_false(stands("expression=", "conv_lstm2d", 11));
    assert_false(stands("optimizer=", "dense", 5));
    assert_true(stands("expression=", "dense", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_initializers_and_regularizers),
        cmocka_unit_test(test_the_test_can_fail),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
