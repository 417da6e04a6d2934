# summary: Keras's table with bytes, JSON, and models as expressions.
. "$(dirname "$0")/run.sh"

run summary --model 'input(28,28,1) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)'
expect_code 0 summary
expect_empty err summary
cat >wanted <<'TABLE'
Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃         Bytes ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ conv2d (Conv2D)                 │ (None, 26, 26, 32)     │           320 │         1,280 │
├─────────────────────────────────┼────────────────────────┼───────────────┼───────────────┤
│ max_pooling2d (MaxPooling2D)    │ (None, 13, 13, 32)     │             0 │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┼───────────────┤
│ flatten (Flatten)               │ (None, 5408)           │             0 │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┼───────────────┤
│ dense (Dense)                   │ (None, 10)             │        54,090 │       216,360 │
└─────────────────────────────────┴────────────────────────┴───────────────┴───────────────┘
 Total params: 54,410 (212.54 KB)
 Trainable params: 54,410 (212.54 KB)
 Non-trainable params: 0 (0.00 B)
TABLE
cmp -s wanted out || fail 'summary: expected the table of Keras'

# The shape from --shape and from the data.
run summary --model 'conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)' --shape 28x28x1
cmp -s wanted out || fail '--shape: expected the same table'
run summary --model "$model" --data "$digits" --json
expect_code 0 'summary --data'
expect_equal 1 "$(wc -l <out)" 'summary --json: lines'
expect_pattern out '^\{"name": "sequential", "layers": \[\{"name": "flatten", "class": "Flatten", "shape": \[64\], "parameters": 0, "trainable": 0, "bytes": 0, "inputs": \[\]\}, \{"name": "dense", .*"parameters": 1040, .*"inputs": \["flatten"\]\}, .*\], "parameters": 1210, "trainable": 1210, "non_trainable": 0, "optimizer": 0, "bytes": 4840, "expression": "input\(8,8,1\) flatten dense\(16,relu\) dense\(10,softmax\)"\}$' 'summary --json'

# Branches: what is connected to what.
residual='input(8,8,3) a=conv2d(8,3,padding=same) relu b=conv2d(8,3,padding=same) from(a) conv2d(8,1,name=shortcut) add(b,a) flatten dense(2)'
run summary --model "$residual"
expect_code 0 'summary of branches'
expect_text out 'Model: "functional"' 'summary of branches'
expect_pattern out 'input_layer \(InputLayer\) .* - ' 'summary of branches'
expect_pattern out 'shortcut \(Conv2D\) .* 72 .* 288 .* conv2d\[0\]\[0\] ' 'summary of branches'
expect_pattern out 'add \(Add\) .* shortcut\[0\]\[0\], ' 'summary of branches'

# Expressions come back as they are; a file's is that of its model; the optimizer counts once it was used.
run summary --model "$residual" --expression
expect_equal "$residual" "$(cat out)" 'summary --expression'
run summary --model 'dense(3,linear)' --expression
expect_equal 'dense(3)' "$(cat out)" 'summary --expression without a shape'
train --epochs 1 --quiet --save-model m.keras
run summary --model m.keras
expect_text out ' Total params: 3,632 (14.19 KB)' 'summary m.keras'
expect_text out ' Optimizer params: 2,422 (9.46 KB)' 'summary m.keras' # two slots, iteration and rate
run summary --model m.keras --expression
expect_equal "input(8,8,1) $model" "$(cat out)" 'summary m.keras --expression'
out_of_file=$(cat out)
run summary --model "$out_of_file" --json
cp out of_expression
run summary --model m.keras --json
expect_equal "$(sed 's/, "optimizer".*//' of_expression)" "$(sed 's/, "optimizer".*//' out)" 'the file and its expression'

