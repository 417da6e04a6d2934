/* Writes C source for attention: for each head and query the scores of all keys, their softmax, and the values' sum. */
#include "file/csource.h"

#include <stdio.h>

#define LINE(depth, ...) bwi_csource_line(s, depth, __VA_ARGS__)

typedef struct writer {
    const bwi_attention_attributes *a;
    bwi_attention k;
    long long queries, keys, heads, groups, shared, key_width, value_width;
    char factor[176], weight[160]; /* "": there is none */
} writer;

/* sum = the score of key j. */
static void put_score(bwi_csource *s, const writer *w)
{
    char scale[32];
    LINE(4, "float sum = 0.0f;");
    LINE(4, "for (int d = 0; d < %lld; d++) {", w->key_width);
    if (w->a->scores == BWI_SCORES_DOT) {
        LINE(5, "sum += q[d] * k[j * %lld + d];", w->groups * w->key_width);
    } else {
        LINE(5, "sum += %s%s%s * tanhf(%s%s(q[d] + k[j * %lld + d]));", w->weight[0] ? w->weight : "1.0f",
             w->weight[0] ? (w->k.weights > 1 ? "[d]" : "[0]") : "", "", w->factor, w->factor[0] ? " * " : "",
             w->groups * w->key_width);
    }
    LINE(4, "}");
    if (w->a->scores == BWI_SCORES_DOT) {
        LINE(4, "sum *= %s%s%s;", bwi_csource_number(scale, w->a->scale), w->factor[0] ? " * " : "", w->factor);
    }
}

/* The condition under which query i sees key j, from its parts; false: there are none. */
static bool put_condition(bwi_csource *s, const writer *w)
{
    const bwi_attention_attributes *a = w->a;
    int at = 3;
    bool any = a->causal || a->window || a->query_mask || a->key_mask || a->pair_mask;
    if (!any) {
        return false;
    }
    LINE(4, "int seen = 1;");
    if (a->causal) {
        LINE(4, "seen = seen && j <= i;");
    }
    if (a->window) {
        LINE(4, "seen = seen && j - i < %lld && i - j < %lld;", (long long)a->window, (long long)a->window);
    }
    if (a->query_mask) {
        LINE(4, "seen = seen && x%d[i] > 0.0f;", at++);
    }
    if (a->key_mask) {
        LINE(4, "seen = seen && x%d[j] > 0.0f;", at++);
    }
    if (a->pair_mask) {
        LINE(4, "seen = seen && (x%d[i * %lld + j] < 0.0f || x%d[i * %lld + j] > 0.0f);", at, w->keys, at, w->keys);
    }
    return true;
}

void bwi_csource_attention(bwi_csource *s, const bw_node *node)
{
    const bwi_attention_attributes *a = node->attributes;
    static const char *const hidden[] = {
        [BWI_MASKING_REPLACE] = "-2.38e38f", [BWI_MASKING_EXCLUDE] = "-INFINITY", [BWI_MASKING_SUBTRACT] = "sum - 1e9f"};
    bwi_attention k = bwi_attention_of(node, 1);
    writer w = {.a = a,
                .k = k,
                .queries = k.queries,
                .keys = k.keys,
                .heads = k.heads,
                .groups = k.groups,
                .shared = k.heads / k.groups,
                .key_width = k.key_width,
                .value_width = k.value_width};
    char name[160];
    if (a->factor) {
        snprintf(w.factor, sizeof w.factor, "%s[0]", bwi_csource_variable(s, node->variable[0], name));
    }
    if (a->weight) {
        bwi_csource_variable(s, node->variable[a->factor ? 1 : 0], w.weight);
    }
    LINE(2, "for (int at = 0; at < %lld; at++) {", w.queries * w.heads);
    LINE(3, "const int i = at / %lld, h = at %% %lld;", w.heads, w.heads);
    LINE(3, "const float *q = x0 + at * %lld, *k = x1 + h / %lld * %lld, *v = x2 + h / %lld * %lld;", w.key_width, w.shared,
         w.key_width, w.shared, w.value_width);
    LINE(3, "float p[%lld], largest = -INFINITY, total = 0.0f, *out = y + at * %lld;", w.keys, w.value_width);
    LINE(3, "(void)i;");
    LINE(3, "for (int j = 0; j < %lld; j++) {", w.keys);
    put_score(s, &w);
    if (put_condition(s, &w)) {
        LINE(4, "sum = seen ? sum : %s;", hidden[a->masking]);
    }
    LINE(4, "p[j] = sum;");
    LINE(4, "largest = sum > largest ? sum : largest;");
    LINE(3, "}");
    LINE(3, "for (int j = 0; j < %lld; j++) {", w.keys);
    LINE(4, "p[j] = largest > -INFINITY ? expf(p[j] - largest) : 0.0f;");
    LINE(4, "total += p[j];");
    LINE(3, "}");
    LINE(3, "for (int d = 0; d < %lld; d++) {", w.value_width);
    LINE(4, "float sum = 0.0f;");
    LINE(4, "for (int j = 0; j < %lld; j++) {", w.keys);
    LINE(5, "sum += p[j] * v[j * %lld + d];", w.groups * w.value_width);
    LINE(4, "}");
    LINE(4, "out[d] = total > 0.0f ? sum / total : 0.0f;");
    LINE(3, "}");
    LINE(2, "}");
}
