/*
 * docs/reference/keras-coverage.md compares every public name of Keras (names.txt, recorded by names.py) with the tables: the page
 * is made here, and must be the one that is there. BW_COVERAGE_OUT=docs/reference/keras-coverage.md writes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/internal.h"
#include "train/internal.h"

#include <stdlib.h>
#include <string.h>

static char page[1 << 16];
static size_t length;

static void __attribute__((format(printf, 1, 2))) add(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    length += (size_t)vsnprintf(page + length, sizeof page - length, format, arguments);
    va_end(arguments);
    assert_true(length < sizeof page);
}

static bool resembles_any(const char *name, const char *words)
{
    bwi_term term = {.text = name, .length = (int)strlen(name), .end = name + strlen(name)};
    for (const char *at = words; *at;) {
        char word[64];
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (bwi_term_resembles(&term, word)) {
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

/* ---- How a name is written here, by kind; NULL: it is refused ---- */

static const char *first_word(const char *words)
{
    static char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(words, " "), words);
    return word;
}

static const char *find_layer(const char *name)
{
    bwi_term term = {.text = name, .length = (int)strlen(name), .end = name + strlen(name)};
    const bwi_layer_row *row = bwi_layer_row_find(&term);
    return strcmp(name, "InputLayer") == 0 ? "input" : row ? first_word(row->names) : NULL;
}

static const char *find_activation(const char *name)
{
    for (int i = 0; bwi_activation_name(i); i++) {
        if (strcmp(bwi_activation_name(i), name) == 0) {
            return name;
        }
    }
    return NULL;
}

static const char *find_loss(const char *name)
{
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        if (resembles_any(name, row->names)) {
            return first_word(row->names);
        }
    }
    return NULL;
}

/* Every loss is a metric, too. */
static const char *find_metric(const char *name)
{
    for (const bwi_metric_row *row = bwi_metric_rows; row->names; row++) {
        if (resembles_any(name, row->names)) {
            return first_word(row->names);
        }
    }
    return find_loss(name);
}

static const char *find_optimizer(const char *name)
{
    for (int i = 0; bwi_optimizer_rows[i]; i++) {
        if (strcmp(bwi_optimizer_rows[i]->class_name, name) == 0) {
            return bwi_optimizer_rows[i]->name;
        }
    }
    return NULL;
}

static const char *find_schedule(const char *name)
{
    for (const bwi_schedule_row *row = bwi_schedule_rows; row->name; row++) {
        if (strcmp(row->class_name, name) == 0) {
            return row->name;
        }
    }
    return NULL;
}

static const char *find_initializer(const char *name)
{
    for (int i = 0; bwi_initializer_names(i); i++) {
        if (resembles_any(name, bwi_initializer_names(i))) {
            return first_word(bwi_initializer_names(i));
        }
    }
    return NULL;
}

static const char *find_regularizer(const char *name)
{
    for (int i = 0; bwi_regularizer_name(i); i++) {
        bool orthogonal = strcmp(name, "OrthogonalRegularizer") == 0 && strcmp(bwi_regularizer_name(i), "orthogonal") == 0;
        if (orthogonal || resembles_any(name, bwi_regularizer_name(i))) {
            return bwi_regularizer_name(i);
        }
    }
    return NULL;
}

static const char *find_constraint(const char *name)
{
    for (int i = 0; bwi_constraint_name(i); i++) {
        if (resembles_any(name, bwi_constraint_name(i))) {
            return bwi_constraint_name(i);
        }
    }
    return NULL;
}

/* Callbacks are options of a training. */
static const char *find_callback(const char *name)
{
    static const struct {
        const char *name, *option;
    } known[] = {{"CSVLogger", "--history"},         {"EarlyStopping", "--early-stop"}, {"History", "--history"},
                 {"ModelCheckpoint", "--save-best"}, {"BackupAndRestore", "--resume"},  {"TensorBoard", "--tensorboard"},
                 {"TerminateOnNaN", "--on-nan"},     {"ReduceLROnPlateau", "--plateau"}};
    for (size_t i = 0; i < BWI_COUNT(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].option;
        }
    }
    return NULL;
}

