/*
 * choice: which layouts and implementations a convolution gets. oneDNN is asked with `any` first, then with explicit layouts; each
 * answer is graded by the implementations of all passes that are needed, and the best is taken, the first of equals. All of this
 * only describes primitives, which takes microseconds; only the choice is compiled.
 */
#include "kernel/onednn/convolution.h"

#include <string.h>

/* Grades of one pass. A pass that moves its images costs more than a matrix product in place of a direct convolution,
 * and less than the reference, which is slower by orders of magnitude. */
enum {
    GRADE_NONE = -1000,
    GRADE_REFERENCE = 0,
    GRADE_PRODUCT = 6,
    GRADE_SQUARES = 8, /* conv_weights of kernel.h */
    GRADE_DIRECT = 9,
    MOVES_IMAGES = 4,
    MOVES_WEIGHTS = 1,
    FEW_PIXELS = 64,        /* of which a direct implementation is no faster than GRADE_SQUARES, */
    MANY_WEIGHTS = 1 << 16, /* whose gradient is then not worth being held apart */
    USUAL_BATCH = 32,
    CHANNELS_LAST = 1 /* taken from the grade of the whole choice: the other kernels prefer blocks */
};

static const int result_of_pass[BWI_PASSES] = {BWI_DST, BWI_SRC, BWI_WEIGHTS};

