/*
 * Gradients of every op of the table, of every pattern, and of models of several layers, against central differences of the
 * loss. Tiles are smaller than the batch and do not divide it; whole-batch ops run with kept and with recomputed values.
 */
#include "rig.h"
#include "train/internal.h"

/* The bounds are shares of a gradient and of the root mean square of all. */
static const double STEP = 1.0 / 32, BOUND = 1e-3, MODEL_STEP = 1.0 / 256, MODEL_BOUND = 1e-2, KINK = 2e-3;
enum { MOST_ELEMENTS = 400 };

static const int sample_counts[] = {1, 3, RIG_SAMPLES};

static bool seen[256]; /* by place in bwi_ops: ran in some lowered graph that trains */

static int place_of(const bwi_op *op)
{
    for (int i = 0; bwi_ops[i]; i++) {
        if (bwi_ops[i] == op) {
            return i;
        }
    }
    fail_msg("op %s is not in the table", op->name);
    return -1;
}

static void see(const bwi_exec *exec)
{
    const bwi_graph *graph = &bwi_exec_plan(exec)->graph;
    for (int n = 0; n < graph->count; n++) {
        seen[place_of(graph->nodes[n]->op)] = true;
    }
}

static bool holds(const bwi_exec *exec, const bwi_op *op)
{
    const bwi_graph *graph = &bwi_exec_plan(exec)->graph;
    for (int n = 0; n < graph->count; n++) {
        if (graph->nodes[n]->op == op) {
            return true;
        }
    }
    return false;
}

/* ---- Comparing ---- */

typedef double (*loss_function)(void *user);

typedef struct comparison {
    const bwi_graph *graph;
    float **gradients;
    loss_function loss;
    void *user;
    bool kinks;  /* the loss may have kinks within the step: elements there are passed over, up to a few */
    double here; /* the loss as it stands */
    double worst;
    int compared, passed_over;
    char where[256];
} comparison;

/* The size of a typical gradient of all variables together: what errors are measured by. */
static double root_mean_square(const comparison *c)
{
    double sum = 0, count = 0;
    for (int v = 0; v < c->graph->variable_count; v++) {
        int64_t n = c->gradients[v] ? bwi_shape_count(&c->graph->variables[v]->shape) : 0;
        for (int64_t i = 0; i < n; i++) {
            double g = (double)c->gradients[v][i];
            sum += g * g;
        }
        count += (double)n;
    }
    return sqrt(sum / fmax(count, 1));
}

/* The loss on both sides of an element: its central difference, and by how much the slopes of the two sides differ. */
typedef struct probe {
    double slope, bend;
} probe;

static probe probe_at(const comparison *c, bwi_variable *variable, float *values, int64_t i, double step)
{
    volatile float before = values[i], above = before + (float)step, below = before - (float)step;
    values[i] = above;
    bwi_variable_write(variable, values);
    double up = c->loss(c->user);
    values[i] = below;
    bwi_variable_write(variable, values);
    double down = c->loss(c->user), width = (double)above - (double)below;
    values[i] = before;
    return (probe){(up - down) / width, (up + down - 2 * c->here) / width * 2};
}

/* Two central differences make one whose error is of the fourth order. */
static double derivative(const comparison *c, bwi_variable *variable, float *values, int64_t i, double step)
{
    return (4 * probe_at(c, variable, values, i, step / 2).slope - probe_at(c, variable, values, i, step).slope) / 3;
}

/* False if the loss has a kink near. Where it is smooth, half the step gives the same slope and half the bend; a kink at the
 * very place spares the slope but not the bend, one at some distance the other way round. */
