import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkGlossary, packageSources } from '../scripts/glossary.ts'

const root = join(import.meta.dirname, '..')

test('the code uses the words of docs/glossary.md', () => {
  expect(checkGlossary(readFileSync(join(root, 'docs/glossary.md'), 'utf8'), packageSources(root))).toEqual([])
})

const page =
  '| Word | Means |\n| --- | --- |\n| pear | a fruit |\n\n| Not | But |\n| --- | --- |\n| apple, plum | pear |\n'
const problems = (text: string, glossary = page): string[] => checkGlossary(glossary, new Map([['bowl.ts', text]]))

test.each([
  ['a word in an identifier', 'const ripePears = 2'],
  ['a banned word in a comment', '/** No plum. */\nconst pear = 1\n// nor an apple'],
  ['a banned word in a text', "const pear = 'plum'"],
  ['a banned word as a part of another one', 'const pear = plumage(pineapple)']
])('%s passes', (_, text) => {
  expect(problems(text)).toEqual([])
})

test.each([
  ['a word that the code does not have', 'const fig = 1', 'pear'],
  ['a banned word in an identifier', 'const pear = 1\nconst ripePlums = 2', 'bowl.ts:2'],
  ['a banned word in a constant', 'const pear = 1\nconst MAX_APPLES = 2', 'bowl.ts:2'],
  ['a banned word in the name of a class', 'class AppleTree { readonly pear = 1 }', 'bowl.ts:1']
])('%s is found', (_, text, where) => {
  expect(problems(text).join('\n')).toContain(where)
})

test('a banned word in the name of a file is found', () => {
  expect(checkGlossary(page, new Map([['src/apple-tree.ts', 'const pear = 1']])).join()).toContain('src/apple-tree.ts')
})

test('a page without its tables is found', () => {
  expect(problems('const pear = 1', '# Words')).not.toEqual([])
})

test.each([
  ['the word of the neighbour', 'const pear = 1\nconst ripeFig = 2', ['src/pear-tree.ts:2: ripeFig']],
  ['a form of it', 'const pear = unfigged', ['src/pear-tree.ts:1: unfigged']],
  ['a name that the API fixes', 'const pear = setFig', []],
  ['a comment and a text', "// a fig\nconst pear = 'fig'", []],
  ['another word that contains it', 'const pear = figure', []]
])('in a file about one thing, %s', (_, text, where) => {
  const neighbours =
    '\n| In | Not | But | Names of the API |\n| --- | --- | --- | --- |\n| pear | fig | pear | `setFig` |\n'
  const check = (path: string): string[] => checkGlossary(page + neighbours, new Map([[path, text]]))
  expect(check('src/pear-tree.ts').map((problem) => problem.replace(/: this .*/, ''))).toEqual(where)
  expect(check('src/fig-tree.ts')).toEqual([])
})
