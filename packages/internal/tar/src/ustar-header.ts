/** All headers and bodies are padded to this. */
export const TAR_BLOCK = 512
/** Largest size of a file in a ustar header: eleven octal digits. */
export const MAX_USTAR_BYTES = 8 ** 11 - 1

/** Padding after a body of this size. */
export const tarPadding = (sizeBytes: number): number => (TAR_BLOCK - (sizeBytes % TAR_BLOCK)) % TAR_BLOCK

const encoder = new TextEncoder()

/**
 * The header of a file in POSIX ustar, without time and owner, mode 0644. `name` has at most 100 bytes, `prefix` (its
 * folders) at most 155; the caller has checked them and the size. The fields are at their POSIX.1-1988 offsets.
 */
export function ustarHeader({
  name,
  prefix,
  sizeBytes,
  type = '0'
}: {
  readonly name: Uint8Array
  readonly prefix?: Uint8Array
  readonly sizeBytes: number
  /** `x`: pax records for the next header. */
  readonly type?: '0' | 'x'
}): Uint8Array {
  const header = new Uint8Array(TAR_BLOCK)
  const put = (offset: number, text: string): void => void encoder.encodeInto(text, header.subarray(offset))
  header.set(name, 0)
  put(100, '0000644\0')
  put(108, '0000000\0')
  put(116, '0000000\0')
  put(124, `${sizeBytes.toString(8).padStart(11, '0')}\0`)
  put(136, '00000000000\0')
  put(148, '        ')
  put(156, type)
  put(257, 'ustar\x0000')
  put(329, '0000000\0')
  put(337, '0000000\0')
  if (prefix !== undefined) header.set(prefix, 345)
  const sum = header.reduce((total, byte) => total + byte, 0)
  put(148, `${sum.toString(8).padStart(6, '0')}\0 `)
  return header
}