static const dnnl_query_t layout_of_operand[BWI_PASSES][BWI_OPERANDS] = {
    {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
    {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
    {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md},
};

/* The layouts to ask for in one attempt, by operand; NULL: any. */
typedef const bwi_dnnl_layout *bwi_request[BWI_OPERANDS];

int bwi_conv_result(bwi_conv_pass pass)
{
    return result_of_pass[pass];
}

dnnl_status_t bwi_conv_inner_layout(bwi_dnnl_layout *layout, const bwi_conv_stage *stage, bwi_conv_pass pass, int operand)
{
    return bwi_dnnl_layout_query(layout, stage->convolution.desc, layout_of_operand[pass][operand]);
}

dnnl_status_t bwi_conv_outer_layout(bwi_dnnl_layout *layout, const bwi_conv_stage *stage, bwi_conv_pass pass, int operand)
{
    const_dnnl_primitive_desc_t move = stage->move[operand].desc;
    dnnl_query_t outside = operand == result_of_pass[pass] ? dnnl_query_dst_md : dnnl_query_src_md;
    return move ? bwi_dnnl_layout_query(layout, move, outside) : bwi_conv_inner_layout(layout, stage, pass, operand);
}

/* "ref", "ref:any", "simple:ref"... but also "gemm:ref", whose product is the reference one. */
static int grade_of_name(const char *name)
{
    for (const char *part = name; part; part = strchr(part, ':')) {
        part += *part == ':';
        if (strncmp(part, "ref", 3) == 0) {
            return GRADE_REFERENCE;
        }
    }
    return strstr(name, "gemm:") || strncmp(name, "gemm", 4) == 0 ? GRADE_PRODUCT : GRADE_DIRECT;
}

bool bwi_conv_is_reference(const bwi_conv_stage *stage)
{
    return grade_of_name(stage->name) == GRADE_REFERENCE;
}

static void primitive_free(bwi_conv_primitive *p)
{
    if (p->primitive) {
        dnnl_primitive_destroy(p->primitive);
    }
    if (p->desc) {
        dnnl_primitive_desc_destroy(p->desc);
    }
    *p = (bwi_conv_primitive){0};
}

void bwi_conv_stage_free(bwi_conv_stage *stage)
{
    primitive_free(&stage->convolution);
    for (int k = 0; k < BWI_OPERANDS; k++) {
        primitive_free(&stage->move[k]);
    }
    *stage = (bwi_conv_stage){.grade = GRADE_NONE};
}

static void layouts_free(bwi_conv_layouts layouts)
{
    for (int k = 0; k < BWI_OPERANDS; k++) {
        bwi_dnnl_layout_free(&layouts[k]);
    }
}

static void leave_pass(bwi_conv_choice *choice, bwi_conv_pass pass)
{
    bwi_conv_stage_free(&choice->stages[pass]);
    layouts_free(choice->inner[pass]);
}

void bwi_conv_choice_free(bwi_conv_choice *choice)
{
    for (int p = 0; p < BWI_PASSES; p++) {
        leave_pass(choice, (bwi_conv_pass)p);
    }
    for (int k = 0; k < BWI_OPERANDS; k++) {
        bwi_dnnl_layout_free(&choice->outer[k]);
    }
    bwi_dnnl_layout_free(&choice->bias);
    bwi_dnnl_layout_free(&choice->backward_weights);
    *choice = (bwi_conv_choice){.grade = GRADE_NONE};
}

enum { MOST_EXTENTS = 6 };

/* Volumes have the depth before the height. */
static void extents_of(const bwi_conv_shape *s, int operand, int *ndim, int64_t extents[MOST_EXTENTS])
{
    const int64_t heads[BWI_OPERANDS][3] = {{s->n, s->ic}, {s->groups, s->oc / s->groups, s->ic / s->groups}, {s->n, s->oc}};
    const int64_t tails[BWI_OPERANDS][3] = {{s->id, s->ih, s->iw}, {s->kd, s->kh, s->kw}, {s->od, s->oh, s->ow}};
    int skipped = operand == BWI_WEIGHTS && s->groups == 1, head = operand == BWI_WEIGHTS ? 3 : 2;
    *ndim = 0;
    for (int k = skipped; k < head; k++) {
        extents[(*ndim)++] = heads[operand][k];
    }
    for (int k = s->kd ? 0 : 1; k < 3; k++) {
        extents[(*ndim)++] = tails[operand][k];
    }
}

/* Layouts are called by their tags for images; this is the same one for volumes. */
static dnnl_format_tag_t tag_of_volume(dnnl_format_tag_t tag)
{
    static const dnnl_format_tag_t tags[][2] = {
        {dnnl_aBcd16b, dnnl_aBcde16b}, {dnnl_aBcd8b, dnnl_aBcde8b}, {dnnl_abcd, dnnl_abcde}, {dnnl_acdb, dnnl_acdeb}};
    for (size_t k = 0; k < BWI_COUNT(tags); k++) {
        if (tags[k][0] == tag) {
            return tags[k][1];
        }
    }
    return tag;
}

static dnnl_status_t layout_of_tag(bwi_dnnl_layout *layout, const bwi_conv_shape *shape, int operand, dnnl_format_tag_t tag)
{
    int ndim;
    int64_t extents[MOST_EXTENTS];
    extents_of(shape, operand, &ndim, extents);
    return bwi_dnnl_layout_make(layout, ndim, extents, shape->kd ? tag_of_volume(tag) : tag);
}

/* Finds the block of an image's layout; false if it is not one that kernel.h describes. */
static bool image_block(const bwi_conv_shape *shape, int operand, const bwi_dnnl_layout *layout, dnnl_format_tag_t *tag,
                        int64_t *block)
{
    int64_t channels = operand == BWI_SRC ? shape->ic : shape->oc;
    const dnnl_format_tag_t tags[] = {dnnl_aBcd16b, dnnl_aBcd8b, dnnl_abcd, dnnl_acdb};
    const int64_t blocks[] = {16, 8, 1, channels};
    for (size_t k = 0; k < BWI_COUNT(tags); k++) {
        bwi_dnnl_layout known = {0};
        bool equal = layout_of_tag(&known, shape, operand, tags[k]) == dnnl_success && bwi_dnnl_layout_equal(&known, layout);
        bwi_dnnl_layout_free(&known);
        if (equal) {
            *tag = tags[k];
            *block = blocks[k];
            return true;
        }
    }
    return false;
}

static bwi_dnnl_problem problem_of(const bwi_conv_shape *s)
{
    bwi_dnnl_problem problem = {.algorithm = dnnl_convolution_direct};
    int axis = 0;
    if (s->kd) {
        problem.strides[0] = s->stride_d;
        problem.dilation[0] = s->dilation_d - 1;
        problem.pad_before[0] = s->pad_front;
        problem.pad_after[0] = s->pad_back;
        axis = 1;
    }
    problem.strides[axis] = s->stride_h;
    problem.strides[axis + 1] = s->stride_w;
    problem.dilation[axis] = s->dilation_h - 1;
    problem.dilation[axis + 1] = s->dilation_w - 1;
    problem.pad_before[axis] = s->pad_top;
    problem.pad_before[axis + 1] = s->pad_left;
    problem.pad_after[axis] = s->pad_bottom;
    problem.pad_after[axis + 1] = s->pad_right;
    return problem;
}

static size_t scratchpad_bytes(const bwi_conv_primitive *p)
{
    bwi_dnnl_layout pad = {0};
    size_t bytes =
        p->desc && bwi_dnnl_layout_query(&pad, p->desc, dnnl_query_scratchpad_md) == dnnl_success ? bwi_dnnl_layout_bytes(&pad) : 0;
    bwi_dnnl_layout_free(&pad);
    return bytes;
}

/* Describes the reorders between outer and inner layouts of operands, and divides the scratch memory among them. */
static dnnl_status_t describe_moves(bwi_conv_stage *stage, const bwi_conv_layouts inner, bwi_conv_pass pass,
                                    const bwi_request outer)
{
    size_t bytes = scratchpad_bytes(&stage->convolution);
    bool moved = false;
    for (int k = 0; k < BWI_OPERANDS; k++) {
        if (!outer[k] || bwi_dnnl_layout_equal(outer[k], &inner[k])) {
            continue;
        }
        bool out = k == result_of_pass[pass];
        dnnl_status_t status =
            bwi_dnnl_reorder_describe(&stage->move[k].desc, out ? &inner[k] : outer[k], out ? outer[k] : &inner[k]);
        if (status != dnnl_success) {
            return status;
        }
        size_t pad = scratchpad_bytes(&stage->move[k]);
        bytes = pad > bytes ? pad : bytes;
        stage->grade -= k == BWI_WEIGHTS ? MOVES_WEIGHTS : MOVES_IMAGES / 2;
        moved = true;
    }
    for (int k = 0; k < BWI_OPERANDS; k++) {
        if (stage->move[k].desc) {
            stage->temporary[k] = bytes = bwi_size_align(bytes, BWI_CACHE_LINE);
            bytes = bwi_size_add(bytes, bwi_dnnl_layout_bytes(&inner[k]));
        }
    }
    stage->scratch_bytes = bytes;
    if (moved) {
        strncat(stage->name, " + reorder", sizeof stage->name - strlen(stage->name) - 1);
    }
    return dnnl_success;
}

/* Makes one attempt: asks for the layouts of `request`, to be used with those of `outer` (a NULL entry: whatever comes). The
 * stage is left as it is if its grade is already better. It is no failure if nothing is implemented. */
static dnnl_status_t attempt(const bwi_conv *conv, bwi_conv_choice *choice, bwi_conv_pass pass, const bwi_request request,
                             const bwi_request outer)
{
    bwi_conv_stage next = {.grade = GRADE_NONE};
    bwi_conv_layouts any = {{0}}, inner = {{0}};
    bwi_request ask;
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < BWI_OPERANDS; k++) {
        if (!request[k] && status == dnnl_success) {
            status = layout_of_tag(&any[k], &conv->shape, k, dnnl_format_tag_any);
        }
        ask[k] = request[k] ? request[k] : &any[k];
    }
    bwi_dnnl_problem problem = problem_of(&conv->shape);
    if (status == dnnl_success) {
        status = bwi_dnnl_convolution_describe(&next.convolution.desc, pass, &problem, ask[BWI_SRC], ask[BWI_WEIGHTS],
                                               conv->shape.with_bias ? &choice->bias : NULL, ask[BWI_DST],
                                               pass == BWI_CONV_FORWARD ? NULL : choice->stages[BWI_CONV_FORWARD].convolution.desc);
    }
    const char *name = "";
    if (status == dnnl_success) {
        status = dnnl_primitive_desc_query(next.convolution.desc, dnnl_query_impl_info_str, 0, &name);
    }
    for (int k = 0; k < BWI_OPERANDS && status == dnnl_success; k++) {
        status = bwi_conv_inner_layout(&inner[k], &next, pass, k);
    }
    if (status == dnnl_success) {
        strncat(next.name, name, sizeof next.name - 1);
        next.grade = grade_of_name(next.name);
        status = describe_moves(&next, inner, pass, outer);
    }
    layouts_free(any);
    bool better = status == dnnl_success && next.grade > choice->stages[pass].grade;
    if (better) {
        leave_pass(choice, pass);
        choice->stages[pass] = next;
        memcpy(choice->inner[pass], inner, sizeof inner);
    } else {
        bwi_conv_stage_free(&next);
        layouts_free(inner);
    }
    return status == dnnl_unimplemented ? dnnl_success : status;
}

/* Chooses forward with free layouts: those that oneDNN picks become the outer layouts. The grade stays NONE if they are not
 * usable. */
static dnnl_status_t choose_forward(const bwi_conv *conv, bwi_conv_choice *choice, dnnl_format_tag_t src_tag,
                                    dnnl_format_tag_t dst_tag)
{
    bwi_dnnl_layout src = {0}, dst = {0};
    const bwi_conv_stage *stage = &choice->stages[BWI_CONV_FORWARD];
    const bwi_dnnl_layout *inner = choice->inner[BWI_CONV_FORWARD];
    dnnl_status_t status = layout_of_tag(&src, &conv->shape, BWI_SRC, src_tag);
    if (status == dnnl_success) {
        status = layout_of_tag(&dst, &conv->shape, BWI_DST, dst_tag);
    }
    if (status == dnnl_success) {
        status = attempt(conv, choice, BWI_CONV_FORWARD, (bwi_request){&src, NULL, &dst}, (bwi_request){NULL, NULL, NULL});
    }
    bwi_dnnl_layout_free(&src);
    bwi_dnnl_layout_free(&dst);
    if (status != dnnl_success || stage->grade == GRADE_NONE) {
        return status;
    }
    if (!image_block(&conv->shape, BWI_SRC, &inner[BWI_SRC], &choice->src_tag, &choice->src_block) ||
        !image_block(&conv->shape, BWI_DST, &inner[BWI_DST], &choice->dst_tag, &choice->dst_block) ||
        !bwi_weights_map_possible(&conv->shape, &inner[BWI_WEIGHTS])) {
        leave_pass(choice, BWI_CONV_FORWARD);
        return dnnl_success;
    }
    /* One channel is both channels-first and channels-last, but implementations want the same tag on both sides. */
    if (conv->shape.ic == 1 && choice->dst_tag == dnnl_acdb) {
        choice->src_tag = dnnl_acdb;
    }
    if (conv->shape.oc == 1 && choice->src_tag == dnnl_acdb) {
        choice->dst_tag = dnnl_acdb;
    }
    for (int k = 0; k < BWI_OPERANDS && status == dnnl_success; k++) {
        status = bwi_dnnl_layout_copy(&choice->outer[k], &inner[k]);
    }
    return status;
}

/* Chooses forward with the layouts of another convolution. */
static dnnl_status_t forward_like(const bwi_conv *conv, bwi_conv_choice *choice, const bwi_conv_choice *like)
{
    choice->src_tag = like->src_tag;
    choice->dst_tag = like->dst_tag;
    choice->src_block = like->src_block;
    choice->dst_block = like->dst_block;
    dnnl_status_t status = layout_of_tag(&choice->outer[BWI_SRC], &conv->shape, BWI_SRC, like->src_tag);
    if (status == dnnl_success) {
        status = layout_of_tag(&choice->outer[BWI_DST], &conv->shape, BWI_DST, like->dst_tag);
    }
    if (status == dnnl_success) {
        status = bwi_dnnl_layout_copy(&choice->outer[BWI_WEIGHTS], &like->outer[BWI_WEIGHTS]);
    }
    if (status != dnnl_success) {
        return status;
    }
    bwi_request outer = {&choice->outer[BWI_SRC], &choice->outer[BWI_WEIGHTS], &choice->outer[BWI_DST]};
    const bwi_conv_stage *stage = &choice->stages[BWI_CONV_FORWARD];
    status = attempt(conv, choice, BWI_CONV_FORWARD, outer, outer);
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_FORWARD, (bwi_request){outer[BWI_SRC], NULL, outer[BWI_DST]}, outer);
    }
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_FORWARD, (bwi_request){NULL, NULL, NULL}, outer);
    }
    return status;
}

