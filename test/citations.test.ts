import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkCitations } from '../scripts/citations.ts'

test('every citation in the repository leads to a clause or a decision', () => {
  expect(checkCitations(fileURLToPath(new URL('..', import.meta.url)))).toEqual([])
})

describe('in a small tree', () => {
  // put together here, so that this file itself cites nothing that does not exist.
  const cite = (...words: string[]): string => words.join(' ')
  const docs = 'docs'
  const index = `${docs}/README.md`
  const fruit = `${docs}/fruit.md`
  const knives = `${docs}/guide/knives.md`
  const decisions = `${docs}/decisions.md`
  const decision = '**0001** **Pears first.** They do not keep.\n'
  const sound: Record<string, string> = {
    [index]: '| `ripe` | [fruit](fruit.md) | when |\n| `cut` | [knives](guide/knives.md) | how |\n',
    [fruit]: '**ripe.1** Pears are eaten in time.\n\n**ripe.2, ripe.3** As ripe.1, but for plums (cut.1).\n',
    [knives]: '**cut.1** Away from the thumb.\n',
    [decisions]: decision,
    'packages/bowl/src/bowl.ts': `/** Fruit (${cite('spec', 'ripe.1, cut.1')}; ${cite('spec', 'ripe.2 and ripe.1')}). */\n// ${cite('decision', '0001')}\n`,
    'packages/bowl/test/bowl.test.ts': `/**\n * Both rules (${cite('spec')}\n * ripe.1 to\n * ripe.2).\n */\nconst ripe = [1.5]\n`,
    'vectors/bowl.json': JSON.stringify({ from: cite('spec', 'cut.1') }),
    'packages/bowl/node_modules/x/index.js': `// ${cite('spec', 'ripe.99')}`
  }

  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'svc-citations-'))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  function problemsWith(changes: Record<string, string>): string[] {
    for (const [path, text] of Object.entries({ ...sound, ...changes })) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return checkCitations(root)
  }

  test('valid citations pass', () => {
    expect(problemsWith({})).toEqual([])
  })

  const code = 'packages/bowl/src/bowl.ts'
  test.each<[string, Record<string, string>, string]>([
    ['a clause that does not exist', { [code]: `\n// ${cite('spec', 'ripe.4')}` }, `${code}:2`],
    ['an area that does not exist', { [code]: `// ${cite('spec', 'pears.1')}` }, `${code}:1`],
    ['the second of several', { [code]: `// ${cite('spec', 'ripe.1,', 'cut.7')}` }, `${code}:1`],
    ['one behind a line break', { [code]: `/*\n * by ${cite('spec')}\n * cut.7\n */` }, `${code}:2`],
    ['a citation in a test', { 'test/a.test.ts': `test('${cite('spec', 'ripe.9')}')` }, 'test/a.test.ts:1'],
    ['a citation in a vector', { 'vectors/a.json': `["${cite('spec', 'ripe.9')}"]` }, 'vectors/a.json:1'],
    ['a citation in a document', { [`${docs}/eat.md`]: cite('See spec', 'ripe.9.') }, 'eat.md:1'],
    ['a bare number', { [code]: `// as ${cite('cut.1')} says` }, `${code}:1`],
    ['a bare number of a clause that does not exist', { [knives]: '**cut.1** See ripe.9.\n' }, 'knives.md:1'],
    ['a decision that does not exist', { [code]: `// ${cite('decision', '0002')}` }, `${code}:1`],
    ['a page that does not exist', { [code]: `// ${cite('docs/nuts')}.md` }, `${code}:1`],
    ['a section of the API', { [code]: `// ${cite('API', '\u00a71.1')}` }, `${code}:1`],
    ['a section of the decisions', { [code]: `// ${cite('decisions', 'section', '3')}` }, `${code}:1`],
    ['a number given twice', { [fruit]: '**ripe.1** A.\n\n**ripe.1, ripe.2** B.\n\n**ripe.3** C.\n' }, 'fruit.md:3'],
    ['a number left out', { [knives]: '**cut.1** A.\n\n**cut.3** B.\n' }, 'cut.2'],
    ['a page that the row of its area lacks', { [`${docs}/more.md`]: '**cut.2** A.\n' }, 'more.md'],
    ['an area without a row', { [`${docs}/nuts.md`]: '**nut.1** A.\n' }, index],
    ['a decision given twice', { [decisions]: decision + decision }, decisions],
    ['a decision without its reason', { [decisions]: '**0001** **Pears first.**\n' }, decisions]
  ])('%s is found', (_, changes, where) => {
    const problems = problemsWith(changes)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.some((problem) => problem.includes(where))).toBe(true)
  })
})
