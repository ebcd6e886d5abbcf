// The parts of the page that need no browser: addresses, planes, packages, surveys, marks.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  LEVELS, NormalDrawer, PREDICTION, Places, QUANTILES, RATERS as RATER_COLORS, SAMPLE_COUNTS, alone, atLeast, carry, caseAddress, caseOf, classColor, contrast, cut, decimalsOf, defaultState, sampleGroups,
  extent, fieldOfRange, fragmentParts, legendEntries, legendRows, lineWeight, niftiFile, orientations, partOf, predictionMark, raterMark, readFragment, readPackage, rim, rounded, sampleMark,
  soloClass, sortCases, strides, survey, switched, transform, wrap, writeFragment,
} from "../../build/library.mjs";
import { distribution, steering } from "./support.mjs";

/** A header with some of its parts set. */
function header(parts = {}) {
  const size = parts.size ?? [4, 5, 6];
  return {
    version: 1, name: "case", kind: "stochastic", model: { name: "m", sha256: "5f" }, classes: ["background", "a", "b"], logits: 3, rank: 2, size,
    spacing: [2, 1, 0.5], affine: [[0.5, 0, 0, 7], [0, 1, 0, 8], [0, 0, 2, 9]], region: { start: [0, 0, 0], size }, shown: { start: [0, 0, 0], size },
    seed: "12345678901234567890", channels: [], color: false, raters: ["r0", "r1"], modes: [{ share: 0.7 }, { share: 0.3 }], sections: {}, ...parts,
  };
}

test("an address restores the state that it was written from", () => {
  const about = header();
  const initial = defaultState("id", about, [1, 2, 3], false);
  const state = {
    ...initial, compare: true, active: 1,
    settings: [
      { ...initial.settings[0], seed: 2n ** 64n - 1n, sample: 2 ** 53 - 1, temperature: 1.35, classScales: [1, -3, 0.05], modeWeights: [0, 2.95] },
      { ...initial.settings[1], diagonalNoise: false },
    ],
    cross: [3, 0, 5], axis: 2, layout: "single", zoom: 2.5, center: [1.5, 2.25, 3], sampleStyle: "contour", predictionStyle: "fill", raterStyles: ["both", "off"],
    hiddenClasses: [2], opacity: 0.5, mapOpacity: 0.1, map: "correlation", focus: 2, samples: 500, quantiles: true, gallery: false, window: [-5, 17.5], image: false, smooth: false,
    crosshair: false, theme: "dark",
  };
  const text = writeFragment(state, initial, "a case & more", "a+/=b");
  assert.equal(fragmentParts(text).get("token"), "a+/=b");
  assert.equal(fragmentParts(text).get("case"), "a case & more");
  assert.deepEqual(readFragment(fragmentParts(text), initial, about, 0), state);
  assert.equal(writeFragment(initial, initial, "name", null), "case=name", "only what differs");
  assert.deepEqual(readFragment(fragmentParts("#case=id"), initial, about, 0), initial);
});