# Files of the real Keras: one that an expression can say, one that it cannot.
keras=$BW_DATA/../tests/data/keras
run summary --model "$keras/residual.keras" --expression
expect_code 0 'residual.keras'
expect_equal 'input(8,8,3) a=conv2d(6,3,relu,padding=same,name=stem) b=conv2d(6,3,padding=same) from(a) add(b) activation(relu) c=depthwise_conv2d(3,padding=same,depth_multiplier=2) from(input) d=conv2d(2,1) from(c) concat(a,d) global_avgpool2d dense(3,softmax)' "$(cat out)" 'residual.keras'
run summary --model "$keras/shared.keras" --expression
expect_code 1 'shared.keras'
expect_empty out 'shared.keras'
expect_text err 'cannot be written as an expression: it has several inputs or outputs' 'shared.keras'
run summary --model "$keras/shared.keras"
expect_code 0 'shared.keras as a table'

# A file names its model, as it is shown and saved.
run convert m.keras named.json
sed -i 's/"name": *"sequential"/"name": "first try"/' named.json
run summary --model named.json
expect_text out 'Model: "first try"' 'a name of its own'
run convert named.json again.json
expect_text again.json '"first try"' 'a name of its own, saved'

# What is missing.
run summary --model 'dense(3)'
expect_code 1 'no shape'
expect_text err 'the shape of the input is not known: begin the expression with input(...), or give --shape or --data' 'no shape'
run summary --model missing.keras
expect_code 1 'a file that is not there'
expect_text err 'missing.keras' 'a file that is not there'
expect_usage '--model is required' summary
expect_usage '--expression and --json exclude each other' summary --model 'dense(3)' --expression --json
expect_usage '--expression takes no value' summary --model 'dense(3)' --expression=yes
expect_usage "--shape: expected extents" summary --model 'dense(3)' --shape 0

# Wrong expressions: the place is shown, in its line if there are several.
wrong() {
    run summary --model "$1"
    expect_code 2 "summary --model '$1'"
    expect_empty out "summary --model '$1'"
    printf '%s\n' "batchwise summary: $2" "  $3" "$4^" | cmp -s - err || fail "summary --model '$1': expected '$2' and a caret"
}
wrong 'dense(3) dens(3)' "model: column 10: there is no layer 'dens'; did you mean 'dense'?" 'dense(3) dens(3)' '           '
wrong 'dense(3' "model: column 8: expected ',' or ')', found the end" 'dense(3' '         '
wrong 'dense(3) )' "model: column 10: expected a name, a number or '(', found ')'" 'dense(3) )' '           '
wrong 'dense(x)' "model: dense: column 7: units: expected a whole number, found 'x'" 'dense(x)' '        '
wrong 'dense()' 'model: dense: column 1: units must be given' 'dense()' '  '
wrong 'dense(3,colour=red)' "model: dense: column 9: there is no argument 'colour'" 'dense(3,colour=red)' '          '
wrong 'dense(3) add(a)' "model: column 14: there is no point 'a' before it" 'dense(3) add(a)' '               '
wrong 'dense(3) from(a) dense(2)' "model: column 15: there is no point 'a' before it" 'dense(3) from(a) dense(2)' '                '
wrong 'dense(3) from dense(2)' 'model: column 10: from: expected one point, as in from(a)' 'dense(3) from dense(2)' '           '
wrong 'a=dense(3) dense(4) from(a) dense(2)' 'model: column 12: the output of dense_1 is not used' 'a=dense(3) dense(4) from(a) dense(2)' '             '
wrong 'dense(3,name=a) dense(3,name=a)' 'model: column 30: there is already a layer a' 'dense(3,name=a) dense(3,name=a)' '                               '
wrong 'conv_lstm2d(3)' 'model: column 1: conv_lstm2d: recurrent layers of this kind are not supported' 'conv_lstm2d(3)' '  '
wrong 'dense(3,relu) input(3)' "model: column 15: input stands before all layers only" 'dense(3,relu) input(3)' '                '
wrong 'dense(4)
  dens(3)
dense(1)' "model: column 12: there is no layer 'dens'; did you mean 'dense'?" '  dens(3)' '    '
run summary --model ''
expect_code 2 'an empty model'
finish
