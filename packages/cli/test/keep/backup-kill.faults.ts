// Kills at any moment of a backup and of a restore, beside imports.
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SVC, SVCD } from '@svc/testkit/programs'
import { expect, it } from 'vitest'
import { type TestDaemon, testDaemon } from '../support.ts'

/** Runs a program and kills it after this time. @returns its exit code; null if it was killed */
function run(words: readonly string[], env: NodeJS.ProcessEnv, killAfterMs: number): Promise<number | null> {
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve(code)
    })
  })
}

async function addModel(daemon: TestDaemon, name: string): Promise<void> {
  const folder = join(daemon.folder, name)
  mkdirSync(folder)
  const weights = Buffer.alloc(8 << 20, name)
  Buffer.from('GGUF\u0003\0\0\0').copy(weights)
  weights.fill(0, 8, 24)
  writeFileSync(join(folder, `${name}-q8_0.gguf`), weights)
  expect(await daemon.svc('import', 'local', name, '--as', `me/${name}`, '--force', '--quiet')).toMatchObject({
    code: 0
  })
}

const filesIn = (folder: string): Map<string, string> =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [path.slice(folder.length), readFileSync(path, 'base64')])
  )

it('a killed backup leaves the previous one intact, and the next one continues', async () => {
  const daemon = await testDaemon()
  const to = join(daemon.folder, 'saved')
  const env = { ...process.env, SVC_SOCKET: daemon.socketPath, HOME: daemon.folder }
  await addModel(daemon, 'first')
  const begun = performance.now()
  expect(await run([...SVC, 'backup', to, '--quiet'], env, 120_000)).toBe(0)
  const wholeMs = performance.now() - begun
  let killed = 0
  for (let round = 0; round < 8; round++) {
    await addModel(daemon, `model${round}`)
    if ((await run([...SVC, 'backup', to, '--quiet'], env, wholeMs * (0.3 + 0.1 * round))) === null) killed++
    const root = join(daemon.folder, `root${round}`)
    expect(await run([...SVCD, 'restore', to, '--root', root, '--quiet'], env, 120_000), `round ${round}`).toBe(0)
    expect(readdirSync(join(root, 'state/repos/me')).length).toBeGreaterThan(0)
  }
  expect(killed).toBeGreaterThan(0)
  expect(await run([...SVC, 'backup', to, '--quiet'], env, 120_000)).toBe(0)
  const root = join(daemon.folder, 'whole')
  expect(await run([...SVCD, 'restore', to, '--root', root, '--quiet'], env, 120_000)).toBe(0)
  for (const part of ['state', 'blobs']) expect(filesIn(join(root, part))).toEqual(filesIn(join(daemon.root, part)))
}, 600_000)

it('a killed restore does not count as a store until another call completes it', async () => {
  const daemon = await testDaemon()
  const to = join(daemon.folder, 'saved')
  const env = { ...process.env, SVC_SOCKET: daemon.socketPath, HOME: daemon.folder }
  for (const name of ['one', 'two', 'three']) await addModel(daemon, name)
  expect(await run([...SVC, 'backup', to, '--quiet'], env, 120_000)).toBe(0)
  const begun = performance.now()
  const restore = (root: string, killAfterMs: number) =>
    run([...SVCD, 'restore', to, '--root', root, '--quiet'], env, killAfterMs)
  expect(await restore(join(daemon.folder, 'timed'), 120_000)).toBe(0)
  const wholeMs = performance.now() - begun
  let killed = 0
  for (let round = 0; round < 8; round++) {
    const root = join(daemon.folder, `root${round}`)
    if ((await restore(root, wholeMs * (0.4 + 0.08 * round))) === null) killed++
    const code = await restore(root, 120_000)
    // 2: it had ended before the kill, and there is a store now
    expect([0, 2], `round ${round}`).toContain(code)
    for (const part of ['state', 'blobs']) expect(filesIn(join(root, part))).toEqual(filesIn(join(daemon.root, part)))
    expect(readdirSync(root)).not.toContain('moving.json')
  }
  expect(killed).toBeGreaterThan(0)
}, 600_000)
