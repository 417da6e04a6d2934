/* Checks of samples: values, scales, copies, and what training and validation data have in common. */
#include "insight/doctor/doctor.h"

#include <math.h>

/* Names a feature: "column 3 (age)" or "channel 0". */
enum { FEATURE_TEXT = 160 };

static const char *feature_text(char text[FEATURE_TEXT], const bwi_doctor *d, const bwi_field_facts *field, int64_t feature)
{
    const char *category = NULL, *name = NULL;
    bool column = field->ndim == 1;
    if (column && field == bwi_data_facts_find(&d->data, BWI_ROLE_INPUT, 0)) {
        name = bwi_recipe_column(d->training, feature, &category);
    }
    snprintf(text, FEATURE_TEXT, "%s %lld%s%.60s%s%.60s%s", column ? "column" : "channel", (long long)feature, name ? " (" : "",
             name ? name : "", name && category ? "=" : "", name && category ? category : "", name ? ")" : "");
    return text;
}

/* ---- Values ---- */

bool bwi_check_not_a_number(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_data_facts *const parts[] = {&d->data, &d->held};
    static const char *const kinds[] = {"inputs", "targets", "weights"};
    for (int p = 0; p < 2; p++) {
        for (int f = 0; f < parts[p]->fields; f++) {
            const bwi_field_facts *field = &parts[p]->field[f];
            if (field->unfinite > 0) {
                bwi_fix(found, "options.missing = BW_MISSING_MEAN; /* or BW_MISSING_SKIP, of bw_read_options */",
                        "--missing mean or --missing skip for CSV files; in other files correct or remove the sample");
                return bwi_found(found, BW_SEVERITY_ERROR,
                                 "%lld of %lld values of the %s (%s)%s are NaN or infinite, the first in sample %lld",
                                 (long long)field->unfinite, (long long)(parts[p]->samples * field->each), kinds[field->role],
                                 field->name, p ? " for validation" : "", (long long)field->first_unfinite);
            }
        }
    }
    return false;
}

/* Pixels at the edge of pictures and rare words always have the least of all values, or the largest on white paper: that is no
 * mistake. */
static bool is_background(const bwi_field_facts *field, float value)
{
    enum { MANY = 32 };
    return field->features >= MANY && (value <= field->all.least || value >= field->all.most);
}

static void fix_constant(const bwi_doctor *d, bwi_finding *found, const bwi_field_facts *field, int64_t feature)
{
    const char *category = NULL, *name = field->ndim == 1 ? bwi_recipe_column(d->training, feature, &category) : NULL;
    if (name && !category) {
        bwi_fix(found, "", "--ignore '%.100s'", name);
        bwi_print(found->code, sizeof found->code, "options.ignore = \"%.100s\"; /* of bw_read_options */", name);
    } else {
        bwi_fix(found, "", "remove the %s from the data%s", field->ndim == 1 ? "column" : "channel",
                field->ndim == 1 && !category ? "; of a CSV file without a header by --ignore and its number" : "");
    }
}

/* A feature is a column of a table or a channel of an image: single pixels are often constant, and nobody could leave them out. */
bool bwi_check_constant_feature(const bwi_doctor *d, bwi_finding *found)
{
    for (int f = 0; f < d->data.fields && d->data.samples > 1; f++) {
        const bwi_field_facts *field = &d->data.field[f];
        int64_t constant = 0, first = 0;
        for (int64_t k = 0; k < field->features && field->role == BWI_ROLE_INPUT; k++) {
            const bwi_feature_facts *one = &field->feature[k];
            if (one->count > 0 && !(one->least < one->most) && !is_background(field, one->least)) {
                first = constant++ == 0 ? k : first;
            }
        }
        if (constant > 0) {
            bool columns = field->ndim == 1;
            char text[FEATURE_TEXT];
            fix_constant(d, found, field, first);
            return bwi_found(found, BW_SEVERITY_NOTE, "%lld of %lld %s of %s never change%s; %s is always %g", (long long)constant,
                             (long long)field->features, columns ? "columns" : "channels", field->name, constant == 1 ? "s" : "",
                             feature_text(text, d, field, first), (double)field->feature[first].least);
        }
    }
    return false;
}

/* ---- Scale ---- */

enum { LARGE = 16, PIXELS = 32 };
static const double small = 0.01;

/* The size of a feature as the first trained layer sees it. */
static double size_of(const bwi_feature_facts *feature, const bwi_treatment *entry)
{
    return hypot(entry->scale * bwi_feature_mean(feature) + entry->offset, entry->scale * bwi_feature_deviation(feature));
}

/* Images, also as many columns of bytes, get a scale that brings them to 0 to 1; other columns are standardised, each by itself. A
 * new scale replaces the one that the samples were read with. */
