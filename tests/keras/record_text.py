#!/usr/bin/env python3
"""Records what Keras's layers for text and categories make of random samples, for tests/keras/test_text.c: tests/keras/text.cases.

Usage: KERAS_BACKEND=tensorflow python3 record_text.py > text.cases

A case is a line "case NAME SETTINGS", then lines with hexadecimal texts or with numbers:
  common VALUES...    before all cases: a text that several are fitted to
  fit VALUES...       a sample that the layer is fitted to
  fit_common COUNT    so many of the common texts, from the first
  token VALUE         a token of the vocabulary, the special ones included, in its order
  idf NUMBERS...      weights of tf-idf
  bound NUMBERS...    boundaries
  in VALUES... = i:v  a sample, and what is not zero of its output (index:value)
"""
import os
import random

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

rng = random.Random(7)
WORDS = ["the", "The", "cat", "dog", "naïve", "ÉCOLE", "école", "don't", "e-mail", "a.b", "...", "!", "x_y", "日本語", "日本", "🎉", "ß", "İ",
         "\u00a0", "\u2028", "wörter", "UPPER", "123", "4.5", "[UNK]", "[unk]", "\x1c", "\x85", "\u3000", "a\u00a0b", "\x7f", "z" * 70]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\v", "\f", " \t "]


def text():
    kind = rng.random()
    if kind < 0.05:
        return ""
    if kind < 0.08:
        return rng.choice(SPACES) * rng.randint(1, 4)
    if kind < 0.16:  # nothing that a vocabulary has
        return " ".join("q%d" % rng.randint(0, 10**6) for _ in range(rng.randint(1, 4)))
    if kind < 0.24:
        return " ".join([rng.choice(WORDS)] * rng.randint(2, 9))
    if kind < 0.34:
        return "".join(chr(rng.choice([rng.randint(32, 126), rng.randint(161, 0x2FF), rng.randint(0x400, 0x4FF), rng.randint(0x4E00, 0x4F00),
                                       rng.randint(0x1F600, 0x1F64F)])) for _ in range(rng.randint(1, 25)))
    if kind < 0.345:
        return " ".join(rng.choice(WORDS[:12]) for _ in range(150))
    return "".join(rng.choice(WORDS) + rng.choice(SPACES + ["", ", ", ". "]) for _ in range(rng.randint(1, 12)))


def hexed(value):
    return (value if isinstance(value, bytes) else value.encode()).hex() or "-"


def shown(values):
    return " ".join("%d:%s" % (i, repr(float(v)).removesuffix(".0")) for i, v in enumerate(np.asarray(values).reshape(-1)) if v != 0)


def written(values):
    return " ".join(hexed(v) if isinstance(v, (str, bytes)) else repr(v) for v in values)


def record(name, settings, layer, fit, samples, several=1):
    """Samples are lists of values; each list is one sample of the layer's input (several: one list for each input)."""
    print("case", name, settings)
    if fit is not None:
        layer.adapt(np.array(fit, dtype=object if isinstance(fit[0][0], (str, bytes)) else None))
        if fit[0] is common[0]:
            print("fit_common", len(fit))
        for sample in fit if fit[0] is not common[0] else []:
            print("fit", written(sample))
    if hasattr(layer, "get_vocabulary"):
        for token in layer.get_vocabulary():
            print("token", hexed(str(token)))
    lookup = getattr(layer, "_lookup_layer", layer)
    if getattr(lookup, "output_mode", "") == "tf_idf":
        print("idf", " ".join(repr(float(v)) for v in lookup.idf_weights_const.numpy()))
    if getattr(layer, "bin_boundaries", None) is not None:
        print("bound", " ".join(repr(float(np.float32(v))) for v in layer.bin_boundaries))
    for sample in samples:
        if several > 1:
            out = layer(tuple(np.array([[v]], dtype=object if isinstance(v, str) else None) for v in sample))
        else:
            out = layer(np.array([sample], dtype=object if isinstance(sample[0], (str, bytes)) else None))
        print("in", written(sample), "=", shown(np.asarray(out)))