/* Whether a tile's gradient of the weights, which a direct implementation needs memory for, outweighs its images by far. */
static bool weights_outweigh(const bwi_conv_shape *s)
{
    return s->oh * s->ow <= FEW_PIXELS && bwi_conv_places(s) * s->ic * s->oc >= MANY_WEIGHTS;
}

/* Whether images and weights lie as the kernels by hand want them. */
static bool are_squares(const bwi_conv *conv, const bwi_conv_choice *choice)
{
    bool blocks = choice->src_tag == choice->dst_tag && (choice->src_tag == dnnl_aBcd16b || choice->src_tag == dnnl_aBcd8b);
    return blocks && conv->shape.groups == 1 &&
           bwi_weights_are_squares(&conv->shape, &choice->outer[BWI_WEIGHTS], choice->src_block);
}

/* For images of a few pixels oneDNN multiplies rearranged images: it needs several times the weights of scratch memory, and moves
 * images and weights. Where they lie in blocks, a kernel by hand does better. */
static void leave_weights(const bwi_conv *conv, bwi_conv_choice *choice)
{
    bwi_conv_stage *stage = &choice->stages[BWI_CONV_BACKWARD_WEIGHTS];
    if (are_squares(conv, choice)) {
        leave_pass(choice, BWI_CONV_BACKWARD_WEIGHTS);
        stage->grade = weights_outweigh(&conv->shape) ? GRADE_DIRECT : GRADE_SQUARES;
        choice->squares = true;
    }
}

