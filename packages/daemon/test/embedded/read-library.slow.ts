import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient, modelsOf } from '@svc/client'
import { localFiles, type Models, openLibrary } from '@svc/library'
import { until } from '@svc/testkit/until'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

/** Root may write everywhere. */
const NOBODY = process.getuid?.() === 0 ? 65_534 : undefined

const CHILD = new URL('reader-process.ts', import.meta.url).pathname
const SERVER = new URL('serving-process.ts', import.meta.url).pathname

interface Owned {
  readonly models: Models
  /** With grace 0. */
  collect(): Promise<unknown>
  /** How the other process gets there. */
  readonly way: readonly ['beside' | 'daemon', string]
}

it.each<[string, () => Promise<Owned>]>([
  [
    'beside its owner',
    async () => {
      const models = await openLibrary({ root: temporaryFolder() })
      onTestFinished(() => models.close())
      return { models, collect: () => models.collect({ graceMs: 0 }), way: ['beside', models.root] }
    }
  ],
  [
    'through the daemon',
    async () => {
      const { running } = await testDaemon()
      const client = createClient(running)
      const collect = async () => client.waitJob(await client.gc({ graceSeconds: 0 }))
      return { models: modelsOf(client), collect, way: ['daemon', running.socketPath] }
    }
  ]
])(
  'what another process opened %s stays while it lives, and after kill -9 its lease is worth nothing',
  async (_, own) => {
    const { models, collect, way } = await own()
    const model = (seed: number): string => writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, seed) })
    await models.import(localFiles([model(1)]), 'me/a')
    const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, ...way, 'svc:///me/a:q8_0'], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'close')
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    const paths = JSON.parse(line) as string[]
    expect(paths.length).toBeGreaterThan(1)
    await models.import(localFiles([model(2)]), 'me/a')
    await collect()
    expect(paths.filter((path) => !existsSync(path))).toEqual([])
    child.kill('SIGKILL')
    await ended
    await collect()
    expect(paths.filter((path) => existsSync(path))).toEqual([])
  }
)

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
  const child = spawn(process.execPath, ['--conditions=svc-source', CHILD, 'beside', root, 'svc:///me/a:q8_0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(NOBODY !== undefined && { uid: NOBODY })
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  expect((JSON.parse(line) as string[]).filter((path) => !existsSync(path))).toEqual([])
  expect(readdirSync(root)).not.toContain('leases')
})

it('another process serves the store of a running daemon, which its end does not touch', async () => {
  const daemon = await testDaemon()
  const child = spawn(process.execPath, ['--conditions=svc-source', SERVER, daemon.root], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // one that is killed leaves its folder of links
    env: { ...process.env, TMPDIR: temporaryFolder() }
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close')
  const [hub] = (await once(createInterface(child.stdout), 'line')) as [string]
  const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 4) })
  await daemon.import([folder], 'me/a')
  const url = `${hub}/me/a/resolve/main/a-q8_0.gguf`
  let response = await fetch(url)
  await until(
    () => response.status === 200,
    async () => {
      response = await fetch(url)
    }
  )
  expect(Buffer.from(await response.arrayBuffer()).equals(gguf(3_000, 4))).toBe(true)
  child.kill('SIGKILL')
  await ended
  expect((await daemon.verify('all')).state).toBe('done')
})
