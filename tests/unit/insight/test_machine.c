/* The machine's limits: that they are sensible, where they are kept, and that a damaged or foreign file is not believed. */
#include "support/context.h"
#include "support/folder.h"

#include "insight/internal.h"
#include "kernel/internal.h"

#include <ctype.h>

static int open_all(void **state)
{
    return make_folder(state) != 0 || setenv("XDG_CACHE_HOME", folder, 1) != 0 ? -1 : open_context(state);
}

static int close_all(void **state)
{
    return close_context(state) != 0 ? -1 : remove_folder(state);
}

/* Where the limits of this machine belong. */
static const char *file_of(const bw_machine *machine)
{
    static char path[2048];
    char cpu[sizeof machine->cpu];
    snprintf(cpu, sizeof cpu, "%s", machine->cpu);
    for (char *at = cpu; *at; at++) {
        *at = isalnum((unsigned char)*at) ? *at : '_';
    }
    snprintf(path, sizeof path, "%s/batchwise/limits-%s-%d-%s-%s.json", folder, cpu, machine->cores, machine->instruction_set,
             bw_version());
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void write_limits_with(const bw_machine *machine, const char *cpu, const char *flops, const char *growth)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"cpu\": \"%s\", \"instruction_set\": \"%s\", \"cores\": %d, \"version\": \"%s\", \"cache_bytes\": 77, "
             "\"core_flops\": %s, \"flops\": 2e9, "
             "\"core_bandwidth\": 3e9, \"bandwidth\": 4e9, \"cache_bandwidth\": 5e9, \"exchange_bandwidth\": 6e9, "
             "\"meeting_seconds\": 1e-6, \"growth\": [%s]}",
             cpu, machine->instruction_set, machine->cores, bw_version(), flops, growth);
    write_text(file_of(machine), text);
}

static void write_limits(const bw_machine *machine, const char *cpu, const char *flops)
{
    char growth[64];
    snprintf(growth, sizeof growth, "[%d, 1, 1]", machine->cores);
    write_limits_with(machine, cpu, flops, growth);
}

static void check_sensible(const bw_machine *machine)
{
    assert_int_equal(machine->cores, bwi_cpus());
    assert_true(machine->cpu[0] != 0);
    assert_true(machine->core_flops > 1e6 && machine->core_flops < 1e13);
    assert_true(machine->flops >= machine->core_flops);
    assert_true(machine->core_bandwidth > 1e6 && machine->bandwidth >= machine->core_bandwidth);
    assert_true(machine->cache_bandwidth > 1e6 && machine->exchange_bandwidth > 1e6);
    assert_true(machine->meeting_seconds > 0 && machine->meeting_seconds < 1);
    assert_true(machine->growths > 0 ? machine->growth[machine->growths - 1].cores == machine->cores : machine->busy);
    for (int k = 0; k < machine->growths; k++) {
        const bw_growth *g = &machine->growth[k];
        assert_int_equal(g->cores, k < machine->growths - 1 ? 1 << k : machine->cores);
        assert_true(g->compute >= 1 && g->compute <= g->cores && g->bandwidth >= 1 && g->bandwidth <= g->cores);
    }
}

/* A measurement that was not disturbed is kept, and what is kept is given, whatever it says. */
static void test_kept(void **state)
{
    (void)state;
    bw_machine machine, again;
    check_ok(ctx, bw_machine_limits(ctx, &machine));
    check_sensible(&machine);
    assert_int_equal(access(file_of(&machine), R_OK) == 0, !machine.busy);
    if (machine.busy) {
        check_ok(ctx, bwi_folder_make(ctx, inside("batchwise")));
    } else {
        check_ok(ctx, bw_machine_limits(ctx, &again));
        assert_memory_equal(&again, &machine, sizeof machine);
    }
    write_limits(&machine, machine.cpu, "1e9");
    check_ok(ctx, bw_machine_limits(ctx, &again));
    assert_true(again.core_flops == 1e9 && again.flops == 2e9 && again.core_bandwidth == 3e9 && again.bandwidth == 4e9);
    assert_true(again.cache_bandwidth == 5e9 && again.meeting_seconds == 1e-6 && again.cache_bytes == 77 &&
                again.exchange_bandwidth == 6e9 && !again.busy);
    assert_string_equal(again.cpu, machine.cpu);
}

