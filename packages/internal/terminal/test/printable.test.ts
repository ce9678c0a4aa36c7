import { expect, it } from 'vitest'
import { jsonText, printable } from '../src/printable.ts'

// Every control character, C1 and the marks that turn text around included
const CONTROLS = [
  ...Array(0x20).keys(),
  0x7f,
  ...Array.from({ length: 0x20 }, (_, i) => 0x80 + i),
  0x200f,
  0x2028,
  0x2029,
  0x202e,
  0x2066
]

it.each(CONTROLS)('U+%s reaches no terminal raw, and JSON keeps it', (code) => {
  const text = `a${String.fromCharCode(code)}b`
  const document = jsonText({ [text]: [text] })
  expect([...document].filter((each) => CONTROLS.includes(each.charCodeAt(0)))).toEqual([])
  expect(JSON.parse(document)).toEqual({ [text]: [text] })
  expect(printable(text)).toBe('a\ufffdb')
})
