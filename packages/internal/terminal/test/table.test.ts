import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Output } from '../src/output.ts'

type Rows = readonly (readonly string[])[]

/** What a terminal of this width gets; none: a file. */
function written(rows: Rows, columns?: number): string {
  const stream = Object.assign(
    new PassThrough({ encoding: 'utf8' }),
    columns === undefined ? {} : { isTTY: true, columns }
  )
  new Output(stream).table(rows)
  return stream.read() as string
}

const ROWS = [
  ['MODEL', 'SIZE', 'STATE'],
  ['acme/some-model:q4_k_m', '1.2 GiB', 'complete, newer at the hub'],
  ['b/c:raw', '9 B', '']
]

test('columns are lined up, in a file at any width', () => {
  const wide = `MODEL                   SIZE     STATE
acme/some-model:q4_k_m  1.2 GiB  complete, newer at the hub
b/c:raw                 9 B
`
  expect(written(ROWS)).toBe(wide)
  expect(written(ROWS, 80)).toBe(wide)
})

test('a narrow terminal gets cells that break between words', () => {
  expect(written(ROWS, 50)).toBe(`MODEL                   SIZE     STATE
acme/some-model:q4_k_m  1.2 GiB  complete, newer
                                 at the hub
b/c:raw                 9 B
`)
})

test('a long name gets a line for itself, and the others stay lined up', () => {
  const long = `some-organization/${'a-model-with-a-long-name-'.repeat(2)}gguf:q8_0`
  expect(written([...ROWS, [long, '2 MiB', 'complete']], 60)).toBe(`MODEL                   SIZE     STATE
acme/some-model:q4_k_m  1.2 GiB  complete, newer at the hub
b/c:raw                 9 B
${long}
                        2 MiB    complete
`)
})

test('where not even words fit side by side, each row goes on below its first cell', () => {
  expect(written(ROWS, 22)).toBe(`MODEL
    SIZE  STATE
acme/some-model:q4_k_m
    1.2 GiB  complete,
    newer at the hub
b/c:raw
    9 B
`)
})

test('control characters of a cell do not reach the terminal', () => {
  expect(written([['a\u001b[31m', 'b\n']], 40)).toBe('a\ufffd[31m  b\ufffd\n')
})

test('at any width every word is there as it was, in its order, and no line is longer unless it is one word', () => {
  const cell = fc.array(fc.stringMatching(/^[a-z/:.-]{1,30}$/), { maxLength: 4 }).map((words) => words.join(' '))
  const rows = fc.array(fc.array(cell, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 6 })
  const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')
  fc.assert(
    fc.property(rows, fc.integer({ min: 1, max: 120 }), (rows, columns) => {
      const text = written(rows, columns)
      // cells of one row may be side by side, each broken over several lines
      expect(wordsOf(text).sort()).toEqual(rows.flat().flatMap(wordsOf).sort())
      for (const line of text.trimEnd().split('\n'))
        expect(line.length <= columns || !line.trim().includes(' '), JSON.stringify(line)).toBe(true)
    })
  )
})