/* The difference of the weights must end in the packed layout; at best the primitive writes it so. */
static dnnl_status_t choose_backward_weights(const bwi_conv *conv, bwi_conv_choice *choice)
{
    bwi_request outer = {&choice->outer[BWI_SRC], &choice->outer[BWI_WEIGHTS], &choice->outer[BWI_DST]};
    const bwi_conv_stage *stage = &choice->stages[BWI_CONV_BACKWARD_WEIGHTS];
    dnnl_status_t status = attempt(conv, choice, BWI_CONV_BACKWARD_WEIGHTS, outer, outer);
    if (status == dnnl_success && stage->grade < GRADE_DIRECT) {
        status = attempt(conv, choice, BWI_CONV_BACKWARD_WEIGHTS, (bwi_request){outer[BWI_SRC], NULL, outer[BWI_DST]}, outer);
    }
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_BACKWARD_WEIGHTS, (bwi_request){NULL, NULL, NULL}, outer);
    }
    if (status == dnnl_success && (stage->grade < GRADE_SQUARES || weights_outweigh(&conv->shape))) {
        leave_weights(conv, choice);
    }
    return status;
}

/* Takes the weights in the layout that oneDNN prefers, because reordering them once per update is cheap; but the packed ones if
 * the same implementation takes those as well. */
