import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkGlossary, documentsOf, packageSources } from '../scripts/glossary.ts'

const root = join(import.meta.dirname, '..')

test('the code uses the words of docs/glossary.md', () => {
  const page = readFileSync(join(root, 'docs/glossary.md'), 'utf8')
  expect(checkGlossary(page, packageSources(root), documentsOf(root))).toEqual([])
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

test.each([
  ['a word with two meanings', '| pear | a fruit; also a tree |', '"pear" has two meanings'],
  ['a word with two rows', '| pear | a fruit |\n| pear | a tree |', '"pear" is defined twice'],
  [
    'a term of which a word is not in use',
    '| pear | a fruit |\n| pear tree | a plant |',
    'no identifier has the word "pear tree"'
  ]
])('%s is found', (_, rows, problem) => {
  expect(problems('const pear = 1', page.replace('| pear | a fruit |', rows)).join('\n')).toContain(problem)
})

test('a banned word in a document is found, and a retired name in code or document, but not what only contains it', () => {
  const retired = page.replace('| apple, plum | pear |', '| apple, plum | pear |\n| `bigPlum` | pear |')
  const check = (code: string, text: string): string[] =>
    checkGlossary(retired, new Map([['bowl.ts', `const pear = 1\n${code}`]]), new Map([['bowl.md', text]]))
  expect(check('', 'A pear, a plumage, apple-green.')).toEqual([])
  expect(check('', 'Two\nPlums.').join()).toContain('bowl.md:2')
  expect(check('', 'Call bigPlum.').join()).toContain('bowl.md:1: the glossary has another word for "`bigPlum`"')
  expect(check('const x = bigPlum', '').join()).toContain('bowl.ts:2: the glossary has another word for "`bigPlum`"')
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
