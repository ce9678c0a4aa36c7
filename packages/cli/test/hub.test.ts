// `svc import hf` against the real daemon and a hub on 127.0.0.1.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { startFakeXet } from '@svc/testkit/fake-xet'
import { makeGguf, seededBytes } from '@svc/testkit/models'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const REPO = 'Some-Org/Small.Model'
const WEIGHTS = 'small-q8_0.gguf'
const undo = laterUndo()
let hub: FakeHub
let daemon: TestDaemon
let first: string
let second: string

beforeAll(async () => {
  const xet = await startFakeXet({ packing: () => 'plain' })
  undo.later(() => xet.close())
  hub = await startFakeHub({ tokens: ['good'], xet })
  undo.later(() => hub.close())
  const readme = { path: 'README.md', content: Buffer.from('# small') }
  const files = [{ path: WEIGHTS, content: makeGguf({ seed: 1 }) }, readme]
  first = hub.commit({ id: REPO, files })
  second = hub.commit({ id: REPO, files: [...files, { path: 'small-q4_0.gguf', content: makeGguf({ seed: 2 }) }] })
  hub.commit({ id: 'some-org/gated', gated: 'manual', files })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
}, 60_000)
afterEach(() => hub.setFaults(undefined))
afterAll(undo.all)

it('--dry-run shows what would happen, and fetches no weights', async () => {
  const plain = await daemon.svc('import', 'hf', REPO, '--dry-run')
  expect(plain.code).toBe(0)
  expect(plain.stdout).toMatch(new RegExp(`^some-org/small.model at ${second}|${REPO} at ${second}`))
  expect(plain.stdout).toMatch(/^ +store +.* small-q8_0\.gguf +weights\.gguf, q8_0$/m)
  expect(plain.stdout).toMatch(/^ +keep +.* README\.md +companion$/m)
  expect(plain.stdout).toMatch(/^quants +q4_0, q8_0$/m)
  const json = await daemon.svc('import', 'hf', REPO, '--dry-run', '--revision', first, '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({ commit: first, as: 'some-org/small.model', quants: ['q8_0'] })
  expect(hub.bytesSent.get(WEIGHTS) ?? 0).toBe(0)
  expect((await daemon.svc('ls', '-q')).stdout).toBe('')
})

it('imports a revision, then new commits on the branch', async () => {
  const old = await daemon.svc('import', 'hf', REPO, '--revision', first)
  expect(old).toMatchObject({ code: 0, stdout: 'some-org/small.model:q8_0\n' })
  const shown = await daemon.svc('show', 'some-org/small.model:q8_0', '--json')
  expect(JSON.parse(shown.stdout).annotations).toMatchObject({ 'svc.hf.repo': REPO, 'svc.hf.revision': first })
  const sent = hub.bytesSent.get(WEIGHTS)
  const now = await daemon.svc('import', 'hf', REPO, '--all', '--json', '--quiet')
  expect(JSON.parse(now.stdout)).toMatchObject({ state: 'done', result: { quants: ['q4_0', 'q8_0'], skipped: 1 } })
  expect(hub.bytesSent.get(WEIGHTS)).toBe(sent)
})

it('a gated repository names the variable that takes the token', async () => {
  const ran = await daemon.svc('import', 'hf', 'some-org/gated')
  expect(ran).toMatchObject({ code: 6, stdout: '' })
  expect(ran.stderr).toContain('svc login hf')
})

it.each([
  [['some-org/small.model', '--revision', 'nowhere'], 3, 'E_UNKNOWN_REF'],
  [['a/b/c'], 2, 'E_BAD_REQUEST']
])('svc import hf %j exits %d with %s', async (args, code, errorCode) => {
  const ran = await daemon.svc('import', 'hf', ...args, '--json')
  expect(ran).toMatchObject({ code, stdout: '' })
  expect(JSON.parse(ran.stderr).error.code).toBe(errorCode)
  // svc ls is no help for a model that the hub lacks
  expect((await daemon.svc('import', 'hf', ...args)).stderr).not.toContain('svc ls')
})

it('Ctrl-C detaches, and the import completes', async () => {
  hub.commit({ id: 'some-org/slow', files: [{ path: 'slow-q8_0.gguf', content: { seed: 9, sizeBytes: 400_000 } }] })
  const fault = { kind: 'drip', stepBytes: 20_000, everyMs: 40 } as const
  hub.setFaults(scriptedFaults([{ stage: 'cdn', path: 'slow-q8_0.gguf', fault }]))
  const ran = await daemon.svcWith(['import', 'hf', 'some-org/slow', '--force'], { interruptAt: 'some-org/slow' })
  expect(ran).toMatchObject({ code: 130, stdout: '' })
  const id = /svc jobs ([0-9a-f]+) --follow/.exec(ran.stderr)![1]!
  const followed = await daemon.svc('jobs', id, '--follow')
  expect(followed).toMatchObject({ code: 0, stdout: 'some-org/slow:q8_0\n' })
})

it("draws progress bars of the terminal's width, and removes them", async () => {
  const content = { seed: 10, sizeBytes: 20 << 20 }
  hub.commit({ id: 'some-org/wide', files: [1, 2].map((n) => ({ path: `wide-0000${n}-of-00002.gguf`, content })) })
  const ran = await daemon.svcWith(['import', 'hf', 'some-org/wide', '--force'], { columns: 44 })
  expect(ran.code).toBe(0)
  const lines = ran.stderr.replace(/\u001b\[[0-9?;]*[A-Za-z]/g, '\n').split(/[\r\n]+/)
  const drawn = lines.filter((line) => /^[#-]{8} /.test(line))
  expect(drawn.length).toBeGreaterThan(0)
  for (const line of drawn) expect(line.length).toBeLessThanOrEqual(44)
  // lines wrap again, and what was drawn is erased
  expect(ran.stderr).toMatch(/\u001b\[\?7h(?:\u001b\[\d+A)?\r\u001b\[J(?!\u001b)/)
})

it('lists newer versions, upgrades, and keeps the old version until gc removes it', async () => {
  const id = 'some-org/moving'
  const commit = (seed: number): string =>
    hub.commit({ id, files: [{ path: 'm-q8_0.gguf', content: makeGguf({ seed }) }] })
  const old = commit(20)
  await daemon.svc('import', 'hf', id)
  expect((await daemon.svc('outdated', 'moving')).stdout).toMatch(/^some-org\/moving:q8_0 +same +main +/m)
  const now = commit(21)
  expect((await daemon.svc('outdated', '-q')).stdout).toBe('some-org/moving:q8_0\n')
  const { models } = JSON.parse((await daemon.svc('outdated', 'some-org/moving', '--json')).stdout)
  expect(models).toEqual([expect.objectContaining({ status: 'newer', commit: now, files: 1, bytesPresent: 0 })])
  expect((await daemon.svc('ls', 'moving')).stdout).toContain('newer')
  const dry = await daemon.svc('upgrade', '--all', '--dry-run')
  expect(dry).toMatchObject({ code: 0 })
  expect(dry.stdout).toContain(`${old.slice(0, 8)} > ${now.slice(0, 8)}`)
  expect(await daemon.svc('upgrade')).toMatchObject({ code: 2 })
  const done = await daemon.svc('upgrade', 'moving')
  expect(done).toMatchObject({ code: 0, stdout: 'some-org/moving:q8_0\n' })
  const before = /some-org\/moving:(before-\S+)\+q8_0/.exec(done.stderr)![1]!
  expect((await daemon.svc('ls', 'moving')).stdout).not.toContain('newer')
  expect(await daemon.svc('verify', `some-org/moving:${before}+q8_0`)).toMatchObject({ code: 0 })
  expect((await daemon.svc('gc', '--older-than', '30d')).stderr).not.toContain('older version')
  expect((await daemon.svc('gc', '--older-than', '0')).stderr).toContain('1 older version')
  expect(await daemon.svc('show', `some-org/moving:${before}+q8_0`)).toMatchObject({ code: 3 })
  hub.setAccess(id, { private: true })
  expect(await daemon.svc('upgrade', 'moving')).toMatchObject({ code: 6 })
})

it('a renamed repository does not block other upgrades, and is followed on request', async () => {
  const commit = (name: string, seed: number): string =>
    hub.commit({ id: `some-org/${name}`, files: [{ path: 'm-q8_0.gguf', content: makeGguf({ seed }) }] })
  for (const name of ['first', 'second']) {
    commit(name, 40)
    await daemon.svc('import', 'hf', `some-org/${name}`)
    commit(name, 41)
  }
  hub.rename('some-org/first', 'new-org/first')
  const all = await daemon.svc('upgrade', '--all')
  expect(all).toMatchObject({ code: 2, stdout: 'some-org/second:q8_0\n' })
  expect(all.stderr).toContain('some-org/first is new-org/first at the hub now')
  expect(await daemon.svc('upgrade', 'first', '--replace')).toMatchObject({ code: 0, stdout: 'some-org/first:q8_0\n' })
  const { models } = JSON.parse((await daemon.svc('upgrade', 'first', 'second', '--json')).stdout)
  expect(models.map(({ status }: { status: string }) => status)).toEqual(['same', 'same'])
})

it('an upgrade reports fetched and reused bytes', async () => {
  const id = 'some-org/large'
  const weights = seededBytes(9 << 20, 3)
  const commit = (seed: number): string =>
    hub.commit({ id, files: [{ path: 'l-q8_0.gguf', content: Buffer.concat([makeGguf({ seed }), weights]) }] })
  commit(30)
  await daemon.svc('import', 'hf', id)
  commit(31)
  const { stderr } = await daemon.svc('upgrade', 'large')
  expect(stderr).toMatch(/1\.\d MiB fetched, 8\.\d MiB reused/)
  commit(32)
  const { result } = JSON.parse((await daemon.svc('upgrade', 'large', '--json', '--quiet')).stdout)
  expect(result.fetchedBytes).toBeLessThan(2 << 20)
  expect(result.reusedBytes).toBeGreaterThan(8 << 20)
})

it('shows what a repository holds before it is imported, and what fits this machine', async () => {
  const metadata = {
    'llama.block_count': 2,
    'llama.embedding_length': 64,
    'llama.attention.head_count': 4,
    'llama.context_length': 4096
  }
  const files = ['q4_0', 'q8_0'].map((quant, seed) => ({
    path: `fit-${quant}.gguf`,
    content: makeGguf({ metadata, seed })
  }))
  const commit = hub.commit({ id: 'some-org/fit', files, tags: ['license:apache-2.0'] })
  const bin = mkdtempSync(join(tmpdir(), 'svc-smi-'))
  undo.later(() => rmSync(bin, { recursive: true }))
  writeFileSync(join(bin, 'nvidia-smi'), '#!/bin/sh\necho 24576\necho 8192\n', { mode: 0o755 })
  const env = { PATH: `${bin}:${process.env.PATH}` }
  const shown = await daemon.svcWith(['show', 'hf', 'some-org/fit'], { env })
  expect(shown).toMatchObject({ code: 0 })
  expect(shown.stdout).toContain(commit)
  expect(shown.stdout).toMatch(/^ +license +apache-2\.0$/m)
  expect(shown.stdout).toMatch(/^ +machine .*, 32\.0 GiB of VRAM, .* of disk free$/m)
  expect(shown.stdout).toMatch(/^ +q8_0 .* fits/m)
  expect(shown.stderr).toContain('32.0 GiB of VRAM')
  const json = JSON.parse(
    (await daemon.svcWith(['show', 'hf', 'some-org/fit', '--context', '1', '--json'], { env })).stdout
  )
  expect(json).toMatchObject({
    quants: ['q4_0', 'q8_0'],
    machine: { vramBytes: 32 * 2 ** 30 },
    memory: { contextTokens: 1 }
  })
  expect(json.fits).toEqual([expect.objectContaining({ fit: 'fits' }), expect.objectContaining({ fit: 'fits' })])
  expect((await daemon.svc('ls', 'fit')).stdout).toBe('')
  expect(await daemon.svc('show', 'hf', 'some-org/gated')).toMatchObject({ code: 6 })
  expect(await daemon.svc('show', 'hf', 'some-org/fit', '--context', 'all')).toMatchObject({ code: 2 })
  expect(await daemon.svc('show', 'some-org/fit', 'more')).toMatchObject({ code: 2 })
})

it('a branch is chosen behind the name, with or without a quant', async () => {
  const content = makeGguf({ seed: 31 })
  const commit = hub.commit({ id: 'Acme/Branches', branch: '4.0bpw', files: [{ path: 'branch-q8_0.gguf', content }] })
  for (const source of ['Acme/Branches@4.0bpw', 'Acme/Branches@4.0bpw:Q8_0', `Acme/Branches@${commit}`]) {
    const { stdout } = await daemon.svc('import', 'hf', source, '--dry-run', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ commit, quants: ['q8_0'] })
  }
})
