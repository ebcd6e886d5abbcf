// The package inside an exported file: gzip in base64.

import { PackageError } from "../package";

/** The bytes of a package. */
export async function unpack(base64: string): Promise<ArrayBuffer> {
  try {
    const text = atob(base64.trim());
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return await new Response(stream).arrayBuffer();
  } catch {
    throw new PackageError("The data of this case are damaged: they cannot be unpacked. Make the export anew.");
  }
}
