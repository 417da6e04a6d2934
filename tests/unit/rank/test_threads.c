/* Ranks in threads: sums with the bits of a serial tree, agreement, leaving and cancelling without anybody hanging.
 * label: thread */
#include "rank/rank.h"

#include <float.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

/* cmocka's assertions work on the main thread only; ranks leave what they found and main looks at it. */
typedef struct party {
    bw_ranks *ranks;
    int rank;
    int64_t count;
    float *floats;
    double *doubles;
    int turns, stop_at, divided;
    bw_status statuses[64];
    char message[256];
    atomic_int *ready;
    bw_context *_Atomic *contexts;
    pthread_t thread;
} party;

static bw_context *open_rank(party *self)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.ranks = self->ranks;
    options.rank = self->rank;
    return bw_open(&options);
}

static void run_parties(party *parties, int count, void *(*start)(void *))
{
    for (int i = 0; i < count; i++) {
        parties[i].rank = i;
        assert_int_equal(pthread_create(&parties[i].thread, NULL, start, &parties[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(parties[i].thread, NULL);
    }
}

static void test_group(void **state)
{
    (void)state;
    static const int wrong[] = {-1, 0, 65, 128};
    for (size_t i = 0; i < BWI_COUNT(wrong); i++) {
        assert_null(bw_ranks_open(wrong[i]));
    }
    bw_ranks_close(NULL);
    bw_ranks *ranks = bw_ranks_open(64);
    assert_int_equal(ranks->row->count(ranks), 64);
    assert_string_equal(ranks->row->name, "threads");
    bw_ranks_close(ranks);
}

static void expect_refused(bw_ranks *ranks, int rank, const char *words)
{
    bw_context *ctx = open_rank(&(party){.ranks = ranks, .rank = rank});
    assert_int_equal(bwi_pending(ctx), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), words));
    assert_string_equal(bwi_rank_of(ctx)->name, "one");
    bw_close(ctx);
}

static void test_numbers(void **state)
{
    (void)state;
    bw_ranks *ranks = bw_ranks_open(2);
    expect_refused(ranks, 2, "rank is 2, expected 0 to 1");
    expect_refused(ranks, -1, "rank is -1, expected 0 to 1");
    bw_context *ctx = open_rank(&(party){.ranks = ranks, .rank = 1});
    assert_int_equal(bwi_pending(ctx), BW_OK);
    expect_refused(ranks, 1, "rank 1 of the group of 2 has or had a context");
    bw_close(ctx);
    expect_refused(ranks, 1, "has or had");
    bw_ranks_close(ranks);
}

/* ---- Sums ---- */

/* Numbers of many magnitudes, so that another order of additions gives other bits. */
static double number(int rank, int64_t i)
{
    bwi_random random = bwi_random_at(17, (uint64_t)rank, (uint64_t)i);
    float x, y;
    bwi_random_normal(random.word[0], random.word[1], &x, &y);
    return (double)x * (double)(1 << random.word[2] % 20) + (double)y * 1e-9;
}

static void *sum_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    const bwi_rank_row *row = bwi_rank_of(ctx);
    for (int turn = 0; turn < self->turns; turn++) {
        for (int64_t i = 0; i < self->count; i++) {
            self->floats[i] = (float)number(self->rank, i + turn);
            self->doubles[i] = number(self->rank, i + turn);
        }
        self->statuses[turn] = row->sum_floats(ctx, self->floats, self->count);
        if (self->statuses[turn] == BW_OK) {
            self->statuses[turn] = row->sum_doubles(ctx, self->doubles, self->count);
        }
        if (self->statuses[turn] == BW_OK) {
            self->statuses[turn] = row->agree(ctx, BW_OK);
        }
    }
    bw_close(ctx);
    return NULL;
}

static float tree_float(int first, int count, int64_t i)
{
    if (count == 1) {
        return (float)number(first, i);
    }
    float low = tree_float(first, count / 2, i), high = tree_float(first + count / 2, count / 2, i);
    return low + high;
}

