/*
 * Models as ONNX files, taken apart here: every name is made before it is used and only once, constants have the bytes of their
 * shapes, inputs and outputs are the model's. What they predict is checked with the real ONNX Runtime (make test-keras), for
 * which BW_MODELS_OUT=FOLDER keeps the files, .keras and .safetensors beside them, with samples and predictions as raw numbers.
 */
#include "models.h"
#include "support/folder.h"

#include <unistd.h>

static int open_folder(void **state)
{
    (void)state;
    return use_folder(getenv("BW_MODELS_OUT"));
}

static int close_folder(void **state)
{
    return getenv("BW_MODELS_OUT") ? 0 : remove_empty_folder(state);
}

static const char *at(const char *name, const char *extension)
{
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, extension);
    return path;
}

/* ---- Protobuf ---- */

typedef struct message {
    const unsigned char *at, *end;
} message;

typedef struct field {
    int number, type;
    uint64_t value;
    message bytes;
} field;

static uint64_t varint(message *m)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        assert_true(m->at < m->end);
        unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return value;
        }
    }
    fail_msg("%s", "a number of more than ten bytes");
    return 0;
}

static bool next(message *m, field *f)
{
    if (m->at == m->end) {
        return false;
    }
    uint64_t key = varint(m);
    f->number = (int)(key >> 3);
    f->type = (int)(key & 7);
    assert_true(f->type == 0 || f->type == 2 || f->type == 5);
    f->value = f->type == 5 ? 4 : varint(m);
    if (f->type != 0) {
        assert_true(f->value <= (uint64_t)(m->end - m->at));
        f->bytes = (message){m->at, m->at + f->value};
        m->at += f->value;
    }
    return true;
}

static message member(message m, int number)
{
    for (field f; next(&m, &f);) {
        if (f.number == number && f.type == 2) {
            return f.bytes;
        }
    }
    return (message){NULL, NULL};
}

static uint64_t number_in(message m, int number)
{
    for (field f; next(&m, &f);) {
        if (f.number == number && f.type == 0) {
            return f.value;
        }
    }
    return 0;
}

/* ---- Names ---- */

enum { MOST_NAMES = 1024 };

typedef struct names {
    message name[MOST_NAMES];
    int count;
} names;

static bool is_known(const names *n, message name)
{
    for (int i = 0; i < n->count; i++) {
        if (n->name[i].end - n->name[i].at == name.end - name.at &&
            memcmp(n->name[i].at, name.at, (size_t)(name.end - name.at)) == 0) {
            return true;
        }
    }
    return false;
}

static void make_known(names *n, message name, const char *model)
{
    if (is_known(n, name)) {
        fail_msg("%s: %.*s is made twice", model, (int)(name.end - name.at), name.at);
    }
    assert_true(n->count < MOST_NAMES);
    n->name[n->count++] = name;
}

static void expect_known(const names *n, message name, const char *model)
{
    if (name.at != name.end && !is_known(n, name)) {
        fail_msg("%s: %.*s is used before it is made", model, (int)(name.end - name.at), name.at);
    }
}

/* ---- The model's parts ---- */

static void check_constant(message m, const char *model)
{
    uint64_t count = 1, type = number_in(m, 2);
    message data = member(m, 9), whole = m;
    for (field f; next(&whole, &f);) {
        count *= f.number == 1 ? f.value : 1;
    }
    if (!(type == 1 || type == 7) || (uint64_t)(data.end - data.at) != count * (type == 1 ? 4 : 8)) {
        fail_msg("%s: a constant's bytes do not fit its shape", model);
    }
}

static void check_node(names *n, message m, const char *model);

/* The body of a Scan, which sees the names around it, too. */
static void check_body(names *n, message body, const char *model)
{
    message pass = body;
    for (field f; next(&pass, &f);) {
        if (f.number == 11) {
            make_known(n, member(f.bytes, 1), model);
        }
    }
    for (pass = body; pass.at < pass.end;) {
        field f;
        if (next(&pass, &f) && f.number == 1) {
            check_node(n, f.bytes, model);
        }
    }
    for (field f; next(&body, &f);) {
        if (f.number == 12) {
            expect_known(n, member(f.bytes, 1), model);
        }
    }
}

/* A Scan has its last states and its steps as outputs, a TopK values and places; every other node has one. */
static void check_node(names *n, message m, const char *model)
{
    message whole = m, type = member(m, 4);
    bool scan = type.end - type.at == 4 && (memcmp(type.at, "Scan", 4) == 0 || memcmp(type.at, "TopK", 4) == 0);
    int outputs = 0;
    for (field f; next(&whole, &f);) {
        if (f.number == 1) {
            expect_known(n, f.bytes, model);
        }
        message body = f.number == 5 ? member(f.bytes, 6) : (message){NULL, NULL};
        if (body.at != body.end) {
            check_body(n, body, model);
        }
    }
    for (field f; next(&m, &f);) {
        if (f.number == 2) {
            make_known(n, f.bytes, model);
            outputs++;
        }
    }
    assert_true(scan ? outputs == 2 || outputs == 3 : outputs == 1);
}