static void fix_scale(const bwi_doctor *d, bwi_finding *found, const bwi_field_facts *field)
{
    double range = fmax(fabs((double)field->all.least), fabs((double)field->all.most));
    double scale = fabs(d->scale) > 0 ? d->scale : 1;
    bool pixels = field->features >= PIXELS && field->whole && field->all.least >= 0 && field->all.most <= 255;
    if (field->ndim <= 1 && !pixels) {
        bwi_fix(found, "dataset = bw_standardise(dataset, NULL);",
                "--standardise, or a layer normalization() in front of the model");
        return;
    }
    range = field->whole && range > 127 && range <= 255 ? 255 : range;
    double over = range / scale;
    if (fabs(over - round(over)) < 1e-3 * over) {
        bwi_fix(found, "", "--scale 1/%.0f", over);
    } else {
        bwi_fix(found, "", "--scale %.4g", 1 / over);
    }
    bwi_print(found->code, sizeof found->code, "options.scale = %.6g; /* of bw_read_options */", 1 / over);
}

/* What counts is the root mean square of a feature as the first trained layer sees it: too large is one alone, too small all
 * together, since a rare feature is small by itself. */
bool bwi_check_unscaled_inputs(const bwi_doctor *d, bwi_finding *found)
{
    for (int f = 0; f < d->data.fields; f++) {
        const bwi_field_facts *field = &d->data.field[f];
        bwi_treatment entry = bwi_model_treatment(d->model, field->name);
        if (field->role != BWI_ROLE_INPUT || entry.indices || entry.normalised || field->all.count == 0) {
            continue;
        }
        int64_t large = 0, worst = 0;
        double largest = 0;
        for (int64_t k = 0; k < field->features; k++) {
            double size = size_of(&field->feature[k], &entry);
            worst = size > largest ? k : worst;
            largest = size > largest ? size : largest;
            large += size > LARGE;
        }
        const bwi_feature_facts *one = &field->feature[worst];
        const char *what = field->ndim == 1 ? "column" : "channel";
        char text[FEATURE_TEXT];
        if (largest > LARGE) {
            fix_scale(d, found, field);
            return bwi_found(found, BW_SEVERITY_WARNING,
                             "%lld of %lld %s%s of %s %s a root mean square above %d; %s has %.4g, with values from %g to %g",
                             (long long)large, (long long)field->features, what, field->features == 1 ? "" : "s", field->name,
                             large == 1 ? "has" : "have", LARGE, feature_text(text, d, field, worst), largest, (double)one->least,
                             (double)one->most);
        }
        if (largest < small && largest > 0 && fabs(entry.scale) >= 0.1) {
            bwi_fix(found, "dataset = bw_standardise(dataset, NULL);", "--standardise, or a larger --scale");
            return bwi_found(found, BW_SEVERITY_WARNING, "the largest root mean square of all %lld %ss of %s is %.4g, below %g",
                             (long long)field->features, what, field->name, largest, small);
        }
    }
    return false;
}

/* ---- Copies ---- */

/* Inputs that can take only few values come again by themselves: with fewer than ten times as many possible samples as there are
 * samples, copies tell nothing. */
static bool copies_are_natural(const bwi_data_facts *facts)
{
    double bits = 0;
    for (int f = 0; f < facts->fields; f++) {
        const bwi_field_facts *field = &facts->field[f];
        for (int64_t k = 0; k < field->features && field->role == BWI_ROLE_INPUT; k++) {
            if (!field->few || field->few_count[k] > BWI_FEW_VALUES) {
                return false;
            }
            bits += log2((double)field->few_count[k] + 1e-9);
        }
    }
    return bits < log2(10.0 * (double)facts->samples);
}

/* Counts copies among the samples that the sketch kept, whose share is that of all. */
bool bwi_check_duplicate_samples(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_seen *seen = &d->data.seen;
    int64_t samples = 0, distinct = 0, conflicting = 0, most = 0;
    for (int64_t i = 0; i < seen->capacity; i++) {
        const bwi_seen_entry *entry = &seen->entry[i];
        samples += entry->count;
        distinct += entry->count > 0;
        conflicting += entry->conflict ? entry->count : 0;
        most = entry->count > most ? entry->count : most;
    }
    double share = samples > 0 ? (double)(samples - distinct) / (double)samples : 0;
    if (share < 0.01 || samples - distinct < 2 || copies_are_natural(&d->data)) {
        return false;
    }
    bwi_fix(found, "", "remove the copies from the data before it is split, e.g. by 'sort -u' of a CSV file without its header");
    bool classes = bwi_data_facts_find(&d->data, BWI_ROLE_TARGET, 0);
    bwi_found(found, share > 0.05 || conflicting > 0 ? BW_SEVERITY_WARNING : BW_SEVERITY_NOTE,
              "%.1f%% of %lld samples are copies of another one; one sample comes %lld times", 100 * share, (long long)samples,
              (long long)most);
    if (classes && conflicting > 0) {
        size_t length = 0;
        while (found->evidence[length]) {
            length++;
        }
        bwi_print(found->evidence + length, sizeof found->evidence - length, "; %lld of them have copies with another target",
                  (long long)conflicting);
    }
    return true;
}

