/*
 * convolution: making and freeing a bwi_conv: its checks, the choice of layouts (choice.c), compilation and facts.
 */
#include "kernel/onednn/convolution.h"

/* oneDNN ends the process when it gets no memory for its own objects and code, which are far smaller than this. */
enum { ROOM = 16 << 20 };

bw_status bwi_conv_fail(bw_context *ctx, const bwi_conv_shape *s, dnnl_status_t status)
{
    return bwi_fail(ctx, status == dnnl_out_of_memory ? BW_RESOURCE_EXHAUSTED : BW_INTERNAL,
                    "convolution of %lld samples (%lld, %lld, %lld) to (%lld, %lld, %lld) with kernel (%lld, %lld): oneDNN says %s",
                    (long long)s->n, (long long)s->ih, (long long)s->iw, (long long)s->ic, (long long)s->oh, (long long)s->ow,
                    (long long)s->oc, (long long)s->kh, (long long)s->kw, dnnl_status2str(status));
}

bw_status bwi_conv_check_room(bw_context *ctx)
{
    return bwi_system_has_room(ROOM)
               ? BW_OK
               : bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "a convolution: oneDNN needs %d MiB of memory to be made", ROOM >> 20);
}

/* Whether the output extent follows from the others: the last window ends within the padded input. */
static bool extents_fit(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after)
{
    int64_t slack = in + before + after - ((kernel - 1) * dilation + 1);
    return slack >= 0 && out == slack / stride + 1;
}

static bool depth_possible(const bwi_conv_shape *s)
{
    return s->kd == 0 || (s->kd > 0 && s->id > 0 && s->stride_d > 0 && s->dilation_d > 0 && s->kd <= INT32_MAX &&
                          s->id <= INT32_MAX && s->stride_d <= INT32_MAX && s->dilation_d <= INT32_MAX &&
                          extents_fit(s->id, s->od, s->kd, s->stride_d, s->dilation_d, s->pad_front, s->pad_back));
}

/* Extents are at most 2^31 each, and byte counts must fit; oneDNN itself refuses what it cannot do beyond that. */
static bool shape_possible(const bwi_conv_shape *s)
{
    const int64_t positive[] = {s->n,  s->ih, s->iw,       s->ic,       s->oh,         s->ow,         s->oc,
                                s->kh, s->kw, s->stride_h, s->stride_w, s->dilation_h, s->dilation_w, s->groups};
    const int64_t pads[] = {s->pad_top, s->pad_left, s->pad_bottom, s->pad_right, s->pad_front, s->pad_back};
    for (size_t k = 0; k < BWI_COUNT(positive); k++) {
        if (positive[k] < 1 || positive[k] > INT32_MAX) {
            return false;
        }
    }
    for (size_t k = 0; k < BWI_COUNT(pads); k++) {
        if (pads[k] < 0 || pads[k] > INT32_MAX) {
            return false;
        }
    }
    return s->ic % s->groups == 0 && s->oc % s->groups == 0 && depth_possible(s) &&
           extents_fit(s->ih, s->oh, s->kh, s->stride_h, s->dilation_h, s->pad_top, s->pad_bottom) &&
           extents_fit(s->iw, s->ow, s->kw, s->stride_w, s->dilation_w, s->pad_left, s->pad_right);
}

/* Channels may be padded to 16, in weights on both sides. */
static bool sizes_possible(const bwi_conv_shape *s)
{
    const int64_t products[][6] = {
        {s->n, s->kd ? s->id : 1, s->ih, s->iw, s->ic + 15, sizeof(float)},
        {s->n, s->kd ? s->od : 1, s->oh, s->ow, s->oc + 15, sizeof(float)},
        {s->kd ? s->kd : 1, s->kh, s->kw, s->ic + 15, s->oc + 15, sizeof(float)},
    };
    for (size_t k = 0; k < BWI_COUNT(products); k++) {
        size_t bytes = 16;
        for (int f = 0; f < 6; f++) {
            bytes = bwi_size_multiply(bytes, (size_t)products[k][f]);
        }
        if (bytes > INT64_MAX) {
            return false;
        }
    }
    return true;
}

