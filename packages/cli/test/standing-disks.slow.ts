// Standing views whose disk is away or full, and what an upgrade and an eviction change in them.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })
const canMount = process.getuid?.() === 0 && spawnSync('mount', ['--version']).status === 0
const mount = (...args: string[]): void => expect(spawnSync('mount', args).status, args.join(' ')).toBe(0)
const soon = <T>(look: () => T) => expect.poll(look, { interval: 20, timeout: 20_000 })

async function importOwn(daemon: TestDaemon, name: string, seed: number): Promise<void> {
  writeFileSync(join(daemon.folder, `${name}-q8_0.gguf`), makeGguf({ seed }))
  await ok(daemon, 'import', 'local', `${name}-q8_0.gguf`, '--as', `me/${name}`)
}

/** 2 MiB. */
const BIG = [{ name: 'big', type: 'F32', shape: [512, 1024] }] as const

/** A small file system of its own. */
function disk(folder: string, options: string): string {
  const path = join(folder, 'disk')
  mkdirSync(path)
  mount('-t', 'tmpfs', '-o', options, 'tmpfs', path)
  onTestFinished(() => void spawnSync('umount', ['--lazy', path]))
  return path
}

it.skipIf(!canMount)('nothing is written where a disk is away, and a disk that is back is made current', async () => {
  const first = await testDaemon()
  const path = disk(first.folder, 'size=4m')
  const folder = join(path, 'models')
  await first.pause()
  const views = [{ layout: 'llama', path: folder }] as const
  const daemon = await testDaemon({ folder: first.folder, fileConfig: { swarm: { enabled: false }, views } })
  const away = join(daemon.folder, 'away')
  mkdirSync(away)
  onTestFinished(() => void spawnSync('umount', ['--lazy', away]))
  await importOwn(daemon, 'one', 1)
  await soon(() => existsSync(join(folder, 'me--one--q8_0.gguf'))).toBe(true)
  // the same disk under another name, so that it outlives the unmounting
  mount('--bind', path, away)
  expect(spawnSync('umount', ['--lazy', path]).status).toBe(0)
  await importOwn(daemon, 'two', 2)
  await expect.poll(async () => await ok(daemon, 'view')).toContain(`the disk of ${folder} is not there now`)
  expect(readdirSync(path)).toEqual([])
  await daemon.pause()
  await daemon.resume()
  await importOwn(daemon, 'three', 3)
  expect(await ok(daemon, 'view')).toContain('is not there now')
  expect(readdirSync(path)).toEqual([])
  expect(existsSync(join(away, 'models/me--one--q8_0.gguf'))).toBe(true)
  mount('--bind', away, path)
  expect(await ok(daemon, 'view')).not.toContain('is not there now')
  for (const name of ['one', 'two', 'three']) expect(existsSync(join(folder, `me--${name}--q8_0.gguf`))).toBe(true)
})

it.skipIf(!canMount)('a full disk of a view harms no model, is named, and is made current with more room', async () => {
  const daemon = await testDaemon()
  const path = disk(daemon.folder, 'size=4m,nr_inodes=16')
  const folder = join(path, 'models')
  await importOwn(daemon, 'one', 1)
  await ok(daemon, 'view', 'add', 'hf', folder)
  for (let n = 0; n < 6; n++) await importOwn(daemon, `more-${n}`, 10 + n)
  await expect.poll(async () => await ok(daemon, 'view')).toMatch(new RegExp(`${folder}.*ENOSPC|no space`, 's'))
  await ok(daemon, 'fsck')
  // what is shown is whole
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const at = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) expect(existsSync(realpathSync(at))).toBe(true)
  }
  mount('-o', 'remount,size=4m,nr_inodes=1024', path)
  expect(await ok(daemon, 'view')).not.toMatch(/ENOSPC|no space/)
  for (let n = 0; n < 6; n++) {
    const commit = readFileSync(join(folder, `models--me--more-${n}/refs/main`), 'utf8')
    const at = join(folder, `models--me--more-${n}/snapshots`, commit, `more-${n}-q8_0.gguf`)
    expect(readFileSync(at).equals(makeGguf({ seed: 10 + n }))).toBe(true)
  }
})

it.skipIf(!canMount)('copies that do not fit are refused, or left out and made with more room', async () => {
  const daemon = await testDaemon()
  const path = disk(daemon.folder, 'size=4m')
  const folder = join(path, 'models')
  const shown = (name: string): string => join(folder, `me/${name}/${name}-q8_0.gguf`)
  const add = async (name: string, seed: number): Promise<void> => {
    writeFileSync(join(daemon.folder, `${name}-q8_0.gguf`), makeGguf({ seed, tensors: BIG }))
    await ok(daemon, 'import', 'local', `${name}-q8_0.gguf`, '--as', `me/${name}`)
  }
  await add('one', 1)
  await add('two', 2)
  expect(await daemon.svc('view', 'add', 'lmstudio', folder, '--copy')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/copies of a model do not fit at .*: they need \d+ bytes more/)
  })
  expect(existsSync(shown('one'))).toBe(false)
  await ok(daemon, 'rm', 'me/two:q8_0')
  await ok(daemon, 'view', 'add', 'lmstudio', folder, '--copy')
  await add('zwei', 3)
  await expect.poll(async () => await ok(daemon, 'view')).toContain(`do not fit at ${folder}`)
  expect(readFileSync(shown('one')).length).toBeGreaterThan(2 << 20)
  expect(existsSync(shown('zwei'))).toBe(false)
  mount('-o', 'remount,size=16m', path)
  expect(await ok(daemon, 'view')).not.toContain('do not fit')
  await soon(() => existsSync(shown('zwei'))).toBe(true)
  expect(await ok(daemon, 'view')).toMatch(/of copies/)
})

it('folders follow an upgrade, an eviction and the way back', async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const commit = (seed: number): void =>
    void hub.commit({
      id: 'Acme/Model-GGUF',
      files: [{ path: 'Model-Q8_0.gguf', content: makeGguf({ seed }), lfs: true }]
    })
  commit(1)
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  await ok(daemon, 'import', 'hf', 'Acme/Model-GGUF')
  for (const layout of ['hf', 'lmstudio', 'llama']) await ok(daemon, 'view', 'add', layout, layout)
  const link = join(daemon.folder, 'lmstudio/acme/model-gguf/model-q8_0.gguf')
  const hubFile = (): string => {
    const repo = join(daemon.folder, 'hf/models--Acme--Model-GGUF')
    return join(repo, 'snapshots', readFileSync(join(repo, 'refs/main'), 'utf8'), 'Model-Q8_0.gguf')
  }
  const shows = (path: string, seed: number): boolean =>
    existsSync(path) && readFileSync(path).equals(makeGguf({ seed }))
  expect([shows(link, 1), shows(hubFile(), 1)]).toEqual([true, true])

  commit(2)
  await ok(daemon, 'upgrade', '--all')
  await soon(() => [shows(link, 2), shows(hubFile(), 2)]).toEqual([true, true])

  await ok(daemon, 'evict', 'acme/model-gguf:q8_0')
  await soon(() => existsSync(link)).toBe(false)
  expect(existsSync(join(daemon.folder, 'llama/acme--model-gguf--q8_0.gguf'))).toBe(false)
  await ok(daemon, 'pull', 'acme/model-gguf:q8_0')
  await soon(() => [shows(link, 2), shows(hubFile(), 2)]).toEqual([true, true])
})