static const struct kind {
    const char *name, *title, *remark;
    const char *(*find)(const char *name);
} kinds[] = {
    {"layers", "Layers", "A model with another one is refused by the class and the layer's name.", find_layer},
    {"activations", "Activations", NULL, find_activation},
    {"losses", "Losses", NULL, find_loss},
    {"metrics", "Metrics", NULL, find_metric},
    {"optimizers", "Optimizers", NULL, find_optimizer},
    {"schedules", "Learning-rate schedules", NULL, find_schedule},
    {"initializers", "Initializers", NULL, find_initializer},
    {"regularizers", "Regularizers", NULL, find_regularizer},
    {"constraints", "Constraints", NULL, find_constraint},
    {"callbacks", "Callbacks", "Callbacks are not part of files; these are options of `batchwise train`.", find_callback},
};

/* ---- The page ---- */

static char *names;

/* The lines of a kind: "layers Conv2D Convolution2D". */
static void add_kind(const struct kind *kind)
{
    char refused[8192] = "", line[512];
    int found = 0, all = 0;
    size_t n = strlen(kind->name), at = 0;
    add("\n## %s\n\n", kind->title);
    if (kind->remark) {
        add("%s\n\n", kind->remark);
    }
    for (const char *text = names; *text; text += strcspn(text, "\n") + 1) {
        if (strncmp(text, kind->name, n) != 0 || text[n] != ' ') {
            continue;
        }
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text + n + 1, "\n"), text + n + 1);
        char *rest = strchr(line, ' ');
        if (rest) {
            *rest++ = 0;
        }
        const char *here = kind->find(line);
        all++;
        if (here) {
            add("%s| %s%s%s | `%s` |\n", found++ ? "" : "| Keras | here |\n|---|---|\n", line, rest ? ", also " : "",
                rest ? rest : "", here);
        } else {
            at += (size_t)snprintf(refused + at, sizeof refused - at, "%s%s", at ? ", " : "", line);
            assert_true(at < sizeof refused);
        }
    }
    assert_true(all > 0);
    add("%s%d of %d. %s%s%s\n", found ? "\n" : "", found, all, at ? "Refused: " : "None is refused", refused, ".");
}

static int load(void **state)
{
    (void)state;
    FILE *file = fopen(BW_TEST_KERAS "/names.txt", "rb");
    names = calloc(1, 1 << 16);
    size_t got = file && names ? fread(names, 1, (1 << 16) - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    return got > 1000 ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    free(names);
    return 0;
}

static void test_page(void **state)
{
    (void)state;
    add("# Keras's names, and what is here\n\nEvery public name of Keras %.*s of these kinds, except base classes, beside the "
        "tables of this\n"
        "library: what is supported, and under which name in expressions and options; what is refused, by its name. A test makes "
        "this\n"
        "page from the tables and fails if it differs.\n",
        (int)strcspn(names + 8, "\n"), names + 8);
    for (size_t i = 0; i < BWI_COUNT(kinds); i++) {
        add_kind(&kinds[i]);
    }
    const char *out = getenv("BW_COVERAGE_OUT");
    static char there[sizeof page];
    FILE *file = fopen(out ? out : BW_TEST_KERAS "/../../docs/reference/keras-coverage.md", out ? "wb" : "rb");
    assert_non_null(file);
    size_t count = out ? fwrite(page, 1, length, file) : fread(there, 1, sizeof there - 1, file);
    assert_int_equal(fclose(file), 0);
    if (count != length || (!out && strcmp(page, there) != 0)) {
        fail_msg("%s",
                 "docs/reference/keras-coverage.md differs from the tables: write it again (the top of test_coverage.c says how)");
    }
}

/* Every layer that a model may have is one of Keras's names, or belongs to keras.applications. */
static void test_layers_are_names(void **state)
{
    (void)state;
    for (int i = 0; bwi_layer_rows[i]; i++) {
        char line[96];
        const char *name = bwi_layer_rows[i]->class_name;
        snprintf(line, sizeof line, "\nlayers %s", name);
        const char *at = strstr(names, line);
        bool application =
            strcmp(name, "LayerScale") == 0 || strcmp(name, "StochasticDepth") == 0 || strcmp(name, "CustomScaleLayer") == 0;
        if (!application && (!at || (at[strlen(line)] != '\n' && at[strlen(line)] != ' '))) {
            fail_msg("%s is not a name of Keras", name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_page), cmocka_unit_test(test_layers_are_names)};
    return cmocka_run_group_tests(tests, load, unload);
}