test("nonsense in an address changes nothing, and impossible numbers become the nearest that are possible", () => {
  const about = header({ channels: [{ name: "t1", low: 10, high: 110 }] });
  const initial = defaultState("id", about, [1, 2, 3], false);
  const read = (text) => readFragment(fragmentParts(text), initial, about, 0);
  for (const text of ["", "%", "x=%zz", "seed=x", "seed=", "i=-", "i=", "t=", "zoom=", "w=1,2", "w=1,,1", "g=1,x", "axis=", "map=?", "class=nan", "raters=o", "raters=??", "window=3,2", "n=nan", "opacity=x", "hide=x",
    "x=1,2", "x=,,", "theme=__proto__", "sample=constructor", "layout=toString", "channel=?"]) {
    assert.deepEqual(read(text), initial, text);
  }
  const bounded = read("t=99&w=-99,99,1&g=4,-4&i=99999999999999999999&x=99,-1,2&class=9&zoom=1000");
  assert.equal(bounded.settings[0].temperature, 3);
  assert.deepEqual([bounded.settings[0].classScales, bounded.settings[0].modeWeights], [[-3, 3, 1], [3, -3]]);
  assert.deepEqual([bounded.cross, bounded.focus, bounded.zoom], [[3, 0, 2], 2, 40]);
  assert.deepEqual(["n=1", "n=90", "n=500", "n=2000"].map((text) => read(text).samples), [20, 100, 500, 500], "what the control offers");
  assert.deepEqual(["seed=-1", "seed=18446744073709551616", "b.seed=-7&compare=b"].map((text) => read(text).settings[text.startsWith("b") ? 1 : 0].seed), [0n, 2n ** 64n - 1n, 0n]);
  assert.deepEqual(["i=-4", "i=1.6", "i=1e999"].map((text) => read(text).settings[0].sample), [0, 2, 2 ** 53 - 1]);
  assert.deepEqual(["class=0", "class=-3", "class=1e999"].map((text) => read(text).focus), [1, 1, 2], "the background is no class of maps");
  assert.deepEqual([read("zoom=-1e999").zoom, read("x=1e999,-1e999,0.4").cross, read("at=1e999,0,0").center], [0.2, [3, 0, 0], [3, 0, 0]]);
  assert.deepEqual([read("opacity=7").opacity, read("mapopacity=-1").mapOpacity, read("axis=9").axis, read("channel=4").channel], [1, 0, 2, 0]);
  assert.deepEqual(read("window=-1e300,1e300").window, [-90, 210], "contrast in which something is seen");
  assert.deepEqual([read("hide=2,0,9,x").hiddenClasses, read("hide=2,1,1").hiddenClasses, read("hide=").hiddenClasses], [[2], [1, 2], []]);
  const stored = header({ kind: "sampled" });
  const few = readFragment(fragmentParts("i=50&t=2&n=100&map=correlation"), defaultState("id", stored, [0, 0, 0], false), stored, 8);
  assert.deepEqual([few.settings[0].sample, few.settings[0].temperature, few.samples, few.map], [7, 1, 8, "none"], "there are eight, nothing to steer, and no correlation");
  const flat = header({ size: [1, 5, 6] });
  const picture = readFragment(fragmentParts("axis=2&layout=three&x=3,9,9"), defaultState("id", flat, [0, 0, 0], false), flat, 0);
  assert.deepEqual([picture.axis, picture.layout, picture.cross], [0, "single", [0, 4, 5]]);
});

test("classes are switched one by one, or shown alone", () => {
  assert.deepEqual([switched([], 2), switched([1, 3], 2), switched([1, 2, 3], 2)], [[2], [1, 2, 3], [1, 3]]);
  assert.deepEqual([alone([], 2, 4), alone([2], 2, 4), alone([1, 3], 2, 4), alone([1, 3], 1, 4)], [[1, 3], [1, 3], [], [2, 3]], "again brings all back");
  assert.deepEqual([soloClass([], 4), soloClass([1, 3], 4), soloClass([1, 2, 3], 4)], [null, 2, null]);
});

test("cases are sorted by a score, and those without one come last", () => {
  const listed = (name, ged2) => ({ id: name, name, size: null, scores: ged2 === undefined ? null : { ged2, dsc: null } });
  const cases = [listed("case10", 0.3), listed("case9", undefined), listed("case2", 0.1), listed("case1", null), listed("case3", 0.2)];
  const by = (descending) => sortCases(cases, ({ scores }) => scores?.ged2 ?? null, descending).map(({ name }) => name);
  assert.deepEqual(by(false), ["case2", "case3", "case10", "case9", "case1"]);
  assert.deepEqual(by(true), ["case10", "case3", "case2", "case9", "case1"]);
  assert.deepEqual(sortCases(cases, ({ name }) => name, false).map(({ name }) => name), ["case1", "case2", "case3", "case9", "case10"], "numbers in names count");
});

test("lines are told from any map by their color or by their rim, and are thinner where voxels are small", () => {
  for (const color of [...Array.from({ length: 7 }, (_, i) => classColor(i + 1)), ...RATER_COLORS, QUANTILES, PREDICTION]) {
    assert.ok(contrast(color, rim(color)) >= 4.5, `${color}: ${contrast(color, rim(color))}`);
    // What is near one of the two is far from the other.
    for (let gray = 0; gray < 256; gray += 5) assert.ok(Math.max(contrast(color, [gray, gray, gray]), contrast(rim(color), [gray, gray, gray])) > 2, `${color} on ${gray}`);
  }
  assert.deepEqual([lineWeight(40), lineWeight(4), lineWeight(2), lineWeight(0.1)], [1, 1, 0.5, 0.4]);
});