static dnnl_status_t choose_backward_data(const bwi_conv *conv, bwi_conv_choice *choice)
{
    bwi_request images = {&choice->outer[BWI_SRC], NULL, &choice->outer[BWI_DST]};
    bwi_conv_stage *stage = &choice->stages[BWI_CONV_BACKWARD_DATA];
    dnnl_status_t status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, images, images);
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, (bwi_request){NULL, NULL, NULL}, images);
    }
    if (status != dnnl_success || stage->grade == GRADE_NONE) {
        return status;
    }
    bwi_request packed = {images[BWI_SRC], &choice->outer[BWI_WEIGHTS], images[BWI_DST]};
    bwi_conv_stage first = *stage;
    bwi_conv_layouts inner;
    memcpy(inner, choice->inner[BWI_CONV_BACKWARD_DATA], sizeof inner);
    memset(choice->inner[BWI_CONV_BACKWARD_DATA], 0, sizeof inner);
    *stage = (bwi_conv_stage){.grade = GRADE_NONE};
    status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, packed, packed);
    if (status == dnnl_success && stage->grade != GRADE_NONE && strcmp(stage->name, first.name) == 0) {
        bwi_conv_stage_free(&first);
        layouts_free(inner);
    } else {
        leave_pass(choice, BWI_CONV_BACKWARD_DATA);
        *stage = first;
        memcpy(choice->inner[BWI_CONV_BACKWARD_DATA], inner, sizeof inner);
    }
    const bwi_dnnl_layout *weights = &choice->inner[BWI_CONV_BACKWARD_DATA][BWI_WEIGHTS];
    if (status == dnnl_success && !bwi_weights_map_possible(&conv->shape, weights)) {
        leave_pass(choice, BWI_CONV_BACKWARD_DATA);
    }
    if (status == dnnl_success) {
        status = bwi_dnnl_layout_copy(&choice->backward_weights, weights);
    }
    return status;
}

