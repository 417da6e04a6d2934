/*
 * Facts about samples from one pass over them, in bounded memory: a few numbers for each index of the last axis, a count for each
 * class, a sketch of the samples that were seen, and labels of some windows in their order.
 */
#include "insight/doctor/doctor.h"

#include <math.h>
#include <string.h>

enum { MOST_LABELS = 1 << 13, CHUNK_VALUES = 1 << 20, CHUNK_SAMPLES = 1 << 10 };

double bwi_feature_mean(const bwi_feature_facts *feature)
{
    return feature->count > 0 ? (double)feature->origin + feature->sum / (double)feature->count : 0;
}

double bwi_feature_deviation(const bwi_feature_facts *feature)
{
    double n = (double)feature->count, mean = n > 0 ? feature->sum / n : 0;
    double variance = n > 0 ? feature->squares / n - mean * mean : 0;
    return variance > 0 ? sqrt(variance) : 0;
}

double bwi_feature_size(const bwi_feature_facts *feature)
{
    return hypot(bwi_feature_mean(feature), bwi_feature_deviation(feature));
}

const bwi_field_facts *bwi_data_facts_find(const bwi_data_facts *facts, bwi_role role, int index)
{
    for (int f = 0; f < facts->fields; f++) {
        if (facts->field[f].role == role && index-- == 0) {
            return &facts->field[f];
        }
    }
    return NULL;
}

/* ---- Values ---- */

/* Differences are taken from the first value, so that squares of large numbers do not hide small deviations. */
static void count_value(bwi_feature_facts *feature, float value)
{
    if (feature->count == 0) {
        feature->origin = feature->least = feature->most = value;
    }
    double difference = (double)value - (double)feature->origin;
    feature->sum += difference;
    feature->squares += difference * difference;
    feature->least = value < feature->least ? value : feature->least;
    feature->most = value > feature->most ? value : feature->most;
    feature->count++;
}