test("the legend tells what is shown, and nothing else", () => {
  const about = header();
  const initial = defaultState("id", about, [0, 0, 0], false);
  const texts = (state, map = false) => legendEntries(about, { ...initial, ...state }, map, 50).map(({ text }) => text);
  assert.deepEqual(texts({}), ["a", "b", "sample 0"]);
  assert.deepEqual(texts({ hiddenClasses: [1], raterStyles: ["contour", "off"], predictionStyle: "fill" }), ["b", "sample 0", "mean prediction", "r0"]);
  assert.deepEqual(texts({ sampleStyle: "off" }), [], "colors of nothing");
  assert.deepEqual(texts({ sampleStyle: "off", map: "probability", focus: 2 }, true), ["probability of b, 50 samples"]);
  assert.deepEqual(texts({ sampleStyle: "off", quantiles: true }), ["a in ≥ 10 %", "≥ 50 %", "≥ 90 % of 50 samples"]);
  const one = header({ classes: ["background", "lesion"], logits: 1 });
  const [sample] = legendEntries(one, { ...defaultState("id", one, [0, 0, 0], false), predictionStyle: "off" }, true, 50);
  assert.deepEqual([sample.text, sample.look.area, sample.look.line.dash], ["sample 0 (lesion)", 0, []], "under a map, areas are lines");
  const entries = legendEntries(about, initial, false, 50);
  const rows = legendRows(entries, 80, (text) => 8 * text.length);
  assert.deepEqual(rows.map((row) => row.map(({ entry, left }) => [entry.text, left])), [[["a", 0]], [["b", 0]], [["sample 0", 0]]]);
  assert.equal(legendRows(entries, 1000, (text) => 8 * text.length).length, 1);
});

test("a figure has the part of a view that the image covers, in any size", () => {
  const about = header({ size: [1, 5, 6], spacing: [1, 1, 1] });
  const [plane] = orientations(about);
  const view = transform(about, plane, { axis: 0, index: 0 }, 120, 50, 1, null);
  const part = extent(view, 5, 6, 120, 50, 20);
  assert.deepEqual(part, { left: 30, top: 0, width: 60, height: 50 });
  const { matrix, scale } = partOf(view, part.left, part.top, 4);
  assert.deepEqual([[...matrix], scale], [[40, 0, 0, 40, 0, 0], 40]);
  const close = transform(about, plane, { axis: 0, index: 0 }, 120, 50, 4, null);
  assert.deepEqual(extent(close, 5, 6, 120, 50, 20), { left: 0, top: 0, width: 120, height: 50 }, "no more than the view");
  assert.deepEqual(extent(view, 5, 6, 120, 50, 80), { left: 20, top: 0, width: 80, height: 50 }, "room for what is written on it");
});

test("an address names a case so that it is found again", () => {
  const cases = [["7", "a"], ["8", "b"], ["9", "b"], ["10", "7"]].map(([id, name]) => ({ id, name, size: null }));
  assert.deepEqual(cases.map((one) => caseAddress(cases, one)), ["a", "8", "9", "10"], "the name, where it means this case alone");
  for (const one of cases) assert.equal(caseOf(cases, caseAddress(cases, one)), one);
  assert.equal(caseOf(cases, "c"), undefined);
});