static dnnl_status_t compile(bwi_conv_stage *stage)
{
    dnnl_status_t status = dnnl_primitive_create(&stage->convolution.primitive, stage->convolution.desc);
    for (int k = 0; k < BWI_OPERANDS && status == dnnl_success; k++) {
        if (stage->move[k].desc) {
            status = dnnl_primitive_create(&stage->move[k].primitive, stage->move[k].desc);
        }
    }
    return status;
}

static bw_status make_maps(bw_context *ctx, bwi_conv_form *form, const bwi_conv_shape *shape)
{
    const bwi_conv_choice *choice = &form->choice;
    bw_status status = bwi_weights_map_open(ctx, &form->packed, shape, &choice->outer[BWI_WEIGHTS]);
    if (status == BW_OK && choice->backward_weights.there &&
        !bwi_dnnl_layout_equal(&choice->backward_weights, &choice->outer[BWI_WEIGHTS])) {
        status = bwi_weights_map_open(ctx, &form->backward, shape, &choice->backward_weights);
    }
    return status;
}

static void form_free(bw_context *ctx, bwi_conv_form *form)
{
    if (form) {
        bwi_weights_map_close(ctx, &form->packed);
        bwi_weights_map_close(ctx, &form->backward);
        bwi_conv_choice_free(&form->choice);
        bwi_release(ctx, form);
    }
}

/* Takes the stages that are needed out of a choice, and compiles them. */
static dnnl_status_t take_stages(bwi_conv *conv, bwi_conv_choice *choice)
{
    dnnl_status_t status = dnnl_success;
    conv->facts.squares = choice->squares;
    conv->facts.data_squares = choice->data_squares;
    conv->facts.src_block = choice->src_block;
    conv->facts.dst_block = choice->dst_block;
    conv->wanted[BWI_CONV_BACKWARD_WEIGHTS] &= !choice->squares;
    conv->wanted[BWI_CONV_BACKWARD_DATA] &= !choice->data_squares;
    for (int p = 0; p < BWI_PASSES && status == dnnl_success; p++) {
        if (conv->wanted[p]) {
            conv->stages[p] = choice->stages[p];
            choice->stages[p] = (bwi_conv_stage){0};
            status = compile(&conv->stages[p]);
        }
    }
    return status;
}

/* A prototype keeps what it chose, since others are made like it; these keep nothing but what they run, as there are several for
 * each layer. */
static bw_status choose_and_compile(bw_context *ctx, bwi_conv *conv, const bwi_conv *like)
{
    bw_status room = bwi_conv_check_room(ctx);
    if (room != BW_OK) {
        return room;
    }
    dnnl_status_t chosen = bwi_dnnl_library_of()->status;
    if (chosen != dnnl_success) {
        return bwi_conv_fail(ctx, &conv->shape, chosen);
    }
    bwi_conv_form *form = bwi_allocate(ctx, 1, sizeof *form);
    if (!form) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int setting = bwi_onednn_begin();
    chosen = bwi_conv_choose(conv, &form->choice, like ? &like->form->choice : NULL);
    if (chosen == dnnl_success) {
        chosen = take_stages(conv, &form->choice);
    }
    bwi_onednn_end(setting);
    bw_status status = chosen != dnnl_success ? bwi_conv_fail(ctx, &conv->shape, chosen)
                       : like                 ? BW_OK
                                              : make_maps(ctx, form, &conv->shape);
    conv->borrows = like;
    conv->form = like ? like->form : form;
    if (like) {
        form_free(ctx, form);
    }
    return status;
}