static double tree_double(int first, int count, int64_t i)
{
    return count == 1 ? number(first, i) : tree_double(first, count / 2, i) + tree_double(first + count / 2, count / 2, i);
}

static void check_sums(int ranks, int64_t count, int turns)
{
    party parties[8] = {0};
    bw_ranks *group = bw_ranks_open(ranks);
    for (int rank = 0; rank < ranks; rank++) {
        parties[rank] = (party){.ranks = group,
                                .count = count,
                                .turns = turns,
                                .floats = calloc((size_t)count + 1, sizeof(float)),
                                .doubles = calloc((size_t)count + 1, sizeof(double))};
    }
    run_parties(parties, ranks, sum_main);
    for (int rank = 0; rank < ranks; rank++) {
        for (int turn = 0; turn < turns; turn++) {
            assert_int_equal(parties[rank].statuses[turn], BW_OK);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        float f = tree_float(0, ranks, i + turns - 1);
        double d = tree_double(0, ranks, i + turns - 1);
        for (int rank = 0; rank < ranks; rank++) {
            assert_memory_equal(&parties[rank].floats[i], &f, sizeof f);
            assert_memory_equal(&parties[rank].doubles[i], &d, sizeof d);
        }
    }
    for (int rank = 0; rank < ranks; rank++) {
        assert_true(parties[rank].floats[count] == 0 && parties[rank].doubles[count] == 0);
        free(parties[rank].floats);
        free(parties[rank].doubles);
    }
    bw_ranks_close(group);
}

static void test_sums(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks *= 2) {
        check_sums(ranks, 0, 3);
        check_sums(ranks, 1, 60);
        check_sums(ranks, 100, 20);
        check_sums(ranks, 16384 + 8192 + 1, 1); /* several blocks of both types */
    }
}

/* ---- Runs of lanes ---- */

/* The lanes' tree: a lane without a partner is passed on. */
static double lanes_tree(int first, int count, int used, int64_t i, bool doubles)
{
    if (count == 1) {
        return doubles ? number(first, i) : (double)(float)number(first, i);
    }
    double low = lanes_tree(first, count / 2, used, i, doubles);
    if (first + count / 2 >= used) {
        return low;
    }
    double high = lanes_tree(first + count / 2, count / 2, used, i, doubles);
    return doubles ? low + high : (double)((float)low + (float)high);
}

/* Each rank fills its lanes and sums its own subtrees by definition; `turns` is the number of all lanes, `stop_at` how many are
 * used. */
static void *lanes_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    bwi_lane_division lanes = {self->turns, self->divided};
    int ranks = self->ranks->count, begin = bwi_rank_lane(lanes, ranks, self->rank);
    int end = bwi_rank_lane(lanes, ranks, self->rank + 1);
    for (int lane = begin, size; lane < end; lane += size) {
        size = bwi_subtree(lane, end);
        for (int64_t i = 0; i < self->count && lane < self->stop_at; i++) {
            self->floats[(lane - begin) * self->count + i] = (float)lanes_tree(lane, size, self->stop_at, i, false);
            self->doubles[(lane - begin) * self->count + i] = lanes_tree(lane, size, self->stop_at, i, true);
        }
    }
    bwi_rank_sum sum = {.lanes = lanes, .used = self->stop_at, .count = self->count};
    sum.stride = (size_t)self->count * sizeof(float);
    self->statuses[0] = bwi_rank_sum_lanes(ctx, self->floats, &sum);
    sum.doubles = true;
    sum.stride = (size_t)self->count * sizeof(double);
    self->statuses[1] = bwi_rank_sum_lanes(ctx, self->doubles, &sum);
    bw_close(ctx);
    return NULL;
}