static bool away_from_kinks(const comparison *c, bwi_variable *variable, float *values, int64_t i, double scale, double *expected)
{
    for (double step = MODEL_STEP; step >= MODEL_STEP / 4; step /= 4) {
        probe whole = probe_at(c, variable, values, i, step), half = probe_at(c, variable, values, i, step / 2);
        double bound = KINK * (fabs(whole.slope) + scale);
        *expected = whole.slope;
        if (fabs(whole.slope - half.slope) <= bound && fabs(whole.bend - 2 * half.bend) <= 2 * bound) {
            return true;
        }
    }
    return false;
}

static void compare_variable(comparison *c, int v, double scale)
{
    bwi_variable *variable = c->graph->variables[v];
    int64_t count = bwi_shape_count(&variable->shape), stride = 1 + (count - 1) / MOST_ELEMENTS;
    float *values = calloc((size_t)count, sizeof *values);
    bwi_variable_read(variable, values);
    for (int64_t i = 0; i < count; i += stride) {
        double expected, got = (double)c->gradients[v][i];
        if (!c->kinks) {
            expected = derivative(c, variable, values, i, STEP);
        } else if (!away_from_kinks(c, variable, values, i, scale, &expected)) {
            c->passed_over++;
            continue;
        }
        double error = fabs(got - expected) / (scale + fabs(expected));
        c->compared++;
        if (!(error <= c->worst)) {
            c->worst = error;
            snprintf(c->where, sizeof c->where, "%s[%lld]: expected %.9g, got %.9g, typical %.3g", variable->name, (long long)i,
                     expected, got, scale);
        }
    }
    bwi_variable_write(variable, values);
    free(values);
}

static void compare(comparison *c)
{
    double scale = fmax(root_mean_square(c), 1e-2);
    c->here = c->loss(c->user);
    for (int v = 0; v < c->graph->variable_count; v++) {
        if (c->gradients[v]) {
            compare_variable(c, v, scale);
        }
    }
    assert_true(c->compared > 0);
    assert_true(c->passed_over * 5 <= c->compared);
}

/* ---- Ops ---- */

typedef struct rig_loss_of {
    const rig *rig;
    bwi_exec *exec;
    int64_t samples;
    float *outputs;
} rig_loss_of;

static double loss_of_rig(void *user)
{
    const rig_loss_of *l = user;
    return rig_loss(l->rig, l->exec, l->samples, l->outputs);
}

static void check_samples(const rig *r, bwi_exec *gradient_exec, bwi_exec *loss_exec, int64_t samples, const char *name)
{
    float *gradients[32], *outputs = calloc((size_t)(samples * bwi_shape_count(&r->output->shape)), sizeof(float));
    assert_true(r->graph.variable_count <= 32);
    rig_loss_of l = {.rig = r, .exec = loss_exec, .samples = samples, .outputs = outputs};
    rig_gradients(r, gradient_exec, samples, gradients);
    double sum = bwi_exec_sums(gradient_exec, r->mean)[0], expected = loss_of_rig(&l);
    if (!(fabs(sum - expected) <= 1e-5 * (1 + fabs(expected)))) {
        fail_msg("%s, %d samples: the loss is %.9g, its sum over tiles %.9g", name, (int)samples, expected, sum);
    }
    comparison c = {.graph = &r->graph, .gradients = gradients, .loss = loss_of_rig, .user = &l};
    compare(&c);
    if (getenv("BW_SHOW")) {
        print_message("%-40s n=%d error %.1e of %d\n", name, (int)samples, c.worst, c.compared);
    }
    if (!(c.worst <= BOUND)) {
        fail_msg("%s, %d samples: error %.2e, %s", name, (int)samples, c.worst, c.where);
    }
    rig_free_gradients(&r->graph, gradients);
    free(outputs);
}

