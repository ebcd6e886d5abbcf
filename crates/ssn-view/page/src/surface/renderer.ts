// Draws surfaces with WebGL 2: seen from far away (all rays parallel), so that a length is the same everywhere and a scale
// holds. The smallest surface is opaque; larger ones, which often enclose it, can be seen through.

import { classColor } from "../color";
import type { Mesh } from "./mesh";
import { type Rotation, apply } from "./rotation";

const VERTEX = `#version 300 es
uniform mat3 turn; uniform vec3 middle; uniform vec2 scale; uniform float depth;
layout(location = 0) in vec3 position; layout(location = 1) in vec3 normal;
out vec3 facing;
void main() {
  vec3 seen = turn * (position - middle);
  facing = turn * normal;
  gl_Position = vec4(seen.xy * scale, -seen.z * depth, 1.0);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
uniform vec4 color;
in vec3 facing; out vec4 painted;
void main() {
  float length2 = dot(facing, facing);
  vec3 n = length2 > 0.0 ? facing * inversesqrt(length2) : vec3(0.0, 0.0, 1.0);
  // A color without opacity is that of lines, which no light falls on.
  if (color.a == 0.0) { painted = vec4(color.rgb, 1.0) * 0.55; return; }
  float light = 0.35 + 0.6 * abs(dot(n, normalize(vec3(-0.25, 0.45, 1.0)))) + 0.12 * pow(abs(n.z), 24.0);
  // What can be seen through is denser where it is seen from the side, as glass is: its shape shows.
  float alpha = mix(1.0, color.a, pow(abs(n.z), 1.5));
  painted = vec4(min(color.rgb * light, 1.0) * alpha, alpha);
}`;

/** The opacity of surfaces that others may lie in, seen from straight above. */
const SEEN_THROUGH = 0.38;

/** The box of surfaces, from and to, in millimeters. */
export interface Bounds {
  readonly low: readonly number[];
  readonly high: readonly number[];
}