static void check_division(int ranks, int lanes, int divided, int used, int64_t count)
{
    party parties[16] = {0};
    bw_ranks *group = bw_ranks_open(ranks);
    size_t values = (size_t)count * (size_t)(lanes - divided + divided / ranks + 1);
    for (int rank = 0; rank < ranks; rank++) {
        parties[rank] = (party){.ranks = group,
                                .count = count,
                                .turns = lanes,
                                .stop_at = used,
                                .divided = divided,
                                .floats = calloc(values, sizeof(float)),
                                .doubles = calloc(values, sizeof(double))};
    }
    run_parties(parties, ranks, lanes_main);
    for (int rank = 0; rank < ranks; rank++) {
        assert_int_equal(parties[rank].statuses[0], BW_OK);
        assert_int_equal(parties[rank].statuses[1], BW_OK);
    }
    for (int64_t i = 0; i < count; i++) {
        float f = (float)lanes_tree(0, lanes, used, i, false);
        double d = lanes_tree(0, lanes, used, i, true);
        for (int rank = 0; rank < ranks; rank++) {
            assert_memory_equal(&parties[rank].floats[i], &f, sizeof f);
            assert_memory_equal(&parties[rank].doubles[i], &d, sizeof d);
        }
    }
    for (int rank = 0; rank < ranks; rank++) {
        free(parties[rank].floats);
        free(parties[rank].doubles);
    }
    bw_ranks_close(group);
}

static void check_lanes(int ranks, int lanes, int used, int64_t count)
{
    check_division(ranks, lanes, lanes, used, count);
}

/* The last rank owns the lanes that a whole window leaves empty; a remainder may fill them. */
static void test_divided_lanes(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        for (int divided = ranks; divided <= 8; divided++) {
            for (int used = 1; used <= 8; used++) {
                check_division(ranks, 8, divided, used, 2);
            }
        }
    }
}

static void test_lanes(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        check_lanes(ranks, 8, 8, 5);
        check_lanes(ranks, 16, 16, 3);
        check_lanes(ranks, 64, 61, 3);
        for (int used = 1; used < 8; used++) {
            check_lanes(ranks, 8, used, 2);
        }
    }
    check_lanes(15, 16, 16, 7);
    check_lanes(3, 8, 8, 40000); /* several blocks */
    check_lanes(7, 16, 11, 20000);
}

/* Sums flush denormals, as the sums over lanes do, and the caller's floating-point state is back afterwards. */
static void *denormal_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    volatile float small = FLT_MIN;
    float values[2] = {FLT_MIN * (self->rank ? -1.5f : 1), 1};
    self->statuses[0] = bwi_rank_of(ctx)->sum_floats(ctx, values, 2);
    self->floats[0] = values[0];
    self->floats[1] = small * 0.5f;
    bw_close(ctx);
    return NULL;
}

static void test_denormals(void **state)
{
    (void)state;
    bw_ranks *group = bw_ranks_open(2);
    float got[2][2];
    party parties[2] = {{.ranks = group, .floats = got[0]}, {.ranks = group, .floats = got[1]}};
    run_parties(parties, 2, denormal_main);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(parties[rank].statuses[0], BW_OK);
#ifdef __SSE__
        assert_true(got[rank][0] == 0);
#endif
        assert_true(got[rank][1] > 0);
    }
    bw_ranks_close(group);
}

/* ---- Agreement ---- */

static void *agree_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    static const bw_status mine[4][3] = {{BW_OK, BW_OK, BW_DATA_LOSS},
                                         {BW_OK, BW_NOT_FOUND, BW_OK},
                                         {BW_OK, BW_OK, BW_OK},
                                         {BW_OK, BW_RESOURCE_EXHAUSTED, BW_INTERNAL}};
    for (int turn = 0; turn < 3; turn++) {
        if (mine[self->rank][turn] != BW_OK) {
            bwi_fail(ctx, mine[self->rank][turn], "turn %d", turn);
        }
        self->statuses[turn] = bwi_rank_of(ctx)->agree(ctx, mine[self->rank][turn]);
    }
    snprintf(self->message, sizeof self->message, "%s", bw_message(ctx));
    bw_close(ctx);
    return NULL;
}

