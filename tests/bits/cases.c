/*
 * The cases that are rows of tables: layers, activations, initializers, optimizers, schedules, losses, metrics, and how a batch is
 * computed.
 */
#include "bits.h"

/* ---- Lists of texts, each put into one place of a case ---- */

typedef struct text_list {
    const char *group;
    bits_case base;     /* % in its model stands for the text */
    const char **place; /* where else the text goes; within `under_way` */
    const char *const *texts;
    int count;
} text_list;

static bits_case under_way;

static const char *const activations[] = {"linear", "relu",       "sigmoid",  "tanh",        "softmax",
                                          "elu",    "selu",       "softplus", "softsign",    "silu",
                                          "gelu",   "leaky_relu", "relu6",    "exponential", "hard_sigmoid"};

static const char *const initializers[] = {"zeros",
                                           "ones",
                                           "constant(0.1)",
                                           "random_uniform(-0.2,0.3)",
                                           "random_normal(0.1,0.2)",
                                           "truncated_normal(stddev=0.3,seed=7)",
                                           "variance_scaling(2,fan_out,uniform)",
                                           "variance_scaling(1,fan_avg,untruncated_normal)",
                                           "glorot_uniform",
                                           "glorot_normal",
                                           "he_uniform",
                                           "he_normal",
                                           "lecun_uniform",
                                           "lecun_normal(seed=5)",
                                           "orthogonal(0.9)",
                                           "identity(0.5)"};

static const char *const regularizers[] = {"l1(0.02)", "l2(0.03)", "l1_l2(0.01,0.02)"};

static const char *const optimizers[] = {"sgd(0.05)",
                                         "sgd(0.05,momentum=0.9)",
                                         "sgd(0.05,0.9,nesterov=true)",
                                         "sgd(0.05,0.9,weight_decay=0.1)",
                                         "adam(0.01)",
                                         "adam(0.01,amsgrad=true)",
                                         "adam(0.01,0.8,0.99,1e-3,weight_decay=0.05)",
                                         "adamw(0.01)",
                                         "adamw(0.01,0.1,amsgrad=true)",
                                         "rmsprop(0.01)",
                                         "rmsprop(0.01,momentum=0.9)",
                                         "rmsprop(0.01,0.8,0.9,centered=true)",
                                         "rmsprop(0.01,centered=true,weight_decay=0.1)",
                                         "adagrad(0.05)",
                                         "adagrad(0.05,0.2,weight_decay=0.1)",
                                         "adadelta(1)",
                                         "adadelta(1,weight_decay=0.1)",
                                         "adamax(0.01)",
                                         "adamax(0.01,weight_decay=0.1)",
                                         "nadam(0.01)",
                                         "nadam(0.01,weight_decay=0.1)",
                                         "ftrl(0.1)",
                                         "lamb(0.01,weight_decay=0.1)",
                                         "adafactor(0.05)",
                                         "muon(0.02)",
                                         "lion(0.003)",
                                         "lion(0.003,weight_decay=0.1)",
                                         "adam(0.01,clipnorm=0.05)",
                                         "adam(0.01,clipvalue=0.01)",
                                         "adam(0.01,global_clipnorm=0.1)",
                                         "sgd(0.05,0.9,clipnorm=0.05)",
                                         "sgd(0.05,use_ema=true,ema_momentum=0.8)",
                                         "adam(0.01,use_ema=true,ema_momentum=0.9,ema_overwrite_frequency=3)"};

static const char *const schedules[] = {"sgd(exponential_decay(0.1,3,0.8))",
                                        "sgd(exponential_decay(0.1,3,0.8,true))",
                                        "adam(lr=inverse_time_decay(0.02,2,0.5))",
                                        "adam(inverse_time_decay(0.02,2,0.5,staircase=true))",
                                        "sgd(polynomial_decay(0.1,5,0.01,power=2))",
                                        "sgd(polynomial_decay(0.1,3,0.01,cycle=true),momentum=0.9)",
                                        "sgd(piecewise_constant_decay((2,5),(0.1,0.05,0.01)))",
                                        "adam(cosine_decay(0.02,6,alpha=0.1))",
                                        "adam(cosine_decay(0.001,4,warmup_target=0.02,warmup_steps=3))",
                                        "adamw(cosine_decay_restarts(0.02,2,t_mul=1.5,m_mul=0.8,alpha=0.05))"};

#define LIST(texts) (texts), COUNT_OF(texts)

