import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { loadAgain } from '../src/index.ts'

test('a package that could not be loaded is loaded by the next call, and then kept', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-load-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'node_modules/tool')
  mkdirSync(path, { recursive: true })
  // as where no descriptor was free
  writeFileSync(
    join(path, 'index.js'),
    "if (!require('node:fs').existsSync(__dirname + '/free')) throw new Error('EMFILE')\nexports.tool = {}\n"
  )
  const load = (): { tool: object } => loadAgain(pathToFileURL(join(folder, 'caller.js')).href, 'tool')
  expect(load).toThrow('EMFILE')
  writeFileSync(join(path, 'free'), '')
  expect(load().tool).toBe(load().tool)
})
