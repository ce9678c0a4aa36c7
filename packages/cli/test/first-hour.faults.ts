// The first hour with a model as it is published: choose a quant, see it, keep it private, remove it, see the space come back.

import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { createClient } from '@svc/client'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, QUIET_SWARM, svcProcess, type TestDaemon, testDaemon, typing } from './support.ts'

const REPO = 'Some-Org/Model-7B-GGUF'
const AS = 'some-org/model-7b-gguf'
const QUANTS = ['Q2_K', 'Q4_K_M', 'Q5_K_M', 'Q6_K', 'Q8_0']
const undo = laterUndo()
let hub: FakeHub
let daemon: TestDaemon

beforeAll(async () => {
  hub = await startFakeHub()
  undo.later(() => hub.close())
  hub.commit({
    id: REPO,
    files: [
      ...QUANTS.map((quant, i) => ({ path: `Model-7B-${quant}.gguf`, content: makeGguf({ seed: i + 1 }) })),
      { path: 'Model-7B.BF16-00001-of-00002.gguf', content: makeGguf({ seed: 11 }) },
      { path: 'Model-7B.BF16-00002-of-00002.gguf', content: makeGguf({ seed: 12 }) },
      { path: 'tokenizer.json', content: Buffer.from('{}') }
    ]
  })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
}, 60_000)
afterAll(undo.all)

async function storeBytes(): Promise<number> {
  const { stdout } = await daemon.svc('status', '--json')
  return JSON.parse(stdout).store.bytes
}

it('a repository of several quants is not fetched by accident: svc lists them and exits with 2', async () => {
  const ran = await daemon.svc('import', 'hf', REPO)
  expect(ran).toMatchObject({ code: 2, stdout: '' })
  for (const quant of [...QUANTS, 'BF16'])
    expect(ran.stderr).toMatch(new RegExp(`^ +${quant.toLowerCase()} +[\\d.]+ MiB`, 'm'))
  expect(ran.stderr).toContain('--all')
  const json = await daemon.svc('import', 'hf', REPO, '--json')
  expect(JSON.parse(json.stderr).error.candidates).toContain('q4_k_m')
  expect((await daemon.svc('ls', '-q')).stdout).toBe('')
})

it('on a terminal, svc imports the quants that the user names', async () => {
  const ran = await daemon.svcWith(['import', 'hf', REPO, '--as', 'asked/model'], {
    columns: 100,
    stdin: typing('Q2_K')
  })
  expect(ran).toMatchObject({ code: 0, stdout: 'asked/model:q2_k\n' })
  expect(ran.stderr).toContain('Which?')
  expect(ran.stderr).toContain('the largest that fits is')
  expect((await daemon.svc('rm', 'asked/model')).code).toBe(0)
  expect((await daemon.svc('gc')).stdout).toMatch(/^freed /)
})

it('svc asks again after an unclear answer, and imports nothing without one', async () => {
  const answering = (...lines: string[]) => ({ columns: 100, stdin: typing(...lines) })
  const again = await daemon.svcWith(['import', 'hf', REPO, '--as', 'asked/twice'], answering('q', 'q8, Q2_k'))
  expect(again).toMatchObject({ code: 0, stdout: 'asked/twice:q2_k\nasked/twice:q8_0\n' })
  expect(again.stderr.match(/Which\?/g)).toHaveLength(2)
  const ran = await daemon.svcWith(['import', 'hf', REPO], answering())
  expect(ran).toMatchObject({ code: 2, stdout: '' })
  expect(ran.stderr).toContain('nothing was chosen')
  const endless = Object.assign(new PassThrough(), { isTTY: true })
  const stopped = await daemon.svcWith(['import', 'hf', REPO], { columns: 100, stdin: endless, interruptAt: 'Which?' })
  expect(stopped).toMatchObject({ code: 130, stdout: '' })
  expect(stopped.stderr).toContain('interrupted; nothing was done')
  expect((await daemon.svc('rm', 'asked/twice')).code).toBe(0)
  expect((await daemon.svc('gc')).code).toBe(0)
})

it("the address of a repository's page serves as a name", async () => {
  const { stdout } = await daemon.svc('import', 'hf', `https://huggingface.co/${REPO}/tree/main`, '--dry-run')
  expect(stdout).toMatch(new RegExp(`^${REPO} at [0-9a-f]{40}, as ${AS}$`, 'm'))
})

