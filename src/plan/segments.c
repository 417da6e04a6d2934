/*
 * Segments: where a sample's activations do not fit, a phase lets those of a segment of its forward pass go once the next segment
 * has what it needs of them, and computes the segment again when its backward pass comes to it. Every instruction sees
 * the same bytes as before, so no bit changes.
 *
 * The forward pass is cut into segments of about equal bytes. What a later segment reads, what is stored and what is loaded or
 * gathered stays; the last segment stays whole, since the backward pass begins with it. What is computed again are second
 * values, behind the program's own, with lists of instructions that name them.
 */
#include "plan/internal.h"

#include <string.h>

typedef struct segmenter {
    bwi_plan *plan;
    bwi_program *p;
    bwi_phase *phase;
    int forward;   /* instructions of the phase before its backward pass */
    int *part;     /* per instruction of the forward pass: its segment */
    int *segment;  /* per value of the program: the one that computes it again; -1: it stays */
    bool *needed;  /* per value: the backward pass reads it, or what is computed again for it does */
    int *again;    /* per value: the second one; -1: none */
    bool *present; /* per segment: it is computed again */
    bwi_instruction *made;
    int made_count;
    int *next_list;
    bool failed;
} segmenter;

static bool is_backward(bwi_pass pass)
{
    return pass == BWI_PASS_SEED || pass == BWI_PASS_BACKWARD || pass == BWI_PASS_BACKWARD_STATISTICS ||
           pass == BWI_PASS_BACKWARD_WEIGHTS || pass == BWI_PASS_ADD;
}

static bool is_repeatable(const bwi_instruction *i)
{
    return i->pass == BWI_PASS_FORWARD && !(i->node->op->flags & BWI_OP_INPUT);
}

static int inputs_of(const bwi_instruction *i)
{
    return i->node->inputs > i->adds ? i->node->inputs : i->adds;
}

static double written_bytes(const segmenter *s, const bwi_instruction *i)
{
    double bytes = 0;
    for (int k = 0; k < i->write_count && is_repeatable(i); k++) {
        bytes += (double)bwi_plan_value_bytes(s->plan, &s->p->values[i->writes[k]], s->plan->tile);
    }
    return bytes;
}

/* ---- What goes and what stays ---- */

static void cut_forward(segmenter *s)
{
    double total = 0, sum = 0;
    while (s->forward < s->phase->count && !is_backward(s->phase->instructions[s->forward].pass)) {
        total += written_bytes(s, &s->phase->instructions[s->forward++]);
    }
    for (int n = 0; n < s->forward; n++) {
        int part = total > 0 ? (int)(sum / total * s->plan->segments) : 0;
        s->part[n] = part < s->plan->segments ? part : s->plan->segments - 1;
        sum += written_bytes(s, &s->phase->instructions[n]);
    }
}

static void find_segments(segmenter *s, const bwi_plan_program *program)
{
    const bwi_instruction *list = s->phase->instructions;
    for (int n = 0; n < s->forward; n++) {
        for (int k = 0; k < list[n].write_count && is_repeatable(&list[n]); k++) {
            bool stays = s->part[n] == s->plan->segments - 1 || bwi_plan_is_wanted(program, &list[n]);
            s->segment[list[n].writes[k]] = stays ? -1 : s->part[n];
        }
        for (int k = 0; k < list[n].read_count; k++) {
            int root = bwi_plan_root(s->p, list[n].reads[k]);
            s->segment[root] = s->segment[root] < s->part[n] ? -1 : s->segment[root];
        }
    }
    for (int n = s->forward; n < s->phase->count; n++) {
        if (list[n].pass == BWI_PASS_STORE) {
            s->segment[list[n].dst] = -1;
        }
    }
}

static void need_reads(segmenter *s, const bwi_instruction *i)
{
    for (int k = 0; k < i->read_count; k++) {
        s->needed[bwi_plan_root(s->p, i->reads[k])] = true;
    }
}

static bool is_run_again(const segmenter *s, const bwi_instruction *i)
{
    for (int k = 0; k < i->write_count; k++) {
        if (s->needed[i->writes[k]] && s->segment[i->writes[k]] >= 0) {
            return true;
        }
    }
    return false;
}

static void find_needed(segmenter *s)
{
    for (int n = s->phase->count - 1; n >= 0; n--) {
        const bwi_instruction *i = &s->phase->instructions[n];
        if (n >= s->forward || is_run_again(s, i)) {
            need_reads(s, i);
        }
    }
}

/* ---- The new list ---- */

static int add_value(segmenter *s, int like, int view_of)
{
    bwi_program *p = s->p;
    if (p->value_count == p->value_capacity) {
        int larger = 2 * p->value_capacity;
        bwi_value *grown = bwi_grow(p->ctx, p->values, (size_t)p->value_capacity, (size_t)larger, sizeof *grown);
        if (!grown) {
            s->failed = true;
            return like;
        }
        p->values = grown;
        p->value_capacity = larger;
    }
    p->values[p->value_count] = p->values[like];
    p->values[p->value_count].view_of = view_of;
    return p->value_count++;
}

/* Returns the value to read in place of one that was let go: the second one, or a view of it. */
static int second(segmenter *s, int value)
{
    int root = value < 0 ? -1 : bwi_plan_root(s->p, value);
    if (root < 0 || s->segment[root] < 0) {
        return value;
    }
    if (s->again[value] < 0) {
        s->again[value] = add_value(s, value, s->again[root]);
    }
    return s->again[value];
}

