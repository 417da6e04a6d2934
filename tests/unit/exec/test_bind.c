/* Opening: what is allocated is what the plan was told, and every call has addresses of its worker's region in the arena. */
#include "exec/internal.h"
#include "support/planned.h"

enum { PAGE = 4096 };

/* An executor besides the session's, for the same graph. */
static bwi_exec *open_exec(const planned *p, size_t *allocated)
{
    const bwi_session *s = &p->session;
    bw_node *targets[BWI_MAX_COLUMNS + BWI_MAX_HEADS];
    int count = 0;
    for (int c = 0; c < s->column_count; c++) {
        targets[count++] = s->columns[c].node;
    }
    bwi_program_request programs[2] = {{targets, count, s->losses, s->loss_count}, {s->outputs, s->output_count, NULL, 0}};
    bwi_plan_request request = {.graph = &s->graph, .programs = programs, .program_count = 2, .batch = 32, .tile = 8, .lanes = 4};
    bwi_plan *plan = NULL;
    check_ok(p->ctx, bwi_plan_make(p->ctx, &plan, &request));
    size_t before = bwi_allocated_bytes(p->ctx);
    bwi_exec *exec = NULL;
    check_ok(p->ctx, bwi_exec_open(p->ctx, &exec, plan));
    *allocated = bwi_allocated_bytes(p->ctx) - before;
    return exec;
}

static bool has_foreign_kernels(const bwi_plan *plan)
{
    return planned_count(plan, &bwi_op_conv2d) > 0;
}

static void test_bookkeeping(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        planned p;
        bwi_session_options options = {.train = true, .evaluate = true, .batch = 32, .tile = 8, .lanes = 4};
        planned_model(&p, planned_expressions[m], 64, 9, 9, 3, 3);
        planned_open(&p, &options);
        size_t allocated;
        bwi_exec *exec = open_exec(&p, &allocated);
        size_t arena = bwi_size_align(exec->plan->bytes, PAGE), told = bwi_exec_bookkeeping(exec->plan);
        if (has_foreign_kernels(exec->plan)) {
            assert_true(allocated <= arena + told); /* not every pass of a node is bound */
        } else {
            assert_int_equal(allocated, arena + told);
        }
        bwi_exec_close(exec);
        planned_close(&p);
    }
}

static bool is_within(const void *address, const unsigned char *begin, size_t bytes)
{
    const unsigned char *at = address;
    return !address || (at >= begin && at < begin + bytes);
}

static void check_call(const bwi_exec *exec, const bwi_bound *b, int worker)
{
    const bwi_plan *plan = exec->plan;
    const unsigned char *region = exec->arena + plan->workers_offset + (size_t)worker * plan->worker_bytes;
    const bwi_call *call = &b->call;
    assert_true(is_within(call->dst, region, plan->worker_bytes));
    assert_true(is_within(call->diff_dst, region, plan->worker_bytes));
    assert_true(is_within(call->workspace, region, plan->worker_bytes));
    assert_true(is_within(call->scratch, region, plan->worker_bytes));
    assert_true(is_within(call->statistics, exec->arena, plan->lanes_offset));
    for (int k = 0; b->instruction->src && k < (b->instruction->pass == BWI_PASS_ADD ? b->instruction->adds : call->node->inputs);
         k++) {
        assert_true(is_within(call->src[k], region, plan->worker_bytes));
        assert_true(is_within(call->diff_src[k], region, plan->worker_bytes));
    }
    for (int v = 0; v < call->node->variables; v++) {
        const bwi_variable *variable = call->node->variable[v];
        assert_ptr_equal(call->weights[v], variable->data);
        assert_int_equal(call->gradient[v], plan->gradients[variable->index]);
    }
    if (call->node->op->flags & BWI_OP_INPUT) {
        const bwi_destination *to = call->bound;
        assert_ptr_equal(to[0].data, call->dst);
        assert_ptr_equal(to[1].data, call->dst);
        assert_false(to[0].sequence);
        assert_true(to[1].sequence);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        planned p;
        bwi_session_options options = {.train = true, .evaluate = true, .batch = 32, .tile = 8, .lanes = 4};
        planned_model(&p, planned_expressions[m], 64, 9, 9, 3, 3);
        planned_open(&p, &options);
        const bwi_exec *exec = p.session.exec;
        for (int program = 0; program < p.plan->program_count; program++) {
            for (int phase = 0; phase < p.plan->programs[program].phase_count; phase++) {
                for (int worker = 0; worker < p.plan->regions; worker++) {
                    for (int size = 0; size < p.plan->sizes; size++) {
                        const bwi_bound *list = bwi_exec_bound(exec, program, phase, worker, size);
                        for (int n = 0; n < exec->phases[program][phase].count; n++) {
                            assert_int_equal(list[n].call.samples, 1 << size);
                            check_call(exec, &list[n], worker);
                        }
                    }
                }
            }
        }
        planned_close(&p);
    }
}

/* A variable's blocks cover it, one after another, and point to its gradient in a lane. */
static void test_blocks(void **state)
{
    (void)state;
    planned p;
    bwi_session_options options = {.train = true, .batch = 32, .tile = 8, .lanes = 4};
    planned_model(&p, "flatten dense(100,relu) dense(10,softmax)", 64, 9, 9, 3, 1);
    planned_open(&p, &options);
    const bwi_exec *exec = p.session.exec;
    int64_t number = 0;
    for (int v = 0; v < p.plan->source->variable_count; v++) {
        const bwi_variable *variable = p.plan->source->variables[v];
        int64_t next = 0;
        for (; number < exec->block_count && exec->blocks[number].variable == variable; number++) {
            const bwi_block *block = &exec->blocks[number];
            assert_int_equal(block->first, next);
            assert_true(block->count > 0);
            assert_true(block->count <= BWI_UPDATE_BLOCK);
            assert_int_equal(block->gradient, p.plan->gradients[v] + (size_t)next * sizeof(float));
            next += block->count;
        }
        assert_int_equal(next, variable->count);
    }
    assert_int_equal(number, exec->block_count);
    assert_true(exec->block_count > 4);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bookkeeping),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