/* Whether the kernel by hand takes backward data, which reads the packed weights: where these outweigh the images of a usual batch,
 * it is no slower, and a second copy of the weights would be more than holding the whole batch takes. */
static bool takes_data(const bwi_conv *conv, const bwi_conv_choice *choice)
{
    const bwi_conv_shape *s = &conv->shape;
    double weights = (double)(s->kh * s->kw) * (double)(s->ic * s->oc),
           images = (double)(s->ih * s->iw * s->ic) + (double)(s->oh * s->ow * s->oc);
    return weights_outweigh(s) && s->ih * s->iw <= FEW_PIXELS && weights >= USUAL_BATCH * images &&
           s->kh * s->kw <= BWI_CONV_DATA_EXTENT && are_squares(conv, choice);
}

static dnnl_status_t backward_data_like(const bwi_conv *conv, bwi_conv_choice *choice, const bwi_conv_choice *like)
{
    dnnl_status_t status = bwi_dnnl_layout_copy(&choice->backward_weights, &like->backward_weights);
    if (status != dnnl_success) {
        return status;
    }
    bwi_request outer = {&choice->outer[BWI_SRC], &choice->backward_weights, &choice->outer[BWI_DST]};
    const bwi_conv_stage *stage = &choice->stages[BWI_CONV_BACKWARD_DATA];
    status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, outer, outer);
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, (bwi_request){outer[BWI_SRC], NULL, outer[BWI_DST]}, outer);
    }
    if (status == dnnl_success && stage->grade < GRADE_PRODUCT) {
        status = attempt(conv, choice, BWI_CONV_BACKWARD_DATA, (bwi_request){NULL, NULL, NULL}, outer);
    }
    return status;
}

