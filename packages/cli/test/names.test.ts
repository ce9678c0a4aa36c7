// Names as people type them: of the hub, of files, and of what is here.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

const REPO = 'Qwen/Small-GGUF'
const NAME = 'qwen/small-gguf'
const undo = laterUndo()
let hub: FakeHub
let daemon: TestDaemon
let commit: string
const weights = (path: string, seed: number) => ({ path, content: makeGguf({ seed }) })

beforeAll(async () => {
  hub = await startFakeHub({})
  undo.later(() => hub.close())
  commit = hub.commit({ id: REPO, files: [weights('small-Q8_0.gguf', 1), weights('small-Q4_K_M.gguf', 2)] })
  hub.commit({ id: 'Other/Small-GGUF', files: [weights('other-Q8_0.gguf', 3)] })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
}, 60_000)
beforeEach(async () => {
  const { stdout } = await daemon.svc('ls', '-q')
  if (stdout !== '') await daemon.svc('rm', '--tags', ...stdout.trim().split('\n'))
})
afterAll(undo.all)

it.each([
  [`${REPO}:Q8_0`],
  [`https://huggingface.co/${REPO}:Q8_0`],
  [`hf.co/${REPO}:Q8_0`],
  [`https://huggingface.co/${REPO}/blob/main/small-Q8_0.gguf`],
  [`https://huggingface.co/${REPO}/resolve/main/small-Q8_0.gguf?download=true`]
])('svc import and svc pull bring in %s', async (typed) => {
  for (const command of ['import', 'pull']) {
    expect(await daemon.svc(command, typed)).toMatchObject({ code: 0, stdout: `${NAME}:q8_0\n` })
    expect((await daemon.svc('ls', '-q')).stdout).toBe(`${NAME}:q8_0\n`)
    expect((await daemon.svc('rm', NAME)).code).toBe(0)
  }
})

it('an address with a commit imports that commit', async () => {
  const ran = await daemon.svc('import', `https://huggingface.co/${REPO}/tree/${commit}`, '--dry-run')
  expect(ran.stdout).toContain(`${REPO} at ${commit}`)
})

it('svc import accepts hub options before and after the name, and still has subcommands', async () => {
  const ran = await daemon.svc('import', '--as', 'my/small', `${REPO}:Q8_0`, '--private')
  expect(ran).toMatchObject({ code: 0, stdout: 'my/small:q8_0\n' })
  expect((await daemon.svc('import', 'hf', `${REPO}:Q4_K_M`)).stdout).toBe(`${NAME}:q4_k_m\n`)
  expect((await daemon.svc('import', 'lokal')).code).toBe(2)
  expect((await daemon.svc('import')).stdout).toContain('svc import')
})

it('a path stays a path even if it looks like a name of the hub', async () => {
  writeFileSync(join(daemon.folder, 'mine-q8_0.gguf'), makeGguf({ seed: 4 }))
  expect(await daemon.svc('import', './mine-q8_0.gguf', '--as', 'my/mine', '--private')).toMatchObject({
    code: 0,
    stdout: 'my/mine:q8_0\n'
  })
})

it('svc pull of a model that is here fetches nothing, in any case of its name', async () => {
  await daemon.svc('import', `${REPO}:Q8_0`)
  const asked = hub.requests.length
  expect(await daemon.svc('pull', `${REPO}:Q8_0`)).toMatchObject({ code: 0, stdout: `${NAME}:q8_0\n` })
  expect(hub.requests.length).toBe(asked)
})

it("svc pull of an unknown name reports the hub's answer, which does not distinguish missing from private", async () => {
  const ran = await daemon.svc('pull', 'nobody/nothing:q8_0', '--json')
  expect(ran.code).toBe(6)
  expect(JSON.parse(ran.stderr).error.code).toBe('E_SOURCE_FORBIDDEN')
})

