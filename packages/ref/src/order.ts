/** Where a UTF-16 code unit of at least 0xd800 stands among the others by the bytes of UTF-8: surrogates come last. */
const rankOf = (unit: number): number => (unit < 0xe000 ? unit + 0x2800 : unit)

/** The order of well-formed texts by their UTF-8 bytes, without encoding them: a sort compares each text many times. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left !== right) return left >= 0xd800 && right >= 0xd800 ? rankOf(left) - rankOf(right) : left - right
  }
  return a.length - b.length
}