static const text_list lists[] = {
    {"activation", {.model = "dense(9,%) dense(5,softmax)"}, NULL, LIST(activations)},
    {"activation/image", {.model = "conv2d(6,3) activation(%) flatten dense(5,softmax)", .input = IMAGE}, NULL, LIST(activations)},
    {"initializer", {.model = "dense(9,tanh,kernel_initializer=%) dense(5,softmax)"}, NULL, LIST(initializers)},
    {"regularizer", {.model = "dense(9,relu,kernel_regularizer=%,bias_regularizer=%) dense(5,softmax)"}, NULL, LIST(regularizers)},
    {"optimizer", {.model = "dense(17,relu) dense(5,softmax)"}, &under_way.optimizer, LIST(optimizers)},
    {"schedule", {.model = "dense(9,relu) dense(5,softmax)", .epochs = 3}, &under_way.optimizer, LIST(schedules)},
    /* Where a batch has few tiles and the weights are 1 MiB, workers share layers, not tiles, and gradients wait for the update. */
    {"ranges", {.model = "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16}, &under_way.optimizer, LIST(optimizers)},
    {"table", {.model = "embedding(20,6) flatten dense(5,softmax)", .input = TOKENS}, &under_way.optimizer, LIST(optimizers)},
    {"lazy",
     {.model = "embedding(40,6,lazy=true) flatten dense(5,softmax)", .input = TOKENS},
     &under_way.optimizer,
     LIST(optimizers)},
};

/* The pattern with the text in place of each %. */
static void put_text(char *model, size_t room, const char *pattern, const char *text)
{
    size_t length = 0;
    for (; *pattern && length < room; pattern++) {
        int more = *pattern == '%' ? snprintf(model + length, room - length, "%s", text)
                                   : snprintf(model + length, room - length, "%c", *pattern);
        length += (size_t)more;
    }
}

static void visit_list(const text_list *list, bits_visitor visit, void *user)
{
    char name[160], model[320];
    for (int i = 0; i < list->count; i++) {
        under_way = list->base;
        snprintf(name, sizeof name, "%s/%s", list->group, list->texts[i]);
        if (list->place) {
            *list->place = list->texts[i];
        } else {
            put_text(model, sizeof model, list->base.model, list->texts[i]);
            under_way.model = model;
        }
        under_way.name = name;
        visit(user, &under_way);
    }
}

/* ---- Losses: what the last layer gives, and the targets ---- */

static const struct {
    const char *loss, *activation;
    bits_target target;
} losses[] = {
    {"mean_squared_error", "linear", NUMBERS},
    {"mean_absolute_error", "linear", NUMBERS},
    {"mean_absolute_percentage_error", "linear", NUMBERS},
    {"mean_squared_logarithmic_error", "softplus", COUNTS},
    {"huber(delta=0.5)", "linear", NUMBERS},
    {"log_cosh", "linear", NUMBERS},
    {"binary_crossentropy", "sigmoid", BITS},
    {"binary_crossentropy(label_smoothing=0.1)", "sigmoid", BITS},
    {"binary_crossentropy(from_logits=true)", "linear", BITS},
    {"binary_crossentropy", "hard_sigmoid", BITS},
    {"categorical_crossentropy", "softmax", ONE_HOT},
    {"categorical_crossentropy(label_smoothing=0.1)", "softmax", ONE_HOT},
    {"categorical_crossentropy(from_logits=true)", "linear", ONE_HOT},
    {"categorical_crossentropy", "sigmoid", SHARES},
    {"sparse_categorical_crossentropy", "softmax", CLASSES},
    {"sparse_categorical_crossentropy(from_logits=true)", "linear", CLASSES},
    {"sparse_categorical_crossentropy", "sigmoid", CLASSES},
    {"hinge", "tanh", SIGNS},
    {"squared_hinge", "tanh", BITS},
    {"categorical_hinge", "linear", ONE_HOT},
    {"kl_divergence", "softmax", SHARES},
    {"poisson", "exponential", COUNTS},
    {"cosine_similarity", "linear", NUMBERS},
};

/* Each without weights and with them. */
static void visit_losses(bits_visitor visit, void *user)
{
    char name[160], model[160];
    for (int i = 0; i < 2 * COUNT_OF(losses); i++) {
        int k = i / 2;
        bits_case row = {.name = name, .model = model, .loss = losses[k].loss, .target = losses[k].target, .weighted = i % 2};
        snprintf(name, sizeof name, "loss/%s/%s%s", losses[k].loss, losses[k].activation, i % 2 ? "/weighted" : "");
        snprintf(model, sizeof model, "dense(9,relu) dense(5,%s)", losses[k].activation);
        visit(user, &row);
    }
}

/* ---- Layers ---- */

#define HEAD " flatten dense(5,softmax)"
#define POOLED " global_avgpool2d dense(5,softmax)"
#define TOWER "upsampling2d(2) conv2d(4,3,relu) conv2d(4,3,relu) conv2d(4,3,tanh) conv2d(4,3,silu)" POOLED
#define NOISY "upsampling2d(2) conv2d(4,3,relu) spatial_dropout2d(0.3) conv2d(4,3,relu) gaussian_noise(0.1) conv2d(4,3)" POOLED
#define TALL "upsampling2d(3) conv2d(16,5) batchnorm relu conv2d(16,5,strides=2) batchnorm relu" POOLED
#define PENALTY "dense(9,relu,kernel_regularizer=l2(0.05)) dense(5,softmax,bias_regularizer=l1(0.01))"
#define BLOCK "conv2d(8,3,use_bias=false) batchnorm relu maxpool2d(2) conv2d(8,3) batchnorm relu" HEAD

static const bits_case rows[] = {
    {"layer/dense/no_bias", "dense(33,use_bias=false) dense(7,relu) dense(5,softmax)", .input = ROWS},
    {"layer/dense/sequence", "dense(6,relu) dense(5,softmax)", .input = SEQUENCE, .target = STEP_CLASSES},
    {"layer/dense/frozen", "dense(9,relu,trainable=false) dense(9,relu) dense(5,softmax)", .input = ROWS},
    {"layer/dense/to_one", "dense(2,tanh) dense(1)", .target = BINARY, .tile = 16, .batch = 30},
    {"layer/dense/from_two", "dense(2,tanh) dense(40,relu) dense(3,tanh) dense(20) dense(5,softmax)", .tile = 8},
    {"layer/dense/narrow", "dense(70,relu) dense(3,tanh) dense(64,relu) dense(4) dense(50,relu) dense(2) dense(5,softmax)",
     .tile = 2},
    {"layer/dense/deep", "dense(700,relu) dense(640,relu) dense(5,softmax)", .input = WIDE, .tile = 32, .batch = 45},
    {"layer/dense/deep/1", "dense(700,relu) dense(64,relu) dense(5,softmax)", .input = WIDE, .tile = 1, .epochs = 1},
    {"layer/dense/odd", "dense(101,relu) dense(67,relu) dense(5,softmax)", .input = WIDE, .tile = 16, .batch = 29},
    {"layer/conv2d", "conv2d(6,3) conv2d(5,(3,2),tanh)" HEAD, .input = IMAGE},
    {"layer/conv2d/same", "conv2d(8,3,relu,padding=same) conv2d(12,3,relu,strides=2,padding=same)" HEAD, .input = IMAGE},
    {"layer/conv2d/dilated", "conv2d(8,3,dilation_rate=2) conv2d(8,3,relu,dilation_rate=(1,2))" HEAD, .input = IMAGE},
    {"layer/conv2d/groups", "conv2d(8,3,relu,groups=4) conv2d(8,1,groups=2,use_bias=false)" HEAD, .input = DEEP},
    {"layer/conv2d/1x1", "conv2d(20,1,relu) conv2d(7,1,strides=2)" HEAD, .input = DEEP},
    {"layer/conv2d/deep", "conv2d(16,3,relu,padding=same) conv2d(24,3,relu)" HEAD, .input = DEEP},
    {"layer/conv2d/pooled", "conv2d(8,5,relu) maxpool2d(2)" HEAD, .input = GRAY},
    {"layer/conv2d/pooled/same", "conv2d(16,5,relu,padding=same) maxpool2d(2) conv2d(5,3,relu) maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/conv2d/thin", "conv2d(16,3,relu) maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/conv2d/thin/gray", "conv2d(32,3,relu) maxpool2d(2)" HEAD, .input = GRAY},
    {"layer/conv2d/thin/exact", "conv2d(16,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .exact = true},
    {"layer/conv2d/thin/second", "conv2d(3,1,tanh) conv2d(16,3,relu,padding=same) maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/conv2d/thin/no_bias", "conv2d(40,3,relu,use_bias=false) maxpool2d(2)" HEAD, .input = IMAGE, .tile = 8},
    {"layer/conv2d/thin/two", "reshape(32,16,2) conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = DEEP},
    {"layer/conv2d/thin/four", "reshape(16,16,4) conv2d(24,3,relu,padding=same) maxpool2d(2)" HEAD, .input = DEEP},
    {"layer/conv2d/pooled/four", "reshape(16,16,4) conv2d(24,5,relu,use_bias=false) maxpool2d(2)" HEAD, .input = DEEP},
    {"layer/conv2d/pooled/second", "conv2d(2,1) conv2d(20,5,relu,padding=same) maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/conv2d/pooled/7", "conv2d(9,7,relu,padding=same) maxpool2d(2)" HEAD, .input = GRAY},
    {"layer/conv2d/pooled/4x2", "conv2d(20,(4,2),relu) maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/conv2d/winograd/no_bias", "conv2d(16,1) conv2d(48,3,relu,use_bias=false) maxpool2d(2)" HEAD, .input = DEEP},
    {"layer/conv2d/winograd", "conv2d(16,3,relu) maxpool2d(2)" HEAD, .input = DEEP},
    {"layer/conv2d/winograd/same", "conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(16,3,relu,padding=same) maxpool2d(2)" HEAD,
     .input = DEEP},
    {"layer/conv2d/winograd/exact", "conv2d(32,3,relu,padding=same) maxpool2d(2)" HEAD, .input = DEEP, .exact = true},
    {"layer/conv2d/winograd/auto", "conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(16,3,relu) maxpool2d(2)" HEAD, .input = DEEP,
     .tile = -1},
    {"layer/conv1d", "conv1d(6,3,relu) conv1d(5,2,strides=2)" HEAD, .input = SEQUENCE},
    {"layer/conv1d/same", "conv1d(8,3,relu,padding=same) conv1d(8,3,groups=2,padding=same)" HEAD, .input = SEQUENCE},
    {"layer/conv1d/causal", "conv1d(6,3,relu,padding=causal,dilation_rate=2)" HEAD, .input = SEQUENCE},
    {"layer/depthwise_conv2d", "depthwise_conv2d(3,relu) conv2d(6,1)" HEAD, .input = IMAGE},
    {"layer/depthwise_conv2d/multiplied", "depthwise_conv2d(3,strides=2,padding=same,depth_multiplier=2)" HEAD, .input = DEEP},
    {"layer/depthwise_conv2d/dilated", "depthwise_conv2d(3,dilation_rate=2,use_bias=false) relu" HEAD, .input = DEEP},
    {"layer/depthwise_conv2d/same", "conv2d(16,1,tanh) depthwise_conv2d(3,relu,padding=same)" HEAD, .input = DEEP},
    {"layer/depthwise_conv2d/strided", "conv2d(20,1,tanh) depthwise_conv2d(3,strides=2,padding=same)" HEAD, .input = DEEP},
    {"layer/depthwise_conv2d/large", "conv2d(12,1,tanh) depthwise_conv2d(5,strides=2,padding=same)" HEAD, .input = DEEP},
    {"layer/depthwise_conv2d/second",
     "conv2d(5,1) depthwise_conv2d((3,2),padding=same,dilation_rate=2) relu depthwise_conv2d(5)" HEAD, .input = IMAGE},
    {"layer/depthwise_conv2d/wide", "reshape(4,32,8) conv2d(8,1) depthwise_conv2d(3,padding=same,use_bias=false)" HEAD,
     .input = DEEP},
    {"layer/maxpool2d", "conv2d(6,3) maxpool2d(3,strides=2,padding=same)" HEAD, .input = IMAGE},
    {"layer/maxpool2d/relu", "conv2d(6,2) relu maxpool2d(3) conv2d(4,2)" HEAD, .input = IMAGE},
    {"layer/maxpool2d/deep", "conv2d(16,1) maxpool2d((2,3),strides=1)" HEAD, .input = DEEP},
    {"layer/avgpool2d", "conv2d(6,3) avgpool2d(3,strides=2,padding=same)" HEAD, .input = IMAGE},
    {"layer/avgpool2d/valid", "conv2d(6,3) avgpool2d(2)" HEAD, .input = IMAGE},
    {"layer/avgpool2d/deep", "conv2d(24,1) avgpool2d(2) conv2d(16,1) avgpool2d(3,strides=1,padding=same)" HEAD, .input = DEEP},
    {"layer/maxpool1d", "conv1d(6,3) maxpool1d(2)" HEAD, .input = SEQUENCE},
    {"layer/avgpool1d", "conv1d(6,3) avgpool1d(3,strides=2,padding=same)" HEAD, .input = SEQUENCE},
    {"layer/global_maxpool1d", "conv1d(6,3) global_maxpool1d dense(5,softmax)", .input = SEQUENCE},
    {"layer/global_maxpool2d", "conv2d(6,3) global_maxpool2d(keepdims=true) conv2d(6,1)" HEAD, .input = IMAGE},
    {"layer/global_maxpool2d/deep", "conv2d(24,3) global_maxpool2d dense(5,softmax)", .input = DEEP},
    {"layer/global_avgpool1d", "conv1d(6,3) global_avgpool1d(keepdims=true)" HEAD, .input = SEQUENCE},
    {"layer/global_avgpool2d", "conv2d(6,3) global_avgpool2d dense(5,softmax)", .input = DEEP},
    {"layer/reshape", "dense(24) reshape(4,-1) conv1d(3,2)" HEAD, .input = ROWS},
    {"layer/permute", "conv2d(6,3) permute(3,1,2) conv2d(4,3)" HEAD, .input = IMAGE},
    {"layer/zero_padding2d", "zero_padding2d(((1,2),(0,1))) conv2d(6,3) relu zero_padding2d dense(3)" HEAD, .input = IMAGE},
    {"layer/cropping2d", "conv2d(6,3) cropping2d(((1,2),(0,1)))" HEAD, .input = IMAGE},
    {"layer/upsampling2d", "conv2d(4,3,strides=2) upsampling2d((2,3)) conv2d(4,3)" HEAD, .input = IMAGE},
    {"layer/upsampling2d/bilinear", "conv2d(4,3,strides=2) upsampling2d(2,bilinear) conv2d(4,3)" HEAD, .input = IMAGE},
    {"layer/relu", "dense(9) relu(max_value=1,negative_slope=0.1,threshold=0.05) dense(5,softmax)", .input = ROWS},
    {"layer/relu6", "rescaling(20) dense(9,relu6) dense(5,softmax)", .input = ROWS},
    {"layer/leaky_relu", "dense(9) leaky_relu(0.1) dense(5,softmax)", .input = ROWS},
    {"layer/elu", "dense(9) elu(0.7) dense(5,softmax)", .input = ROWS},
    {"layer/prelu", "dense(9) prelu(alpha_initializer=constant(0.2),alpha_regularizer=l2(0.01)) dense(5,softmax)", .input = ROWS},
    {"layer/prelu/shared", "conv2d(6,3) prelu(shared_axes=(1,2)) conv2d(4,3) prelu" HEAD, .input = IMAGE},
    {"layer/softmax", "dense(9) softmax dense(5) softmax", .input = ROWS},
    {"layer/softmax/axis", "conv1d(6,3) softmax(axis=1) conv1d(6,3) softmax(axis=2)" HEAD, .input = SEQUENCE},
    {"layer/softmax/image", "conv2d(6,3) softmax(axis=1)" HEAD, .input = IMAGE},
    {"layer/dropout", "dropout(0.2) dense(20,relu) dropout(0.5,seed=3) dense(5,softmax)", .input = ROWS},
    {"layer/dropout/zero", "dense(9,relu) dropout(0) dense(5,softmax)", .input = ROWS},
    {"layer/spatial_dropout2d", "conv2d(8,3,relu) spatial_dropout2d(0.4) conv2d(8,3)" HEAD, .input = IMAGE},
    {"layer/gaussian_noise", "gaussian_noise(0.3) dense(9,relu) gaussian_noise(0.1,seed=2) dense(5,softmax)", .input = ROWS},
    {"layer/layernorm", "dense(9) layernorm relu dense(5,softmax)", .input = ROWS},
    {"layer/layernorm/axes", "conv2d(6,3) layernorm(axis=(1,2,3),center=false) relu conv2d(6,3) layernorm(scale=false)" HEAD,
     .input = IMAGE},
    {"layer/normalization", "normalization(mean=0.1,variance=0.5) dense(9,relu) normalization(axis=none) dense(5,softmax)",
     .input = ROWS},
    {"layer/normalization/invert", "dense(9,relu) normalization(mean=0.1,variance=0.5,invert=true) dense(5,softmax)",
     .input = ROWS},
    {"layer/rescaling", "rescaling(0.5,0.1) dense(9,relu) rescaling(2) dense(5,softmax)", .input = ROWS},
    {"layer/embedding", "embedding(20,6,embeddings_regularizer=l2(0.01)) conv1d(6,3,relu)" HEAD, .input = TOKENS},
    {"layer/embedding/lazy", "embedding(20,6,lazy=true) dense(4,relu)" HEAD, .input = TOKENS, .tile = 1},
    {"layer/add", "a=dense(9,relu) dense(9) add(a) dense(5,softmax)", .input = ROWS},
    {"layer/add/residual", "a=conv2d(8,3,relu) conv2d(8,3,padding=same) add(a) relu" HEAD, .input = IMAGE},
    {"layer/add/broadcast", "a=conv2d(8,3,relu) global_avgpool2d(keepdims=true) add(a)" HEAD, .input = IMAGE},
    {"layer/subtract", "a=dense(9,relu) dense(9) subtract(a) dense(5,softmax)", .input = ROWS},
    {"layer/multiply", "a=conv2d(8,3) global_avgpool2d(keepdims=true) dense(8,sigmoid) multiply(a)" HEAD, .input = IMAGE},
    {"layer/average", "a=dense(9,relu) b=dense(9) dense(9) average(a,b) dense(5,softmax)", .input = ROWS},
    {"layer/maximum", "a=dense(9,relu) b=dense(9) dense(9) maximum(a,b) dense(5,softmax)", .input = ROWS},
    {"layer/minimum", "a=dense(9,relu) dense(9,relu) minimum(a) dense(5,softmax)", .input = ROWS},
    {"layer/concat", "a=conv2d(6,3) from(input) conv2d(5,3,relu) concat(a) conv2d(4,3)" HEAD, .input = IMAGE},
    {"layer/concat/axis", "a=conv2d(6,3) from(input) conv2d(6,3,relu) concat(a,axis=1)" HEAD, .input = IMAGE},
    {"layer/dot", "a=dense(9,relu) from(input) dense(9) dot(a,axes=1,normalize=true) dense(5,softmax)", .input = ROWS},
    {"layer/dot/matrices", "a=conv1d(6,3) from(input) conv1d(6,5) dot(a,axes=(2,2)) dense(4)" HEAD, .input = SEQUENCE},
    {"layer/conv1d_transpose", "conv1d_transpose(5,3,relu,strides=2) conv1d(4,2)" HEAD, .input = SEQUENCE},
    {"layer/conv2d_transpose", "conv2d(6,3,strides=2) conv2d_transpose(5,3,relu,strides=2,padding=same) conv2d(4,3)" HEAD,
     .input = IMAGE},
    {"layer/conv2d_transpose/dilated", "conv2d_transpose(5,(3,2),dilation_rate=2,use_bias=false)" HEAD, .input = IMAGE},
    {"layer/conv3d", "reshape(4,8,8,4) conv3d(6,3,relu,padding=same) conv3d(4,2,strides=2)" HEAD, .input = DEEP},
    {"layer/conv3d_transpose", "reshape(4,8,8,4) conv3d(4,2,strides=2) conv3d_transpose(5,2,relu,strides=2) conv3d(2,3)" HEAD,
     .input = DEEP},
    {"layer/maxpool3d", "reshape(4,8,8,4) conv3d(4,2) maxpool3d(2,padding=same)" HEAD, .input = DEEP},
    {"layer/avgpool3d", "reshape(4,8,8,4) conv3d(4,2) avgpool3d((1,2,3),strides=1)" HEAD, .input = DEEP},
    {"layer/global_maxpool3d", "reshape(4,8,8,4) conv3d(6,3) global_maxpool3d dense(5,softmax)", .input = DEEP},
    {"layer/global_avgpool3d", "reshape(4,8,8,4) conv3d(6,3) global_avgpool3d(keepdims=true)" HEAD, .input = DEEP},
    {"layer/zero_padding3d", "reshape(4,8,8,4) zero_padding3d(((0,1),(1,0),(1,2))) conv3d(4,3) cropping3d(1)" HEAD, .input = DEEP},
    {"layer/upsampling3d", "reshape(4,8,8,4) conv3d(3,3) upsampling3d((1,2,1)) conv3d(2,2)" HEAD, .input = DEEP},
    {"layer/spatial_dropout3d", "reshape(4,8,8,4) conv3d(4,2) spatial_dropout3d(0.3)" HEAD, .input = DEEP},
    {"layer/adaptive_avgpool1d", "conv1d(6,3) adaptive_avgpool1d(3) adaptive_maxpool1d(2)" HEAD, .input = SEQUENCE},
    {"layer/adaptive_avgpool2d", "conv2d(6,3) adaptive_avgpool2d((4,3)) adaptive_maxpool2d(2)" HEAD, .input = IMAGE},
    {"layer/adaptive_avgpool3d", "reshape(4,8,8,4) conv3d(4,2) adaptive_avgpool3d((2,3,4)) adaptive_maxpool3d(2)" HEAD,
     .input = DEEP},
    {"layer/separable_conv1d", "separable_conv1d(6,3,relu) separable_conv1d(4,2,depth_multiplier=2,padding=same)" HEAD,
     .input = SEQUENCE},
    {"layer/separable_conv2d", "separable_conv2d(6,3,relu) separable_conv2d(5,3,strides=2,padding=same)" HEAD, .input = IMAGE},
    {"layer/depthwise_conv1d", "depthwise_conv1d(3,relu,depth_multiplier=2) conv1d(4,2)" HEAD, .input = SEQUENCE},
    {"layer/zero_padding1d", "zero_padding1d(2) conv1d(5,3) cropping1d((1,0)) upsampling1d(2)" HEAD, .input = SEQUENCE},
    {"layer/center_crop", "conv2d(6,3) center_crop(5,4)" HEAD, .input = IMAGE},
    {"layer/repeat_vector", "dense(9,relu) repeat_vector(4) conv1d(6,2)" HEAD, .input = ROWS},
    {"layer/constraints",
     "dense(9,relu,kernel_constraint=max_norm(0.7),bias_constraint=non_neg) dense(5,softmax,kernel_constraint=unit_norm)",
     .input = ROWS},
    {"layer/random_view", "random_flip random_translation(0.2,(-0.1,0.3)) random_rotation(0.1) random_zoom(0.2) conv2d(6,3)" HEAD,
     .input = IMAGE},
    {"layer/random_contrast", "random_brightness(0.2,value_range=(-1,1)) random_contrast(0.3,value_range=(-1,1)) conv2d(6,3)" HEAD,
     .input = IMAGE},
    {"layer/spatial_dropout1d", "conv1d(8,3,relu) spatial_dropout1d(0.4) conv1d(8,3)" HEAD, .input = SEQUENCE},
    {"layer/gaussian_dropout", "gaussian_dropout(0.3) dense(9,relu) alpha_dropout(0.2) dense(5,softmax)", .input = ROWS},
    {"layer/stochastic_depth", "a=dense(9,relu) dense(9) layer_scale(0.5,9) stochastic_depth(0.3) add(a) dense(5,softmax)",
     .input = ROWS},
    {"layer/groupnorm", "conv2d(8,3) groupnorm(4) relu conv2d(8,3) rmsnorm unitnorm" HEAD, .input = IMAGE},
    {"layer/simple_rnn", "simple_rnn(7,return_sequences=true) simple_rnn(5,relu) dense(5,softmax)", .input = SEQUENCE},
    {"layer/lstm", "lstm(9,return_sequences=true,dropout=0.2,recurrent_dropout=0.3) lstm(33) dense(5,softmax)", .input = SEQUENCE},
    {"layer/lstm/masked", "embedding(20,6,mask_zero=true) lstm(8,go_backwards=true) dense(5,softmax)", .input = TOKENS},
    {"layer/lstm/tile", "lstm(40) dense(5,softmax)", .input = SEQUENCE, .tile = 16, .batch = 29},
    {"layer/gru", "gru(9,return_sequences=true,go_backwards=true) gru(17,reset_after=false) dense(5,softmax)", .input = SEQUENCE},
    {"layer/masking", "masking(0) gru(6,return_sequences=true) global_avgpool1d dense(5,softmax)", .input = SEQUENCE},
    {"layer/bidirectional", "bidirectional(lstm(6,return_sequences=true)) bidirectional(gru(5),merge_mode=sum) dense(5,softmax)",
     .input = SEQUENCE},
    {"layer/time_distributed", "time_distributed(dense(6,relu)) reshape(-1,3,2) time_distributed(conv1d(4,2))" HEAD,
     .input = SEQUENCE},
    {"layer/einsum_dense", "einsum_dense(\"abc,cd->abd\",(none,6),relu,bias_axes=d)" HEAD, .input = SEQUENCE},
    {"layer/multi_head_attention",
     "dense(12) a=multi_head_attention(3,4) multi_head_attention(a,num_heads=2,key_dim=5,dropout=0.2,use_causal_mask=true)" HEAD,
     .input = SEQUENCE},
    {"layer/multi_head_attention/masked",
     "embedding(20,8,mask_zero=true) multi_head_attention(2,4) global_avgpool1d dense(5,softmax)", .input = TOKENS},
    {"layer/group_query_attention", "dense(12) group_query_attention(4,4,2)" HEAD, .input = SEQUENCE},
    {"layer/attention", "dense(6) attention(use_scale=true) additive_attention(dropout=0.1) attention(score_mode=concat)" HEAD,
     .input = SEQUENCE},
    {"mask/mean", "embedding(20,6,mask_zero=true) dense(7,tanh) dropout(0.1) global_avgpool1d dense(5,softmax)", .input = TOKENS},
    {"mask/loss", "embedding(20,6,mask_zero=true) layernorm dense(5,softmax)", .input = TOKENS, .target = STEP_CLASSES,
     .metrics = "accuracy"},
    {"mask/loss/weighted", "embedding(20,6,mask_zero=true) dense(5,softmax)", .input = TOKENS, .target = STEP_CLASSES,
     .weighted = true, .metrics = "accuracy,accuracy(weighted=true)"},
    {"mask/merge", "a=embedding(20,6,mask_zero=true,lazy=true) dense(6,relu) add(a) global_avgpool1d dense(5,softmax)",
     .input = TOKENS},

    /* Whole-batch layers; what a batch keeps, computes again or spills. */
    {"batchnorm", "dense(16) batchnorm relu dense(5,softmax)", .input = ROWS},
    {"batchnorm/options",
     "dense(16) batchnorm(momentum=0.8,epsilon=0.01,center=false) relu batchnorm(scale=false) dense(5,softmax)", .input = ROWS},
    {"batchnorm/images", BLOCK, .input = IMAGE},
    {"batchnorm/one_lane", BLOCK, .input = IMAGE, .tile = 1, .lanes = 1},
    {"batchnorm/tight", BLOCK, .input = IMAGE, .tile = 1, .lanes = 1, .budget = TIGHTEST},
    {"batchnorm/less", BLOCK, .input = IMAGE, .batch = 40, .tile = 1, .lanes = 1, .budget = 0.75},
    {"batchnorm/tall", TALL, .input = IMAGE, .batch = 40, .tile = 1, .lanes = 1},
    {"batchnorm/tall/half", TALL, .input = IMAGE, .batch = 40, .tile = 1, .lanes = 1, .budget = 0.5},
    {"batchnorm/tall/tight", TALL, .input = IMAGE, .batch = 40, .tile = 1, .lanes = 1, .budget = TIGHTEST},
    {"batchnorm/accumulate", BLOCK, .input = IMAGE, .accumulate = 3},
    {"batchnorm/frozen", "dense(16) batchnorm(trainable=false) relu batchnorm dense(5,softmax)", .input = ROWS},
    {"batchnorm/ghost", "conv2d(8,3) batchnorm(ghost=4) relu" HEAD, .input = IMAGE},
    {"batchnorm/ghost/tile", "dense(16) batchnorm(ghost=8) relu dense(5,softmax)", .tile = 16},
    {"batchnorm/ranks", BLOCK, .input = IMAGE, .ranks = 2},
    {"batchnorm/residual", "a=conv2d(8,3,padding=same) batchnorm relu conv2d(8,3,padding=same) batchnorm add(a) relu" HEAD,
     .input = IMAGE},
    {"batchnorm/dropout", "conv2d(8,3) batchnorm relu spatial_dropout2d(0.2)" HEAD, .input = IMAGE, .batch = 40, .tile = 2,
     .budget = TIGHTEST},

    /* Budgets, tiles, lanes, workers, ranks: explicit tiles and lanes, so that only the order of sums they name is hashed. */
    {"budget/roomy", TOWER, .input = IMAGE, .tile = 1, .lanes = 1},
    {"budget/tight", TOWER, .input = IMAGE, .tile = 1, .lanes = 1, .budget = TIGHTEST},
    {"budget/noise", NOISY, .input = IMAGE, .tile = 1, .lanes = 1, .budget = TIGHTEST},
    {"budget/ranges", "dense(960,relu) dense(5,softmax)", .input = WIDE, .tile = 1, .lanes = 16, .budget = TIGHTEST},
    {"budget/tile", TOWER, .input = IMAGE, .tile = -1, .budget = 0.5, .workers = 2}, /* the plan's bytes choose the tile */
    {"tile/1", "conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .tile = 1},
    {"tile/2", "conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .tile = 2},
    {"tile/8", "conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .tile = 8},
    {"tile/64", "conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .tile = 64},
    {"tile/model", "conv2d(8,3,relu) maxpool2d(2)" HEAD, .input = IMAGE, .tile = -1},
    {"tile/model/dense", "dense(64,relu) dense(5,softmax)", .tile = -1},
    {"tile/model/linear", "dense(1)", .target = BINARY, .tile = -1, .batch = 1, .optimizer = "sgd(0.05)"},
    {"lanes/1", "dense(20,relu) dense(5,softmax)", .tile = 1, .lanes = 1},
    {"lanes/2", "dense(20,relu) dense(5,softmax)", .tile = 1, .lanes = 2},
    {"lanes/32", "dense(20,relu) dense(5,softmax)", .tile = 1, .lanes = 32},
    {"workers/1", "conv2d(8,3,relu)" HEAD, .input = IMAGE, .workers = 1},
    {"workers/2", "conv2d(8,3,relu)" HEAD, .input = IMAGE, .workers = 2},
    {"workers/3", "conv2d(8,3,relu)" HEAD, .input = IMAGE, .workers = 3},
    {"ranks/2", "conv2d(8,3,relu)" HEAD, .input = IMAGE, .ranks = 2, .workers = 1},
    {"ranks/4", "conv2d(8,3,relu)" HEAD, .input = IMAGE, .ranks = 4, .workers = 1},
    {"ranks/2/workers", "dense(20,relu) dropout(0.3) dense(5,softmax)", .ranks = 2, .workers = 2, .accumulate = 2},
    {"ranks/2/clip", "dense(20,relu) dense(5,softmax)", .ranks = 2, .optimizer = "adam(0.01,global_clipnorm=0.1)"},
    {"ranks/2/table", "embedding(20,6,lazy=true)" HEAD, .input = TOKENS, .ranks = 2, .validation = 0.2},
    {"ranks/4/table", "embedding(20,6,mask_zero=true) global_avgpool1d dense(5,softmax)", .input = TOKENS, .ranks = 4,
     .workers = 1},
    {"ranges/workers/1", "dense(960,relu) dense(97,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .workers = 1},
    {"ranges/workers/3", "dense(960,relu) dense(97,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .workers = 3},
    {"ranges/accumulate", "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .accumulate = 2},
    {"ranges/one_tile", "dense(960,relu,kernel_regularizer=l2(0.01)) dense(5,softmax)", .input = WIDE, .tile = 64, .batch = 45},
    {"ranges/ranks", "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .ranks = 2},

    /* Norms of gradients with penalties. */
    {"clip/penalty", PENALTY, .optimizer = "adam(0.01,clipnorm=0.05)", .input = ROWS},
    {"clip/penalty/global", PENALTY, .optimizer = "sgd(0.05,0.9,global_clipnorm=0.1)", .accumulate = 2},
    {"clip/penalty/table", "embedding(20,6,embeddings_regularizer=l1_l2(0.01,0.01)) flatten dense(5,softmax)", .input = TOKENS,
     .optimizer = "adam(0.01,global_clipnorm=0.1)"},
    {"clip/penalty/lazy", "embedding(20,6,lazy=true,embeddings_regularizer=l2(0.02)) flatten dense(5,softmax)", .input = TOKENS,
     .optimizer = "sgd(0.05,clipnorm=0.05)"},
    {"clip/penalty/ranges", "dense(960,relu,kernel_regularizer=l2(0.01)) dense(5,softmax)", .input = WIDE, .lanes = 16,
     .optimizer = "adam(0.01,global_clipnorm=0.1)"},

    /* Batches and what goes with an epoch. */
    {"batch/1", "dense(9,relu) dense(5,softmax)", .batch = 1, .epochs = 1},
    {"batch/whole", "dense(9,relu) dense(5,softmax)", .batch = 1000},
    {"batch/full", "dense(9,relu) dense(5,softmax)", .batch_sizes = "full"},
    {"batch/turns", "dense(9,relu) dense(5,softmax)", .batch_sizes = "4,11"},
    {"batch/epochs", "dense(9,relu) dense(5,softmax)", .batch_sizes = "7@0,20@1,32@2", .epochs = 3},
    {"batch/drop", "dense(9,relu) dense(5,softmax)", .drop_remainder = true},
    {"accumulate/3", "dense(9,relu) dense(5,softmax)", .accumulate = 3, .batch = 5},
    {"accumulate/schedule", "dense(9,relu) dense(5,softmax)", .accumulate = 2,
     .optimizer = "sgd(exponential_decay(0.1,2,0.7),0.9)"},
    {"accumulate/table", "embedding(20,6) flatten dense(5,softmax)", .input = TOKENS, .accumulate = 2},
    {"weights/class", "dense(9,relu) dense(5,softmax)", .class_weights = true},
    {"weights/class/one_hot", "dense(9,relu) dense(5,softmax)", .target = ONE_HOT, .class_weights = true, .weighted = true},
    {"weights/class/binary", "dense(9,relu) dense(1,sigmoid)", .target = BINARY, .class_weights = true},
    {"validation", "dense(9,relu) dropout(0.2) dense(5,softmax)", .validation = 0.3, .metrics = "accuracy"},
    {"validation/batchnorm", BLOCK, .input = IMAGE, .validation = 0.3, .epochs = 3},
    {"early_stopping", "dense(30,relu) dense(5,softmax)", .validation = 0.3, .epochs = 30, .optimizer = "adam(0.05)",
     .early_stopping = "patience=2,restore_best_weights=true"},
    {"early_stopping/mode", "dense(30,relu) dense(5,softmax)", .epochs = 20, .optimizer = "adam(0.05)", .metrics = "accuracy",
     .early_stopping = "monitor=accuracy,mode=max,patience=1,min_delta=0.05,start_from_epoch=2"},
    {"plateau", "dense(30,relu) dense(5,softmax)", .validation = 0.3, .epochs = 12, .optimizer = "sgd(0.5)",
     .plateau = "factor=0.5,patience=1,cooldown=1,min_lr=0.01"},

    /* Metrics. */
    {"metric/classes", "dense(9,relu) dense(5,softmax)", .weighted = true, .class_weights = true, .validation = 0.2,
     .metrics = "accuracy,sparse_categorical_accuracy(weighted=true),sparse_top_k_categorical_accuracy(k=2),"
                "sparse_categorical_crossentropy(weighted=true,name=entropy)"},
    {"metric/one_hot", "dense(9,relu) dense(5,softmax)", .target = ONE_HOT, .weighted = true,
     .metrics =
         "accuracy,categorical_accuracy(weighted=true),top_k_categorical_accuracy(k=3),categorical_crossentropy,kl_divergence,"
         "categorical_hinge,precision,recall"},
    {"metric/binary", "dense(9,relu) dense(1,sigmoid)", .target = BINARY, .weighted = true, .validation = 0.2,
     .metrics =
         "accuracy,binary_accuracy(threshold=0.3),precision(thresholds=0.4),recall,auc,auc(curve=pr,weighted=true,name=area),"
         "auc(num_thresholds=50,curve=prgain,summation_method=minoring,name=gain),"
         "auc(summation_method=majoring,name=major),binary_crossentropy(name=entropy)"},
    {"metric/logits", "dense(9,relu) dense(1)", .target = BINARY, .loss = "bce(from_logits=true)",
     .metrics = "auc(from_logits=true)"},
    {"metric/mixed", "dense(9,relu) dense(1)", .target = CLASSES, .loss = "mse", .metrics = "sparse_categorical_accuracy,mae"},
    {"metric/numbers", "dense(9,relu) dense(5)", .target = NUMBERS, .weighted = true,
     .metrics = "mse,mae,mape,msle,huber(0.5),logcosh,root_mean_squared_error,r2_score,"
                "r2_score(class_aggregation=variance_weighted_average,num_regressors=2,name=r2),cosine_similarity,poisson,hinge,"
                "squared_hinge,mae(weighted=true,name=weighted)"},
};

void bits_table_cases(bits_visitor visit, void *user)
{
    for (int i = 0; i < COUNT_OF(lists); i++) {
        visit_list(&lists[i], visit, user);
    }
    visit_losses(visit, user);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        visit(user, &rows[i]);
    }
}