static void check_op(const op_case *c, int number, bool on_data)
{
    rig r;
    rig_open(&r, c, on_data);
    r.output = rig_op(&r, c, on_data);
    rig_add_loss(&r, c->loss);
    rig_samples(&r, c, &r.output->shape, on_data);
    rig_variables(&r, c->kinks, 3 * STEP);
    /* Its output is a target only where the loss is computed: elsewhere it may die as early as in real training. */
    bwi_exec *loss = rig_exec(&r, &r.output, 1, RIG_SAMPLES);
    bool whole = c->op->flags & BWI_OP_WHOLE_BATCH;
    for (int keep = whole ? 0 : 1; keep < 2; keep++) {
        bwi_exec *gradient = rig_exec(&r, &r.mean, 1, keep ? RIG_SAMPLES : 0);
        see(gradient);
        for (size_t s = 0; s < BWI_COUNT(sample_counts); s++) {
            char name[96];
            snprintf(name, sizeof name, "case %d, %s%s%s", number, c->op->name, on_data ? " on data" : "",
                     !whole ? ""
                     : keep ? ", kept"
                            : ", recomputed");
            check_samples(&r, gradient, loss, sample_counts[s], name);
        }
        bwi_exec_close(gradient);
    }
    bwi_exec_close(loss);
    rig_close(&r);
}

static void test_ops(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(op_cases); i++) {
        check_op(&op_cases[i], (int)i, false);
        if (op_cases[i].variable[op_cases[i].frozen].ndim > 0) {
            check_op(&op_cases[i], (int)i, true);
        }
    }
}

static bool is_fused(const bwi_op *op)
{
    bool found = false;
    for (const bwi_fusion *p = bwi_fusions; p->fused; p++) {
        found |= p->fused == op;
    }
    return found;
}

/* Every op with a gradient has a case; what has none there is only what nothing flows back through, reorder, which
 * lowering puts between ops and which must have been met, and what patterns make, which is compared with what it replaces. */
static void test_table_is_covered(void **state)
{
    (void)state;
    for (int i = 0; bwi_ops[i]; i++) {
        const bwi_op *op = bwi_ops[i];
        bool carries = !(op->flags & (BWI_OP_INPUT | BWI_OP_SUMS | BWI_OP_NO_GRADIENT)), found = op == &bwi_op_reorder;
        for (size_t c = 0; c < BWI_COUNT(op_cases); c++) {
            found |= op_cases[c].op == op;
        }
        if (carries && !is_fused(op) && !(found && seen[i])) {
            fail_msg("op %s has a gradient and no case in tests/gradient/cases.h", op->name);
        }
    }
}

/* ---- Patterns ---- */

static double norm_of_difference(const bwi_graph *graph, float **a, float **b, double *norm)
{
    double off = 0, all = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        for (int64_t i = 0; a[v] && i < bwi_shape_count(&graph->variables[v]->shape); i++) {
            double d = (double)a[v][i] - (double)b[v][i];
            off += d * d;
            all += (double)a[v][i] * (double)a[v][i];
        }
    }
    *norm = sqrt(all);
    return sqrt(off);
}

static int chain_length(const pattern_case *c)
{
    int length = 0;
    while (length < BWI_CHAIN && c->chain[length].op) {
        length++;
    }
    return length;
}

static bool is_case_of(const pattern_case *c, const bwi_fusion *pattern)
{
    bool same = c->fused == pattern->fused && chain_length(c) == pattern->length;
    for (int k = 0; k < pattern->length && same; k++) {
        same = c->chain[k].op == pattern->chain[k];
    }
    return same;
}

