/** What `Content-Range` says of a body: bytes `[start, end)` of a file, whose size may be missing. */
interface ContentRange {
  readonly start: number
  readonly end: number
  readonly sizeBytes: number | undefined
}

/** Parses `bytes <first>-<last>/<size or *>` (RFC 9110 §14.4); undefined for anything else. */
export function tryParseContentRange(text: string | undefined): ContentRange | undefined {
  const [, first, last, size] = /^bytes (\d{1,15})-(\d{1,15})\/(?:(\d{1,15})|\*)$/i.exec(text ?? '') ?? []
  if (first === undefined || Number(last) < Number(first)) return undefined
  return { start: Number(first), end: Number(last) + 1, sizeBytes: size === undefined ? undefined : Number(size) }
}
