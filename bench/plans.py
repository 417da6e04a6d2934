#!/usr/bin/env python3
"""What is planned beside what holding the whole batch takes, for many models, batches and numbers of workers.

  plans.py [--batchwise build/batchwise] [--files FOLDER] [--batches 32,64,128,256] [--workers 1,2,4] [--only TEXT]

Models are the expressions below and Keras's .json or .keras files of a folder: `--make FOLDER` writes those of keras.applications
for images of 32, 64 and 224 pixels (needs keras). One line for each model and number of workers: the plan and the whole batch in MiB
at each batch, `over` where the plan is larger, OVER where it is by more than 2 MiB. Exits with 1 if any is.
"""
import argparse, glob, json, os, subprocess, sys

EXPRESSIONS = [
    "input(2) dense(1)",
    "input(100) dense(32,relu) dense(1,sigmoid)",
    "input(784) dense(128,relu) dense(10,softmax)",
    "input(784) dense(512,relu) dense(128,relu) dense(10,softmax)",
    "input(1024) dense(1024,relu) dense(1024,relu) dense(10,softmax)",
    "input(2048) dense(4096,relu) dense(4096,relu) dense(1000,softmax)",
    "input(784) dense(512) batchnorm relu dense(256) batchnorm relu dense(10,softmax)",
    "input(784) dense(128,relu) dense(64,relu) dense(128,relu) dense(784,sigmoid)",
    "input(64) " + "dense(64) batchnorm relu " * 20 + "dense(10,softmax)",
    "input(64) " + "dense(64,relu) " * 50 + "dense(10,softmax)",
    "input(64) embedding(10000,32) flatten dense(64,relu) dense(1,sigmoid)",
    "input(100) embedding(20000,64) lstm(64) dense(1,sigmoid)",
    "input(100) embedding(20000,64) gru(128) dense(1,sigmoid)",
    "input(100,16) lstm(128,return_sequences=true) lstm(64) dense(10,softmax)",
    "input(128,64) a=layernorm multi_head_attention(a,a,num_heads=4,key_dim=16) global_avgpool1d dense(10,softmax)",
    "input(128,16) conv1d(64,5,relu) maxpool1d(2) conv1d(64,5,relu) global_maxpool1d dense(10,softmax)",
    "input(28,28,1) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "input(28,28,1) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "input(28,28,1) conv2d(6,5,tanh,padding=same) avgpool2d(2) conv2d(16,5,tanh) avgpool2d(2) flatten dense(120,tanh) dense(84,tanh) "
    "dense(10,softmax)",
    "input(64,64,3) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "input(64,64,3) conv2d(32,5,relu) maxpool2d(2) conv2d(64,5,relu) maxpool2d(2) conv2d(128,5,relu) global_avgpool2d dense(10,softmax)",
    "input(128,128,3) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "input(32,32,3) conv2d(32,3,relu,padding=same) conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(512,relu) "
    "dropout(0.5) dense(10,softmax)",
    "input(32,32,3) conv2d(16,3,padding=same) batchnorm a=relu conv2d(16,3,padding=same) batchnorm relu conv2d(16,3,padding=same) "
    "batchnorm add(a) relu conv2d(32,1,strides=2) batchnorm relu global_avgpool2d dense(10,softmax)",
    "input(4,4,128) conv2d(256,1,strides=2) batchnorm relu conv2d(128,3,padding=same) batchnorm relu conv2d(512,1) batchnorm relu "
    "conv2d(128,1) batchnorm relu conv2d(512,1) batchnorm relu global_avgpool2d dense(10,softmax)",
    "input(32,32,3) " + "conv2d(64,3,padding=same) batchnorm relu " * 8 + "global_avgpool2d dense(10,softmax)",
    "input(32,32,3) conv2d(64,3,relu,padding=same) maxpool2d(2) conv2d(128,3,relu,padding=same) maxpool2d(2) conv2d(256,3,relu,padding=same) "
    "maxpool2d(2) conv2d(512,3,relu,padding=same) maxpool2d(2) flatten dense(10,softmax)",
    "input(8,8,256) conv2d(256,3,relu,padding=same) conv2d(256,3,relu,padding=same) conv2d(256,3,relu,padding=same) global_avgpool2d "
    "dense(10,softmax)",
    "input(32,32,16) depthwise_conv2d(3,padding=same) batchnorm relu conv2d(32,1) batchnorm relu depthwise_conv2d(3,padding=same) batchnorm "
    "relu conv2d(64,1) batchnorm relu global_avgpool2d dense(10,softmax)",
    "input(2,2,512) conv2d(512,3,padding=same) batchnorm relu conv2d(512,3,padding=same) batchnorm relu global_avgpool2d dense(10,softmax)",
]
SPARE = 2 << 20


def make(folder):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    os.makedirs(folder, exist_ok=True)
    for name in sorted(n for n in dir(keras.applications) if n[0].isupper()):
        for side in (32, 64, 224):
            side = max(side, {"InceptionV3": 75, "InceptionResNetV2": 75, "Xception": 71}.get(name, 0))
            model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=10)
            with open(os.path.join(folder, f"{name}-{side}.json"), "w") as f:
                f.write(model.to_json())
            keras.backend.clear_session()


def plan(a, model, workers):
    command = [a.batchwise, "plan", "--model", model, "--batch", a.batches, "--workers", workers, "--memory", "64G", "--loss",
               "sparse_categorical_crossentropy" if "softmax)" in model or os.path.exists(model) else "mse", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout)["batches"] if done.returncode == 0 else done.stderr.strip()[-200:]


def line_of(batches):
    """A text, and how many are over and over by more than the spare bytes."""
    parts, over, far = [], 0, 0
    for b in batches:
        more = b["peak_bytes"] - b["whole_batch_bytes"]
        over, far = over + (more > 0), far + (more > SPARE)
        parts.append(f"{b['batch']}: {b['peak_bytes'] / 2**20:.1f} / {b['whole_batch_bytes'] / 2**20:.1f}"
                     f"{' OVER' if more > SPARE else ' over' if more > 0 else ''}")
    return ", ".join(parts), over, far


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batchwise", default="build/batchwise")
    p.add_argument("--files")
    p.add_argument("--make")
    p.add_argument("--batches", default="32,64,128,256")
    p.add_argument("--workers", default="1,2,4")
    p.add_argument("--only", default="")
    a = p.parse_args()
    if a.make:
        make(a.make)
        return 0
    files = sorted(f for kind in ("json", "keras") for f in glob.glob(os.path.join(a.files, f"*.{kind}"))) if a.files else []
    plans = over = far = failures = 0
    for model in [m for m in EXPRESSIONS + files if a.only in m]:
        for workers in a.workers.split(","):
            batches = plan(a, model, workers)
            name = os.path.basename(model) if model in files else model
            if isinstance(batches, str):
                failures += 1
                print(f"{name}: {batches}", flush=True)
                break
            text, more, most = line_of(batches)
            plans, over, far = plans + len(batches), over + more, far + most
            print(f"{name}, {workers} workers: {text}", flush=True)
    print(f"{plans} plans, {over} over, {far} by more than 2 MiB; {failures} models refused")
    return far + failures > 0


if __name__ == "__main__":
    sys.exit(main())
