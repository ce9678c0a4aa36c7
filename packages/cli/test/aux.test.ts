// Projectors and importance matrices: which of them come with a model, and how they are found.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createClient } from '@svc/client'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

const REPO = 'Acme/Vision-GGUF'
const AS = 'acme/vision-gguf'
const WEIGHTS = 'Vision-Q8_0.gguf'
const undo = laterUndo()
let hub: FakeHub
let daemon: TestDaemon

const CONTENT = new Map<string, Buffer>(
  [WEIGHTS, 'Vision-Q4_K_M.gguf', 'mmproj-BF16.gguf', 'mmproj-F16.gguf', 'mmproj-F32.gguf', 'imatrix.dat'].map(
    (path, seed) => [path, makeGguf({ seed })]
  )
)

beforeAll(async () => {
  hub = await startFakeHub()
  undo.later(() => hub.close())
  hub.commit({ id: REPO, files: [...CONTENT].map(([path, content]) => ({ path, content, lfs: true })) })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
}, 60_000)
afterAll(undo.all)

/** The aux files of an artifact. */
async function auxOf(ref: string): Promise<string[]> {
  const { stdout } = await daemon.svc('cat', `${ref}#manifest`)
  const { files } = JSON.parse(stdout) as { readonly files: { readonly name: string; readonly kind: string }[] }
  return files.filter(({ kind }) => kind === 'weights.aux').map(({ name }) => name)
}

const sent = (): Record<string, number> => Object.fromEntries(hub.bytesSent)

