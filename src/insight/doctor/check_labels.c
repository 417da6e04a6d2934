/* Checks of targets: their classes, their order, and whether output and loss suit them. */
#include "insight/doctor/doctor.h"

#include <stdlib.h>

/* An output with its target's facts, its activation and its loss. */
typedef struct head {
    int number;
    const bwi_field_facts *target;
    const bwi_loss_row *loss;
    bool logits;
    bwi_ending ending;
    int64_t outputs; /* of the last axis */
} head;

/* Finds an output that is trained; false if there are no more, or the data has no target for it. */
static bool find_head(const bwi_doctor *d, const bwi_data_facts *facts, int number, head *h)
{
    if (number >= d->model->output_count) {
        return false;
    }
    const bwi_shape *shape = &d->model->outputs[number]->shape;
    *h = (head){.number = number,
                .target = bwi_data_facts_find(facts, BWI_ROLE_TARGET, number),
                .ending = bwi_model_ending(d->model, number),
                .outputs = shape->ndim > 0 ? shape->extent[shape->ndim - 1] : 1};
    h->loss = bwi_model_loss(d->model, number, &h->logits);
    return h->target && h->loss;
}

static bool over_classes(const bwi_loss_row *loss)
{
    return loss->kind == BWI_LOSS_SPARSE || loss->kind == BWI_LOSS_CATEGORICAL;
}

static const char *name_of(const bwi_loss_row *loss, char text[64])
{
    size_t n = 0;
    for (; loss->names[n] && loss->names[n] != ' ' && n < 63; n++) {
        text[n] = loss->names[n];
    }
    text[n] = 0;
    return text;
}

/* ---- Classes ---- */

/* A class that the loss ignores may lie outside. */
static bool ignores(const bwi_doctor *d, int output, float value)
{
    const bwi_chosen_loss *chosen = bwi_loss_of(d->model, output);
    return chosen && chosen->row && chosen->row->kind == BWI_LOSS_SPARSE && chosen->values[1].given &&
           (int64_t)value == chosen->values[1].integer;
}

/* The common mistakes have fixes of their own: classes that count from 1, and too few outputs. */
static bool check_range(const bwi_doctor *d, const head *h, bool held, bwi_finding *found)
{
    const bwi_feature_facts *all = &h->target->all;
    bool sparse = h->loss->kind == BWI_LOSS_SPARSE;
    double most = sparse ? (double)h->outputs - 1 : 1;
    bool below = all->least < 0 && !ignores(d, h->number, all->least);
    bool above = (double)all->most > most && !ignores(d, h->number, all->most);
    if (all->count == 0 || (!below && !above && (!sparse || h->target->whole))) {
        return false;
    }
    if (sparse && all->least >= 1 && (double)all->most <= most + 1) {
        bwi_fix(found, "",
                "the classes count from 1, not from 0: subtract 1 from the targets, or end the model in dense(%lld,softmax)",
                (long long)h->outputs + 1);
    } else if (sparse && h->target->whole && !below) {
        bwi_fix(found, "", "end the model in dense(%.0f,softmax): one output for each class from 0 to %.0f", (double)all->most + 1,
                (double)all->most);
    } else if (sparse) {
        bwi_fix(found, "", "give classes as whole numbers from 0 to %.0f, or predict numbers: dense(1) with --loss mse", most);
    } else {
        bwi_fix(found, "", "give targets from 0 to 1, or use a loss over numbers: --loss mse");
    }
    char loss[64];
    return bwi_found(found, BW_SEVERITY_ERROR, "targets %s%s go from %g to %g%s; %s over %lld outputs takes %s from 0 to %g",
                     h->target->name, held ? " for validation" : "", (double)all->least, (double)all->most,
                     sparse && !h->target->whole ? " and are not all whole numbers" : "", name_of(h->loss, loss),
                     (long long)h->outputs, sparse ? "whole numbers" : "numbers", most);
}

bool bwi_check_label_out_of_range(const bwi_doctor *d, bwi_finding *found)
{
    head h;
    const bwi_data_facts *const parts[] = {&d->data, &d->held};
    for (int p = 0; p < 2; p++) {
        for (int k = 0; find_head(d, parts[p], k, &h); k++) {
            if (h.loss->classes && check_range(d, &h, p == 1, found)) {
                return true;
            }
        }
    }
    return false;
}