/* The shape of an input or output: a named batch, then the node's extents. */
static void check_value(message m, const bw_node *node)
{
    message type = member(member(m, 2), 1), shape = member(type, 2);
    int axis = -1;
    assert_int_equal(number_in(type, 1), node->dtype == BW_I32 ? 6 : 1);
    for (field f; next(&shape, &f); axis++) {
        if (axis < 0) {
            assert_memory_equal(member(f.bytes, 2).at, "batch", 5);
        } else {
            assert_int_equal(number_in(f.bytes, 1), node->shape.extent[axis]);
        }
    }
    assert_int_equal(axis, node->shape.ndim);
}

static void check_graph(const model_case *c, message graph)
{
    static names n;
    message pass = graph;
    int inputs = 0, outputs = 0;
    n.count = 0;
    for (field f; next(&pass, &f);) {
        if (f.number == 5) {
            check_constant(f.bytes, c->name);
            make_known(&n, member(f.bytes, 8), c->name);
        } else if (f.number == 11) {
            check_value(f.bytes, c->model->inputs[inputs++]);
            make_known(&n, member(f.bytes, 1), c->name);
        }
    }
    pass = graph;
    for (field f; next(&pass, &f);) {
        if (f.number == 1) {
            check_node(&n, f.bytes, c->name);
        }
    }
    for (field f; next(&graph, &f);) {
        if (f.number == 12) {
            check_value(f.bytes, c->model->outputs[outputs++]);
            expect_known(&n, member(f.bytes, 1), c->name);
        }
    }
    assert_int_equal(inputs, c->inputs);
    assert_int_equal(outputs, c->outputs);
}

/* ---- All models ---- */

static void keep(const model_case *c)
{
    char extension[32];
    check_ok(c->ctx, bw_save(c->model, at(c->name, ".safetensors")));
    if (strcmp(c->name, "operators") != 0) { /* which Keras has no file for */
        check_ok(c->ctx, bw_save(c->model, at(c->name, ".keras")));
    }
    for (int k = 0; k < c->inputs; k++) {
        snprintf(extension, sizeof extension, ".in%d", k);
        check_ok(c->ctx, bwi_file_write(c->ctx, at(c->name, extension), c->x[k], (size_t)(MODEL_SAMPLES * c->in[k]) * 4));
    }
    for (int k = 0; k < c->outputs; k++) {
        snprintf(extension, sizeof extension, ".out%d", k);
        check_ok(c->ctx, bwi_file_write(c->ctx, at(c->name, extension), c->p[k], (size_t)(MODEL_SAMPLES * c->out[k]) * 4));
    }
}

static void check_file(const model_case *c, void *user)
{
    bwi_bytes first, second;
    model_count_layers(user, c->model);
    check_ok(c->ctx, bw_save(c->model, at(c->name, ".onnx")));
    check_ok(c->ctx, bwi_file_map(c->ctx, &first, at(c->name, ".onnx")));
    message m = {first.data, first.data + first.size};
    assert_int_equal(number_in(m, 1), 8);
    assert_int_equal(number_in(member(m, 8), 2), 17);
    check_graph(c, member(m, 7));
    check_ok(c->ctx, bw_save(c->model, at(c->name, ".onnx")));
    check_ok(c->ctx, bwi_file_map(c->ctx, &second, at(c->name, ".onnx")));
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    bwi_file_unmap(c->ctx, &first);
    bwi_file_unmap(c->ctx, &second);
    if (getenv("BW_MODELS_OUT")) {
        keep(c);
    } else {
        assert_int_equal(unlink(at(c->name, ".onnx")), 0);
    }
}

static void test_all(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    model_layers layers = {{false}};
    models_visit(ctx, check_file, &layers);
    model_expect_all_layers(&layers);
    bw_close(ctx);
}

static bool is_text(message m, const char *text)
{
    return (size_t)(m.end - m.at) == strlen(text) && memcmp(m.at, text, strlen(text)) == 0;
}

/* ONNX Runtime takes a Pad that stands right before a pool for the pool's own padding, so another node must be between them. */
static void test_padding_before_pool(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(6,6,2) zero_padding2d(1) maxpool2d(2)");
    bwi_bytes file;
    names padded = {.count = 0};
    int pools = 0;
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    check_ok(ctx, bw_save(model, at("padded", ".onnx")));
    check_ok(ctx, bwi_file_map(ctx, &file, at("padded", ".onnx")));
    message graph = member((message){file.data, file.data + file.size}, 7);
    for (field f; next(&graph, &f);) {
        if (f.number == 1 && is_text(member(f.bytes, 4), "Pad")) {
            make_known(&padded, member(f.bytes, 2), "padded");
        } else if (f.number == 1 && is_text(member(f.bytes, 4), "MaxPool")) {
            assert_false(is_known(&padded, member(f.bytes, 1)));
            pools++;
        }
    }
    assert_int_equal(padded.count, 1);
    assert_int_equal(pools, 1);
    bwi_file_unmap(ctx, &file);
    unlink(at("padded", ".onnx"));
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_padding_before_pool)};
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