test("another case takes over what has a meaning for it", () => {
  const about = header();
  const first = defaultState("id", about, [1, 2, 3], false);
  const chosen = { ...first.settings[0], seed: 7n, sample: 30, temperature: 1.5, classScales: [0.5, 2, -1], modeWeights: [0.25, -2], diagonalNoise: false };
  const state = {
    ...first, settings: [chosen, { ...chosen, temperature: 3 }], compare: true, active: 1, cross: [3, 0, 5], axis: 2, layout: "single", zoom: 4, center: [1, 1, 1],
    sampleStyle: "contour", raterStyles: ["fill", "both"], opacity: 0.9, map: "correlation", focus: 2, samples: 200, quantiles: true, window: [3, 4],
  };
  const left = { header: about, initial: first, state };
  const other = (parts, stored = 0) => {
    const to = header({ size: [7, 8, 9], seed: "5", ...parts });
    const own = defaultState("other", to, [2, 2, 2], true);
    return { own, found: carry(left, own, to, stored) };
  };
  const { own, found } = other({ classes: ["background", "b", "c"], raters: ["r1", "r9"] });
  assert.deepEqual(found.settings.map((one) => [one.seed, one.sample, one.temperature, one.diagonalNoise]), [[7n, 30, 1.5, false], [7n, 30, 3, false]]);
  assert.deepEqual(found.settings[0].classScales, [0.5, -1, 1], "scales go by the names of classes");
  assert.deepEqual(found.settings[0].modeWeights, [0.25, -2]);
  assert.deepEqual([found.compare, found.active, found.focus, found.samples, found.map], [true, 1, 1, 200, "correlation"]);
  assert.deepEqual([found.sampleStyle, found.raterStyles, found.opacity, found.quantiles, found.layout, found.axis], ["contour", ["both", "off"], 0.9, true, "single", 2]);
  assert.deepEqual([found.case, found.cross, found.zoom, found.center, found.window], ["other", own.cross, 1, null, own.window], "where one looks begins anew");
  assert.deepEqual(other({ rank: 3 }).found.settings[0].modeWeights, [1, 1, 1], "other modes");
  const frozen = { voxels: 1, rule: "", limit: { temperature: 1.2, class: 1, mode: 1 } };
  const bounded = other({ frozen }).found.settings[0];
  assert.deepEqual([bounded.temperature, bounded.classScales, bounded.modeWeights], [1.2, [0.5, 1, -1], [0.25, -1]], "within the limits of the other case");
  const drawn = other({ kind: "sampled" }, 8).found;
  assert.deepEqual([drawn.settings[0].sample, drawn.settings[0].temperature, drawn.samples, drawn.map], [7, 1, 8, "none"], "there are eight, and nothing to steer");
  // What was not chosen is as the other case has it.
  const untouched = carry({ ...left, state: first }, own, header({ seed: "5" }), 0);
  assert.deepEqual([untouched.settings[0].seed, untouched.samples], [5n, 50]);
});

test("settings are used as they are stated, and tiny gray values are kept", () => {
  const about = header();
  const initial = defaultState("id", about, [1, 2, 3], false);
  const read = (text) => readFragment(fragmentParts(text), initial, about, 0);
  const { temperature, classScales, modeWeights } = read("t=1.23456789&w=1,0.99999,-0.00001&g=2.00004,0.33333333").settings[0];
  assert.deepEqual([temperature, classScales, modeWeights], [1.2346, [1, 1, 0], [2, 0.3333]]);
  assert.ok(!Object.is(classScales[2], -0));
  for (const [x, decimals] of [[1, 0], [0.05, 2], [-1.2345, 4], [1.5, 1], [100, 0], [0.1 + 0.2, 1]]) {
    assert.equal(decimalsOf(rounded(x)), decimals, String(x));
    assert.equal(Number(rounded(x).toFixed(decimals)), rounded(x), String(x));
  }
  for (const window of [[1.25e-7, 3.5e-6], [-0.00012345, 0.00098765], [0.1, 1234567.5]]) {
    assert.deepEqual(read(writeFragment({ ...initial, window }, initial, "name", null)).window, window);
  }
});

test("quantile contours hold the voxels with at least so many of the samples", () => {
  for (const samples of [...SAMPLE_COUNTS, 1, 3, 8, 10, 30, 70, 2000]) {
    for (let count = 0; count <= samples; count++) {
      const share = Float32Array.of(count / samples)[0];
      for (const [level] of LEVELS) {
        assert.equal(atLeast(share, level), 10 * count >= Math.round(10 * level) * samples, `${count} of ${samples}, ${level}`);
      }
    }
  }
});

