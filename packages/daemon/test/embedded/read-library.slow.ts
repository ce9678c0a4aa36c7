import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { localFiles } from '../../../library/src/embedded/local-files.ts'
import { openLibrary } from '../../../library/src/embedded/open-library.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

/** Root may write everywhere. */
const NOBODY = process.getuid?.() === 0 ? 65_534 : undefined

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

it('a store that its owner may not write is read, without a lease', async () => {
  const library = await openLibrary({ root: temporaryFolder() })
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 3) })
  await library.import(localFiles([folder]), 'me/a')
  await library.close()
  const { root } = library
  const paths = [root, ...readdirSync(root, { recursive: true }).map((name) => join(root, String(name)))]
  for (const path of paths) if (NOBODY !== undefined) chownSync(path, NOBODY, NOBODY)
  chmodSync(root, 0o500)
  onTestFinished(() => chmodSync(root, 0o700))
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, root, 'svc:///me/a:q8_0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(NOBODY !== undefined && { uid: NOBODY })
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  expect((JSON.parse(line) as string[]).filter((path) => !existsSync(path))).toEqual([])
  expect(readdirSync(root)).not.toContain('leases')
})
