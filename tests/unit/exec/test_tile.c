/* Tiles: every sample in exactly one, full ones first, then powers of two. */
#include "exec/internal.h"
#include "support/planned.h"

static void check_cut(int64_t count, int64_t tile)
{
    int64_t tiles = bwi_tiles_of(count, tile), next = 0, last = tile;
    for (int64_t k = 0; k < tiles; k++) {
        int64_t first;
        int size;
        bwi_tile_at(count, tile, k, &first, &size);
        int64_t samples = (int64_t)1 << size;
        assert_int_equal(first, next);
        assert_true(samples <= last); /* never a larger one behind a smaller one */
        assert_true(samples == tile || samples < last || last == tile);
        next += samples;
        last = samples;
    }
    assert_int_equal(next, count);
}

static void test_every_sample_once(void **state)
{
    (void)state;
    for (int64_t tile = 1; tile <= 64; tile *= 2) {
        for (int64_t count = 1; count <= 300; count++) {
            check_cut(count, tile);
        }
    }
    check_cut(100001, 2048);
    check_cut(((int64_t)1 << 40) / 1048576 + 7, 16);
    assert_int_equal(bwi_tiles_of(0, 16), 0);
    int64_t first;
    int size;
    bwi_tile_at(INT64_C(1) << 50, 64, (INT64_C(1) << 44) - 1, &first, &size); /* the last of very many */
    assert_int_equal(first, (INT64_C(1) << 50) - 64);
    assert_int_equal(size, 6);
}

/* What the tiles of a feed saw, told by the hook. */
typedef struct seen {
    atomic_int tiles, wrong;
    int lanes, workers;
    atomic_int per_lane[64];
} seen;

static void on_tile(void *user, int worker, int lane, int64_t tile)
{
    seen *s = user;
    atomic_fetch_add(&s->tiles, 1);
    atomic_fetch_add(&s->per_lane[lane], 1);
    atomic_fetch_add(&s->wrong, worker < 0 || worker >= s->workers || tile % s->lanes != lane);
}

static void test_lanes_take_turns(void **state)
{
    (void)state;
    planned p;
    bwi_session_options options = {.train = true, .batch = 61, .tile = 4, .lanes = 4};
    planned_model(&p, "flatten dense(300,relu) dense(10,softmax)", 64, 9, 9, 3, 3);
    planned_open(&p, &options);
    seen s = {.lanes = 4, .workers = 3};
    bwi_exec_set_hooks(p.session.exec, &(bwi_hooks){.user = &s, .tile = on_tile});
    bwi_piece piece = {.dataset = p.data, .count = 61};
    check_ok(p.ctx, bwi_session_feed(&p.session, BWI_PROGRAM_TRAIN, &piece, NULL));
    assert_int_equal(s.wrong, 0);
    assert_int_equal(s.tiles, 16); /* 15 of 4, and the one left over */
    for (int lane = 0; lane < 4; lane++) {
        assert_int_equal(s.per_lane[lane], 4);
    }
    bwi_exec_set_hooks(p.session.exec, NULL);
    check_ok(p.ctx, bwi_session_feed(&p.session, BWI_PROGRAM_TRAIN, &piece, NULL));
    assert_int_equal(s.tiles, 16);
    planned_close(&p);
}

/* Predictions come back in the order of the samples, whatever the tile. */
static void test_order_of_predictions(void **state)
{
    (void)state;
    static const char *const texts[] = {"flatten dense(40,relu) dense(10,softmax)",
                                        "conv2d(4,3,relu) maxpool2d(2) flatten dense(10,softmax)"};
    for (size_t m = 0; m < BWI_COUNT(texts); m++) {
        float one[61 * 10], other[61 * 10];
        for (int64_t tile = 1; tile <= 64; tile *= 2) {
            planned p;
            bwi_session_options options = {.predict = true, .tile = tile, .seed = 1};
            planned_model(&p, texts[m], 61, 9, 9, 3, 2);
            planned_open(&p, &options);
            bwi_piece piece = {.dataset = p.data, .count = 61};
            check_ok(p.ctx, bwi_exec_feed(p.session.exec, p.session.program[BWI_PROGRAM_PREDICT], &piece,
                                          (float *const[]){tile == 1 ? one : other}));
            for (int i = 0; tile > 1 && i < 61 * 10; i++) {
                assert_float_equal(one[i], other[i], 1e-5);
            }
            planned_close(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_once),
        cmocka_unit_test(test_lanes_take_turns),
        cmocka_unit_test(test_order_of_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