export function boundsOf(meshes: readonly Mesh[]): Bounds | null {
  if (meshes.length === 0) return null;
  const [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
  for (const { positions } of meshes) {
    for (let i = 0; i < positions.length; i++) {
      const axis = i % 3;
      if (positions[i] < low[axis]) low[axis] = positions[i];
      if (positions[i] > high[axis]) high[axis] = positions[i];
    }
  }
  return { low, high };
}

/** What is seen: how it is turned, the point in the middle, and how many pixels a millimeter has. */
export interface Camera {
  readonly turn: Rotation;
  readonly middle: readonly number[];
  readonly scale: number;
}

/** The place of a point on a canvas, in pixels. */
export function project({ turn, middle, scale }: Camera, point: readonly number[], width: number, height: number): { x: number; y: number } {
  const [x, y] = apply(turn, point.map((value, axis) => value - middle[axis]));
  return { x: width / 2 + scale * x, y: height / 2 - scale * y };
}

interface Drawn {
  readonly label: number;
  readonly area: number;
  readonly array: WebGLVertexArrayObject;
  readonly count: number;
}

export class Renderer {
  private readonly uniforms: Readonly<Record<"turn" | "middle" | "scale" | "depth" | "color", WebGLUniformLocation | null>>;
  private drawn: Drawn[] = [];
  private edges: Drawn | null = null;
  private buffers: WebGLBuffer[] = [];

  private constructor(private readonly gl: WebGL2RenderingContext) {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    const at = (name: string) => gl.getUniformLocation(program, name);
    this.uniforms = { turn: at("turn"), middle: at("middle"), scale: at("scale"), depth: at("depth"), color: at("color") };
  }

  /** A renderer for a canvas; null where the browser has no WebGL 2. */
  static of(canvas: HTMLCanvasElement): Renderer | null {
    const gl = canvas.getContext("webgl2", { antialias: true });
    return gl && new Renderer(gl);
  }

  /** Takes other surfaces, and the box around them. */
  show(meshes: readonly Mesh[], bounds: Bounds | null): void {
    const { gl } = this;
    this.buffers.forEach((buffer) => gl.deleteBuffer(buffer));
    [...this.drawn, this.edges].forEach((one) => gl.deleteVertexArray(one?.array ?? null));
    this.buffers = [];
    this.drawn = meshes.map(({ label, positions, normals, triangles }) => this.upload(label, positions, normals, triangles));
    this.drawn.sort((a, b) => a.area - b.area);
    if (!bounds) return void (this.edges = null);
    // Corners of the box by the bits of their numbers; an edge joins two that differ in one bit.
    const corners = Array.from({ length: 8 }, (_, corner) => [0, 1, 2].map((axis) => ((corner >> axis) & 1 ? bounds.high : bounds.low)[axis])).flat();
    const edges = Array.from({ length: 8 }, (_, corner) => [1, 2, 4].filter((bit) => !(corner & bit)).flatMap((bit) => [corner, corner | bit])).flat();
    this.edges = this.upload(0, Float32Array.from(corners), new Float32Array(24), Uint32Array.from(edges));
  }

  private upload(label: number, positions: Float32Array, normals: Float32Array, indices: Uint32Array): Drawn {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const fill = (target: number, data: Float32Array | Uint32Array) => {
      const buffer = gl.createBuffer();
      this.buffers.push(buffer);
      gl.bindBuffer(target, buffer);
      gl.bufferData(target, data, gl.STATIC_DRAW);
    };
    [positions, normals].forEach((data, location) => {
      fill(gl.ARRAY_BUFFER, data);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, 3, gl.FLOAT, false, 0, 0);
    });
    fill(gl.ELEMENT_ARRAY_BUFFER, indices);
    const box = boundsOf([{ label, positions, normals, triangles: indices }])!;
    const area = box.low.reduce((product, low, axis) => product * (box.high[axis] - low), 1);
    return { label, area, array, count: indices.length };
  }

  /** Draws the surfaces of the classes for which `visible` holds. */
  draw({ turn, middle, scale }: Camera, visible: (label: number) => boolean): void {
    const { gl, uniforms } = this;
    const { width, height } = gl.canvas;
    gl.viewport(0, 0, width, height);
    gl.depthMask(true);
    gl.clearColor(0x0b / 255, 0x0d / 255, 0x10 / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.uniformMatrix3fv(uniforms.turn, true, turn.flat());
    gl.uniform3fv(uniforms.middle, middle);
    gl.uniform2f(uniforms.scale, (2 * scale) / width, (2 * scale) / height);
    // Deep enough for anything that is near the view at any zoom.
    gl.uniform1f(uniforms.depth, 1e-3);
    const shown = this.drawn.filter(({ label }) => visible(label));
    const paint = ({ label, array, count }: Drawn, alpha: number) => {
      const [r, g, b] = classColor(label);
      gl.uniform4f(uniforms.color, r / 255, g / 255, b / 255, alpha);
      gl.bindVertexArray(array);
      gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
    };
    if (this.edges) {
      gl.uniform4f(uniforms.color, 0.45, 0.5, 0.58, 0);
      gl.bindVertexArray(this.edges.array);
      gl.drawElements(gl.LINES, this.edges.count, gl.UNSIGNED_INT, 0);
    }
    shown.forEach((one, place) => {
      if (place === 0) return paint(one, 1);
      // Depths first and colors then: of a surface that is seen through, only what is nearest is painted.
      gl.depthFunc(gl.LESS);
      gl.colorMask(false, false, false, false);
      paint(one, 1);
      gl.colorMask(true, true, true, true);
      gl.depthFunc(gl.EQUAL);
      paint(one, SEEN_THROUGH);
      gl.depthFunc(gl.LESS);
    });
  }

  /** Gives the memory back. */
  end(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
