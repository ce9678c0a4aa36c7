import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { localFiles } from '../../../library/src/embedded/local-files.ts'
import { openLibrary } from '../../../library/src/embedded/open-library.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const CHILD = new URL('reader-process.ts', import.meta.url).pathname

it('what another process opened stays while it lives, and after kill -9 its lease is worth nothing', async () => {
  const library = await openLibrary({ root: temporaryFolder() })
  onTestFinished(() => library.close())
  const model = (seed: number): string => writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, seed) })
  await library.import(localFiles([model(1)]), 'me/a')
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, library.root, 'svc:///me/a:q8_0'], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close')
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const paths = JSON.parse(line) as string[]
  expect(paths.length).toBeGreaterThan(1)
  await library.import(localFiles([model(2)]), 'me/a')
  await library.collect({ graceMs: 0 })
  expect(paths.filter((path) => !existsSync(path))).toEqual([])
  child.kill('SIGKILL')
  await ended
  await library.collect({ graceMs: 0 })
  expect(paths.filter((path) => existsSync(path))).toEqual([])
})
