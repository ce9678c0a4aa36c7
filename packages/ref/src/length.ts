import { RefError } from './errors.ts'

/** Longest reference, in UTF-8 bytes (spec ref.3). */
export const REF_MAX_BYTES = 512

/** UTF-8 length; a lone surrogate counts as the three bytes of U+FFFD, which is how encoders replace it. */
function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const point = character.codePointAt(0) as number
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}

/**
 * The length rule, which is checked before any grammar (spec ref.3, ref.4). Input of any length is safe: a UTF-16 unit
 * takes at least one byte in UTF-8, so text with more units than the limit is refused without counting bytes.
 * @throws RefError `E_LENGTH`, reason `too-long`.
 */
export function assertLength(text: string): void {
  if (text.length <= REF_MAX_BYTES && utf8Length(text) <= REF_MAX_BYTES) return
  throw new RefError(
    'too-long',
    `the reference is longer than ${REF_MAX_BYTES} bytes; shorten it to svc:///ns/name:quant`
  )
}

/**
 * Any input as a JSON string in printable ASCII, so that control characters, look-alike letters and lone surrogates
 * show and cannot disturb a terminal. Call after {@link assertLength}.
 */
export const quote = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