bool bwi_check_leak(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_data_facts *held = &d->held;
    double share = held->asked > 0 ? (double)held->met / (double)held->asked : 0;
    if (share < 0.01 || held->met < 2 || copies_are_natural(&d->data)) {
        return false;
    }
    bwi_fix(found, "", "remove these samples from the training or from the validation data, then split again");
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "%.1f%% of the validation samples (%lld of %lld) have the same inputs as a training sample, the first is %lld",
                     100 * share, (long long)held->met, (long long)held->asked, (long long)held->met_number);
}

/* ---- Preparation ---- */

/* Compares a feature of the validation data with the training data's, in standard deviations. */
static bool differs(const bwi_feature_facts *training, const bwi_feature_facts *held, double *shift, double *ratio)
{
    double deviation = bwi_feature_deviation(training), other = bwi_feature_deviation(held);
    *shift = deviation > 0 ? fabs(bwi_feature_mean(held) - bwi_feature_mean(training)) / deviation : 0;
    *ratio = deviation > 0 ? other / deviation : 1;
    return deviation > 0 && (*shift > 5 || *ratio > 8 || (*ratio < 0.125 && *shift > 0.5));
}

static bool compare_parts(const bwi_doctor *d, bwi_finding *found)
{
    enum { ENOUGH = 10 };
    for (int f = 0; f < d->held.fields && f < d->data.fields && d->held.samples >= ENOUGH; f++) {
        const bwi_field_facts *training = &d->data.field[f], *held = &d->held.field[f];
        double shift, ratio;
        if (training->role == BWI_ROLE_INPUT && held->all.count > 0 && differs(&training->all, &held->all, &shift, &ratio)) {
            bwi_fix(found, "validation = bw_read(ctx, path, &options); /* options.like = training */",
                    "prepare both in the same way: one --scale, --standardise or --shape for --data and --validation");
            return bwi_found(found, BW_SEVERITY_WARNING,
                             "%s goes from %g to %g in training and from %g to %g in validation: the means differ by %.1f standard "
                             "deviations, which differ by a factor of %.3g",
                             training->name, (double)training->all.least, (double)training->all.most, (double)held->all.least,
                             (double)held->all.most, shift, ratio);
        }
    }
    return false;
}

/* A model that scales its input by itself expects it unscaled. */
static bool compare_scale(const bwi_doctor *d, const bwi_field_facts *field, const bwi_treatment *entry, bwi_finding *found)
{
    double range = fmax(fabs((double)field->all.least), fabs((double)field->all.most));
    if (entry->scale >= 0.1 || entry->normalised || range <= 0 || range * fabs(entry->scale) > 0.05) {
        return false;
    }
    (void)d;
    bwi_fix(found, "options.scale = 1; /* of bw_read_options */", "leave out --scale, or the layer rescaling");
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "the model multiplies %s by %.4g, but its values already lie between %g and %g, so at most %.3g is left",
                     field->name, entry->scale, (double)field->all.least, (double)field->all.most, range * fabs(entry->scale));
}

/* A Normalization layer knows the mean and the variance of the data that it was fitted to. */
static bool compare_fitted(const bwi_doctor *d, const bwi_field_facts *field, const bwi_treatment *entry, bwi_finding *found)
{
    const bwi_variable *mean = entry->normalization->variable[0], *variance = entry->normalization->variable[1];
    int64_t count = bwi_shape_count(&mean->shape);
    if (!mean->given || count != field->features || count != bwi_shape_count(&variance->shape)) {
        return false;
    }
    float *means = bwi_allocate(d->ctx, (size_t)(2 * count), sizeof *means), *variances = means ? means + count : NULL;
    double worst = 0, deviation = 1, expected = 0, is = 0;
    if (means) {
        bwi_variable_read(mean, means);
        bwi_variable_read(variance, variances);
    }
    for (int64_t k = 0; means && k < count; k++) {
        double own = sqrt(fmax((double)variances[k], 1e-12));
        double now = entry->scale * bwi_feature_mean(&field->feature[k]) + entry->offset;
        double shift = fabs(now - (double)means[k]) / own;
        if (shift > worst) {
            worst = shift;
            deviation = own;
            expected = (double)means[k];
            is = now;
        }
    }
    bwi_release(d->ctx, means);
    if (!(worst > 5)) {
        return false;
    }
    bwi_fix(found, "bw_adapt(model, dataset);",
            "prepare the data as the model's training data was (--scale), or train a model whose layer is fitted to this data");
    return bwi_found(
        found, BW_SEVERITY_WARNING,
        "layer %s was fitted to a mean of %.4g with a deviation of %.4g, but %s has a mean of %.4g: %.1f deviations away",
        entry->normalization->name, expected, deviation, field->name, is, worst);
}

bool bwi_check_inconsistent_preprocessing(const bwi_doctor *d, bwi_finding *found)
{
    for (int f = 0; f < d->data.fields; f++) {
        const bwi_field_facts *field = &d->data.field[f];
        bwi_treatment entry = bwi_model_treatment(d->model, field->name);
        if (field->role != BWI_ROLE_INPUT || entry.indices || field->all.count == 0) {
            continue;
        }
        if (compare_scale(d, field, &entry, found) || (entry.normalization && compare_fitted(d, field, &entry, found))) {
            return true;
        }
    }
    return compare_parts(d, found);
}
