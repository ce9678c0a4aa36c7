/** An integer from 0 to `below` - 1. */
export type Random = (below: number) => number

/** Repeatable numbers: xorshift32. */
export function randomFrom(seed: number): Random {
  let state = seed | 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % Math.max(1, below)
  }
}

const EDGES = [0, 1, 0x7f, 0x80, 0xff]

/** One to three changes: other bytes, limits of number ranges, a range removed, repeated or truncated. */
export function mutateBytes(random: Random, input: Uint8Array): Buffer {
  let bytes = Buffer.from(input)
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = random(bytes.length)
    const until = Math.min(bytes.length, at + 1 + random(8))
    switch (random(6)) {
      case 0:
        if (at < bytes.length) bytes[at] = random(256)
        break
      case 1:
        bytes.fill(EDGES[random(EDGES.length)]!, at, until)
        break
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(until)])
        break
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, until), bytes.subarray(at)])
        break
      case 4:
        bytes = bytes.subarray(0, at)
        break
      default:
        if (at < bytes.length) bytes[at]! ^= 1 << random(8)
    }
  }
  return bytes
}

const VALUES = [
  'i5e',
  'le',
  'de',
  '0:',
  'i-1e',
  'i0e',
  'li1ei2ee',
  'd1:a1:be',
  '20:aaaaaaaaaaaaaaaaaaaa',
  'i99999999999e',
  'i18446744073709551616e',
  'l0:0:e',
  '3:\xff\xfe\0'
]

/** Replaces the value of one field of a bencoded message, so that most stay well-formed; occasionally changes bytes. */
export function mutateBencode(random: Random, input: Uint8Array): Buffer {
  if (random(3) === 0) return mutateBytes(random, input)
  const text = Buffer.from(input).toString('latin1')
  // strings followed by a value: keys, and some others.
  const keys = [...text.matchAll(/(\d+):/g)].filter(({ 1: length, index }) => index + Number(length) < text.length)
  const key = keys[random(keys.length)]
  if (key === undefined) return mutateBytes(random, input)
  const from = key.index + key[0].length + Number(key[1])
  const length = /^(\d+):/.exec(text.slice(from))
  const until =
    length === null
      ? from + (/^i-?\d+e/.exec(text.slice(from))?.[0].length ?? 1)
      : from + length[0].length + Number(length[1])
  return Buffer.from(text.slice(0, from) + VALUES[random(VALUES.length)] + text.slice(until), 'latin1')
}