test("raters, the prediction and the sample are told apart", () => {
  for (const classes of [2, 4]) {
    const all = [sampleMark(classes), predictionMark(classes), ...Array.from({ length: 7 }, (_, rater) => raterMark(rater, classes))];
    const lines = all.map(({ color, dash }) => `${color(1)} ${dash}`);
    assert.equal(new Set(lines).size, lines.length, `outlines with ${classes} classes: ${lines.join("; ")}`);
    if (classes > 2) assert.ok(all.every(({ color }) => String(color(2)) === String(all[0].color(2))), "colors are those of classes");
    if (classes > 2) continue;
    const areas = all.map(({ color, striped }) => `${color(1)} ${striped}`);
    assert.equal(new Set(areas).size, areas.length, "areas");
  }
});

test("lines of text hold all of it, and none is wider than there is room", () => {
  const measure = (text) => text.length;
  const pieces = ["case ·", "--seed 0", "--class-scale tumour=-1.25", "--mode-weight 3=2"];
  assert.deepEqual(wrap(pieces, 200, measure), [pieces.join(" ")]);
  assert.deepEqual(wrap(pieces, 30, measure), ["case · --seed 0", "--class-scale tumour=-1.25", "--mode-weight 3=2"]);
  const narrow = wrap(pieces, 10, measure);
  assert.ok(narrow.every((line) => line.length <= 10), narrow.join("|"));
  assert.equal(narrow.join("").replaceAll(" ", ""), pieces.join("").replaceAll(" ", ""));
});

test("planes stand as the patient does, however the volume was stored", () => {
  const standing = (affine) => orientations(header({ affine })).map(({ name, letters }) => `${name} ${letters.join("")}`);
  assert.deepEqual(standing([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]), ["axial RLAP", "coronal RLSI", "sagittal APSI"]);
  // w to the left, h to the back: nothing has to be turned.
  const [axial] = orientations(header({ affine: [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]] }));
  assert.deepEqual([axial.flipAcross, axial.flipDown, axial.letters.join("")], [false, false, "RLAP"]);
  // Sagittal slices: d to the right, h to the feet, w to the back; and a little oblique.
  assert.deepEqual(standing([[0.1, 0, 3, 0], [-1, 0.1, 0, 0], [0, -1, 0.1, 0]]), ["sagittal APSI", "axial RLAP", "coronal RLSI"]);
  assert.deepEqual(orientations(header({ size: [1, 5, 6] })).map(({ name }) => name), ["image", "image", "image"]);
});

test("planes are cut where they are", () => {
  const size = [4, 5, 6];
  const volume = Uint8Array.from({ length: 120 }, (_, i) => i);
  for (const [axis, index, first, second, below] of [[0, 2, 60, 61, 66], [1, 3, 18, 19, 48], [2, 4, 4, 10, 34]]) {
    const { rows, columns } = strides(size, { axis, index });
    const plane = cut(volume, 0, size, { axis, index }, new Uint8Array(rows * columns));
    assert.deepEqual([plane[0], plane[1], plane[columns]], [first, second, below]);
  }
});