it('a quant comes with one projector and no importance matrix, in the plan and its sizes', async () => {
  const plan = JSON.parse((await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--dry-run', '--json')).stdout)
  const bytes = CONTENT.get(WEIGHTS)!.length + CONTENT.get('mmproj-F16.gguf')!.length
  expect(plan).toMatchObject({ artifacts: [{ quant: 'q8_0', files: 2, bytes }], totals: { fetchBytes: bytes } })
  const asked = await daemon.svc('import', 'hf', REPO)
  expect(asked).toMatchObject({ code: 2, stdout: '' })
  expect(asked.stderr).toMatch(/^ +q8_0 .* 2 files/m)
  // a header, which says what fits
  const readToAsk = sent()
  expect(await daemon.svc('import', 'hf', `${REPO}:Q8_0`)).toMatchObject({ code: 0, stdout: `${AS}:q8_0\n` })
  expect(await auxOf(`${AS}:q8_0`)).toEqual(['mmproj-f16.gguf'])
  const fetched = Object.entries(sent()).filter(([name, bytes]) => bytes !== readToAsk[name])
  expect(fetched.map(([name]) => name).sort()).toEqual([WEIGHTS, 'mmproj-F16.gguf'])
  const { stdout } = await daemon.svc('path', `${AS}:q8_0#mmproj`)
  expect(readFileSync(stdout.trim()).equals(CONTENT.get('mmproj-F16.gguf')!)).toBe(true)
})

it('a different choice adds the missing files of the same commit without refetching weights', async () => {
  const before = sent()
  expect((await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--aux', 'imatrix')).code).toBe(0)
  expect(await auxOf(`${AS}:q8_0`)).toEqual(['imatrix.dat', 'mmproj-f16.gguf'])
  expect((await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--aux', 'BF16,imatrix')).code).toBe(0)
  expect(await auxOf(`${AS}:q8_0`)).toEqual(['imatrix.dat', 'mmproj-bf16.gguf'])
  expect((await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--aux', 'none')).code).toBe(0)
  expect(await auxOf(`${AS}:q8_0`)).toEqual([])
  const none = await daemon.svc('path', `${AS}:q8_0#mmproj`)
  expect(none).toMatchObject({ code: 3, stdout: '' })
  expect(none.stderr).toContain('mmproj')
  expect((await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--aux', 'all')).code).toBe(0)
  expect(await auxOf(`${AS}:q8_0`)).toEqual(['imatrix.dat', 'mmproj-bf16.gguf', 'mmproj-f16.gguf', 'mmproj-f32.gguf'])
  const after = sent()
  for (const path of [WEIGHTS, 'mmproj-F16.gguf']) expect([path, after[path]]).toEqual([path, before[path]])
  const several = await daemon.svc('path', `${AS}:q8_0#mmproj`, '--json')
  expect(several).toMatchObject({ code: 2, stdout: '' })
  expect(JSON.parse(several.stderr).error.candidates).toEqual(
    ['bf16', 'f16', 'f32'].map((word) => `${AS}:q8_0#mmproj-${word}.gguf`)
  )
  expect((await daemon.svc('path', `${AS}:q8_0#mmproj-bf16`)).stdout).toMatch(/mmproj-bf16\.gguf\n$/)
})

it('a choice that the repository does not offer is refused, lists what it offers, and changes nothing', async () => {
  const ran = await daemon.svc('import', 'hf', `${REPO}:Q8_0`, '--as', 'no/aux', '--aux', 'q4_0', '--json')
  expect(ran).toMatchObject({ code: 3, stdout: '' })
  expect(JSON.parse(ran.stderr).error).toMatchObject({
    code: 'E_NO_MEMBER',
    candidates: ['bf16', 'f16', 'f32', 'imatrix']
  })
  expect((await daemon.svc('show', 'no/aux')).code).toBe(3)
})

it('files that the user names are imported, whatever their kind', async () => {
  const options = ['--file', '*q8_0*', '--file', '*imatrix*', '--as', 'named/files']
  expect((await daemon.svc('import', 'hf', REPO, ...options)).code).toBe(0)
  expect(await auxOf('named/files:q8_0')).toEqual(['imatrix.dat'])
})

it('the API imports everything unless the field is set', async () => {
  const client = createClient({ socketPath: daemon.socketPath })
  try {
    const body = { repo: REPO, quants: ['Q8_0'], names: 'normalized' as const }
    const aux = async (more: object): Promise<number> => (await client.planHf({ ...body, ...more })).artifacts[0]!.files
    expect(await aux({})).toBe(5)
    expect(await aux({ aux: 'all' })).toBe(5)
    expect(await aux({ aux: 'none' })).toBe(1)
    expect(await aux({ aux: ['f32', 'bf16', 'imatrix'] })).toBe(4)
    for (const wrong of [[], 'f16', [1], ['x'.repeat(65)]])
      await expect(aux({ aux: wrong })).rejects.toMatchObject({ code: 'E_BAD_REQUEST', status: 400 })
  } finally {
    client.close()
  }
})

it('the same rule applies to folders on disk; files named one by one are all imported', async () => {
  const cwd = join(daemon.folder, 'vision')
  mkdirSync(cwd)
  for (const [path, content] of CONTENT) writeFileSync(join(cwd, path), content)
  const local = (...args: string[]) => daemon.svcWith(['import', 'local', ...args], { cwd })
  expect((await local('.', '--as', 'my/one', '--quant', 'q8_0')).code).toBe(0)
  expect(await auxOf('my/one:q8_0')).toEqual(['mmproj-f16.gguf'])
  expect((await local('.', '--as', 'my/two', '--quant', 'q8_0', '--aux', 'f32')).code).toBe(0)
  expect(await auxOf('my/two:q8_0')).toEqual(['mmproj-f32.gguf'])
  expect((await local(WEIGHTS, 'imatrix.dat', 'mmproj-F32.gguf', '--as', 'my/three')).code).toBe(0)
  expect(await auxOf('my/three:q8_0')).toEqual(['imatrix.dat', 'mmproj-f32.gguf'])
})

it('svc exec gives a command the projector', async () => {
  const shown = join(daemon.folder, 'shown')
  const write = 'require("node:fs").writeFileSync(process.argv[1], process.argv.slice(2).join("\\n"))'
  const run = (ref: string) =>
    daemon.svc('exec', ref, '--', process.execPath, '-e', write, shown, '{}', '--mmproj={mmproj}')
  expect((await run('my/two:q8_0')).code).toBe(0)
  const [weights, projector] = readFileSync(shown, 'utf8').split('\n')
  expect(basename(weights!)).toBe('vision-q8_0.gguf')
  expect(projector).toMatch(/^--mmproj=\/.*\/mmproj-f32\.gguf$/)
  expect((await run('my/three:q8_0')).code).toBe(0)
  expect((await daemon.svc('import', 'local', `vision/${WEIGHTS}`, '--as', 'my/text')).code).toBe(0)
  expect((await run('my/text')).code).toBe(3)
})

it('svc exec passes paths on as they are, whatever characters they have', async () => {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), "svc-$&-$1-$'-{}-{mmproj}-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const odd = await testDaemon({ folder })
  writeFileSync(join(folder, WEIGHTS), CONTENT.get(WEIGHTS)!)
  await ok(odd, 'import', 'local', WEIGHTS, '--as', 'my/text')
  const shown = join(daemon.folder, 'shown')
  const write = 'require("node:fs").writeFileSync(process.argv[1], process.argv.slice(2).join("\\n"))'
  const words = ['--', process.execPath, '-e', write, shown, '{},{}', '{dir}/{dir}', '$&']
  expect(await odd.svc('exec', 'my/text', ...words)).toMatchObject({ code: 0 })
  const [path, dir] = [await ok(odd, 'path', 'my/text'), await ok(odd, 'path', '--dir', 'my/text')]
  expect(path).toContain(folder)
  expect(readFileSync(shown, 'utf8').split('\n')).toEqual([`${path},${path}`, `${dir}/${dir}`, '$&'])
})

it('a quant comes with the nearest draft head, which has a path, and svc exec gives it to a command', async () => {
  const names = ['Fast-Q4_K_M.gguf', 'Fast-Q8_0.gguf', 'mtp-Fast-Q4_0.gguf', 'mtp-Fast-Q8_0.gguf']
  const files = names.map((path, i) => ({ path, content: makeGguf({ seed: 40 + i }), lfs: true }))
  hub.commit({ id: 'Acme/Fast', files })
  const plan = JSON.parse(await ok(daemon, 'import', 'hf', 'Acme/Fast', '--dry-run', '--json'))
  expect(plan.quants).toEqual(['q4_k_m', 'q8_0'])
  await ok(daemon, 'import', 'hf', 'Acme/Fast:Q4_K_M')
  expect(await auxOf('acme/fast:q4_k_m')).toEqual(['mtp-fast-q4_0.gguf'])
  const path = await ok(daemon, 'path', 'acme/fast:q4_k_m#draft')
  expect(basename(path)).toBe('mtp-fast-q4_0.gguf')
  const shown = join(daemon.folder, 'drafts')
  const write = 'require("node:fs").writeFileSync(process.argv[1], process.argv.slice(2).join("\\n"))'
  const words = ['--', process.execPath, '-e', write, shown, '{}', '--model-draft={draft}']
  expect(await daemon.svc('exec', 'acme/fast:q4_k_m', ...words)).toMatchObject({ code: 0 })
  expect(
    readFileSync(shown, 'utf8')
      .split('\n')
      .map((word) => basename(word))
  ).toEqual(['fast-q4_k_m.gguf', 'mtp-fast-q4_0.gguf'])
  await ok(daemon, 'import', 'hf', 'Acme/Fast:Q8_0', '--aux', 'draft:q4_0')
  expect(await auxOf('acme/fast:q8_0')).toEqual(['mtp-fast-q4_0.gguf'])
  await ok(daemon, 'import', 'hf', 'Acme/Fast:Q8_0', '--aux', 'none', '--replace')
  expect(await auxOf('acme/fast:q8_0')).toEqual([])
})

it('components of a pipeline have roles and paths', async () => {
  const folder = join(daemon.folder, 'pipeline')
  for (const part of ['unet', 'vae', 'text_encoder']) {
    mkdirSync(join(folder, part), { recursive: true })
    writeFileSync(join(folder, part, 'model.safetensors'), makeSafetensors({ seed: part.length }))
  }
  const [ref] = (await ok(daemon, 'import', 'local', folder, '--as', 'my/pipeline')).split('\n')
  const shown = await ok(daemon, 'show', ref!)
  for (const [part, role] of [
    ['unet', 'diffusion-model'],
    ['vae', 'vae'],
    ['text_encoder', 'text-encoder']
  ])
    expect(shown).toMatch(new RegExp(`${part}/model\\.safetensors +weights\\.safetensors \\(${role}\\)`))
  expect(await ok(daemon, 'path', `${ref}#vae`)).toMatch(/\/vae\/model\.safetensors$/)
  expect(await ok(daemon, 'path', `${ref}#text-encoder`)).toMatch(/\/text_encoder\/model\.safetensors$/)
})

it('choices with a qualifier are shown, loaded, tagged and removed like any other', async () => {
  const files = ['Compact', 'Quality'].map((name, i) => ({
    path: `Mixed-I-${name}.gguf`,
    content: makeGguf({ seed: 60 + i, metadata: { 'general.file_type': 15 } }),
    lfs: true
  }))
  hub.commit({ id: 'Acme/Mixed', files })
  const asked = await daemon.svc('import', 'hf', 'Acme/Mixed')
  expect(asked.stderr).toMatch(/^ +q4_k_m\.compact .* Mixed-I-Compact\.gguf$/m)
  await ok(daemon, 'import', 'hf', 'Acme/Mixed', '--all')
  const ref = 'acme/mixed:q4_k_m.compact'
  expect(basename(await ok(daemon, 'path', ref))).toBe('mixed-i-compact-q4_k_m.gguf')
  expect(await ok(daemon, 'show', ref)).toContain('mixed-i-compact-q4_k_m.gguf')
  expect((await daemon.svc('path', 'acme/mixed:q4_k_m')).code).not.toBe(0)
  await ok(daemon, 'rm', ref)
  expect(basename(await ok(daemon, 'path', 'acme/mixed:q4_k_m'))).toBe('mixed-i-quality-q4_k_m.gguf')
})