/* The nodes before the last as targets too keep them apart; exact kernels keep inexact fusions of a part away. */
static void check_pattern(const pattern_case *c, const bwi_fusion *pattern)
{
    rig r;
    bool kinks = false;
    bw_node *apart[BWI_CHAIN];
    rig_open(&r, &c->chain[0], false);
    r.output = rig_op(&r, &c->chain[0], false);
    for (int k = 1; k < pattern->length; k++) {
        apart[k] = r.output;
        r.output = rig_node(&r, c->chain[k].op, c->chain[k].attributes, c->chain[k].attribute_bytes, &apart[k], 1, NULL, 0);
        kinks = kinks || c->chain[k].kinks;
    }
    rig_add_loss(&r, false);
    rig_samples(&r, &c->chain[0], &r.output->shape, false);
    rig_variables(&r, c->chain[0].kinks || kinks, 3 * STEP);
    apart[0] = r.mean;
    bwi_exec *fused = rig_exec(&r, &r.mean, 1, RIG_SAMPLES);
    r.ctx->exact_kernels = pattern->inexact;
    bwi_exec *unfused = rig_exec(&r, apart, pattern->length, RIG_SAMPLES);
    assert_true(holds(fused, pattern->fused) && !holds(unfused, pattern->fused));
    for (int k = 0; k < pattern->length; k++) {
        assert_true(!holds(fused, pattern->chain[k]) && holds(unfused, pattern->chain[k]));
    }
    for (size_t s = 0; s < BWI_COUNT(sample_counts); s++) {
        float *a[16], *b[16];
        double norm;
        assert_true(r.graph.variable_count <= 16);
        rig_gradients(&r, fused, sample_counts[s], a);
        rig_gradients(&r, unfused, sample_counts[s], b);
        double off = norm_of_difference(&r.graph, a, b, &norm);
        assert_true(norm > 0);
        if (!(off <= (pattern->inexact ? 1e-5 : 1e-6) * norm)) {
            fail_msg("%s, %d samples: fused and unfused gradients are %.2e apart", pattern->fused->name, sample_counts[s],
                     off / norm);
        }
        rig_free_gradients(&r.graph, a);
        rig_free_gradients(&r.graph, b);
    }
    bwi_exec_close(fused);
    bwi_exec_close(unfused);
    rig_close(&r);
}

static void test_patterns(void **state)
{
    (void)state;
    for (const bwi_fusion *p = bwi_fusions; p->fused; p++) {
        int cases = 0;
        for (size_t i = 0; i < BWI_COUNT(pattern_cases); i++) {
            if (is_case_of(&pattern_cases[i], p)) {
                check_pattern(&pattern_cases[i], p);
                cases++;
            }
        }
        if (!cases) {
            fail_msg("the pattern %s has no case in tests/gradient/cases.h", p->fused->name);
        }
    }
}

/* ---- Branches ---- */

/* The sum of its two inputs: an op of the test's own, so that branches of unequal depth meet. */
static bw_status sum_shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = node->input[0]->shape;
    return BW_OK;
}

static bw_status sum_forward(const bwi_call *call, const bwi_tile *tile)
{
    const float *a = call->src[0], *b = call->src[1];
    float *y = call->dst;
    for (int64_t i = 0; i < tile->samples * bwi_shape_count(&call->node->shape); i++) {
        y[i] = a[i] + b[i];
    }
    return BW_OK;
}

static bw_status sum_backward(const bwi_call *call, const bwi_tile *tile)
{
    size_t bytes = (size_t)(tile->samples * bwi_shape_count(&call->node->shape)) * sizeof(float);
    for (int k = 0; k < 2; k++) {
        if (call->diff_src[k]) {
            memcpy(call->diff_src[k], call->diff_dst, bytes);
        }
    }
    return BW_OK;
}

static const bwi_op op_sum = {.name = "sum", .shape = sum_shape, .forward = sum_forward, .backward = sum_backward};

static bw_node *add_dense_with(rig *r, bw_node *x, bwi_variable *kernel)
{
    bwi_dense_attributes a = {.units = kernel->shape.extent[1]};
    return rig_node(r, &bwi_op_dense, &a, sizeof a, &x, 1, &kernel, 1);
}

static bw_node *add_dense(rig *r, bw_node *x, int64_t units)
{
    bwi_shape kernel = SHAPE(x->shape.extent[0], units);
    return add_dense_with(r, x, rig_variable(r, "dense", &kernel, true));
}

