"""Draws samples after docs/reference/sampling.md, with nothing but Python: a second implementation of the page.

sample.py FILE: FILE is JSON with classes, voxels, rank, seed, samples (how many), diagonal_noise, and temperature,
class_scales, mode_weights, mean, diagonal, factor as hexadecimal bits of binary32. Prints a line per sample: the labels,
then the bits of the logits, then those of the probabilities. With "categorical": true, a line per sample of the independent
categoricals of the mean: the labels.
sample.py --vectors: prints test vectors, one number per line.
"""
import json, math, struct, sys

def f32(x): return struct.unpack("<f", struct.pack("<f", x))[0]  # rounds to nearest, ties to even
def bits(x): return struct.unpack("<I", struct.pack("<f", x))[0]
def from_bits(b): return struct.unpack("<f", struct.pack("<I", b))[0]
def signed(w): return w - (1 << 32) if w >> 31 else w

LN = [0xbefffffa, 0x3eaaab73, 0xbe800362, 0x3e4c6d34, 0xbe297db6, 0x3e186771, 0xbe13b9ce, 0x3db7ea59]
SIN = [0x3f490fdb, 0xbda55ddd, 0x3b232f63, 0xb816cddc]
EXP = [0x3f000000, 0x3e2aaa48, 0x3d2aaa2f, 0x3c091d9c, 0x3ab6d9fb]
COS = [0xbe9de9d1, 0x3c81d8b4, 0xb9a75576]
LN_2, SQRT_HALF, RANK_STREAM, CATEGORICAL_STREAM = from_bits(0x3f317218), 0x3f3504f3, 0xffffffff, 0xfffffffd

def horner(coefficients, x):
    value = from_bits(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = f32(f32(value * x) + from_bits(c))
    return value

def philox(counter, key):
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (p1 >> 32) ^ b ^ k0, p1 & 0xffffffff, (p0 >> 32) ^ d ^ k1, p0 & 0xffffffff
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return a, b, c, d

def box_muller(radius_word, angle_word):
    shifted = (bits(f32(f32(radius_word >> 1) + 0.5)) - SQRT_HALF) & 0xffffffff
    exponent, s = signed(shifted) >> 23, f32(from_bits((shifted & 0x7fffff) + SQRT_HALF) - 1.0)
    ln_mantissa = f32(s + f32(f32(s * s) * horner(LN, s)))
    minus_ln_u = f32(f32((31 - exponent) * LN_2) - ln_mantissa)
    r = f32(math.sqrt(f32(minus_ln_u + minus_ln_u)))
    t = f32(f32(signed((angle_word << 2) & 0xffffffff)) * 2.0 ** -31)
    square = f32(t * t)
    cos, sin = f32(1.0 + f32(square * horner(COS, square))), f32(t * horner(SIN, square))
    first, second = [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)][angle_word >> 30]
    return f32(r * first), f32(r * second)

def words_at(seed, stream, draw, index):
    halves = lambda x: (x & 0xffffffff, x >> 32)
    return philox(((index >> 6) * 16 + (index & 15), stream, *halves(draw)), halves(seed))

def normal(seed, stream, draw, index):
    words, word = words_at(seed, stream, draw, index), (index >> 4) & 3
    return box_muller(*words[word & 2:(word & 2) + 2])[word & 1]

def exp(y):
    if y < -87.0: return 0.0
    n = f32(f32(f32(y * from_bits(0x3fb8aa3b)) + 12582912.0) - 12582912.0)
    rho = f32(f32(y - f32(n * 0.693359375)) - f32(n * from_bits(0xb95e8083)))
    return f32(f32(f32(1.0 + rho) + f32(f32(rho * rho) * horner(EXP, rho))) * 2.0 ** n)

def probabilities(eta):
    if len(eta) == 1:
        e = exp(-abs(eta[0]))
        return [f32((1.0 if eta[0] >= 0 else e) / f32(1.0 + e))]
    top, rest, numerators = eta.index(max(eta)), 0.0, [exp(f32(x - max(eta))) for x in eta]
    for k, e in enumerate(numerators):
        if k != top: rest = f32(rest + e)
    return [f32(e / f32(1.0 + rest)) for e in numerators]

def sample(d, i):
    c, v, r = d["classes"], d["voxels"], d["rank"]
    z = [f32(d["mode_weights"][q] * normal(d["seed"], RANK_STREAM, i, q)) for q in range(r)]
    logits = []
    for k in range(c):
        scale = f32(d["temperature"][0] * d["class_scales"][k])
        for x in range(v):
            total = 0.0
            for q in range(r):
                total = f32(total + f32(z[q] * d["factor"][(q * c + k) * v + x]))
            if d["diagonal_noise"]:
                deviation = f32(math.sqrt(d["diagonal"][k * v + x]))
                total = f32(total + f32(deviation * normal(d["seed"], k, i, x)))
            mean = d["mean"][k * v + x]
            logits.append(mean if scale == 0 else f32(mean + f32(scale * total)))
    voxels = [logits[x::v] for x in range(v)]
    labels = [int(eta[0] > 0) if c == 1 else eta.index(max(eta)) for eta in voxels]
    return labels, logits, [p for k in range(c) for p in (probabilities(eta)[k] for eta in voxels)]

def categorical(d, i):
    v, labels = d["voxels"], []
    for x in range(v):
        u = (words_at(d["seed"], CATEGORICAL_STREAM, i, x)[(x >> 4) & 3] >> 8) * 2.0 ** -24
        p, total, label = probabilities(d["mean"][x::v]), 0.0, 0
        if len(p) == 1: label = int(u < p[0])
        for q in p[:-1]:
            total = f32(total + q)
            label += u >= total
        labels.append(label)
    return labels

if sys.argv[1] == "--vectors":
    for address in [(0, 0, 0, i) for i in (0, 1, 15, 16, 17, 32, 48, 63, 64, 1000)] + [
            (1, RANK_STREAM, 0, 0), (1, RANK_STREAM, 0, 9), (2**63 + 5, 3, 2**40 + 1, 123456)]:
        print(*address, "%08x" % bits(normal(*address)), repr(normal(*address)))
else:
    d = json.load(open(sys.argv[1]))
    for field in ("temperature", "class_scales", "mode_weights", "mean", "diagonal", "factor"):
        d[field] = [from_bits(int(word, 16)) for word in d[field]]
    for i in range(d["samples"]):
        if d["categorical"]:
            print("".join(map(str, categorical(d, i))))
            continue
        labels, logits, p = sample(d, i)
        print("".join(map(str, labels)), *("%08x" % bits(x) for x in logits + p))