L = keras.layers
fit = common = [[text()] for _ in range(120)]
for sample in common:
    print("common", written(sample))


def texts(n):
    return [[text()] for _ in range(n)]


record("int", "kind=text length=8", L.TextVectorization(output_sequence_length=8), fit, texts(500))
record("most", "kind=text length=5 max_tokens=20", L.TextVectorization(20, output_sequence_length=5), fit, texts(200))
record("lower", "kind=text length=8 standardize=lower", L.TextVectorization(standardize="lower", output_sequence_length=8), fit, texts(150))
record("strip", "kind=text length=8 standardize=strip_punctuation", L.TextVectorization(standardize="strip_punctuation", output_sequence_length=8), fit, texts(150))
record("plain", "kind=text length=8 standardize=none", L.TextVectorization(standardize=None, output_sequence_length=8), fit, texts(150))
record("character", "kind=text length=12 split=character", L.TextVectorization(split="character", output_sequence_length=12), fit, texts(200))
record("unsplit", "kind=text length=2 split=none", L.TextVectorization(split=None, output_sequence_length=2), fit, texts(100))
record("ngrams", "kind=text length=10 ngrams=2", L.TextVectorization(ngrams=2, output_sequence_length=10), fit[:40], texts(200))
record("trigrams", "kind=text length=10 ngrams=3,1", L.TextVectorization(ngrams=(3, 1), output_sequence_length=10), fit[:40], texts(100))
record("character_ngrams", "kind=text length=10 split=character ngrams=2,3", L.TextVectorization(split="character", ngrams=(2, 3), output_sequence_length=10), fit[:25], texts(100))
record("multi_hot", "kind=text mode=multi_hot", L.TextVectorization(output_mode="multi_hot"), fit, texts(200))
record("count", "kind=text mode=count max_tokens=30", L.TextVectorization(30, output_mode="count"), fit, texts(200))
record("count_padded", "kind=text mode=count max_tokens=900 pad=1", L.TextVectorization(900, output_mode="count", pad_to_max_tokens=True), fit, texts(50))
record("tf_idf", "kind=text mode=tf_idf", L.TextVectorization(output_mode="tf_idf"), fit, texts(200))
record("tf_idf_padded", "kind=text mode=tf_idf max_tokens=900 pad=1", L.TextVectorization(900, output_mode="tf_idf", pad_to_max_tokens=True), fit, texts(50))
record("tf_idf_ngrams", "kind=text mode=tf_idf ngrams=2 max_tokens=40", L.TextVectorization(40, ngrams=2, output_mode="tf_idf"), fit, texts(100))

words = [[rng.choice(WORDS[:20])] for _ in range(60)]
seen = [[rng.choice(WORDS + ["", "other"])] for _ in range(80)]
three = [[rng.choice(WORDS + ["", "other"]) for _ in range(3)] for _ in range(60)]
record("lookup", "kind=strings oov=1", L.StringLookup(), words, seen)
record("lookup_three", "kind=strings oov=1", L.StringLookup(), words, three)
record("lookup_oov", "kind=strings oov=4", L.StringLookup(num_oov_indices=4), words, seen + [[text()] for _ in range(100)])
record("lookup_salt", "kind=strings oov=5 salt=3,9", L.StringLookup(num_oov_indices=5, salt=(3, 9)), words, seen + [[text()] for _ in range(100)])
record("lookup_mask", "kind=strings oov=1 mask=-", L.StringLookup(mask_token=""), words, seen)
record("lookup_one_hot", "kind=strings oov=1 mode=one_hot", L.StringLookup(output_mode="one_hot"), words, seen)
record("lookup_one_hot_three", "kind=strings oov=1 mode=one_hot mask=646f67", L.StringLookup(output_mode="one_hot", mask_token="dog"), words, three)
record("lookup_multi_hot", "kind=strings oov=2 mode=multi_hot", L.StringLookup(output_mode="multi_hot", num_oov_indices=2), words, three)
record("lookup_count", "kind=strings oov=1 mode=count", L.StringLookup(output_mode="count"), words, three)
record("lookup_tf_idf", "kind=strings oov=1 mode=tf_idf", L.StringLookup(output_mode="tf_idf"), words, three)