static bw_node *add_batchnorm(rig *r, bw_node *x)
{
    bwi_batchnorm_attributes a = {.momentum = 0.9F, .epsilon = 1e-3F, .center = true, .scale = true};
    bwi_variable *variables[4];
    bwi_shape channels = SHAPE(x->shape.extent[x->shape.ndim - 1]);
    for (int k = 0; k < 4; k++) {
        variables[k] = rig_variable(r, "batchnorm", &channels, k < 2);
    }
    return rig_node(r, &bwi_op_batchnorm, &a, sizeof a, &x, 1, variables, 4);
}

static bw_node *add_sum(rig *r, bw_node *a, bw_node *b)
{
    bw_node *both[2] = {a, b};
    return rig_node(r, &op_sum, NULL, 0, both, 2, NULL, 0);
}

/* A branch with `left` whole-batch ops beside one with `right`; their input is also used by a third one that has none. One
 * kernel is shared by both ends: its gradient is gathered in several phases. */
static void build_branches(rig *r, int left, int right)
{
    bwi_shape width = SHAPE(4), square = SHAPE(4, 4);
    bw_node *stem = rig_varied(r, &width), *a = stem, *b = stem;
    bwi_variable *shared = rig_variable(r, "shared", &square, true);
    for (int k = 0; k < left; k++) {
        a = add_batchnorm(r, add_dense(r, a, 4));
    }
    for (int k = 0; k < right; k++) {
        b = add_batchnorm(r, add_dense_with(r, b, k ? rig_variable(r, "dense", &square, true) : shared));
    }
    bw_node *c = rig_node(r, &bwi_op_softmax, NULL, 0, &stem, 1, NULL, 0);
    r->output = add_dense(r, add_sum(r, add_sum(r, add_dense_with(r, a, shared), b), c), 3);
}

/* A convolution, which prepares its weights once per update, beside a whole-batch op. */
static void build_convolution_branch(rig *r)
{
    op_case conv = CONV(3, 3, 1, 1, 1, 1, 1, true, 2, 3, 16, 16);
    bw_node *stem = rig_varied(r, &conv.input[0].shape), *a = add_batchnorm(r, stem);
    bwi_variable *kernel = rig_variable(r, "conv2d", &conv.variable[0], true);
    r->output = add_sum(r, a, rig_node(r, conv.op, conv.attributes, conv.attribute_bytes, &stem, 1, &kernel, 1));
}

/* What one branch knows early, and what flows back through it early, is needed late by the other. */
static void test_branches(void **state)
{
    (void)state;
    static const int depths[][2] = {{0, 1}, {1, 1}, {2, 1}, {1, 3}, {2, 0}, {-1, 0}};
    for (size_t i = 0; i < 2 * BWI_COUNT(depths); i++) {
        rig r;
        op_case none = {0};
        const int *depth = depths[i / 2];
        char name[64];
        snprintf(name, sizeof name, "branches %d and %d%s", depth[0], depth[1], i % 2 ? ", kept" : ", recomputed");
        rig_open(&r, &none, false);
        if (depth[0] < 0) {
            build_convolution_branch(&r);
        } else {
            build_branches(&r, depth[0], depth[1]);
        }
        rig_add_loss(&r, false);
        rig_samples(&r, &none, &r.output->shape, false);
        rig_variables(&r, false, 0);
        bwi_exec *loss = rig_exec(&r, &r.output, 1, 0), *gradient = rig_exec(&r, &r.mean, 1, i % 2 ? RIG_SAMPLES : 0);
        check_samples(&r, gradient, loss, RIG_SAMPLES, name);
        bwi_exec_close(gradient);
        bwi_exec_close(loss);
        rig_close(&r);
    }
}

/* ---- Models ---- */

typedef struct model_loss {
    bwi_session *session;
    bwi_piece piece;
} model_loss;

