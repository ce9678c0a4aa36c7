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
  // Put together here, so that this file itself cites nothing that does not exist.
  const cite = (...words: string[]): string => words.join(' ')
  const spec = 'docs/spec'
  const decisions = 'docs/decisions'
  const title = 'Pears first'
  const decision = `# 0001. ${title}\n\n## What was open\n\n?\n\n## Decision\n\n!\n\n## Why\n\n.\n\n## Consequences\n\n.\n`
  const decisionIndex = `# Decisions\n\n| | |\n| --- | --- |\n| 0001 | [${title}](0001-pears-first.md) |\n`
  const sound: Record<string, string> = {
    [`${spec}/README.md`]: '| `ripe` | [fruit.md](fruit.md) | when |\n| `cut` | [knives.md](knives.md) | how |\n',
    [`${spec}/fruit.md`]: '**ripe.1** Pears are eaten in time.\n\n**ripe.2** As ripe.1, but for plums (cut.1).\n',
    [`${spec}/knives.md`]: '**cut.1** Away from the thumb.\n',
    [`${decisions}/README.md`]: decisionIndex,
    [`${decisions}/0001-pears-first.md`]: decision,
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

  test('what leads somewhere passes', () => {
    expect(problemsWith({})).toEqual([])
  })

  const code = 'packages/bowl/src/bowl.ts'
  test.each<[string, Record<string, string>, string]>([
    ['a clause that does not exist', { [code]: `\n// ${cite('spec', 'ripe.3')}` }, `${code}:2`],
    ['an area that does not exist', { [code]: `// ${cite('spec', 'pears.1')}` }, `${code}:1`],
    ['the second of several', { [code]: `// ${cite('spec', 'ripe.1,', 'cut.7')}` }, `${code}:1`],
    ['one behind a line break', { [code]: `/*\n * by ${cite('spec')}\n * cut.7\n */` }, `${code}:2`],
    ['a citation in a test', { 'test/a.test.ts': `test('${cite('spec', 'ripe.9')}')` }, 'test/a.test.ts:1'],
    ['a citation in a vector', { 'vectors/a.json': `["${cite('spec', 'ripe.9')}"]` }, 'vectors/a.json:1'],
    ['a citation in a document', { 'docs/eat.md': cite('See spec', 'ripe.9.') }, 'docs/eat.md:1'],
    ['a bare number', { [code]: `// as ${cite('cut.1')} says` }, `${code}:1`],
    [
      'a bare number of a clause that does not exist',
      { [`${spec}/knives.md`]: '**cut.1** See ripe.9.\n' },
      'knives.md:1'
    ],
    ['a decision that does not exist', { [code]: `// ${cite('decision', '0002')}` }, `${code}:1`],
    ['a page that does not exist', { [code]: `// ${spec}/nuts.md` }, `${code}:1`],
    ['a section of the API', { [code]: `// ${cite('API', '\u00a71.1')}` }, `${code}:1`],
    ['a section of the decisions', { [code]: `// ${cite('decisions', 'section', '3')}` }, `${code}:1`],
    [
      'a number given twice',
      { [`${spec}/fruit.md`]: '**ripe.1** A.\n\n**ripe.1** B.\n\n**ripe.2** C.\n' },
      'fruit.md:3'
    ],
    ['a number left out', { [`${spec}/knives.md`]: '**cut.1** A.\n\n**cut.3** B.\n' }, 'knives.md'],
    ['clauses of two areas on one page', { [`${spec}/knives.md`]: '**cut.1** A.\n\n**peel.1** B.\n' }, 'knives.md'],
    ['an area on two pages', { [`${spec}/more.md`]: '**cut.2** A.\n' }, 'more.md:1'],
    ['a page of clauses without a row', { [`${spec}/nuts.md`]: '**nut.1** A.\n' }, `${spec}/README.md`],
    ['a decision that is not in the index', { [`${decisions}/README.md`]: '# Decisions\n' }, `${decisions}/README.md`],
    [
      'a row without its decision',
      { [`${decisions}/README.md`]: `${decisionIndex}| 0002 | [B](0002-b.md) |\n` },
      'README.md'
    ],
    ['a row with another title', { [`${decisions}/README.md`]: decisionIndex.replace(title, 'Plums') }, 'README.md'],
    [
      'a decision without its reason',
      { [`${decisions}/0001-pears-first.md`]: decision.replace('## Why', '') },
      '0001-'
    ],
    ['a decision of another name', { [`${decisions}/pears.md`]: decision }, `${decisions}/pears.md`]
  ])('%s is found', (_, changes, where) => {
    const problems = problemsWith(changes)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.some((problem) => problem.includes(where))).toBe(true)
  })
})
