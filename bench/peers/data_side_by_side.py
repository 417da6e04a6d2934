#!/usr/bin/env python3
"""Reading data beside pandas and tf.data, in one run.

  data_side_by_side.py --program build/bench/data --folder FOLDER [--rounds 7] [--workers N] [--only csv]

Each round times Batchwise and the peer once, one after the other; the figure is the median over the rounds of the ratio of
speeds. Batchwise is a new process each time, which tells its own time; the peer stays in one process, warm. Files are made in
FOLDER by the program and stay there. pandas parses into float32, and words into categories, with its C parser at its default
precision, which is not exact; tf.data decodes on all cores (AUTOTUNE) in batches of 32.
"""
import argparse, os, pathlib, statistics, subprocess, time


def program(arguments, what):
    command = [arguments.program, arguments.folder, what, str(arguments.workers)]
    seconds, amount = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(amount)


def pandas_csv(folder, what):
    import numpy, pandas
    path = os.path.join(folder, what + ".csv")
    named, words = what in ("csv", "csv-words", "csv-quoted"), what in ("csv-words", "csv-quoted")
    kinds = {name: "category" if name in ("work", "school", "class") else numpy.float32
             for name in ("age", "work", "school", "gain", "hours", "score", "class")} if words else numpy.float32

    def read():
        begin = time.perf_counter()
        pandas.read_csv(path, dtype=kinds, engine="c", header=0 if named else None)
        return time.perf_counter() - begin

    return read


def tf_images(folder):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    names = sorted(str(path) for path in pathlib.Path(folder, "images").glob("*/*.jpg"))

    def decode(name):
        return tf.cast(tf.io.decode_jpeg(tf.io.read_file(name), channels=3), tf.float32)

    data = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names)).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    data = data.batch(32).prefetch(tf.data.AUTOTUNE)

    def read():
        begin = time.perf_counter()
        for _ in data:
            pass
        return time.perf_counter() - begin

    return read


def tf_rows():
    import numpy, tensorflow as tf
    x, y = numpy.zeros((1000, 4), numpy.float32), numpy.zeros(1000, numpy.int32)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(1).prefetch(tf.data.AUTOTUNE)
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in data:
            pass
        times.append((time.perf_counter() - begin) / 1000)
    return statistics.median(times)


def compare(arguments, what, unit, factor, peer_name, peer):
    program(arguments, what)
    peer()
    ratios, speeds, peers = [], [], []
    for _ in range(arguments.rounds):
        mine, amount = program(arguments, what)
        other = peer()
        ratios.append(other / mine)
        speeds.append(amount / mine * factor)
        peers.append(amount / other * factor)
    print(f"{what}: {statistics.median(speeds):.0f} {unit}, {peer_name}'s {statistics.median(peers):.0f}: "
          f"{statistics.median(ratios):.1f} times", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bench/data")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=0, help="of Batchwise; default: all processors")
    parser.add_argument("--only", choices=["csv"], help="csv: leaves out images and batches, which take TensorFlow")
    arguments = parser.parse_args()
    for what in ("csv", "csv-long", "csv-wide", "csv-words", "csv-quoted"):
        compare(arguments, what, "MB/s", 1e-6, "pandas", pandas_csv(arguments.folder, what))
    if arguments.only == "csv":
        return
    compare(arguments, "images", "images/s", 1, "tf.data", tf_images(arguments.folder))
    print(f"batches of one row in memory: tf.data {tf_rows() * 1e9:.0f} ns each")


main()