/* The passes share one scratchpad, so the largest counts. The reference is many times slower, which is logged. */
static void collect_facts(bwi_conv *conv)
{
    static const char *const names[BWI_PASSES] = {"forward", "backward data", "backward weights"};
    const bwi_conv_shape *s = &conv->shape;
    bwi_conv_facts *facts = &conv->facts;
    facts->run_bytes = bwi_conv_run_bytes(conv);
    facts->weights_floats = (int64_t)conv->form->packed.floats;
    facts->backward_weights_floats = conv->wanted[BWI_CONV_BACKWARD_DATA] ? (int64_t)conv->form->backward.floats : 0;
    facts->implementation[BWI_CONV_BACKWARD_WEIGHTS] = facts->squares ? "squares" : NULL;
    facts->implementation[BWI_CONV_BACKWARD_DATA] = facts->data_squares ? "squares" : NULL;
    for (int p = 0; p < BWI_PASSES; p++) {
        const bwi_conv_stage *stage = &conv->stages[p];
        if (!conv->wanted[p]) {
            continue;
        }
        facts->implementation[p] = stage->name;
        if (stage->scratch_bytes > facts->scratch_bytes) {
            facts->scratch_bytes = stage->scratch_bytes;
        }
        if (bwi_conv_is_reference(stage)) {
            bwi_log(conv->ctx, BW_LOG_WARNING,
                    "convolution (%lld, %lld, %lld) to (%lld, %lld, %lld): oneDNN has only its slow reference for %s",
                    (long long)s->ih, (long long)s->iw, (long long)s->ic, (long long)s->oh, (long long)s->ow, (long long)s->oc,
                    names[p]);
        }
    }
}

static void release(bwi_conv *conv)
{
    if (!conv) {
        return;
    }
    for (int p = 0; p < BWI_PASSES; p++) {
        bwi_conv_stage_free(&conv->stages[p]);
    }
    form_free(conv->ctx, conv->borrows ? NULL : conv->form);
    bwi_release(conv->ctx, conv);
}

/* A shape that does not fit is refused here, with its extents: oneDNN would only give a status. */
static bw_status create(bw_context *ctx, bwi_conv **conv, const bwi_conv_shape *shape, const bwi_conv *like, bool backward,
                        bool difference)
{
    *conv = NULL;
    if (!shape_possible(shape)) {
        return bwi_fail(
            ctx, BW_INVALID_ARGUMENT,
            "convolution of (%lld, %lld, %lld) to (%lld, %lld, %lld): kernel, strides, padding and groups do not give it",
            (long long)shape->ih, (long long)shape->iw, (long long)shape->ic, (long long)shape->oh, (long long)shape->ow,
            (long long)shape->oc);
    }
    if (!sizes_possible(shape)) {
        return bwi_conv_fail(ctx, shape, dnnl_out_of_memory);
    }
    bwi_conv *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    made->ctx = ctx;
    made->shape = *shape;
    made->wanted[BWI_CONV_FORWARD] = true;
    made->wanted[BWI_CONV_BACKWARD_WEIGHTS] = backward;
    made->wanted[BWI_CONV_BACKWARD_DATA] = backward && difference;
    bw_status status = choose_and_compile(ctx, made, like);
    if (status != BW_OK) {
        release(made);
        return status;
    }
    collect_facts(made);
    *conv = made;
    return BW_OK;
}

static const bwi_conv_facts *facts_of(const bwi_conv *conv)
{
    return &conv->facts;
}

const bwi_convolution_kernels bwi_convolution_onednn = {.create = create,
                                                        .facts = facts_of,
                                                        .release = release,
                                                        .pack = bwi_conv_pack,
                                                        .unpack = bwi_conv_unpack,
                                                        .store = bwi_conv_pack,
                                                        .restore = bwi_conv_restore,
                                                        .reorder_backward = bwi_conv_reorder_backward,
                                                        .bind = bwi_conv_bind,
                                                        .unbind = bwi_conv_run_free,
                                                        .execute = bwi_conv_execute,
                                                        .begin = bwi_onednn_begin,
                                                        .end = bwi_onednn_end};