/** A package with these sections. */
function packed(parts, sections) {
  const [told, bodies] = [{}, []];
  let offset = 0;
  for (const [name, [type, shape, values]] of Object.entries(sections)) {
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    told[name] = { type, shape, offset, bytes: bytes.length };
    bodies.push(bytes, Buffer.alloc((8 - (bytes.length % 8)) % 8));
    offset += bytes.length + ((8 - (bytes.length % 8)) % 8);
  }
  let text = Buffer.from(JSON.stringify(header({ ...parts, sections: told })));
  text = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
  const preamble = Buffer.alloc(16);
  preamble.write("SSNVIEW1");
  preamble.writeUInt32LE(text.length, 8);
  const all = Buffer.concat([preamble, text, ...bodies]);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

/** What two raters marked in a volume of 120 voxels. */
const RATERS = Uint8Array.from({ length: 240 }, (_, i) => (i % 7) % 3);

/** 40 of the 120 voxels of a volume, of which 6 are always of class 2, and the rest background. */
function smallCase() {
  const kept = Uint32Array.from({ length: 40 }, (_, i) => 3 * i);
  const d = distribution({ c: 3, r: 2, n: 40 });
  const prediction = new Uint8Array(120);
  for (const at of [1, 2, 4, 5, 7, 8]) prediction[at] = 2;
  return { d, kept, buffer: packed({}, {
    voxels: ["u32", [40], kept], mean: ["f32", [3, 40], d.mean], diagonal: ["f32", [3, 40], d.diagonal], factor: ["f32", [2, 3, 40], d.factor],
    raters: ["u8", [2, 4, 5, 6], RATERS], prediction: ["u8", [4, 5, 6], prediction],
  }) };
}

test("a package is read as it was written, and kept voxels are found in their planes", () => {
  const { d, kept, buffer } = smallCase();
  const subject = readPackage(buffer);
  assert.deepEqual(subject.distribution.factor, d.factor);
  assert.equal(subject.image, null);
  const places = new Places(subject);
  assert.deepEqual(places.where, kept);
  assert.deepEqual([places.find(6), places.find(7), places.find(117), places.find(118)], [2, -1, 39, -1]);
  for (const axis of [0, 1, 2]) {
    const found = Array.from({ length: [4, 5, 6][axis] }, (_, index) => [...places.inPlane(axis, index)]);
    assert.deepEqual(found.flat().sort((a, b) => a - b), Array.from(kept, (_, i) => i), "every voxel once");
    const coordinate = (at) => [Math.floor(at / 30), Math.floor(at / 6) % 5, at % 6][axis];
    found.forEach((list, index) => assert.ok(list.every((position) => coordinate(kept[position]) === index)));
  }
});

test("a survey counts all voxels of every sample, those that never move too", () => {
  const { buffer } = smallCase();
  const subject = readPackage(buffer);
  const settings = { ...steering(subject.distribution), seed: 3n, sample: 0 };
  const results = [...survey(subject, new Places(subject), settings, 20, 4)].filter((result) => result !== null);
  const last = results.at(-1);
  assert.deepEqual([last.samples, last.total, last.groups.length > 0], [20, 20, true]);
  assert.ok(results.length > 1 && results[0].samples < 20, "it is told as it grows");
  const draws = new NormalDrawer(subject.distribution, fieldOfRange(subject.distribution, 0, 40));
  const maps = [];
  for (let sample = 0; sample < 20; sample++) {
    const labels = new Uint8Array(40);
    draws.labels(3n, sample, settings, labels);
    const counts = [74, 0, 6];
    labels.forEach((label) => { counts[label]++; });
    assert.deepEqual(Array.from(last.volumes.subarray(3 * sample, 3 * sample + 3)), counts);
    maps.push(labels);
  }
  // The groups by the definition: distances over all voxels.
  const distance = (a, b) => {
    let sum = 0;
    for (const label of [1, 2]) {
      let [both, either] = label === 2 ? [6, 6] : [0, 0];
      a.forEach((x, i) => {
        both += Number(x === label && b[i] === label);
        either += Number(x === label || b[i] === label);
      });
      sum += either === 0 ? 1 : both / either;
    }
    return 1 - sum / 2;
  };
  const matrix = Float64Array.from({ length: 400 }, (_, i) => distance(maps[Math.floor(i / 20)], maps[i % 20]));
  assert.deepEqual(last.groups, sampleGroups(matrix, 20, 4));
});

test("a survey is the same however the voxels are divided, and on a grid of its own too", () => {
  const whole = readPackage(smallCase().buffer);
  // Half as many voxels along w in the network, so that a kept one stands for up to two of the image.
  const nearest = [[0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 0, 1, 1, 2, 2]];
  const d = distribution({ c: 3, r: 2, n: 60 });
  const coarse = readPackage(packed({ nearest, region: { start: [0, 0, 0], size: [4, 5, 3] } }, {
    mean: ["f32", [3, 60], d.mean], diagonal: ["f32", [3, 60], d.diagonal], factor: ["f32", [2, 3, 60], d.factor],
    raters: ["u8", [2, 4, 5, 6], RATERS], prediction: ["u8", [4, 5, 6], new Uint8Array(120)],
  }));
  for (const subject of [whole, coarse]) {
    const places = new Places(subject);
    const settings = { ...steering(subject.distribution), seed: 3n, sample: 0 };
    const found = (parts) => [...survey(subject, places, settings, 20, 4, parts)].filter((result) => result !== null).at(-1);
    const one = found(1);
    for (const parts of [2, 3, 7]) assert.deepEqual(found(parts), one, `${parts} parts`);
    // Distances to raters, by the definition: over all voxels of the image.
    const { n } = subject.distribution;
    const draws = new NormalDrawer(subject.distribution, fieldOfRange(subject.distribution, 0, n));
    const labels = new Uint8Array(n);
    for (let sample = 0; sample < 20; sample++) {
      draws.labels(3n, sample, settings, labels);
      const map = subject.prediction.slice();
      places.where.forEach((at, i) => { map[at] = labels[places.source[i]]; });
      for (let rater = 0; rater < 2; rater++) {
        const marked = subject.raters.subarray(120 * rater, 120 * (rater + 1));
        const iou = [1, 2].map((label) => {
          const count = (test) => map.reduce((sum, x, i) => sum + Number(test(x === label, marked[i] === label)), 0);
          const either = count((a, b) => a || b);
          return either === 0 ? 1 : count((a, b) => a && b) / either;
        });
        assert.ok(Math.abs(one.raterDistances[2 * sample + rater] - (1 - (iou[0] + iou[1]) / 2)) < 1e-12, `sample ${sample}, rater ${rater}`);
      }
    }
    assert.ok(new Set(one.raterDistances).size > 1, "they differ");
  }
});

test("label maps are NIfTI in the geometry of the image", () => {
  const labels = Uint8Array.from({ length: 120 }, (_, i) => i % 3);
  const file = Buffer.from(niftiFile(header({ affine: [[0, 0, -2, 7], [0.5, 0, 0, 8], [0, 1, 0, 9]] }), labels).buffer);
  assert.deepEqual([0, 1, 2, 3].map((i) => file.readInt16LE(40 + 2 * i)), [3, 6, 5, 4]);
  assert.deepEqual([0, 1, 2, 3].map((i) => file.readFloatLE(280 + 4 * i)), [0, 0, -2, 7]);
  assert.equal(file.subarray(344, 347).toString(), "n+1");
  assert.deepEqual(file.subarray(352), Buffer.from(labels));
  // The quaternion says the same as the matrix.
  const [b, c, d] = [0, 1, 2].map((i) => file.readFloatLE(256 + 4 * i));
  const [a, sign] = [Math.sqrt(Math.max(0, 1 - b * b - c * c - d * d)), file.readFloatLE(76)];
  const rotation = [
    [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c) * sign],
    [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b) * sign],
    [2 * (b * d - a * c), 2 * (c * d + a * b), (a * a + d * d - b * b - c * c) * sign],
  ];
  const expected = [[0, 0, -1], [1, 0, 0], [0, 1, 0]];
  rotation.forEach((row, i) => row.forEach((x, j) => assert.ok(Math.abs(x - expected[i][j]) < 1e-6, `${i} ${j}: ${x}`)));
});

