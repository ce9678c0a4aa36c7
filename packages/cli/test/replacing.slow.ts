// An import takes no name from another model unless it is told to.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { QUIET_SWARM, type TestDaemon, testDaemon, typing } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })

const REF = 'me/m:q8_0'
const weights = (seed: number): Buffer => makeGguf({ seed })
async function manifestOf(daemon: TestDaemon, ref = REF): Promise<string | undefined> {
  const { code, stdout } = await daemon.svc('resolve', ref, '--json')
  return code === 0 ? JSON.parse(stdout).manifestDigest : undefined
}

async function withFiles(daemon: TestDaemon): Promise<void> {
  for (const seed of [1, 2]) writeFileSync(join(daemon.folder, `m${seed}-q8_0.gguf`), weights(seed))
  expect(await daemon.svc('import', 'local', 'm1-q8_0.gguf', '--as', 'me/m')).toMatchObject({ code: 0 })
}

it('import local: refuses without a terminal, asks on a terminal, replaces with --replace', async () => {
  const daemon = await testDaemon()
  await withFiles(daemon)
  const mine = await manifestOf(daemon)
  const words = ['import', 'local', 'm2-q8_0.gguf', '--as', 'me/m']
  const refused = await daemon.svc(...words, '--json', '--quiet')
  expect(refused.code).toBe(2)
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'E_NAME_TAKEN', candidates: [REF] } })
  const asked = await daemon.svcWith(words, { columns: 100, stdin: typing('n') })
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining(REF) })
  expect(await manifestOf(daemon)).toBe(mine)
  // importing the same model again replaces nothing
  expect(await daemon.svc('import', 'local', 'm1-q8_0.gguf', '--as', 'me/m')).toMatchObject({ code: 0 })
  expect(await daemon.svcWith(words, { columns: 100, stdin: typing('y') })).toMatchObject({ code: 0 })
  const theirs = await manifestOf(daemon)
  expect(theirs).not.toBe(mine)
  const back = await daemon.svc('import', 'local', 'm1-q8_0.gguf', '--as', 'me/m', '--replace')
  expect(back).toMatchObject({ code: 0, stderr: expect.stringContaining(theirs!) })
  expect(await manifestOf(daemon)).toBe(mine)
  const detached = await daemon.svc(...words, '--detach')
  await daemon.svc('jobs', detached.stdout.trim(), '--follow')
  expect(await manifestOf(daemon)).toBe(mine)
})

it('import hf: a newer commit replaces an older one and says so; another repository is refused before it is fetched', async () => {
  const hub = await startFakeHub({})
  onTestFinished(() => hub.close())
  const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
  const commit = (id: string, seed: number): string =>
    hub.commit({ id, files: [{ path: `${id.split('/')[1]}-q8_0.gguf`, content: weights(seed) }] })
  commit('acme/first', 1)
  commit('acme/second', 2)
  expect(await daemon.svc('import', 'hf', 'acme/first', '--as', 'me/m')).toMatchObject({ code: 0 })
  const old = await manifestOf(daemon)
  const refused = await daemon.svc('import', 'hf', 'acme/second', '--as', 'me/m', '--json', '--quiet')
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'E_NAME_TAKEN', candidates: [REF] } })
  expect([await manifestOf(daemon), hub.bytesSent.get('second-q8_0.gguf') ?? 0]).toEqual([old, 0])
  commit('acme/first', 3)
  const updated = await daemon.svc('import', 'hf', 'acme/first', '--as', 'me/m')
  expect(updated).toMatchObject({ code: 0, stderr: expect.stringContaining(old!) })
  expect(await manifestOf(daemon)).not.toBe(old)
  // a local file does not replace a model of the hub either
  await withFiles(await testDaemon())
  writeFileSync(join(daemon.folder, 'own-q8_0.gguf'), weights(4))
  expect(await daemon.svc('import', 'local', 'own-q8_0.gguf', '--as', 'me/m')).toMatchObject({ code: 2 })
})

it('import bt --as: refused, then done with --replace', async () => {
  const from = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  const to = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  await withFiles(from)
  writeFileSync(join(to.folder, 'own-q8_0.gguf'), weights(9))
  expect(await to.svc('import', 'local', 'own-q8_0.gguf', '--as', 'me/m')).toMatchObject({ code: 0 })
  const mine = await manifestOf(to)
  const shared = (await from.svc('share', REF, '--quiet')).stdout.trim().split(' ').slice(1)
  const words = shared.map((word) => word.replace(/^'|'$/g, ''))
  expect(await to.svc(...words)).toMatchObject({ code: 2 })
  expect(await manifestOf(to)).toBe(mine)
  expect(await to.svc(...words, '--replace')).toMatchObject({ code: 0 })
  expect(await manifestOf(to)).toBe(await manifestOf(from))
})

it('import oci and adopt: refused, asked on a terminal, then done with --replace', async () => {
  const [from, to] = [await testDaemon(), await testDaemon()]
  await withFiles(from)
  const layout = join(from.folder, 'layout')
  expect(await from.svc('export', 'oci', REF, layout)).toMatchObject({ code: 0 })
  mkdirSync(join(to.folder, 'm'))
  writeFileSync(join(to.folder, 'm/own-q8_0.gguf'), weights(9))
  const adopted = (await to.svc('adopt', 'm', '--dry-run', '--quiet')).stdout.trim()
  for (const [words, as] of [
    [['import', 'oci', layout, '--as', 'me/m'], 'me/m'],
    [['adopt', 'm'], adopted]
  ] as const) {
    const ref = `${as}:q8_0`
    writeFileSync(join(to.folder, 'mine-q8_0.gguf'), weights(8))
    expect(await to.svc('import', 'local', 'mine-q8_0.gguf', '--as', as)).toMatchObject({ code: 0 })
    const mine = await manifestOf(to, ref)
    const refused = await to.svc(...words)
    expect([refused.code === 0, await manifestOf(to, ref)]).toEqual([false, mine])
    expect(refused.stderr).toContain(as)
    // adopt asks first whether to go on at all, and then finds no answer
    const stdin = typing(words[0] === 'adopt' ? 'y' : 'n')
    const asked = await to.svcWith(words, { columns: 100, stdin })
    expect([asked.code === 0, await manifestOf(to, ref)]).toEqual([false, mine])
    expect(asked.stderr).toContain(`${ref} is another artifact here`)
    const done = await to.svc(...words, '--replace')
    expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining(mine!) })
    expect(await manifestOf(to, ref)).not.toBe(mine)
  }
})