/* Chooses the backward passes once the forward pass is decided. */
static dnnl_status_t choose_backward(const bwi_conv *conv, bwi_conv_choice *choice, const bwi_conv_choice *like)
{
    dnnl_status_t status = dnnl_success;
    if (choice->stages[BWI_CONV_FORWARD].grade == GRADE_NONE) {
        return dnnl_success;
    }
    if (conv->wanted[BWI_CONV_BACKWARD_WEIGHTS]) {
        status = choose_backward_weights(conv, choice);
    }
    if (status == dnnl_success && conv->wanted[BWI_CONV_BACKWARD_DATA] && takes_data(conv, choice)) {
        choice->stages[BWI_CONV_BACKWARD_DATA].grade = GRADE_DIRECT;
        choice->data_squares = true;
    } else if (status == dnnl_success && conv->wanted[BWI_CONV_BACKWARD_DATA]) {
        status = like && like->backward_weights.there ? backward_data_like(conv, choice, like) : choose_backward_data(conv, choice);
    }
    choice->grade = 0;
    for (int p = 0; p < BWI_PASSES; p++) {
        if (conv->wanted[p]) {
            choice->grade += choice->stages[p].grade;
        }
    }
    if ((choice->src_tag == dnnl_acdb && conv->shape.ic > 1) || (choice->dst_tag == dnnl_acdb && conv->shape.oc > 1)) {
        choice->grade -= CHANNELS_LAST;
    }
    return status;
}

static dnnl_status_t choice_begin(const bwi_conv *conv, bwi_conv_choice *choice)
{
    *choice = (bwi_conv_choice){.grade = GRADE_NONE};
    for (int p = 0; p < BWI_PASSES; p++) {
        choice->stages[p].grade = GRADE_NONE;
    }
    return bwi_dnnl_layout_make(&choice->bias, 1, &conv->shape.oc, dnnl_a);
}

/* The layouts of src and dst to ask for, in this order. */
static const dnnl_format_tag_t candidates[][2] = {
    {dnnl_format_tag_any, dnnl_format_tag_any},
    {dnnl_aBcd16b, dnnl_aBcd16b},
    {dnnl_abcd, dnnl_aBcd16b},
    {dnnl_aBcd8b, dnnl_aBcd8b},
    {dnnl_abcd, dnnl_aBcd8b},
    {dnnl_abcd, dnnl_abcd},
    {dnnl_acdb, dnnl_acdb},
};

/* oneDNN picks an implementation only when the layouts are given, so each pair of layouts is tried until all passes have a
 * direct implementation; the best grade wins. */
static dnnl_status_t choose_freely(const bwi_conv *conv, bwi_conv_choice *choice)
{
    int wanted = 0;
    for (int p = 0; p < BWI_PASSES; p++) {
        wanted += conv->wanted[p];
    }
    for (size_t k = 0; k < BWI_COUNT(candidates) && choice->grade < wanted * GRADE_DIRECT; k++) {
        bwi_conv_choice next;
        dnnl_status_t status = choice_begin(conv, &next);
        if (status == dnnl_success) {
            status = choose_forward(conv, &next, candidates[k][0], candidates[k][1]);
        }
        if (status == dnnl_success) {
            status = choose_backward(conv, &next, NULL);
        }
        bool better = status == dnnl_success && next.grade > choice->grade;
        bwi_conv_choice_free(better ? choice : &next);
        if (better) {
            *choice = next;
        }
        if (status != dnnl_success) {
            return status;
        }
    }
    return dnnl_success;
}

dnnl_status_t bwi_conv_choose(const bwi_conv *conv, bwi_conv_choice *choice, const bwi_conv_choice *like)
{
    dnnl_status_t status = choice_begin(conv, choice);
    if (status == dnnl_success && !like) {
        status = choose_freely(conv, choice);
    } else if (status == dnnl_success) {
        status = forward_like(conv, choice, like);
        if (status == dnnl_success) {
            status = choose_backward(conv, choice, like);
        }
    }
    if (status == dnnl_success && choice->grade < GRADE_NONE / 2) { /* some pass has no implementation */
        status = dnnl_unimplemented;
    }
    return status;
}
