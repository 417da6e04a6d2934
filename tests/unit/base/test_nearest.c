/* The name that a mistyped word probably means. */
#include "base/base.h"
#include "support/check.h"

#include <string.h>

static const char *nearest(const char *word)
{
    static const char *const names[] = {"name", "age", "income", "", "petal_length", "petal_width"};
    const char *found = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        found = bwi_nearer(&least, word, strlen(word), names[i]) ? names[i] : found;
    }
    return found;
}

static void test_slips(void **state)
{
    (void)state;
    assert_string_equal(nearest("nme"), "name");      /* a letter left out */
    assert_string_equal(nearest("naame"), "name");    /* one too many */
    assert_string_equal(nearest("incone"), "income"); /* another one */
    assert_string_equal(nearest("aeg"), "age");       /* two that changed places */
    assert_string_equal(nearest("PETAL_WIDTH"), "petal_width");
    assert_string_equal(nearest("petal_lenght"), "petal_length");
}

static void test_other_words(void **state)
{
    (void)state;
    assert_null(nearest("foo"));
    assert_null(nearest(""));
    assert_null(nearest("x"));
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[199] = 0;
    assert_null(nearest(longer));
}

/* Any of a thing's names may be meant; without a similar one the first names are listed. */
static void test_known(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static const char *const words[][2] = {{"mea_squared", "did you mean 'mean_squared'?"},
                                           {"msee", "did you mean 'mse'?"},
                                           {"hubber", "did you mean 'huber'?"},
                                           {"nothing", "there are mean_squared, huber"},
                                           {"", "there are mean_squared, huber"}};
    for (size_t i = 0; i < BWI_COUNT(words); i++) {
        bwi_known known = bwi_known_begin(ctx, words[i][0], strlen(words[i][0]));
        bwi_known_add(&known, "mean_squared mse");
        bwi_known_add(&known, "huber");
        assert_string_equal(bwi_known_hint(&known), words[i][1]);
        bwi_text_free(&known.list);
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slips),
        cmocka_unit_test(test_other_words),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
