# batchwise convert: every way between files, the same bytes each time, wrong usage of each option, what is refused.
. "$(dirname "$0")/run.sh"

train --epochs 2 --quiet --save-model m.keras
expect_code 0 'a model to convert'

# There: each kind of file, the same twice.
for name in copy.keras m.json m.weights.h5 m.safetensors m.onnx m.c; do
    run convert m.keras "$name"
    expect_code 0 "convert to $name"
    expect_pattern out "^$name: 1210 parameters, [0-9.]+ KiB$" "convert to $name"
    expect_empty err "convert to $name"
    cp "$name" first
    run convert m.keras "$name" --quiet
    expect_code 0 "convert to $name again"
    expect_empty out "convert --quiet"
    cmp -s first "$name" || fail "$name: two files of one model differ"
done
# How the samples were prepared goes along.
for name in m.c m.onnx; do
    grep -qaF '"scale": 0.0625' "$name" || fail "$name does not say how samples are scaled"
done
cmp -s m.keras copy.keras || fail 'a .keras file converted to itself differs'

# And back: weights alone need a model, as a file or as an expression.
for name in m.weights.h5 m.safetensors; do
    for model in m.json m.keras 'input(8,8) flatten dense(16,relu) dense(10,softmax)'; do
        run convert "$name" --model "$model" back.safetensors
        expect_code 0 "convert $name --model $model"
        cmp -s m.safetensors back.safetensors || fail "$name --model $model: the weights differ"
    done
    expect_usage "$name holds weights only: --model must say whose they are" convert "$name" back.keras
    run convert "$name" back.keras --model 'flatten dense(16,relu) dense(10,softmax)'
    expect_code 1 'a model without a shape'
    expect_text err 'begin its expression with input(...)' 'a model without a shape'
    run convert "$name" back.keras --model 'input(8,8) flatten dense(17,relu) dense(10,softmax)'
    expect_code 1 'weights of another model'
    expect_text err "$name" 'weights of another model'
    [ ! -e back.keras ] || fail 'a file was left behind'
done

run convert m.keras m.onnx --json
expect_code 0 '--json'
expect_equal m.keras "$(value input)" '--json: input'
expect_equal m.onnx "$(value output)" '--json: output'
expect_equal 1210 "$(value parameters)" '--json: parameters'
expect_equal "$(wc -c <m.onnx)" "$(value bytes)" '--json: bytes'

# C predicts where there is a compiler.
if command -v cc >/dev/null; then
    printf '#include <stdio.h>\nvoid m_predict(const float *, float *);\nint main(void)\n{\n    static float x[64], y[10];\n    float sum = 0;\n    m_predict(x, y);\n    for (int i = 0; i < 10; i++) sum += y[i];\n    return sum > 0.999f && sum < 1.001f ? 0 : 1;\n}\n' >main.c
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o predict main.c m.c -lm && ./predict || fail 'm.c does not predict'
fi

# What was done to the samples before training is part of exported files, and so are names of classes: raw values go in.
awk -v OFS=, 'BEGIN { print "a,b,y"; for (i = 0; i < 40; i++) print 1000 + i, i * i / 100, (i > 20 ? "b?\"g" : "small") }' | sed 's/b?"g/"b?""g"/' >raw.csv
run train --model 'dense(3,relu) dense(2,softmax)' --data raw.csv --scale 1/10 --standardise --epochs 5 --quiet --save-model s.keras
run convert s.keras s.onnx
expect_code 0 'convert s.onnx'
expect_text s.onnx '["b?\"g", "small"]' 's.onnx: names of classes'
run convert s.keras s.c
expect_code 0 'convert s.c'
if command -v cc >/dev/null; then
    printf '#include <stdio.h>\nvoid s_predict(const float *, float *);\nextern const char *const s_classes[2];\nint main(void)\n{\n    float x[2], y[2];\n    while (scanf("%%f,%%f,%%*[^\\n]", &x[0], &x[1]) == 2) {\n        s_predict(x, y);\n        printf("%%s %%.4f %%.4f\\n", s_classes[y[1] > y[0]], y[0], y[1]);\n    }\n    return 0;\n}\n' >main.c
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o predict main.c s.c -lm || fail 's.c does not compile'
    sed 1d raw.csv | ./predict >by_c
    run predict --model s.keras --data raw.csv --quiet
    sed -E '1d; s/^"b\?""g"/b?"g/' out | awk -F, '{ printf "%s %.4f %.4f\n", $1, $2, $3 }' | cmp -s - by_c || fail 's.c: expected what predict gives for raw values'
fi

# Wrong usage.
expect_usage 'expected two files, IN and OUT, found none' convert
expect_usage 'expected two files, IN and OUT, found one' convert m.keras
expect_usage "unexpected argument 'third.keras'" convert m.keras a.keras third.keras
expect_usage 'a.txt: expected a name that ends in .keras' convert a.txt b.keras
expect_usage 'b.txt: expected a name that ends in .keras' convert m.keras b.txt
expect_usage 'm.onnx: expected a name that ends in' convert m.onnx b.keras
expect_usage '--model' convert m.keras b.keras --model
expect_usage '--nonsense' convert m.keras b.keras --nonsense

# Failures name the file.
run convert missing.keras b.keras
expect_code 1 'a file that is not there'
expect_text err 'missing.keras' 'a file that is not there'
run convert m.keras no/such/b.onnx
expect_code 1 'a folder that is not there'
expect_text err 'no/such/b.onnx' 'a folder that is not there'
run convert m.json b.keras
expect_code 1 'a model without weights'
expect_text err 'b.keras: the model has no variables yet' 'a model without weights'
head -c 2000 m.keras >cut.keras
run convert cut.keras b.keras
expect_code 1 'half a model'
expect_text err 'cut.keras' 'half a model'
printf '{"class_name":"Sequential","config":{"layers":[{"module":"keras.layers","class_name":"Lambda","config":{"name":"trick"}}]}}' >l.json
run convert l.json b.json
expect_code 1 'a Lambda layer'
expect_text err 'layer trick' 'a Lambda layer'
run convert --help
expect_code 0 'convert --help'
expect_text out 'IN OUT' 'convert --help'
finish
