import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'
import * as api from '../src/index.ts'
import { makeArtifact, temporaryFolder } from './support/artifact.ts'
import { put } from './support/cache.ts'

test('the example of the README runs', async () => {
  const home = temporaryFolder()
  const root = join(home, 'store')
  const source = await makeArtifact(root, [
    { name: 'tiny-00001-of-00002.gguf', kind: 'weights.gguf', content: 'a', part: 1 },
    { name: 'tiny-00002-of-00002.gguf', kind: 'weights.gguf', content: 'b', part: 2 },
    { name: 'mmproj-tiny.gguf', kind: 'weights.aux', role: 'vision-projector', content: 'c' }
  ])
  put(home, '.lmstudio/models/Acme/Tiny/tiny-q8_0.gguf', 'd')
  const given = { api, source, path: join(root, 'view'), root, home, env: {} }
  const printed = await readmeExample(import.meta.url).runWith(given)
  expect(printed).toEqual([
    [true, join(root, 'view/tiny-00001-of-00002.gguf')],
    [join(root, 'view/mmproj-tiny.gguf')],
    ['Acme/Tiny', 'acme/tiny', 1]
  ])
})

test('the README has a row for each tool', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const table = readme.slice(readme.indexOf('## Caches of other tools'))
  const rows = [...table.matchAll(/^\| `(\w+)` +\| [`a]/gm)].map(([, tool]) => tool)
  expect(rows).toEqual([...api.TOOLS, 'dir'])
})