it('two models of one quant are choices of their own, and nothing is imported before one is chosen', async () => {
  const files = ['llama-7b-Q4_K_M.gguf', 'qwen-7b-Q4_K_M.gguf', 'llama-7b-Q8_0.gguf']
  const weights = files.map((path, i) => ({ path, content: makeGguf({ seed: 61 + i }) }))
  hub.commit({ id: 'Two/Bases', files: [{ path: 'README.md', content: Buffer.from('# Two') }, ...weights] })
  const refused = await daemon.svc('import', 'hf', 'Two/Bases:Q4_K_M')
  expect(refused).toMatchObject({ code: 3, stdout: '' })
  expect(refused.stderr).toContain('q4_k_m.llama-7b, q4_k_m.qwen-7b, q8_0')
  expect((await daemon.svc('ls')).stdout).not.toContain('two/bases')

  for (const quant of ['q4_k_m.llama-7b', 'q4_k_m.qwen-7b'])
    expect(await daemon.svc('import', 'hf', `Two/Bases:${quant}`)).toMatchObject({
      code: 0,
      stdout: `two/bases:${quant}\n`
    })
  expect((await daemon.svc('rm', 'two/bases')).code).toBe(0)
  expect((await daemon.svc('gc')).code).toBe(0)
})

it('import one quant, list it, remove it, and get the space back', async () => {
  const before = await storeBytes()
  const imported = await daemon.svc('import', 'hf', `${REPO}:Q4_K_M`)
  expect(imported).toMatchObject({ code: 0, stdout: `${AS}:q4_k_m\n` })
  // the only quant need not be named, and case does not matter
  expect((await daemon.svc('resolve', 'Some-Org/Model-7B-GGUF', '-q')).stdout).toBe(
    (await daemon.svc('resolve', `${AS}:Q4_K_M`, '-q')).stdout
  )
  const split = await daemon.svc('import', 'hf', `${REPO}:bf16`, '--private')
  expect(split).toMatchObject({ code: 0, stdout: `${AS}:bf16\n` })
  expect(await daemon.svc('resolve', AS)).toMatchObject({ code: 2 })
  const listed = (await daemon.svc('ls')).stdout
  expect(listed).toMatch(new RegExp(`^${AS}:bf16 .* complete +private `, 'm'))
  expect(listed).toMatch(new RegExp(`^${AS}:q4_k_m .* complete +no `, 'm'))
  expect((await daemon.svc('ls', '--filter', 'size>1MB', '--sort', 'size', '--format', 'ids')).stdout).toBe(
    `${AS}:bf16\n${AS}:q4_k_m\n`
  )
  expect((await daemon.svc('ls', '--filter', 'private', '--format', 'csv')).stdout).toMatch(
    new RegExp(`^ref,sizeBytes,.*\\n${AS}:bf16,\\d+,true,,,true,`)
  )
  expect((await daemon.svc('ls', '--filter', 'size>1TB')).stdout).toBe('')
  expect(await daemon.svc('ls', '--filter', 'weight>1')).toMatchObject({ code: 2 })
  expect(await daemon.svc('private', `${AS}:bf16`, '--off')).toMatchObject({ code: 0, stdout: `${AS}:bf16\n` })
  expect((await daemon.svc('du', AS)).stdout).toMatch(new RegExp(`^${AS}:bf16 +[\\d.]+ MiB +[\\d.]+ MiB +`, 'm'))

  // svc du does not count as a use
  const usedAt = async (): Promise<string> => (await daemon.svc('ls', AS, '--format', 'csv')).stdout
  const used = await usedAt()
  expect((await daemon.svc('du')).code).toBe(0)
  expect(await usedAt()).toBe(used)

  const removed = await daemon.svc('rm', `${AS}:BF16`)
  expect(removed).toMatchObject({ code: 0, stdout: `removed ${AS}:bf16\n` })
  expect(removed.stderr).toContain('svc gc')
  expect((await daemon.svc('gc', '--dry-run')).stdout).toMatch(/^would free [\d.]+ MiB, \d+ blobs\n$/)
  expect((await daemon.svc('gc', '--grace', '1h')).stdout).toBe('')
  expect((await daemon.svc('gc')).stdout).toMatch(/^freed [\d.]+ MiB, \d+ blobs\n$/)
  expect(await daemon.svc('rm', `${AS}:bf16`)).toMatchObject({ code: 3 })
  expect((await daemon.svc('verify', `${AS}:q4_k_m`)).code).toBe(0)
  expect((await daemon.svc('rm', AS)).code).toBe(0)
  expect((await daemon.svc('gc')).code).toBe(0)
  expect(await storeBytes()).toBe(before)
})

it('errors for a missing quant and for a model without a source say what to do', async () => {
  expect((await daemon.svc('import', 'hf', `${REPO}:Q2_K`, '--as', 'me/next')).code).toBe(0)
  const absent = await daemon.svc('path', 'me/next:Q4_K_M')
  expect(absent).toMatchObject({ code: 3, stdout: '' })
  expect(absent.stderr).toContain('svc import hf me/next:q4_k_m')
  // a hint to import a model is no help to someone who removes it
  for (const args of [
    ['rm', 'me/next:Q4_K_M'],
    ['rm', 'me/none'],
    ['private', 'me/none']
  ]) {
    const refused = await daemon.svc(...args)
    expect(refused).toMatchObject({ code: 3, stdout: '' })
    expect(refused.stderr).not.toContain('svc import')
  }
  const unknown = await daemon.svc('pull', `me/next@sha256:${'a'.repeat(64)}`)
  expect(unknown).toMatchObject({ code: 6, stdout: '' })
  expect(unknown.stderr).toContain('svc share')
  expect(unknown.stderr).not.toContain('/v1/')
  await daemon.svc('du')
  const { stdout } = await daemon.svc('jobs')
  expect(stdout).toMatch(/^[0-9a-f]{24} +gc --dry-run +done /m)
  expect((await daemon.svc('rm', 'me/next')).code).toBe(0)
  expect((await daemon.svc('gc')).code).toBe(0)
})

