/* In which order samples will be asked for. A wrong guess costs time, never a wrong sample. */
#include "data/ring.h"

static void rewind_piece(bwi_course *course)
{
    course->group = course->round = course->lane = course->tile = 0;
}

/* Whether the piece is at hand or was passed on the way to what is at hand now. */
static bool is_before(const bwi_course *course, const bwi_walk *walk)
{
    const bwi_walk *now = &course->walk;
    if (!course->open) {
        return true;
    }
    if (now->epoch != walk->epoch || course->ahead > 0) {
        return course->ahead > 0;
    }
    return walk->first < now->first || (walk->first == now->first && walk->count == now->count);
}

bool bwi_course_begin(bwi_course *course, const bwi_walk *walk)
{
    bool expected = course->expected_epoch == walk->epoch && course->expected_first == walk->first &&
                    course->walk.tile == walk->tile && course->walk.lanes == walk->lanes;
    int64_t end = walk->first + walk->count;
    if (walk->first == 0) {
        course->ahead = 0;
    }
    if (!expected || !is_before(course, walk)) {
        course->walk = *walk;
        course->open = true;
        course->ahead = 0;
        rewind_piece(course);
    }
    course->expected_epoch = end < course->count || course->step < 0 ? walk->epoch : walk->epoch + course->step;
    course->expected_first = end < course->count ? end : 0;
    return expected;
}

/* The piece after the one at hand. */
static void next_piece(bwi_course *course)
{
    bwi_walk *walk = &course->walk;
    int64_t size = walk->count;
    walk->first += size;
    if (walk->first >= course->count) {
        if (course->step < 0 || course->ahead > 0) {
            course->open = false;
            return;
        }
        walk->epoch += course->step;
        walk->first = 0;
        course->ahead++;
    }
    walk->count = course->count - walk->first < size ? course->count - walk->first : size;
    rewind_piece(course);
}

static int64_t own_lanes(const bwi_walk *walk)
{
    return walk->own_lanes > 0 ? walk->own_lanes : walk->lanes;
}

/* Where the tile that the indices stand for begins in the piece. */
static int64_t tile_of(const bwi_course *course)
{
    const bwi_walk *walk = &course->walk;
    return (walk->first_lane + course->group * walk->workers + course->lane + course->round * walk->lanes) * walk->tile;
}

/* The sample of the piece that the indices stand for; -1 if there is none. The rest after the full tiles counts as one tile. */
static int64_t sample_of(const bwi_course *course)
{
    const bwi_walk *walk = &course->walk;
    int64_t sample = tile_of(course) + course->tile;
    return course->group * walk->workers + course->lane < own_lanes(walk) && sample < walk->count ? sample : -1;
}

void bwi_course_next(bwi_course *course)
{
    const bwi_walk *walk = &course->walk;
    if (++course->tile < walk->tile && sample_of(course) >= 0) {
        return;
    }
    course->tile = 0;
    if (++course->lane < walk->workers) {
        return;
    }
    course->lane = 0;
    course->round++;
    if (tile_of(course) < walk->count) {
        return;
    }
    course->round = 0;
    course->group++;
    if (course->group * walk->workers >= own_lanes(walk) || tile_of(course) >= walk->count) {
        next_piece(course);
    }
}

bool bwi_course_peek(bwi_course *course, int *epoch, int64_t *position)
{
    while (course->open) {
        int64_t sample = sample_of(course);
        if (sample >= 0) {
            *epoch = course->walk.epoch;
            *position = course->walk.first + sample;
            return true;
        }
        bwi_course_next(course);
    }
    return false;
}
