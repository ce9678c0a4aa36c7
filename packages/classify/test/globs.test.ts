import fc from 'fast-check'
import picomatch from 'picomatch'
import { expect, onTestFinished, test, vi } from 'vitest'
import { GlobPattern } from '../src/glob-pattern.ts'
import { type ClassifyError, globTest } from '../src/index.ts'

test.each([
  ['*.gguf', 'a.gguf', true],
  ['*.gguf', 'b/a.gguf', false],
  ['**/*.gguf', 'a.gguf', true],
  ['**/*.gguf', 'c/b/a.gguf', true],
  ['a/**', 'a/b/c', true],
  ['a/**', 'ab/c', false],
  ['a/**/b', 'a/b', true],
  ['a/**/b', 'a/x/y/b', true],
  ['a/**/b', 'a/xb', false],
  ['a**', 'a/b', false],
  ['Q4_K_M/*', 'Q4_K_M/a.gguf', true],
  ['*.{gguf,safetensors}', 'x.safetensors', true],
  ['{a,{b,c/d}}*.x', 'c/d1.x', true],
  ['a{,b}c', 'ac', true],
  ['a?.gguf', 'ab.gguf', true],
  ['a?b', 'a/b', false],
  ['a?b', 'a😀b', true],
  ['a[12].gguf', 'a3.gguf', false],
  ['a[!12].gguf', 'a3.gguf', true],
  ['a[^b]c', 'a/c', false],
  ['[]a]', ']', true],
  ['[a-]', '-', true],
  ['[a\\-c]', 'b', false],
  ['\\*\\[', '*[', true],
  ['!a.gguf', 'b.gguf', false],
  ['.hidden/*', '.hidden/a.gguf', true],
  ['a+(b|c).gguf', 'abb.gguf', false],
  ['A.gguf', 'a.gguf', false]
])('%s on %s: %s', (glob, name, fits) => {
  expect(globTest([glob])(name)).toBe(fits)
})

test('ignore case', () => {
  expect(globTest(['*Q4_K_M*'], true)('model-q4_k_m.gguf')).toBe(true)
  expect(globTest(['Model.gguf'], true)('MODEL.gguf')).toBe(true)
})

test.each([
  ['an empty one', ['']],
  ['an open class', ['[a']],
  ['an open brace', ['{a,b']],
  ['a closing bracket', ['a]']],
  ['a closing brace', ['a}']],
  ['a brace without alternatives', ['{1..3}']],
  ['a range backwards', ['[z-a]']],
  ['a backslash at the end', ['a\\']],
  ['17 levels', [`${'{a,'.repeat(17)}b${'}'.repeat(17)}`]],
  ['an overlong one', ['x'.repeat(513)]],
  ['257 of them', Array.from({ length: 257 }, () => 'a')],
  ['4,100 characters with wildcards', Array.from({ length: 41 }, () => '*'.repeat(100))]
])('refused: %s', (_, globs) => {
  expect(() => globTest(globs)).toThrow(expect.objectContaining({ code: 'E_BAD_GLOB' }) as ClassifyError)
})

test('256 whole names of 512 characters are taken', () => {
  const names = Array.from({ length: 256 }, (_, index) => `${index}`.padEnd(512, 'x'))
  expect(globTest(names)(names[255]!)).toBe(true)
})

/** A part of a pattern: one token, or alternatives. */
type Part = string | readonly (readonly Part[])[]
const parts = fc.letrec<{ parts: readonly Part[]; part: Part }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.constantFrom('a', 'b', '/', '*', '?', '[ab]', '[!a]', '\\*'),
    fc.array(tie('parts'), { minLength: 2, maxLength: 3 })
  ),
  parts: fc.array(tie('part'), { maxLength: 4 })
})).parts
const textOf = (all: readonly Part[]): string =>
  all.map((part) => (typeof part === 'string' ? part : `{${part.map(textOf).join(',')}}`)).join('')

/** The reference: tries everything. */
function fits([first, ...rest]: readonly Part[], text: string): boolean {
  if (first === undefined) return text === ''
  if (typeof first !== 'string') return first.some((one) => fits([...one, ...rest], text))
  const [head = ''] = text
  if (first === '*') return fits(rest, text) || (!['', '/'].includes(head) && fits([first, ...rest], text.slice(1)))
  const accepted: Record<string, string[]> = {
    '?': ['a', 'b', '*'],
    '[ab]': ['a', 'b'],
    '[!a]': ['b', '*'],
    '\\*': ['*']
  }
  return (accepted[first] ?? [first]).includes(head) && fits(rest, text.slice(1))
}

const name = fc
  .array(fc.constantFrom('a', 'b', '*', '/'), { minLength: 1, maxLength: 8 })
  .map((characters) => characters.join(''))
  // what a listing can hold: no empty component
  .filter((text) => text.split('/').every((part) => part !== ''))

test('agrees with a matcher that tries everything', () => {
  fc.assert(
    fc.property(parts, name, (all, text) => {
      const glob = textOf(all)
      // whole segments of stars are below
      fc.pre(glob !== '' && !/(?:^|[/{,}])\*{2,}(?:[/{,}]|$)/.test(glob))
      expect(globTest([glob])(text), glob).toBe(fits(all, text))
    }),
    { numRuns: 3_000 }
  )
})

test('agrees with picomatch on segments', () => {
  const segment = fc.constantFrom('**', '*', 'a', 'b*', '?')
  fc.assert(
    fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), name, (segments, text) => {
      const glob = segments.join('/')
      const expected = picomatch(glob, { windows: false, dot: true })(text)
      // a folder is no file in it
      const isFolder = glob.endsWith('/**') && globTest([glob.replace(/(?:\/\*\*)+$/, '')])(text)
      if (!isFolder) expect(globTest([glob])(text), glob).toBe(expected)
    }),
    { numRuns: 2_000 }
  )
})

test.each([
  ['*a*a*a*a*b.x', 'a'.repeat(255)],
  ['*a'.repeat(255), `${'a'.repeat(254)}b`],
  [`${'{a,b,{*,*}}*'.repeat(40)}/`, 'ab'.repeat(120)],
  [`${'**/'.repeat(150)}b`, 'a/'.repeat(120)],
  [`${'{,a}'.repeat(100)}b`, 'a'.repeat(255)]
])('work is linear in the name: %.20s', (glob, text) => {
  const pattern = new GlobPattern(glob)
  const adding = vi.spyOn(Set.prototype, 'add')
  onTestFinished(() => adding.mockRestore())
  expect(pattern.matches(text)).toBe(false)
  // each position that a part reaches is put into a set
  const reached = adding.mock.calls.length
  adding.mockRestore()
  expect(reached).toBeGreaterThan(text.length / 2)
  expect(reached).toBeLessThanOrEqual((2 * glob.length + 2) * (text.length + 1))
})