/* Of another processor, not a number that can be, not JSON, empty: each is measured again. */
static void test_damaged(void **state)
{
    (void)state;
    bw_machine machine, again;
    check_ok(ctx, bw_machine_limits(ctx, &machine));
    check_ok(ctx, bwi_folder_make(ctx, inside("batchwise")));
    write_limits(&machine, "another", "1e9");
    check_ok(ctx, bw_machine_limits(ctx, &again));
    assert_true(again.core_flops != 1e9 && again.meeting_seconds != 1e-6);
    write_limits(&machine, machine.cpu, "-1e9");
    check_ok(ctx, bw_machine_limits(ctx, &again));
    check_sensible(&again);
    static const char *const growths[] = {"", "[1, 2, 1]"};
    for (size_t i = 0; i < BWI_COUNT(growths); i++) {
        write_limits_with(&machine, machine.cpu, "1e9", growths[i]);
        check_ok(ctx, bw_machine_limits(ctx, &again));
        assert_true(again.core_flops != 1e9);
        check_sensible(&again);
    }
    static const char *const texts[] = {"", "{\"cpu\": 3}", "\x01\xff"};
    for (size_t i = 0; i < BWI_COUNT(texts); i++) {
        write_text(file_of(&machine), texts[i]);
        check_ok(ctx, bw_machine_limits(ctx, &again));
        check_sensible(&again);
    }
}

/* A folder that cannot be made is no failure, nor is one that is not named at all. */
static void test_nowhere(void **state)
{
    (void)state;
    bw_machine machine;
    write_text(inside("file"), "");
    assert_int_equal(setenv("XDG_CACHE_HOME", inside("file"), 1), 0);
    check_ok(ctx, bw_machine_limits(ctx, &machine));
    check_sensible(&machine);
    const char *home = getenv("HOME");
    char *before = home ? strdup(home) : NULL;
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    check_ok(ctx, bw_machine_limits(ctx, &machine));
    check_sensible(&machine);
    if (before) {
        assert_int_equal(setenv("HOME", before, 1), 0);
    }
    free(before);
    check_fails(ctx, bw_machine_limits(ctx, NULL), BW_INVALID_ARGUMENT, "NULL");
}

/* How much more two cores do than one, from turns as a virtual machine gives them: steady; one turn in which the single core was
 * disturbed; half of the turns without the second core, which nothing shows but the turns; none with it. */
static void test_turns(void **state)
{
    (void)state;
    static const struct {
        double ratios[9], growth;
        bool unsteady;
    } cases[] = {
        {{1.83, 1.99, 1.98, 1.94, 1.97, 1.93, 1.98, 2.05, 1.99}, 1.99, false},
        {{1.95, 1.96, 1.98, 1.91, 3.91, 1.99, 1.88, 1.97, 1.97}, 1.98, false},
        {{1.03, 1.90, 1.95, 1.90, 1.79, 1.87, 1.05, 1.03, 1.01}, 1.90, true},
        {{1.01, 0.96, 1.02, 0.98, 1.03, 0.88, 0.52, 0.76, 1.24}, 1.02, false},
        {{0.94, 0.72, 0.93, 0.83, 0.96, 0.73, 0.38, 0.42, 0.51}, 1, true},
        {{3, 3, 3, 3, 3, 3, 3, 3, 3}, 2, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double ratios[9];
        bool unsteady;
        memcpy(ratios, cases[k].ratios, sizeof ratios);
        assert_true(bwi_growth_of_repeats(ratios, 9, 2, &unsteady) == cases[k].growth);
        assert_int_equal(unsteady, cases[k].unsteady);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test_setup_teardown(test_kept, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_damaged, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_nowhere, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