static void test_agree(void **state)
{
    (void)state;
    bw_ranks *group = bw_ranks_open(4);
    party parties[4] = {{.ranks = group}, {.ranks = group}, {.ranks = group}, {.ranks = group}};
    run_parties(parties, 4, agree_main);
    for (int rank = 0; rank < 4; rank++) {
        assert_int_equal(parties[rank].statuses[0], BW_OK);
        assert_int_equal(parties[rank].statuses[1], BW_RESOURCE_EXHAUSTED);
        assert_int_equal(parties[rank].statuses[2], BW_DATA_LOSS);
    }
    assert_string_equal(parties[2].message, "rank 0 of 4: turn 2");
    bw_ranks_close(group);
}

/* Ranks that do not make the same call all learn it. */
static void *differ_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    float x[8] = {0};
    double y[8] = {0};
    self->statuses[0] = bwi_rank_of(ctx)->sum_floats(ctx, x, self->rank == 2 ? 7 : 8);
    snprintf(self->message, sizeof self->message, "%s", bw_message(ctx));
    self->statuses[1] = self->rank == 1 ? bwi_rank_of(ctx)->agree(ctx, BW_OK) : bwi_rank_of(ctx)->sum_doubles(ctx, y, 1);
    bw_close(ctx);
    return NULL;
}

static void test_differ(void **state)
{
    (void)state;
    bw_ranks *group = bw_ranks_open(4);
    party parties[4] = {{.ranks = group}, {.ranks = group}, {.ranks = group}, {.ranks = group}};
    run_parties(parties, 4, differ_main);
    for (int rank = 0; rank < 4; rank++) {
        assert_int_equal(parties[rank].statuses[0], BW_INTERNAL);
        assert_int_equal(parties[rank].statuses[1], BW_INTERNAL);
    }
    assert_non_null(strstr(parties[3].message, "rank 0 calls sum_floats of 8 values, rank 2 sum_floats of 7"));
    bw_ranks_close(group);
}

/* ---- Leaving ---- */

/* Rank 1 leaves after `stop_at` turns, by leave (even) or by closing its context (odd). */
static void *leave_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    float x[3] = {1, 2, 3};
    int turns = self->rank == 1 ? self->stop_at : self->turns;
    for (int turn = 0; turn < turns; turn++) {
        self->statuses[turn] = turn % 2 ? bwi_rank_of(ctx)->agree(ctx, BW_OK) : bwi_rank_of(ctx)->sum_floats(ctx, x, 3);
    }
    snprintf(self->message, sizeof self->message, "%s", bw_message(ctx));
    if (self->rank == 1 && self->stop_at % 2 == 0) {
        bwi_rank_of(ctx)->leave(ctx);
        bwi_rank_of(ctx)->leave(ctx);
        self->statuses[turns] = bwi_rank_of(ctx)->agree(ctx, BW_OK);
    }
    bw_close(ctx);
    return NULL;
}

static void test_leave(void **state)
{
    (void)state;
    for (int stop_at = 0; stop_at < 40; stop_at++) {
        bw_ranks *group = bw_ranks_open(4);
        party parties[4];
        for (int rank = 0; rank < 4; rank++) {
            parties[rank] = (party){.ranks = group, .turns = stop_at + 3, .stop_at = stop_at};
        }
        run_parties(parties, 4, leave_main);
        for (int rank = 0; rank < 4; rank++) {
            for (int turn = 0; turn < (rank == 1 ? stop_at : stop_at + 3); turn++) {
                assert_int_equal(parties[rank].statuses[turn], turn < stop_at ? BW_OK : BW_CANCELLED);
            }
        }
        if (stop_at % 2 == 0) {
            assert_int_equal(parties[1].statuses[stop_at], BW_CANCELLED);
        }
        assert_string_equal(parties[3].message, "rank 3 of 4 cannot go on: rank 1 has left the group");
        bw_ranks_close(group);
    }
}

/* ---- Cancelling ---- */