/* Weights, of classes or of samples, are taken as the answer to it. */
bool bwi_check_class_imbalance(const bwi_doctor *d, bwi_finding *found)
{
    enum { TOO_MANY_TIMES = 10 };
    head h;
    bool weighted = d->options.class_weight || bwi_data_facts_find(&d->data, BWI_ROLE_WEIGHT, 0);
    for (int k = 0; !weighted && find_head(d, &d->data, k, &h); k++) {
        bool single = h.target->each == 1 || h.target->one_hot;
        int64_t common = -1, rare = -1;
        const int64_t *count = h.target->classes;
        for (int64_t c = 0; c < BWI_MOST_CLASSES && single && h.loss->classes && (h.target->whole || h.target->one_hot); c++) {
            common = count[c] > 0 && (common < 0 || count[c] > count[common]) ? c : common;
            rare = count[c] > 0 && (rare < 0 || count[c] < count[rare]) ? c : rare;
        }
        if (common >= 0 && count[common] == d->data.samples && d->data.samples > 1) {
            bwi_fix(found, "", "samples of the other classes");
            return bwi_found(found, BW_SEVERITY_WARNING, "all %lld samples have class %lld, so there is nothing to tell apart",
                             (long long)d->data.samples, (long long)common);
        }
        if (common < 0 || count[common] <= TOO_MANY_TIMES * count[rare]) {
            continue;
        }
        const char *names[] = {bw_dataset_class(d->training, (int)common), bw_dataset_class(d->training, (int)rare)};
        char numbers[2][24];
        for (int i = 0; i < 2; i++) {
            snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)(i ? rare : common));
            names[i] = names[i] ? names[i] : numbers[i];
        }
        bwi_fix(found, "fitting.class_weight = weights; /* rare classes weigh more */", "--class-weight auto");
        return bwi_found(found, BW_SEVERITY_WARNING,
                         "class %.60s has %lld of %lld samples, class %.60s has %lld: %.0f times as many", names[0],
                         (long long)count[common], (long long)d->data.samples, names[1], (long long)count[rare],
                         (double)count[common] / (double)count[rare]);
    }
    return false;
}

/* ---- Order ---- */

/* One order in a hundred that was shuffled would pass the test by luck, and there is nothing to mend in it. */
bool bwi_check_unshuffled_labels(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_order *o = &d->order;
    if (d->shuffled || o->labels == 0 || !(o->p < 0.01) || o->same - o->by_luck < 0.05 * (1 - o->by_luck) ||
        d->batch >= d->data.samples) {
        return false;
    }
    bwi_fix(found, "dataset = bw_shuffle(dataset, 0);", "leave out --no-shuffle");
    return bwi_found(
        found, BW_SEVERITY_WARNING,
        "within %lld consecutive samples %.0f%% of all pairs have the same %s, %.0f%% in a random order (p = %.3f in a "
        "permutation test with %lld labels)",
        (long long)o->window, 100 * o->same, o->classes ? "class" : "tenth of the targets", 100 * o->by_luck, o->p,
        (long long)o->labels);
}

/* ---- Loss ---- */

static bool is_bounded_away(const head *h, double *least, double *most)
{
    static const struct {
        bwi_ending ending;
        double least, most;
    } bounds[] = {{BWI_ENDS_SOFTMAX, 0, 1}, {BWI_ENDS_SIGMOID, 0, 1}, {BWI_ENDS_TANH, -1, 1}, {BWI_ENDS_RELU, 0, 1e300}};
    for (size_t k = 0; k < BWI_COUNT(bounds); k++) {
        if (h->ending == bounds[k].ending) {
            *least = bounds[k].least;
            *most = bounds[k].most;
            return (double)h->target->all.least < *least - 1e-6 || (double)h->target->all.most > *most + 1e-6;
        }
    }
    return false;
}

static const char *const ending_names[] = {"no activation", "softmax", "sigmoid", "tanh", "relu"};