test("groups of samples are as in reports, with their shares", () => {
  // Masks of so many voxels from the left: 1 − IoU is 1 − the smaller over the larger.
  const groups = (sizes, most = 8) => {
    const distances = Float64Array.from({ length: sizes.length ** 2 }, (_, i) => {
      const [a, b] = [sizes[Math.floor(i / sizes.length)], sizes[i % sizes.length]];
      return 1 - Math.min(a, b) / Math.max(a, b);
    });
    return sampleGroups(distances, sizes.length, most);
  };
  // The cases of the tests of reports.
  assert.deepEqual(groups([64, ...Array(39).fill(8)]), [{ sample: 1, share: 0.975 }, { sample: 0, share: 0.025 }]);
  assert.deepEqual(groups([...Array(6).fill(10), ...Array(13).fill(30), 64]), [{ sample: 6, share: 0.7 }, { sample: 0, share: 0.3 }]);
  assert.deepEqual(groups(Array(9).fill(5)), [{ sample: 0, share: 1 }]);
  // Around 20 and 59 voxels; two pictures halve the mean distance, so that the one of 3 voxels gets none.
  assert.deepEqual(groups([20, 60, 21, 3, 19, 59, 22, 58]), [{ sample: 0, share: 0.625 }, { sample: 5, share: 0.375 }]);
});