static void *cancel_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    atomic_store(&self->contexts[self->rank], ctx);
    atomic_fetch_add(self->ready, 1);
    double x[2] = {1, 2};
    for (int turn = 0; turn < self->turns; turn++) {
        self->statuses[turn] = bwi_rank_of(ctx)->sum_doubles(ctx, x, 2);
    }
    self->statuses[self->turns] = bwi_cancel_report(ctx);
    snprintf(self->message, sizeof self->message, "%s", bw_message(ctx));
    while (atomic_load(self->ready) < 100) {
        sched_yield();
    }
    bw_close(ctx);
    return NULL;
}

/* Three of four ranks wait for a fourth that never comes; one of them is cancelled. */
static void test_cancel(void **state)
{
    (void)state;
    for (int nap = 0; nap < 2; nap++) {
        bw_ranks *group = bw_ranks_open(4);
        atomic_int ready = 0;
        bw_context *_Atomic contexts[4] = {NULL};
        party parties[3];
        for (int rank = 0; rank < 3; rank++) {
            parties[rank] = (party){.ranks = group, .rank = rank, .turns = 2, .ready = &ready, .contexts = contexts};
            assert_int_equal(pthread_create(&parties[rank].thread, NULL, cancel_main, &parties[rank]), 0);
        }
        while (atomic_load(&ready) < 3) {
            sched_yield();
        }
        struct timespec time = {.tv_nsec = 5000000};
        if (nap) {
            nanosleep(&time, NULL);
        }
        bw_cancel(atomic_load(&contexts[2]));
        atomic_fetch_add(&ready, 100);
        for (int rank = 0; rank < 3; rank++) {
            pthread_join(parties[rank].thread, NULL);
            assert_int_equal(parties[rank].statuses[0], BW_CANCELLED);
            assert_int_equal(parties[rank].statuses[1], BW_CANCELLED);
        }
        assert_string_equal(parties[2].message, "cancelled");
        assert_string_equal(parties[0].message, "rank 0 of 4 cannot go on: rank 2 has left the group");
        bw_ranks_close(group);
    }
}

/* One rank is cancelled at some moment while all are busy: all stop at the same turn. */
static void *busy_main(void *argument)
{
    party *self = argument;
    bw_context *ctx = open_rank(self);
    atomic_store(&self->contexts[self->rank], ctx);
    atomic_fetch_add(self->ready, 1);
    float x[2] = {1, 2};
    bw_status status = BW_OK;
    for (self->turns = 0; status == BW_OK; self->turns++) {
        status = self->turns % 2 ? bwi_rank_of(ctx)->agree(ctx, BW_OK) : bwi_rank_of(ctx)->sum_floats(ctx, x, 2);
    }
    self->statuses[0] = status;
    while (atomic_load(self->ready) < 100) {
        sched_yield();
    }
    bw_close(ctx);
    return NULL;
}

static void test_cancel_while_busy(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        bw_ranks *group = bw_ranks_open(4);
        atomic_int ready = 0;
        bw_context *_Atomic contexts[4] = {NULL};
        party parties[4];
        for (int rank = 0; rank < 4; rank++) {
            parties[rank] = (party){.ranks = group, .rank = rank, .ready = &ready, .contexts = contexts};
            assert_int_equal(pthread_create(&parties[rank].thread, NULL, busy_main, &parties[rank]), 0);
        }
        while (atomic_load(&ready) < 4) {
            sched_yield();
        }
        struct timespec time = {.tv_nsec = 100000 * i};
        nanosleep(&time, NULL);
        bw_cancel(atomic_load(&contexts[i % 4]));
        atomic_fetch_add(&ready, 100);
        for (int rank = 0; rank < 4; rank++) {
            pthread_join(parties[rank].thread, NULL);
            assert_int_equal(parties[rank].statuses[0], BW_CANCELLED);
            assert_int_equal(parties[rank].turns, parties[0].turns);
        }
        bw_ranks_close(group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_divided_lanes),
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_differ),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_while_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
