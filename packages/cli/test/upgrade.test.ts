// What follows an upgrade: the mirror's `main`, and the views of the older version.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import { ok, type TestDaemon, testDaemon } from './support.ts'

const REPO = 'Acme/Moving-GGUF'
const REF = 'acme/moving-gguf:q8_0'

async function upgradable() {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const commit = (seed: number): string =>
    hub.commit({ id: REPO, files: [{ path: 'Moving-Q8_0.gguf', content: makeGguf({ seed }) }] })
  const old = commit(1)
  const daemon = await testDaemon({
    fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint }, mirror: { hub_addr: '127.0.0.1:0' } }
  })
  await ok(daemon, 'import', 'hf', REPO)
  return { daemon, old, commit }
}

async function mainOf({ folder }: TestDaemon): Promise<string> {
  const { hubMirrorAddress } = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  const answer = await fetch(`http://${hubMirrorAddress}/api/models/${REPO}/revision/main`)
  return ((await answer.json()) as { readonly sha: string }).sha
}

test("after an upgrade the mirror's main is the new commit, at once and after a restart", async () => {
  const { daemon, old, commit } = await upgradable()
  expect(await mainOf(daemon)).toBe(old)
  const now = commit(2)
  await ok(daemon, 'upgrade', 'acme/moving-gguf')
  expect(await mainOf(daemon)).toBe(now)
  await daemon.pause()
  await daemon.resume()
  expect(await mainOf(daemon)).toBe(now)
})

test('an upgrade names the views of the older version, and svc view --refresh moves them', async () => {
  const { daemon, commit } = await upgradable()
  const weights = (): Buffer => readFileSync(join(daemon.folder, 'files/moving-q8_0.gguf'))
  await ok(daemon, 'view', REF, 'files', '--copy')
  await ok(daemon, 'view', REF, 'cache', '--layout', 'hf')
  const before = weights()
  const now = commit(2)
  const { stderr } = await daemon.svc('upgrade', '--all')
  for (const part of ['files', 'cache', 'svc view --refresh']) expect(stderr).toContain(part)
  expect(await ok(daemon, 'view')).toContain(`older than ${REF}`)
  expect(weights()).toEqual(before)
  expect((await ok(daemon, 'view', '--refresh')).split('\n').sort()).toEqual([
    join(daemon.folder, 'cache'),
    join(daemon.folder, 'files')
  ])
  expect(weights()).not.toEqual(before)
  const { views } = JSON.parse(await ok(daemon, 'view', '--json'))
  const { manifestDigest } = JSON.parse(await ok(daemon, 'resolve', REF, '--json'))
  for (const view of views) {
    expect(view).toMatchObject({ manifestDigest, mode: view.layout === 'files' ? 'copy' : 'symlink' })
    expect(view.others).toBeUndefined()
  }
  expect(readFileSync(join(daemon.folder, 'cache/models--Acme--Moving-GGUF/refs/main'), 'utf8')).toBe(now)
  expect((await daemon.svc('view', '--refresh')).stderr).toContain('no view')
})

test('what an upgrade kept shows in svc ls, and svc rm says that it stays', async () => {
  const { daemon, commit } = await upgradable()
  commit(2)
  await ok(daemon, 'upgrade', '--all')
  const older = /^acme\/moving-gguf:before-\S+\+q8_0 .*kept by an upgrade/m
  expect(await ok(daemon, 'ls')).toMatch(older)
  const { stderr } = await daemon.svc('rm', REF)
  expect(stderr).toMatch(/acme\/moving-gguf:before-\S+\+q8_0, an older version, stays/)
  expect(await ok(daemon, 'ls')).toMatch(older)
  await ok(daemon, 'gc', '--older-than', '0')
  expect(await ok(daemon, 'ls')).toBe('')
})
