// Two real daemons on one root, whose lock is granted to both, or whose lock file is taken away under the first.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { runSvcd, type SpawnedDaemon, spawnDaemon } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Homes of daemons that share a root, and find a `flock` that always says yes. */
function shared() {
  const folder = temporaryFolder()
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'flock'), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  const root = join(folder, 'root')
  const env = { PATH: `${bin}:${process.env.PATH}` }
  const home = (name: string) => {
    const at = join(folder, name)
    mkdirSync(at)
    writeFileSync(join(at, 'off.toml'), '[swarm]\nenabled = false\n')
    return { folder: at, args: ['--root', root, '--socket', join(at, 's.sock'), '--config', join(at, 'off.toml')], env }
  }
  return { folder, root, home }
}

const model = (folder: string, seed: number): string[] => [
  writeFiles(join(folder, `m${seed}`), { 'm-q4_0.gguf': gguf(100_000, seed) })
]

async function imported(daemon: SpawnedDaemon, folder: string, as: string, seed: number): Promise<string> {
  const job = await daemon.import(model(folder, seed), as)
  expect(job.error).toBeUndefined()
  return job.manifest!
}

describe('two daemons on one root', () => {
  test('a lock that is granted twice: the second is refused by name, and the first goes on', async () => {
    const { folder, root, home } = shared()
    const first = await spawnDaemon(home('a'))
    const manifest = await imported(first, folder, 'me/a', 1)
    const { args, env, folder: at } = home('b')
    for (const words of [[], ['tag', 'set', 'me/a:t']]) {
      const { code, err } = runSvcd(at, [...args, ...words], env)
      expect([words, code]).toEqual([words, 2])
      if (words.length === 0) expect(err).toContain(String(first.child.pid))
    }
    expect((await first.resolve('svc:///me/a:q4_0')).body.manifestDigest).toBe(manifest)
    await imported(first, folder, 'me/b', 2)
    first.child.kill('SIGKILL')
    await first.ended
    const next = await spawnDaemon({ ...home('c') })
    expect((await next.verify('all')).verify).toEqual({})
    expect((await next.resolve('svc:///me/a:q4_0')).body.manifestDigest).toBe(manifest)
    expect(JSON.parse(readFileSync(join(root, 'owner'), 'utf8')).pid).toBe(next.child.pid)
  })

  test('the files of lock and owner are taken away: the first one removes, replaces and acknowledges nothing any more', async () => {
    const { folder, root, home } = shared()
    const first = await spawnDaemon(home('a'))
    const kept = await imported(first, folder, 'me/a', 1)
    for (const name of ['lock', 'owner']) rmSync(join(root, name))
    const second = await spawnDaemon(home('b'))
    const newer = await imported(second, folder, 'me/b', 2)

    const job = (await first.post('/v1/import/local', { paths: model(folder, 3), as: 'me/b' })).body
    expect(job.error ?? (await first.finished(job)).error).toMatchObject({ code: 'E_INTERNAL' })
    expect((await first.call('DELETE', '/v1/models/me/a')).status).toBe(500)
    const collection = (await first.post('/v1/gc', { graceSeconds: 0 })).body
    expect(collection.error ?? (await first.finished(collection)).error).toMatchObject({ code: 'E_INTERNAL' })
    first.child.kill('SIGTERM')
    await first.ended
    expect(JSON.parse(readFileSync(join(root, 'owner'), 'utf8')).pid).toBe(second.child.pid)

    expect((await second.verify('all')).verify).toEqual({})
    second.child.kill('SIGTERM')
    await second.ended
    const after = await testDaemon({ folder })
    for (const [ref, manifest] of Object.entries({ 'me/a': kept, 'me/b': newer }))
      expect((await after.resolve(`svc:///${ref}:q4_0`)).body.manifestDigest).toBe(manifest)
    expect((await after.verify('all')).verify).toEqual({})
  })

  test('another one takes the name of the owner: state is neither replaced nor acknowledged', async () => {
    const { folder, root, home } = shared()
    const first = await spawnDaemon(home('a'))
    await imported(first, folder, 'me/a', 1)
    const state = join(root, 'state/repos/me/a.json')
    const before = readFileSync(state)
    const owner = JSON.parse(readFileSync(join(root, 'owner'), 'utf8'))
    writeFileSync(join(root, 'owner'), JSON.stringify({ ...owner, nonce: 'f00', machine: 'else/1', host: 'else' }))
    const job = (await first.post('/v1/import/local', { paths: model(folder, 2), as: 'me/a' })).body
    const { error } = await first.finished(job)
    expect(error).toMatchObject({ code: 'E_INTERNAL' })
    expect(error!.message).toContain('else')
    expect(readFileSync(state)).toEqual(before)
    expect((await first.get('/v1/models')).body.error.message).toContain('else')
  })
})
