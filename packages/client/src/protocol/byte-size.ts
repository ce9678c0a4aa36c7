const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40
}

/**
 * Bytes of a size as people write it: `500000`, `50GB`, `1.5 TiB`; a unit without `i` is decimal. Whole bytes; undefined for
 * anything else, and beyond exact integers.
 */
export function tryParseByteSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,16}(?:\.\d{1,6})?) ?([a-z]*)$/.exec(text.toLowerCase()) ?? []
  const scale = UNITS[unit]
  if (number === undefined || scale === undefined) return undefined
  const bytes = Math.round(Number(number) * scale)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