it('lost blobs are fetched from the hub when no peer has them', async () => {
  const { stdout } = await daemon.svc('import', 'hf', `${REPO}:Q6_K`, '--as', 'me/lost')
  expect(stdout).toBe('me/lost:q6_k\n')
  const [weights] = JSON.parse((await daemon.svc('path', '--blob', 'me/lost', '--json')).stdout)
  rmSync(weights.path)
  const broken = await daemon.svc('fsck')
  expect(broken.code).toBe(5)
  expect(broken.stdout).toMatch(/^me\/lost:q6_k .*svc pull me\/lost:q6_k$/m)
  expect((await daemon.svc('ls')).stdout).toMatch(/^me\/lost:q6_k .* missing /m)
  const pulled = await daemon.svc('pull', 'me/lost')
  expect(pulled).toMatchObject({ code: 0, stdout: 'me/lost:q6_k\n' })
  expect(pulled.stderr).toContain(REPO)
  expect((await daemon.svc('fsck')).code).toBe(0)
})

it('silent peers, a cancelled pull, and names that were not normalized', async () => {
  hub.commit({ id: 'someone/Stories', files: [{ path: 'Stories260K.gguf', content: makeGguf({ seed: 41 }) }] })
  const swarm = { ...QUIET_SWARM, dht: true, dht_bootstrap: [] }
  const other = await testDaemon({ fileConfig: { swarm, hub: { endpoint: hub.endpoint } } })
  const { open } = createClient({ socketPath: other.socketPath })
  // made at the import: the hub has no such file
  const lose = async (ref: string): Promise<void> => {
    const { files } = await open(`svc:///${ref}`)
    rmSync(files.find(({ kind }) => kind === 'config')!.path)
  }
  // the quant is in no name: the header tells it, unless names are kept
  for (const [quant, ...flags] of [['q8_0'], ['raw', '--keep-names']]) {
    const ref = `someone/stories:${quant}`
    expect((await other.svc('import', 'hf', 'someone/Stories', ...flags)).code).toBe(0)
    const { stdout: before } = await other.svc('resolve', ref, '-q')
    await lose(ref)
    const pulled = await other.svc('pull', ref, '--wait', '1s')
    expect(pulled).toMatchObject({ code: 0, stdout: `${ref}\n` })
    expect(pulled.stderr).toMatch(/^fetching .* from the hub \(someone\/Stories\), then from peers$/m)
    expect(pulled.stderr).toMatch(
      /^no peer sent anything for 1s; asking the hub for someone\/Stories at [0-9a-f]{40}$/m
    )
    expect((await other.svc('resolve', ref, '-q')).stdout).toBe(before)
  }

  await lose('someone/stories:q8_0')
  const asked = hub.requests.length
  const pulling = other.svc('pull', 'someone/stories:q8_0')
  const id = await vi.waitFor(async () => {
    const { jobs } = JSON.parse((await other.svc('jobs', '--json')).stdout)
    expect(jobs[0]).toMatchObject({ kind: 'ensure', state: expect.stringMatching(/waiting|fetching/) })
    return jobs[0].id as string
  }, 60_000)
  expect(await other.svc('cancel', id.slice(0, 8))).toMatchObject({ code: 0, stdout: `${id}\n` })
  expect(await pulling).toMatchObject({ code: 1, stdout: '' })
  expect(hub.requests.length).toBe(asked)
  expect((await other.svc('jobs')).stdout).toMatch(new RegExp(`^${id} +ensure +cancelled +just now `, 'm'))
})

it('through the real program', async () => {
  const { socketPath } = daemon
  const imported = await svcProcess(['import', 'hf', `${REPO}:q5_k_m`, '--as', 'me/real'], { socketPath })
  expect(imported).toMatchObject({ code: 0, stdout: 'me/real:q5_k_m\n' })
  expect(await svcProcess(['import', 'hf', REPO], { socketPath })).toMatchObject({ code: 2, stdout: '' })
  expect(await svcProcess(['rm', 'me/real', 'me/lost'], { socketPath })).toMatchObject({ code: 0 })
  expect((await svcProcess(['gc'], { socketPath })).stdout).toMatch(/^freed /)
  const blobs = join(daemon.root, 'blobs', 'sha256')
  expect(readdirSync(blobs).flatMap((two) => readdirSync(join(blobs, two)))).toEqual([])
})