static int *copy_list(segmenter *s, const int *from, int count)
{
    int *list = s->next_list;
    for (int k = 0; k < count; k++) {
        list[k] = from ? from[k] : -1;
    }
    s->next_list += count;
    return list;
}

static bwi_instruction *add_copy(segmenter *s, const bwi_instruction *i)
{
    bwi_instruction *made = &s->made[s->made_count++];
    *made = *i;
    if (i->pass == BWI_PASS_STORE || i->pass == BWI_PASS_LOAD) {
        return made;
    }
    made->src = copy_list(s, i->src, inputs_of(i));
    made->diff_src = copy_list(s, i->diff_src, inputs_of(i));
    made->reads = copy_list(s, i->reads, i->read_count);
    made->writes = copy_list(s, i->writes, i->write_count);
    for (int k = 0; k < inputs_of(i); k++) {
        made->src[k] = second(s, made->src[k]);
    }
    for (int k = 0; k < i->read_count; k++) {
        made->reads[k] = second(s, made->reads[k]);
    }
    return made;
}

static int written_again(segmenter *s, int value)
{
    if (value < 0) {
        return value;
    }
    s->again[value] = s->again[value] < 0 ? add_value(s, value, -1) : s->again[value];
    return s->again[value];
}

static void run_again(segmenter *s, int segment)
{
    s->present[segment] = true;
    for (int n = 0; n < s->forward; n++) {
        const bwi_instruction *i = &s->phase->instructions[n];
        if (s->part[n] != segment || !is_repeatable(i) || !is_run_again(s, i)) {
            continue;
        }
        bwi_instruction *made = add_copy(s, i);
        made->dst = written_again(s, i->dst);
        made->workspace = written_again(s, i->workspace);
        for (int k = 0; k < i->write_count; k++) {
            made->writes[k] = written_again(s, i->writes[k]);
        }
    }
}

static void add_backward(segmenter *s, const bwi_instruction *i)
{
    for (int k = 0; k < i->read_count; k++) {
        int segment = s->segment[bwi_plan_root(s->p, i->reads[k])];
        if (segment >= 0 && !s->present[segment]) {
            run_again(s, segment);
        }
    }
    bwi_instruction *made = add_copy(s, i);
    bool reads_forward = i->pass != BWI_PASS_STORE && i->pass != BWI_PASS_SEED && i->pass != BWI_PASS_ADD;
    made->dst = reads_forward ? second(s, i->dst) : i->dst;
    made->workspace = second(s, i->workspace);
}

static size_t list_count(const bwi_phase *phase)
{
    size_t count = 0;
    for (int n = 0; n < phase->count; n++) {
        const bwi_instruction *i = &phase->instructions[n];
        count += (size_t)(2 * inputs_of(i) + i->read_count + i->write_count);
    }
    return count;
}

/* The list has at most twice the instructions; what is not used of it would count as bookkeeping, so it is copied. */
static bw_status rewrite(segmenter *s)
{
    bw_context *ctx = s->plan->ctx;
    s->made = bwi_allocate(ctx, 2 * (size_t)s->phase->count, sizeof *s->made);
    s->next_list = s->phase->lists = bwi_allocate(ctx, 2 * list_count(s->phase), sizeof(int));
    if (!s->made || !s->next_list) {
        bwi_release(ctx, s->made);
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int n = 0; n < s->phase->count; n++) {
        if (n < s->forward) {
            s->made[s->made_count++] = s->phase->instructions[n];
        } else {
            add_backward(s, &s->phase->instructions[n]);
        }
    }
    bwi_release(ctx, s->phase->instructions);
    s->phase->instructions = bwi_allocate(ctx, (size_t)s->made_count, sizeof *s->made);
    s->failed = s->failed || !s->phase->instructions;
    for (int n = 0; s->phase->instructions && n < s->made_count; n++) {
        s->phase->instructions[n] = s->made[n];
    }
    bwi_release(ctx, s->made);
    s->phase->count = s->phase->instructions ? s->made_count : 0;
    return s->failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

/* A phase without a backward pass has nothing to compute again, and stays as it is. */
bw_status bwi_plan_segment(bwi_plan *plan, bwi_plan_program *program, bwi_phase *phase)
{
    bw_context *ctx = plan->ctx;
    size_t values = (size_t)program->program.value_count;
    segmenter s = {.plan = plan, .p = &program->program, .phase = phase};
    s.part = bwi_allocate(ctx, (size_t)phase->count, sizeof *s.part);
    s.segment = bwi_allocate(ctx, values, sizeof *s.segment);
    s.needed = bwi_allocate(ctx, values, sizeof *s.needed);
    s.again = bwi_allocate(ctx, values, sizeof *s.again);
    s.present = bwi_allocate(ctx, (size_t)plan->segments, sizeof *s.present);
    bw_status status = s.part && s.segment && s.needed && s.again && s.present ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        for (size_t v = 0; v < values; v++) {
            s.segment[v] = s.again[v] = -1;
        }
        cut_forward(&s);
        find_segments(&s, program);
        find_needed(&s);
        status = s.forward < phase->count ? rewrite(&s) : BW_OK;
    }
    bwi_release(ctx, s.part);
    bwi_release(ctx, s.segment);
    bwi_release(ctx, s.needed);
    bwi_release(ctx, s.again);
    bwi_release(ctx, s.present);
    return status;
}
