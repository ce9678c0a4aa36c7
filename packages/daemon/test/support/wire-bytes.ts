/** Bytes of the peer wire protocol, written by hand for tests that break it. */

/** Big-endian numbers of four bytes each. */
export function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, i) => bytes.writeUInt32BE(value, i * 4))
  return bytes
}

/** A message with its length in front. */
export function framed(id: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat([Buffer.of(id), ...parts])
  return Buffer.concat([u32(body.length), body])
}
