const { copy } = Buffer.prototype

/** A view of the last fragment's whole buffer; fragments of one connection share one. */
let whole: Uint8Array = new Uint8Array(0)

/**
 * Copies `source` into shared memory at `at`. `Uint8Array.set` copies byte by byte there (0.35 s of CPU per GiB),
 * whereas `Buffer.prototype.copy` with less than the whole source is a memmove (0.06). This depends on Node's
 * implementation, so the benchmarks watch it; the result is the same either way.
 */
export function copyIntoShared(source: Uint8Array, target: Uint8Array, at: number): void {
  if (source.byteLength === source.buffer.byteLength) return target.set(source, at)
  if (whole.buffer !== source.buffer) whole = new Uint8Array(source.buffer)
  const { byteOffset } = source
  copy.call(whole, target, at, byteOffset, byteOffset + source.length)
}
