"""What is classified: scikit-learn's handwritten digits, MNIST's files, or points that are generated."""

import collections
import gzip
import pathlib

import numpy

from mistake import Mistake

Data = collections.namedtuple("Data", "name points labels test_points test_labels classes")


def digits(seed):
    """1797 images of 8 x 8 pixels; a fifth of them is held out."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise Mistake("the digits are scikit-learn's, which is missing: install python3-sklearn, or take --data "
                      "generated")
    points, labels = load_digits(return_X_y=True)
    order = numpy.random.default_rng(seed).permutation(len(labels))
    return split("digits", points[order] / 16, labels[order], len(labels) // 5)


def generated(seed, count=6000, inputs=64, classes=10):
    """Classes that lie around two points each, some of them closer to another's."""
    random = numpy.random.default_rng(seed)
    centres = random.standard_normal((classes, 2, inputs))
    labels = random.integers(classes, size=count)
    points = centres[labels, random.integers(2, size=count)] + 1.8 * random.standard_normal((count, inputs))
    return split("generated", points, labels, count // 5)


def split(name, points, labels, held_out):
    points = points.astype(numpy.float32)
    return Data(name, points[held_out:], labels[held_out:], points[:held_out], labels[:held_out],
                int(labels.max()) + 1)


def idx(folder, name):
    """An array of MNIST's format, compressed or not: two zeros, the type, the dimensions, then bytes."""
    file = next((folder / (name + end) for end in ("", ".gz") if (folder / (name + end)).exists()), None)
    if file is None:
        raise Mistake(f"{folder} has no {name} or {name}.gz: --data takes a folder with MNIST's four files")
    try:
        content = (gzip.decompress if file.suffix == ".gz" else bytes)(file.read_bytes())
    except (OSError, EOFError) as error:
        raise Mistake(f"{file} cannot be read: {error}")
    dimensions = content[3] if content[:3] == b"\0\0\x08" and len(content) > 3 else 0
    shape = numpy.frombuffer(content[4:4 + 4 * dimensions], ">u4") if len(content) >= 4 + 4 * dimensions else []
    if dimensions == 0 or len(content) != 4 + 4 * dimensions + numpy.prod(shape, dtype=numpy.int64):
        raise Mistake(f"{file} is no file of MNIST's format (idx, of bytes), or not all of it is there")
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def mnist(folder):
    arrays = []
    for part in ("train", "t10k"):
        images, labels = idx(folder, f"{part}-images-idx3-ubyte"), idx(folder, f"{part}-labels-idx1-ubyte")
        if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or len(labels) == 0:
            raise Mistake(f"{folder} has {len(images)} images and {len(labels)} labels in its files {part}-...: they "
                          "do not belong together")
        arrays += [images.reshape(len(images), -1).astype(numpy.float32) / 255, labels.astype(numpy.int64)]
    if arrays[0].shape[1] != arrays[2].shape[1]:
        raise Mistake(f"{folder} has images of {arrays[0].shape[1]} pixels to train with and of {arrays[2].shape[1]} "
                      "to test: they do not belong together")
    return Data(str(folder), *arrays, int(max(arrays[1].max(), arrays[3].max())) + 1)


def load(name, seed):
    if name == "digits":
        return digits(seed)
    if name == "generated":
        return generated(seed)
    folder = pathlib.Path(name)
    if not folder.is_dir():
        raise Mistake(f"--data {name}: there is no such folder; digits and generated need none")
    return mnist(folder)