integers = [[rng.randint(-3, 12)] for _ in range(60)]
others = [[rng.randint(-2**31, 2**31 - 1) if rng.random() < 0.5 else rng.randint(-5, 15)] for _ in range(80)]
record("integers", "kind=integers oov=1", L.IntegerLookup(), integers, others)
record("integers_oov", "kind=integers oov=3", L.IntegerLookup(num_oov_indices=3), integers, others)
record("integers_farmhash", "kind=integers oov=3 farmhash=1", L.IntegerLookup(num_oov_indices=3, oov_method="farmhash"), integers, others)
record("integers_mask", "kind=integers oov=1 mask=34 max_tokens=6", L.IntegerLookup(6, mask_token=4), integers, others)
record("integers_one_hot", "kind=integers oov=1 mode=one_hot", L.IntegerLookup(output_mode="one_hot"), integers, others)

hashed = [[text()] for _ in range(300)] + [["y" * n] for n in range(0, 140)]
record("hashing", "kind=hashing bins=1000003", L.Hashing(1000003), None, hashed)
record("hashing_salt", "kind=hashing bins=1000003 salt=133,137", L.Hashing(1000003, salt=[133, 137]), None, hashed)
record("hashing_mask", "kind=hashing bins=7 mask=-", L.Hashing(7, mask_value=""), None, hashed[:60])
record("hashing_integers", "kind=hashing bins=97", L.Hashing(97), None, others)
record("hashing_multi_hot", "kind=hashing bins=9 mode=multi_hot", L.Hashing(9, output_mode="multi_hot"), None, three)
record("crossing", "kind=crossing bins=100003", L.HashedCrossing(100003), None, [[text(), text()] for _ in range(80)], 2)
record("crossing_mixed", "kind=crossing bins=100003", L.HashedCrossing(100003), None, [[text(), rng.randint(-9, 10**6)] for _ in range(50)], 2)
record("crossing_three", "kind=crossing bins=11 mode=one_hot", L.HashedCrossing(11, output_mode="one_hot"), None, [[text(), text(), text()] for _ in range(30)], 3)


def reals(n, width=1):
    return [[float(np.float32(rng.gauss(0, 3))) for _ in range(width)] for _ in range(n)]


edges = [[-1.0], [0.0], [2.5], [2.4999], [1e30], [-1e30]]
record("boundaries", "kind=discretization", L.Discretization(bin_boundaries=[-1.0, 0.0, 2.5]), None, reals(60) + edges)
record("boundaries_one_hot", "kind=discretization mode=one_hot", L.Discretization(bin_boundaries=[-1.0, 0.0, 2.5], output_mode="one_hot"), None, reals(20, 3))
record("bins", "kind=discretization bins=5 epsilon=0.01", L.Discretization(num_bins=5), reals(1500), reals(60))
record("bins_few", "kind=discretization bins=4 epsilon=0.01", L.Discretization(num_bins=4), reals(37), reals(60))
record("encoding", "kind=encoding bins=6 mode=multi_hot", L.CategoryEncoding(6), None, [[rng.randint(0, 5) for _ in range(4)] for _ in range(30)])
record("encoding_count", "kind=encoding bins=6 mode=count", L.CategoryEncoding(6, output_mode="count"), None, [[rng.randint(0, 5) for _ in range(4)] for _ in range(30)])
record("encoding_one_hot", "kind=encoding bins=6 mode=one_hot", L.CategoryEncoding(6, output_mode="one_hot"), None, [[rng.randint(0, 5)] for _ in range(12)])