static void feed_model(const model_loss *l)
{
    bw_status status = bwi_exec_feed(l->session->exec, l->session->program[BWI_PROGRAM_TRAIN], &l->piece, NULL);
    if (status != BW_OK) {
        fail_msg("%s", bw_message(l->session->training->ctx));
    }
}

static double loss_of_model(void *user)
{
    const model_loss *l = user;
    bwi_exec_touch(l->session->exec);
    feed_model(l);
    bwi_exec_clear(l->session->exec);
    assert_true(l->session->columns[0].loss);
    return bwi_exec_sums(l->session->exec, l->session->columns[0].node)[0];
}

/* A sample's loss is a float here: hence the wider bound. */
static void check_model_samples(const model_case *m, bw_model *model, model_loss *l, int64_t samples)
{
    float *gradients[32];
    assert_true(model->graph.variable_count <= 32);
    l->piece.count = samples;
    bwi_exec_touch(l->session->exec);
    feed_model(l);
    rig_collect(model->ctx, l->session->exec, &model->graph, gradients);
    comparison c = {.graph = &model->graph, .gradients = gradients, .loss = loss_of_model, .user = l, .kinks = true};
    compare(&c);
    if (getenv("BW_SHOW")) {
        print_message("%-60s n=%d error %.1e of %d, %d passed over\n", m->expression, (int)samples, c.worst, c.compared,
                      c.passed_over);
    }
    if (!(c.worst <= MODEL_BOUND)) {
        fail_msg("%s, %d samples: error %.2e, %s", m->expression, (int)samples, c.worst, c.where);
    }
    rig_free_gradients(&model->graph, gradients);
}

static void open_model(rig *r, const model_case *m, bw_model **model)
{
    op_case ends = {.input = {{CASE_VARIED, m->input, BW_F32}, {m->classes ? CASE_Y : CASE_NONE, ONE, BW_I32}}};
    *r = (rig){.ctx = bw_open(NULL)};
    assert_non_null(r->ctx);
    r->graph.ctx = r->ctx;
    *model = bw_model_parse(r->ctx, m->expression);
    rig_require(r, bw_build(*model, m->input.ndim, m->input.extent, 3), m->expression);
    rig_require(r, bw_compile(*model, "sgd", m->classes ? "sparse_categorical_crossentropy" : "mean_squared_error", NULL),
                m->expression);
    rig_samples(r, &ends, &(*model)->outputs[0]->shape, true);
    for (int i = 0; m->classes && i < RIG_SAMPLES; i++) {
        r->y[i] = (float)(i % m->classes);
    }
    int rows = strncmp(m->expression, "embedding(", 10) == 0 ? atoi(m->expression + 10) : 0;
    for (int64_t i = 0; rows && i < RIG_SAMPLES * bwi_shape_count(&m->input); i++) {
        r->x[i] = floorf((r->x[i] + 1) / 2 * (float)rows);
    }
}

static void check_model(const model_case *m, bool keep)
{
    rig r;
    bw_model *model;
    bwi_session session;
    open_model(&r, m, &model);
    bwi_session_options options = {.train = true, .batch = keep ? RIG_SAMPLES : 0, .tile = RIG_TILE, .lanes = RIG_LANES};
    rig_require(&r, bwi_session_open(&session, model, r.dataset, &options), m->expression);
    assert_int_equal(bwi_exec_plan(session.exec)->keep, keep);
    see(session.exec);
    model_loss l = {.session = &session, .piece = {.dataset = r.dataset}};
    check_model_samples(m, model, &l, 3);
    check_model_samples(m, model, &l, RIG_SAMPLES);
    bwi_session_close(&session);
    rig_close(&r);
}

static void test_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < BWI_COUNT(model_cases); i++) {
        check_model(&model_cases[i], true);
        check_model(&model_cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ops), cmocka_unit_test(test_patterns), cmocka_unit_test(test_branches),
                                       cmocka_unit_test(test_models), cmocka_unit_test(test_table_is_covered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
