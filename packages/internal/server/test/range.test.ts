import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blobAnswer, parseRange } from '../src/range.ts'

interface Row {
  readonly name: string
  readonly sizeBytes: number
  readonly range: string
  readonly verdict: 'whole' | 'unsatisfiable' | readonly [number, number]
}
const table = JSON.parse(readFileSync(new URL('../../../../vectors/ranges.json', import.meta.url), 'utf8')) as {
  ranges: Row[]
}

describe('parseRange', () => {
  it.each(table.ranges)('$name: $range', ({ sizeBytes, range, verdict }) => {
    const got = parseRange(range, sizeBytes)
    expect(got.kind === 'part' ? [got.start, got.end] : got.kind).toEqual(verdict)
  })

  it('agrees with arithmetic on big integers, for numbers of any length', () => {
    const digits = fc.stringMatching(/^[0-9]{1,30}$/)
    fc.assert(
      fc.property(fc.nat(200), digits, fc.option(digits, { nil: undefined }), (size, first, last) => {
        const got = parseRange(`bytes=${first}-${last ?? ''}`, size)
        const [a, b] = [BigInt(first), last === undefined ? undefined : BigInt(last)]
        const wanted =
          (b !== undefined && b < a) || a >= BigInt(size)
            ? { kind: 'unsatisfiable' }
            : { kind: 'part', start: Number(a), end: b === undefined || b >= BigInt(size) ? size : Number(b) + 1 }
        expect(got).toEqual(wanted)
      })
    )
  })

  it('never throws, and returns ranges within the blob', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^bytes=[0-9, -]{0,40}$/)), fc.nat(1000), (header, size) => {
        const got = parseRange(header, size)
        if (got.kind === 'part') expect(0 <= got.start && got.start < got.end && got.end <= size).toBe(true)
      })
    )
  })
})

describe('blobAnswer', () => {
  const etag = '"sha256:aa"'
  it.each([
    ['no header', {}, { status: 200 }],
    ['If-Match that fits', { 'if-match': etag }, { status: 200 }],
    ['If-Match *', { 'if-match': '*' }, { status: 200 }],
    ['If-Match of another', { 'if-match': '"x"' }, { status: 412 }],
    ['If-Match is strong', { 'if-match': `W/${etag}` }, { status: 412 }],
    ['If-Match list', { 'if-match': `"x", ${etag}` }, { status: 200 }],
    ['If-Match before If-None-Match', { 'if-match': '"x"', 'if-none-match': etag }, { status: 412 }],
    ['If-None-Match that fits', { 'if-none-match': etag }, { status: 304 }],
    ['If-None-Match is weak', { 'if-none-match': `W/${etag}` }, { status: 304 }],
    ['If-None-Match *', { 'if-none-match': '*' }, { status: 304 }],
    ['If-None-Match of another', { 'if-none-match': '"x"' }, { status: 200 }],
    ['If-None-Match before Range', { 'if-none-match': etag, range: 'bytes=900-' }, { status: 304 }],
    ['Range', { range: 'bytes=1-2' }, { status: 206, start: 1, end: 3 }],
    ['If-Range that fits', { 'if-range': etag, range: 'bytes=1-2' }, { status: 206, start: 1, end: 3 }],
    ['If-Range that fits, range that does not', { 'if-range': etag, range: 'bytes=10-' }, { status: 416 }],
    ['If-Range of another', { 'if-range': '"x"', range: 'bytes=1-2' }, { status: 200 }],
    ['If-Range is strong', { 'if-range': `W/${etag}`, range: 'bytes=1-2' }, { status: 200 }],
    ['If-Range with a date', { 'if-range': 'Sat, 01 Jan 2022 00:00:00 GMT', range: 'bytes=1-2' }, { status: 200 }],
    ['If-Range without Range', { 'if-range': '"x"' }, { status: 200 }]
  ] as const)('%s', (_name, headers, wanted) => {
    expect(blobAnswer({ method: 'GET', headers }, { etag }, 10)).toEqual(wanted)
  })

  it('ignores Range for HEAD', () => {
    expect(blobAnswer({ method: 'HEAD', headers: { range: 'bytes=1-2' } }, { etag }, 10)).toEqual({ status: 200 })
    expect(blobAnswer({ method: 'HEAD', headers: { range: 'bytes=99-' } }, { etag }, 10)).toEqual({ status: 200 })
  })
})
