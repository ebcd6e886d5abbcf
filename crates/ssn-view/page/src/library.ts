// What tests use without a browser: sampling and the parts around it that need no page.

export { address } from "./sampling/address";
export { drawer, NormalDrawer, rankNoise, unsteered } from "./sampling/draw";
export { fieldAt, fieldOfRange } from "./sampling/field";
export { normalsAt } from "./sampling/normal";
export { philox } from "./sampling/philox";
export { caseSeed } from "./sampling/seed";
export { softmax } from "./sampling/softmax";
export { carry } from "./carry";
export { classColor, contrast, PREDICTION, QUANTILES, RATERS, rim } from "./color";
export { fragmentParts, readFragment, writeFragment } from "./fragment";
export { cut, orientations, strides } from "./geometry";
export { legendEntries, legendRows } from "./legend";
export { predictionMark, raterMark, sampleMark } from "./marks";
export { niftiFile } from "./nifti";
export { readPackage } from "./package";
export { decimalsOf, rounded } from "./rounding";
export { caseAddress, caseOf } from "./source";
export { SAMPLE_COUNTS, defaultState } from "./state";
export { sortCases } from "./ui/cases";
export { alone, soloClass, switched } from "./ui/classes";
export { lineWeight } from "./view/lines";
export { LEVELS, atLeast } from "./view/quantiles";
export { Places } from "./worker/places";
export { diverse, survey } from "./worker/survey";
export { extent, partOf, transform } from "./view/transform";
export { wrap } from "./wrap";