it('a bare name is enough while only one model has it', async () => {
  await daemon.svc('import', `${REPO}:Q8_0`)
  expect((await daemon.svc('path', 'small-gguf')).stdout).toMatch(/small-q8_0\.gguf\n$/)
  expect((await daemon.svc('resolve', 'Small-GGUF:Q8_0', '-q')).code).toBe(0)
  expect((await daemon.svc('info', 'small-gguf')).stdout).toContain(`${NAME}:q8_0`)

  await daemon.svc('import', 'Other/Small-GGUF')
  const ran = await daemon.svc('path', 'small-gguf', '--json')
  expect(ran.code).toBe(2)
  expect(JSON.parse(ran.stderr).error.candidates).toEqual(['other/small-gguf', NAME])
  expect((await daemon.svc('rm', 'other/small-gguf')).code).toBe(0)
  expect((await daemon.svc('rm', 'small-gguf')).stdout).toBe(`removed ${NAME}\n`)
})

it('list, info and -v are ls, show and --version', async () => {
  await daemon.svc('import', `${REPO}:Q8_0`)
  expect((await daemon.svc('list', '-q')).stdout).toBe(`${NAME}:q8_0\n`)
  expect((await daemon.svc('-v')).stdout).toBe((await daemon.svc('--version')).stdout)
})

it('a repository without an owner is imported by its name, and kept below hf.co', async () => {
  hub.commit({ id: 'old-small', files: [weights('old-Q8_0.gguf', 5)] })
  const ref = 'hf.co/old-small:q8_0'
  for (const typed of [
    ['import', 'old-small'],
    ['import', 'hf', 'Old-small:Q8_0'],
    ['pull', 'old-small'],
    ['import', 'https://huggingface.co/old-small/blob/main/old-Q8_0.gguf'],
    ['pull', 'hf.co/old-small:Q8_0']
  ]) {
    expect(await daemon.svc(...typed)).toMatchObject({ code: 0, stdout: `${ref}\n` })
    expect((await daemon.svc('path', 'old-small')).stdout).toMatch(/old-q8_0\.gguf\n$/)
    expect((await daemon.svc('rm', 'hf.co/old-small')).code).toBe(0)
  }
  await daemon.svc('import', 'old-small')
  expect(JSON.parse((await daemon.svc('show', ref, '--json')).stdout).annotations['svc.hf.repo']).toBe('old-small')
  const asked = hub.requests.length
  expect((await daemon.svc('pull', 'old-small')).stdout).toBe(`${ref}\n`)
  expect(hub.requests.length).toBe(asked)
})

it('a model imported by a redirected old name keeps the name that was typed', async () => {
  hub.commit({ id: 'moved-small', files: [weights('moved-Q8_0.gguf', 6)] })
  hub.rename('moved-small', 'community/moved-small')
  expect((await daemon.svc('import', 'moved-small')).stdout).toBe('hf.co/moved-small:q8_0\n')
})

it('the hub is not asked for impossible names', async () => {
  const asked = hub.requests.length
  for (const typed of ['ftp://example.com/Qwen/X', './none.gguf', '../none', '/none/there', 'none-q8_0.gguf']) {
    for (const command of [['import'], ['import', 'hf']])
      expect([typed, (await daemon.svc(...command, typed)).code]).toEqual([typed, 2])
    const ran = await daemon.svc('import', typed)
    expect(ran.stderr).toContain(typed)
  }
  expect(hub.requests.length).toBe(asked)
})

it('an unknown name without a namespace is an error that lists similar names', async () => {
  await daemon.svc('import', `${REPO}:Q8_0`)
  for (const command of ['show', 'path', 'rm', 'verify', 'resolve']) {
    const ran = await daemon.svc(command, 'small', '--json')
    expect([command, ran.code]).toEqual([command, 3])
    expect(JSON.parse(ran.stderr).error).toMatchObject({ code: 'E_UNKNOWN_REF', candidates: [NAME] })
  }
})

it('a word that neither the store nor the hub knows is a usage error', async () => {
  for (const typed of [
    ['import', 'nothing-like-it'],
    ['pull', 'nothing-like-it:q8_0']
  ])
    expect(await daemon.svc(...typed)).toMatchObject({ code: 2, stdout: '' })
})