/* Values are listed in their order, up to the limit. */
static void list_value(bwi_field_facts *field, int64_t feature, float value)
{
    float *few = field->few[feature];
    int low = 0, high = field->few_count[feature];
    while (low < high) {
        int middle = (low + high) / 2;
        if (few[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    int count = field->few_count[feature];
    if (low < count && !(few[low] > value)) {
        return;
    }
    if (count < BWI_FEW_VALUES) {
        memmove(few + low + 1, few + low, (size_t)(count - low) * sizeof *few);
        few[low] = value;
    }
    field->few_count[feature]++;
}

static bool is_whole(float value)
{
    float cut = truncf(value);
    return !(cut < value || cut > value);
}

static void count_row(bwi_field_facts *field, const float *values, int64_t number)
{
    for (int64_t k = 0; k < field->features; k++) {
        if (!isfinite(values[k])) {
            field->first_unfinite = field->unfinite++ == 0 ? number : field->first_unfinite;
            continue;
        }
        count_value(&field->feature[k], values[k]);
        field->whole = field->whole && is_whole(values[k]);
        if (field->few && field->few_count[k] <= BWI_FEW_VALUES) {
            list_value(field, k, values[k]);
        }
    }
}

static void count_sample(bwi_field_facts *field, const float *values, int64_t number)
{
    for (int64_t first = 0; first < field->each; first += field->features) {
        count_row(field, values + first, number);
    }
}

/* Returns what stands for a target in tests of classes and order: its class, or its first number. */
static float label_of(bwi_field_facts *field, const float *values)
{
    int64_t ones = 0, zeros = 0, at = 0;
    for (int64_t k = 0; k < field->each && field->one_hot; k++) {
        bool one = !(values[k] < 1 || values[k] > 1), zero = !(values[k] < 0 || values[k] > 0);
        at = one ? k : at;
        ones += one;
        zeros += zero;
    }
    field->one_hot = field->one_hot && ones == 1 && zeros == field->each - 1;
    float label = field->one_hot ? (float)at : values[0];
    label = isfinite(label) ? label : 0;
    if (label >= 0 && label < BWI_MOST_CLASSES && is_whole(label)) {
        field->classes[(int64_t)label]++;
    }
    return label;
}

/* ---- The pass ---- */

typedef struct pass {
    bwi_data_facts *facts;
    bw_dataset *dataset;
    const bwi_data_facts *training;
    float *values;
    size_t capacity;
    int64_t chunk; /* samples that are read at once */
    int64_t number[CHUNK_SAMPLES];
    uint64_t hash[CHUNK_SAMPLES];
    float label[CHUNK_SAMPLES];
} pass;

static void keep_label(bwi_data_facts *facts, int64_t position, float label)
{
    int64_t window = facts->window > 0 ? position / facts->window : 0;
    if (facts->windows > 0 && window % facts->every == 0 && window / facts->every < facts->windows) {
        facts->labels[window / facts->every * facts->window + position % facts->window] = label;
        facts->collected++;
    }
}

static bool keep_sample(pass *p, int64_t number, int64_t i)
{
    if (!p->training) {
        return bwi_seen_add(&p->facts->seen, p->hash[i], p->label[i]);
    }
    int found = bwi_seen_find(&p->training->seen, p->hash[i]);
    p->facts->asked += found >= 0;
    if (found > 0 && p->facts->met++ == 0) {
        p->facts->met_number = number;
    }
    return true;
}

/* Reads a field of some samples, as they are without augmentation, and adds it to what is known of them. */
static bw_status read_field(pass *p, int f, int64_t count)
{
    bwi_field_facts *field = &p->facts->field[f];
    char error[BWI_GATHER_ERROR] = "";
    bwi_destination to = {.kernels = bwi_kernels_host()->gather,
                          .data = p->values,
                          .dtype = BW_F32,
                          .h = 1,
                          .w = 1,
                          .c = field->each,
                          .block = field->each};
    bw_status status = bwi_dataset_gather(p->dataset, f, BWI_EPOCH_NONE, p->number, count, &to, error);
    if (status != BW_OK) {
        return status == BW_CANCELLED ? bwi_cancel_report(p->facts->ctx)
                                      : bwi_fail(p->facts->ctx, status, "%s", error[0] ? error : "the samples cannot be read");
    }
    for (int64_t i = 0; i < count; i++) {
        const float *sample = p->values + i * field->each;
        count_sample(field, sample, p->number[i]);
        if (field->role == BWI_ROLE_INPUT) {
            p->hash[i] = bwi_hash(p->hash[i], sample, (size_t)field->each * sizeof *sample);
        } else if (field->role == BWI_ROLE_TARGET) {
            float label = label_of(field, sample);
            p->label[i] = field == bwi_data_facts_find(p->facts, BWI_ROLE_TARGET, 0) ? label : p->label[i];
        }
    }
    return BW_OK;
}

static bw_status read_chunk(pass *p, int64_t first, int64_t count)
{
    bw_status status = bwi_cancelled(p->facts->ctx) ? bwi_cancel_report(p->facts->ctx) : BW_OK;
    memset(p->hash, 0, sizeof p->hash);
    memset(p->label, 0, sizeof p->label);
    bwi_dataset_numbers(p->dataset, 0, first, count, p->number);
    for (int f = 0; f < p->facts->fields && status == BW_OK; f++) {
        status = read_field(p, f, count);
    }
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        keep_label(p->facts, first + i, p->label[i]);
        status = keep_sample(p, p->number[i], i) ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    p->facts->samples += status == BW_OK ? count : 0;
    return status;
}

/* Reads consecutive samples. The schedule lets threads make slow ones ahead, as in training. */
static bw_status read_samples(pass *p, int64_t first, int64_t count)
{
    bwi_gather_schedule schedule = {
        .unaugmented = true, .first = first, .count = count, .tile = p->chunk, .lanes = 1, .workers = 1};
    bw_status status = bwi_dataset_begin(p->dataset, &schedule);
    for (int64_t done = 0; done < count && status == BW_OK; done += p->chunk) {
        status = read_chunk(p, first + done, p->chunk < count - done ? p->chunk : count - done);
    }
    return status;
}

/* ---- Before and after ---- */

/* Features are indices of the last axis: columns of a table, channels of an image. */
static bw_status open_field(bwi_data_facts *facts, bwi_field_facts *field, const bwi_field *from)
{
    snprintf(field->name, sizeof field->name, "%c%s%s", "xyw"[from->role], from -> name[0] ? "_" : "", from->name);
    field->role = from->role;
    field->ndim = from->ndim;
    field->each = 1;
    for (int i = 0; i < from->ndim; i++) {
        field->each *= from->shape[i];
    }
    field->features = from->ndim > 0 ? from->shape[from->ndim - 1] : 1;
    field->whole = true;
    field->one_hot = from->role == BWI_ROLE_TARGET && field->each > 1 && from->ndim == 1;
    field->feature = bwi_allocate(facts->ctx, (size_t)field->features, sizeof *field->feature);
    bool made = field->feature;
    if (from->role == BWI_ROLE_TARGET) {
        field->classes = bwi_allocate(facts->ctx, BWI_MOST_CLASSES, sizeof *field->classes);
        made = made && field->classes;
    }
    if (from->role == BWI_ROLE_INPUT && from->ndim <= 1 && field->each <= BWI_DISCRETE_FEATURES) {
        field->few = bwi_allocate(facts->ctx, (size_t)field->features, sizeof *field->few);
        field->few_count = bwi_allocate(facts->ctx, (size_t)field->features, sizeof *field->few_count);
        made = made && field->few && field->few_count;
    }
    return made ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* Windows are spread over the data, since the first samples of sorted data are all of one class. */
static bw_status open_windows(bwi_data_facts *facts, int64_t samples, int64_t window)
{
    int64_t all = samples / window, most = MOST_LABELS / window;
    facts->window = window;
    facts->windows = all < most ? all : most;
    facts->every = facts->windows > 0 ? all / facts->windows : 1;
    facts->labels = bwi_allocate(facts->ctx, (size_t)(facts->windows * window), sizeof *facts->labels);
    return facts->labels ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static bw_status open_facts(pass *p, int64_t window, int64_t samples)
{
    bwi_data_facts *facts = p->facts;
    int64_t most = 1;
    int count = bwi_dataset_fields(p->dataset);
    facts->field = bwi_allocate(facts->ctx, (size_t)count, sizeof *facts->field);
    facts->fields = facts->field ? count : 0;
    bw_status status = facts->field ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int f = 0; f < facts->fields && status == BW_OK; f++) {
        status = open_field(facts, &facts->field[f], bwi_dataset_field(p->dataset, f));
        most = facts->field[f].each > most ? facts->field[f].each : most;
    }
    int64_t wanted = bwi_size_multiply((size_t)most, (size_t)samples) < CHUNK_VALUES ? most * samples : CHUNK_VALUES;
    p->capacity = (size_t)(most > wanted ? most : wanted);
    p->values = status == BW_OK ? bwi_allocate(facts->ctx, p->capacity, sizeof *p->values) : NULL;
    if (status == BW_OK && !p->values) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    return status == BW_OK ? open_windows(facts, bw_dataset_count(p->dataset), window) : status;
}

/* Combines the features: all values have the mean of their means and squares. */
static void close_field(bwi_field_facts *field)
{
    bwi_feature_facts *all = &field->all;
    for (int64_t k = 0; k < field->features; k++) {
        const bwi_feature_facts *one = &field->feature[k];
        double n = (double)one->count, size = bwi_feature_size(one);
        if (one->count > 0) {
            all->least = all->count == 0 || one->least < all->least ? one->least : all->least;
            all->most = all->count == 0 || one->most > all->most ? one->most : all->most;
            all->sum += n * bwi_feature_mean(one);
            all->squares += n * size * size;
            all->count += one->count;
        }
    }
}

/* As many samples as fit the memory; of those that threads make ahead only a few, since each holds some of their places. */
static int64_t chunk_of(const pass *p)
{
    enum { MADE = 16 };
    bwi_gather_schedule schedule = {.count = 1, .tile = 1, .lanes = 1, .workers = 1};
    int64_t count = bwi_dataset_bytes(p->dataset, &schedule) > 0 ? MADE : CHUNK_SAMPLES;
    for (int f = 0; f < p->facts->fields; f++) {
        int64_t fit = (int64_t)p->capacity / (p->facts->field[f].each > 0 ? p->facts->field[f].each : 1);
        count = fit < count ? fit : count;
    }
    return count > 0 ? count : 1;
}

/* Takes windows that are spread over the data and make up at most `most` samples. */
static void spread_windows(bwi_data_facts *facts, int64_t samples, int64_t most)
{
    int64_t windows = most / facts->window > 1 ? most / facts->window : 1;
    facts->windows = windows < facts->windows ? windows : facts->windows;
    facts->every = facts->windows > 0 ? samples / facts->window / facts->windows : 1;
}

static bw_status run(pass *p, int64_t most)
{
    enum { BLOCK = 1 << 12 };
    int64_t samples = bw_dataset_count(p->dataset), step = BLOCK, read = BLOCK, end = samples;
    bw_status status = BW_OK;
    p->chunk = chunk_of(p);
    if (most > 0 && samples > most) {
        spread_windows(p->facts, samples, most);
        step = p->facts->every * p->facts->window;
        read = p->facts->window < most ? p->facts->window : most;
        end = p->facts->windows * step;
    }
    for (int64_t first = 0; first < end && status == BW_OK; first += step) {
        status = read_samples(p, first, read < samples - first ? read : samples - first);
    }
    return status;
}

bw_status bwi_data_facts_read(bwi_data_facts *facts, bw_dataset *dataset, int64_t window, const bwi_data_facts *training,
                              int64_t most)
{
    *facts = (bwi_data_facts){.ctx = bwi_dataset_context(dataset), .every = 1};
    facts->seen = (bwi_seen){.ctx = facts->ctx, .most = BWI_SEEN_MOST};
    pass *p = bwi_allocate(facts->ctx, 1, sizeof *p);
    if (!p) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *p = (pass){.facts = facts, .dataset = dataset, .training = training};
    bw_status status = bwi_dataset_finish(dataset);
    if (status == BW_OK) {
        int64_t samples = bw_dataset_count(dataset);
        status = open_facts(p, window, most > 0 && most < samples ? most : samples);
    }
    if (status == BW_OK) {
        status = run(p, most);
    }
    for (int f = 0; f < facts->fields && status == BW_OK; f++) {
        close_field(&facts->field[f]);
    }
    bwi_release(facts->ctx, p->values);
    bwi_release(facts->ctx, p);
    return status;
}

void bwi_data_facts_free(bwi_data_facts *facts)
{
    for (int f = 0; f < facts->fields; f++) {
        bwi_release(facts->ctx, facts->field[f].feature);
        bwi_release(facts->ctx, facts->field[f].classes);
        bwi_release(facts->ctx, facts->field[f].few);
        bwi_release(facts->ctx, facts->field[f].few_count);
    }
    if (facts->ctx) {
        bwi_release(facts->ctx, facts->field);
        bwi_release(facts->ctx, facts->labels);
        bwi_seen_free(&facts->seen);
    }
}