/* Probabilities are expected and something else is given, or the other way round. */
static bool check_probabilities(const head *h, bwi_finding *found)
{
    char name[64];
    bool binary = h->loss->kind == BWI_LOSS_BINARY, probable = h->ending == BWI_ENDS_SOFTMAX || h->ending == BWI_ENDS_SIGMOID;
    name_of(h->loss, name);
    if (h->logits && probable) {
        bwi_fix(found, "", "--loss %s, without from_logits=true, or a last layer without activation", name);
        return bwi_found(found, BW_SEVERITY_ERROR, "%s is told to expect logits, but the output has gone through %s already", name,
                         ending_names[h->ending]);
    }
    if (!h->logits && !probable) {
        bwi_fix(found, "", "end the model in %s, or give --loss '%s(from_logits=true)'",
                binary ? "dense(1,sigmoid)" : "a layer with activation softmax", name);
        return bwi_found(found, BW_SEVERITY_ERROR, "%s expects probabilities, but the last layer has %s", name,
                         ending_names[h->ending]);
    }
    if (binary && h->ending == BWI_ENDS_SOFTMAX) {
        bwi_fix(found, "bw_compile(model, NULL, \"categorical_crossentropy\", NULL);", "--loss %s",
                h->target->each == 1 ? "sparse_categorical_crossentropy" : "categorical_crossentropy");
        return bwi_found(found, BW_SEVERITY_WARNING, "%s takes each of the %lld outputs of softmax for a question of its own", name,
                         (long long)h->outputs);
    }
    if (!binary && h->ending == BWI_ENDS_SIGMOID) {
        bwi_fix(found, "", "end the model in dense(%lld,softmax)", (long long)h->outputs);
        return bwi_found(found, BW_SEVERITY_WARNING,
                         "%s over %lld classes, but sigmoid gives probabilities that do not sum up to 1", name,
                         (long long)h->outputs);
    }
    return false;
}

/* For losses over numbers: probabilities of classes, and targets that the last activation cannot reach. */
static bool check_numbers(const head *h, bwi_finding *found)
{
    char name[64];
    double least = 0, most = 0;
    const bwi_feature_facts *all = &h->target->all;
    name_of(h->loss, name);
    if (h->ending == BWI_ENDS_SOFTMAX) {
        bool sparse = h->target->each == 1 && h->outputs > 1;
        bwi_fix(found, "bw_compile(model, NULL, \"sparse_categorical_crossentropy\", NULL);", "--loss %s",
                sparse ? "sparse_categorical_crossentropy" : "categorical_crossentropy");
        return bwi_found(
            found, sparse ? BW_SEVERITY_ERROR : BW_SEVERITY_WARNING,
            "%s compares %lld probabilities of softmax with %lld target value%s; its gradient vanishes for confident mistakes",
            name, (long long)h->outputs, (long long)h->target->each, h->target->each == 1 ? "" : "s");
    }
    if (is_bounded_away(h, &least, &most)) {
        bwi_fix(found, "", "a last layer without activation, or targets that are scaled to the range of %s",
                ending_names[h->ending]);
        return bwi_found(found, BW_SEVERITY_WARNING,
                         "targets %s go from %g to %g, but the last layer's %s gives numbers from %g %s", h->target->name,
                         (double)all->least, (double)all->most, ending_names[h->ending], least,
                         h->ending == BWI_ENDS_RELU ? "on" : "to 1");
    }
    if ((h->loss->kind == BWI_LOSS_POISSON || h->loss->kind == BWI_LOSS_LOGARITHMIC) && all->least < 0) {
        bwi_fix(found, "bw_compile(model, NULL, \"mse\", NULL);", "--loss mse");
        return bwi_found(found, BW_SEVERITY_ERROR, "%s is made for targets from 0 on, but the least is %g", name,
                         (double)all->least);
    }
    return false;
}

bool bwi_check_wrong_loss(const bwi_doctor *d, bwi_finding *found)
{
    head h;
    for (int k = 0; find_head(d, &d->data, k, &h); k++) {
        if (h.ending == BWI_ENDS_SOFTMAX && h.outputs == 1) {
            bwi_fix(found, "", "end the model in dense(1,sigmoid) for two classes, or in dense(1) for numbers");
            return bwi_found(found, BW_SEVERITY_ERROR, "softmax over a single output is 1 for every sample");
        }
        bool probabilities = over_classes(h.loss) || h.loss->kind == BWI_LOSS_BINARY;
        if (probabilities ? check_probabilities(&h, found) : check_numbers(&h, found)) {
            return true;
        }
    }
    return false;
}
