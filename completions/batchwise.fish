# fish completion for batchwise. Commands and options come from its own help, so they are never out of date.
function __batchwise_commands
    batchwise --help 2>/dev/null | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) +(.*)/\1\t\2/p'
end

function __batchwise_options
    set -l words (commandline -opc)
    batchwise $words[2] --help 2>/dev/null | sed -nE 's/^  (--[a-z-]+).*  +([^ ].*)/\1\t\2/p'
end

function __batchwise_workloads
    batchwise bench --help 2>/dev/null | sed -nE '/^workloads/,/^$/s/^  ([a-z0-9]+) +(.*)/\1\t\2/p'
end

function __batchwise_after
    set -l words (commandline -opc)
    contains -- $words[-1] $argv
end

# Whether the last word is an option that takes a value: the help shows it in capitals.
function __batchwise_valued
    set -l words (commandline -opc)
    string match -q -- '--*' $words[-1]
    and batchwise $words[2] --help 2>/dev/null | string match -qr -- "^  $words[-1] [A-Z]"
end

# Several files may follow --data.
function __batchwise_samples
    set -l options (string match -- '--*' (commandline -opc))
    contains -- "$options[-1]" --data --validation
end

complete -c batchwise -f
complete -c batchwise -n __fish_use_subcommand -a '(__batchwise_commands)'
complete -c batchwise -n __fish_use_subcommand -a "--help --version"
complete -c batchwise -n "not __fish_use_subcommand; and not __batchwise_valued" -a '(__batchwise_options)'
complete -c batchwise -n __batchwise_samples -F
complete -c batchwise -n '__batchwise_after --model --save-model --save-best --history --out --run --trace --report --tensorboard --cache' -F
complete -c batchwise -n '__fish_seen_subcommand_from convert report' -F
complete -c batchwise -n '__batchwise_after --workload' -a '(__batchwise_workloads)'
complete -c batchwise -n '__batchwise_after --batch' -a 'full auto 1 16 32 64 128'
complete -c batchwise -n '__batchwise_after --optimizer' -a 'adam adamw sgd rmsprop adagrad adadelta adamax nadam lion ftrl lamb adafactor muon'
complete -c batchwise -n '__batchwise_after --loss' -a 'mean_squared_error mean_absolute_error mean_absolute_percentage_error \
mean_squared_logarithmic_error huber log_cosh binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy hinge \
squared_hinge categorical_hinge kl_divergence poisson cosine_similarity \
binary_focal_crossentropy categorical_focal_crossentropy categorical_generalized_cross_entropy dice tversky ctc'
complete -c batchwise -n '__batchwise_after --metrics' -a 'accuracy acc binary_accuracy categorical_accuracy sparse_categorical_accuracy top_k_categorical_accuracy \
sparse_top_k_categorical_accuracy precision recall auc root_mean_squared_error r2_score cosine_similarity log_cosh_error \
logcosh \
true_positives true_negatives false_positives false_negatives precision_at_recall recall_at_precision \
sensitivity_at_specificity specificity_at_sensitivity f1_score fbeta_score iou mean_iou one_hot_iou one_hot_mean_iou \
binary_iou pearson_correlation concordance_correlation'
complete -c batchwise -n '__batchwise_after --model' -a 'dense conv1d conv2d depthwise_conv2d depthwise_conv1d separable_conv1d separable_conv2d maxpool1d maxpool2d avgpool1d avgpool2d \
global_maxpool1d global_maxpool2d global_avgpool1d global_avgpool2d flatten reshape permute zero_padding2d cropping2d \
zero_padding1d cropping1d upsampling1d repeat_vector identity upsampling2d activation relu leaky_relu elu prelu softmax \
dropout spatial_dropout1d spatial_dropout2d alpha_dropout gaussian_dropout stochastic_depth gaussian_noise batchnorm \
layernorm groupnorm rmsnorm unitnorm normalization rescaling layer_scale add average subtract multiply maximum minimum \
custom_scale concat dot simple_rnn lstm gru masking embedding \
rnn simple_rnn_cell stacked_rnn_cells lstm_cell gru_cell resizing activity_regularization random_grayscale random_invert random_posterization solarization random_color_degeneration \
text_vectorization string_lookup integer_lookup hashing hashed_crossing discretization category_encoding \
conv1d_transpose conv2d_transpose bidirectional time_distributed einsum_dense multi_head_attention group_query_attention \
conv3d conv3d_transpose maxpool3d avgpool3d global_maxpool3d global_avgpool3d zero_padding3d cropping3d \
upsampling3d spatial_dropout3d random_flip random_translation random_rotation random_zoom random_brightness \
random_contrast center_crop adaptive_avgpool1d adaptive_avgpool2d adaptive_avgpool3d adaptive_maxpool1d \
adaptive_maxpool2d adaptive_maxpool3d \
attention additive_attention'
complete -c batchwise -n '__batchwise_after --class-weight' -a auto
complete -c batchwise -n '__batchwise_after --missing' -a 'error mean zero skip'
complete -c batchwise -n '__batchwise_after --separator' -a 'tab space'
complete -c batchwise -n '__batchwise_after --checkpoint-every' -a 'epoch 30s 1000'
complete -c batchwise -n '__batchwise_after --on-nan' -a 'stop skip'
