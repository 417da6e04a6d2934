# bash completion for batchwise. Commands and options come from its own help, so they are never out of date.
_batchwise()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words= option= i
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$("$program" --help 2>/dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    for ((i = COMP_CWORD - 1; i > 1 && ${#option} == 0; i--)); do
        [[ ${COMP_WORDS[i]} != --* ]] || option=${COMP_WORDS[i]}
    done
    case $previous in
    --model)
        # A file, or an expression, whose last layer is completed.
        words="dense conv1d conv2d depthwise_conv2d depthwise_conv1d separable_conv1d separable_conv2d maxpool1d maxpool2d avgpool1d
            avgpool2d global_maxpool1d global_maxpool2d global_avgpool1d global_avgpool2d flatten reshape permute zero_padding2d
            cropping2d zero_padding1d cropping1d upsampling1d repeat_vector identity upsampling2d activation relu leaky_relu elu
            prelu softmax dropout spatial_dropout1d spatial_dropout2d alpha_dropout gaussian_dropout stochastic_depth
            gaussian_noise batchnorm layernorm groupnorm rmsnorm unitnorm normalization rescaling layer_scale add average
            subtract multiply maximum minimum custom_scale concat dot simple_rnn lstm gru masking embedding
            rnn simple_rnn_cell stacked_rnn_cells lstm_cell gru_cell resizing activity_regularization random_grayscale random_invert random_posterization solarization random_color_degeneration
            text_vectorization string_lookup integer_lookup hashing hashed_crossing discretization category_encoding
            conv1d_transpose conv2d_transpose bidirectional time_distributed einsum_dense multi_head_attention group_query_attention
            conv3d conv3d_transpose maxpool3d avgpool3d global_maxpool3d global_avgpool3d zero_padding3d cropping3d
            upsampling3d spatial_dropout3d random_flip random_translation random_rotation random_zoom random_brightness
            random_contrast center_crop adaptive_avgpool1d adaptive_avgpool2d adaptive_avgpool3d adaptive_maxpool1d
            adaptive_maxpool2d adaptive_maxpool3d
            attention additive_attention"
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        if [ "${#COMPREPLY[@]}" -eq 0 ]; then
            compopt +o filenames -o nospace
            mapfile -t COMPREPLY < <(compgen -P "${current%"${current##*[ \'\"]}"}" -W "$words" -- "${current##*[ \'\"]}")
        fi
        return
        ;;
    --metrics) words="accuracy acc binary_accuracy categorical_accuracy sparse_categorical_accuracy top_k_categorical_accuracy
        sparse_top_k_categorical_accuracy precision recall auc root_mean_squared_error r2_score cosine_similarity
        log_cosh_error logcosh
        true_positives true_negatives false_positives false_negatives precision_at_recall recall_at_precision
        sensitivity_at_specificity specificity_at_sensitivity f1_score fbeta_score iou mean_iou one_hot_iou one_hot_mean_iou
        binary_iou pearson_correlation concordance_correlation" ;;
    --save-model | --save-best | --history | --out | --run | --trace | --report | --tensorboard | --cache) words=files ;;
    --workload) words=$("$program" bench --help 2>/dev/null | sed -n '/^workloads/,/^$/s/^  \([a-z0-9]*\) .*/\1/p') ;;
    --batch) words="full auto 1 16 32 64 128" ;;
    --optimizer) words="adam adamw sgd rmsprop adagrad adadelta adamax nadam lion ftrl lamb adafactor muon" ;;
    --loss) words="mean_squared_error mean_absolute_error mean_absolute_percentage_error mean_squared_logarithmic_error huber log_cosh
        binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy hinge squared_hinge categorical_hinge
        kl_divergence poisson cosine_similarity
        binary_focal_crossentropy categorical_focal_crossentropy categorical_generalized_cross_entropy dice tversky ctc" ;;
    --class-weight) words="auto" ;;
    --missing) words="error mean zero skip" ;;
    --separator) words="tab space" ;;
    --checkpoint-every) words="epoch 30s 1000" ;;
    --on-nan) words="stop skip" ;;
    *)
        # Several files may follow --data.
        case $option:$current in
        *:-*) words="$("$program" "$command" --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" ;;
        --data:* | --validation:*) words=files ;;
        *) [ "$command" != convert ] && [ "$command" != report ] || words=files ;;
        esac
        ;;
    esac
    if [ "$words" = files ]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    fi
}
complete -F _batchwise batchwise
