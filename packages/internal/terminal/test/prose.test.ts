import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Output } from '../src/output.ts'

/** What a stream of this width gets; none: a file. */
function written(text: string, columns?: number): string {
  const stream = Object.assign(
    new PassThrough({ encoding: 'utf8' }),
    columns === undefined ? {} : { isTTY: true, columns }
  )
  new Output(stream).prose(text)
  return stream.read() as string
}

test('prose breaks between words, and keeps its indentation', () => {
  expect(written('  hint: svc login hf --replace', 20)).toBe('  hint: svc login hf\n  --replace\n')
  expect(written('one two', 7)).toBe('one two\n')
  expect(written('one two', 6)).toBe('one\ntwo\n')
})

test('a file gets one line', () => {
  expect(written('one two three')).toBe('one two three\n')
})

test('at any width no word is cut, and no line is longer unless it is one word', () => {
  const words = fc.array(fc.stringMatching(/^[a-z/:.-]{1,40}$/), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 120 }), (words, columns) => {
      const lines = written(words.join(' '), columns).trimEnd().split('\n')
      expect(lines.join(' ').split(' ')).toEqual(words)
      for (const line of lines) expect(line.length <= columns || !line.includes(' ')).toBe(true)
    })
  )
})
