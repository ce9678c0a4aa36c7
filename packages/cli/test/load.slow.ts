// Models for the programs that load them: path, view, exec; through the real daemon and, if a process is needed, the real svc.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gguf } from '@huggingface/gguf'
import { downloadFileToCacheDir, scanCacheDir } from '@huggingface/hub'
import { haveLlamaCpp, loadLlama, probableNext } from '@svc/testkit/llama-cpp'
import { makeLlamaGgufs, makeLoraGguf, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { missingForHf, resolveHf } from '@svc/testkit/llama-hf'
import { haveLlamaVision, seePicture } from '@svc/testkit/llama-vision'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, svcProcess, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
let daemon: TestDaemon
const run = (...args: string[]) => daemon.svc(...args)
const process_ = (...args: string[]) => svcProcess(args, { socketPath: daemon.socketPath, cwd: daemon.folder })
async function line(...args: string[]): Promise<string> {
  const ran = await run(...args)
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[^\n]+\n$/) })
  return ran.stdout.trim()
}

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: {} })
  for (const shards of [1, 3]) {
    const folder = join(daemon.folder, `Llama-${shards}`)
    mkdirSync(folder)
    makeLlamaGgufs({ shards }).forEach((bytes, i) => {
      writeFileSync(join(folder, shards === 1 ? 'llama-f32.gguf' : `llama-f32-0000${i + 1}-of-00003.gguf`), bytes)
    })
    writeFileSync(join(folder, 'mmproj-F16.gguf'), makeGguf({ metadata: { 'general.architecture': 'clip' } }))
    expect(await run('import', 'local', folder, '--as', `acme/llama-${shards}`)).toMatchObject({ code: 0 })
  }
  expect(await run('import', 'local', 'Tiny', '--as', 'acme/tiny')).toMatchObject({ code: 0 })
}, 60_000)
afterAll(undo.all)

it.skipIf(!haveLlamaCpp)('llama.cpp loads what svc path prints, a split model too', async () => {
  const [one, split] = [await line('path', 'acme/llama-1:f32'), await line('path', 'acme/llama-3:f32')]
  expect(one).toMatch(/\/views\/[0-9a-f]{64}\/llama-f32\.gguf$/)
  expect(split).toMatch(/\/llama-f32-00001-of-00003\.gguf$/)
  const loaded = await loadLlama(one)
  expect(loaded).toMatchObject({ vocabularySize: 288 })
  expect(await loadLlama(split)).toEqual(loaded)
})

it('path: a projector by its name, all parts, the folder, the blob', async () => {
  const projector = await gguf(await line('path', 'acme/llama-3:f32#mmproj'), { allowLocalFile: true })
  expect(projector.metadata['general.architecture']).toBe('clip')
  const all = (await run('path', 'acme/llama-3:f32', '--all')).stdout.trim().split('\n')
  expect(all.map((path) => path.slice(-'00001-of-00003.gguf'.length))).toEqual(
    [1, 2, 3].map((part) => `0000${part}-of-00003.gguf`)
  )
  const blob = await line('path', '--blob', 'acme/llama-3:f32')
  expect(blob).toContain('/blobs/sha256/')
  expect(readFileSync(blob).equals(readFileSync(all[0]!))).toBe(true)
  const folder = await line('path', 'acme/tiny:bf16', '--dir')
  expect(await line('path', 'acme/tiny:bf16')).toBe(folder)
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['config.json', 'model.safetensors', 'tokenizer.json']))
  expect(JSON.parse((await run('path', 'acme/llama-1:f32', '--json')).stdout)).toMatchObject([{ kind: 'weights.gguf' }])
  expect(await run('path', 'acme/llama-3:f32#none', '--json')).toMatchObject({ code: 3, stdout: '' })
  expect(await run('path', 'acme/llama-3:f32#mmproj', '--dir')).toMatchObject({ code: 2, stdout: '' })
})

it('view: a folder of copies, its list, its removal; other folders stay', async () => {
  const target = join(daemon.folder, 'copy')
  expect(await run('view', 'acme/tiny:bf16', 'copy', '--copy')).toMatchObject({ code: 0, stdout: `${target}\n` })
  expect(
    readFileSync(join(target, 'model.safetensors')).equals(readFileSync(join(daemon.folder, 'Tiny/model.safetensors')))
  ).toBe(true)
  expect((await run('view', '--json')).stdout).toContain(JSON.stringify(target))
  expect((await run('view')).stdout).toMatch(/^MODEL +LAYOUT +MODE +STATE +VIEW\n/)
  writeFileSync(join(target, 'mine.txt'), 'mine')
  expect(await run('view', '--rm', 'copy')).toMatchObject({ code: 2 })
  rmSync(join(target, 'mine.txt'))
  expect(await run('view', '--rm', 'copy')).toMatchObject({ code: 0 })
  expect(existsSync(target)).toBe(false)
  // one model of a hub cache
  for (const ref of ['acme/tiny:bf16', 'acme/llama-1:f32'])
    expect(await run('view', ref, 'cache', '--layout', 'hf')).toMatchObject({ code: 0 })
  expect(await run('view', '--rm', 'cache', 'acme/tiny:bf16', 'extra')).toMatchObject({ code: 2 })
  expect(await run('view', '--rm', 'cache', 'acme/tiny:bf16')).toMatchObject({ code: 0 })
  expect(readdirSync(join(daemon.folder, 'cache')).filter((name) => name.startsWith('models--'))).toEqual([
    'models--acme--llama-1'
  ])
  expect(await run('view', '--rm', 'cache', 'acme/tiny:bf16')).toMatchObject({ code: 3 })
  expect(await run('view', '--rm', 'cache')).toMatchObject({ code: 0 })
  expect(await run('view', 'acme/tiny:bf16')).toMatchObject({ code: 2 })
  // folders on the way are made, but not for a model that is not here
  expect(await run('view', 'acme/nothing', 'deep/er/view')).toMatchObject({ code: 3 })
  expect(existsSync(join(daemon.folder, 'deep'))).toBe(false)
  expect(await run('view', 'acme/tiny:bf16', 'deep/er/view')).toMatchObject({ code: 0 })
  expect(await run('view', 'acme/tiny:bf16', 'x', '--copy', '--hardlink')).toMatchObject({ code: 2 })
})

it("view --layout hf: the hub's own client finds the model without a network", async () => {
  const cache = join(daemon.folder, 'hub')
  const snapshot = await line('view', 'acme/tiny:bf16', cache, '--layout', 'hf')
  const [repo] = (await scanCacheDir(cache)).repos
  expect(repo).toMatchObject({ id: { name: 'acme/tiny', type: 'model' } })
  const offline = (): never => {
    throw new Error('no network here')
  }
  const path = await downloadFileToCacheDir({
    repo: 'acme/tiny',
    path: 'model.safetensors',
    revision: snapshot.slice(-40),
    cacheDir: cache,
    fetch: offline
  })
  expect(readFileSync(path).equals(readFileSync(join(daemon.folder, 'Tiny/model.safetensors')))).toBe(true)
})

it.skipIf(missingForHf.length > 0)(
  `view --layout hf: what llama.cpp finds for -hf --offline, a split model too${missingForHf.length > 0 ? ` (needs ${missingForHf.join(', ')})` : ''}`,
  async () => {
    for (const shards of [1, 3]) {
      const cache = join(daemon.folder, `llama-hub-${shards}`)
      const snapshot = await line('view', `acme/llama-${shards}:f32`, cache, '--layout', 'hf')
      const repo = `acme/llama-${shards}`
      const first = join(snapshot, shards === 1 ? 'llama-f32.gguf' : 'llama-f32-00001-of-00003.gguf')
      // finds the quant in any case, or the only one; not other quants and repositories
      expect(await resolveHf([`${repo}:F32`, `${repo}:f32`, repo, `${repo}:Q8_0`, 'acme/other'], cache)).toEqual([
        ...Array(3).fill(first),
        '',
        ''
      ])
      if (haveLlamaCpp) expect(await loadLlama(first)).toMatchObject({ vocabularySize: 288 })
    }
  }
)

it.skipIf(!haveLlamaCpp)('llama.cpp applies a LoRA that is kept as a GGUF', async () => {
  const folder = join(daemon.folder, 'Lora')
  mkdirSync(folder)
  writeFileSync(join(folder, 'Tiny-LoRA-F32.gguf'), makeLoraGguf())
  await run('import', 'local', folder, '--as', 'acme/lora')
  const [model, lora] = [await line('path', 'acme/llama-1:f32'), await line('path', 'acme/lora')]
  const adapted = await probableNext(model, lora)
  expect(adapted).toEqual(await probableNext(model, join(folder, 'Tiny-LoRA-F32.gguf')))
  expect(adapted).not.toEqual(await probableNext(model))
})

it.skipIf(!haveLlamaVision)('llama.cpp sees a picture through the projector that svc path prints', async () => {
  const folder = join(daemon.folder, 'Vision')
  mkdirSync(folder)
  writeFileSync(join(folder, 'Tiny-F32.gguf'), makeLlamaGgufs()[0]!)
  writeFileSync(join(folder, 'mmproj-Tiny-F32.gguf'), makeProjectorGguf())
  writeFileSync(join(daemon.folder, 'picture.bmp'), picture(28))
  expect(await run('import', 'local', folder, '--as', 'acme/vision')).toMatchObject({ code: 0 })
  const [model, projector] = [await line('path', 'acme/vision'), await line('path', 'acme/vision#mmproj')]
  const seen = await seePicture(model, projector, join(daemon.folder, 'picture.bmp'))
  expect(seen.vision).toBe(true)
  // a picture of 2 × 2 patches adds 4 tokens
  expect(seen.withPicture - seen.without).toBeGreaterThanOrEqual(4)
})

/** A Windows bitmap of 24 bits, all grey. */
function picture(side: number): Buffer {
  const head = Buffer.alloc(54)
  head.write('BM')
  head.writeUInt32LE(54 + side * side * 3, 2)
  head.writeUInt32LE(54, 10)
  head.writeUInt32LE(40, 14)
  head.writeInt32LE(side, 18)
  head.writeInt32LE(side, 22)
  head.writeUInt16LE(1, 26)
  head.writeUInt16LE(24, 28)
  return Buffer.concat([head, Buffer.alloc(side * side * 3, 128)])
}

it('view --comfyui: a folder for each use, and a file that configures ComfyUI', async () => {
  const base = join(daemon.folder, "com fy's")
  const folder = await line('view', 'acme/tiny:bf16', base, '--comfyui', 'checkpoints')
  expect(folder).toBe(join(base, 'checkpoints/acme-tiny-bf16'))
  expect(existsSync(join(folder, 'model.safetensors'))).toBe(true)
  await line('view', 'acme/llama-1:f32', base, '--comfyui', 'text_encoders')
  const file = join(base, 'extra_model_paths.yaml')
  expect(readFileSync(file, 'utf8').split('\n').slice(1)).toEqual([
    'svc:',
    `  base_path: ${JSON.stringify(base)}`,
    '  checkpoints: checkpoints',
    '  text_encoders: text_encoders',
    ''
  ])
  // somebody's own file is left alone, and nothing is made then
  const theirs = join(daemon.folder, 'theirs')
  mkdirSync(theirs)
  writeFileSync(join(theirs, 'extra_model_paths.yaml'), 'mine: {}\n')
  expect(await run('view', 'acme/tiny:bf16', theirs, '--comfyui', 'vae')).toMatchObject({ code: 2, stdout: '' })
  expect(readFileSync(join(theirs, 'extra_model_paths.yaml'), 'utf8')).toBe('mine: {}\n')
  expect(await run('view', 'acme/tiny:bf16', base, '--comfyui', 'nonsense')).toMatchObject({ code: 2 })
})

it('view --comfyui: files in split_files are assigned to their use', async () => {
  for (const use of ['diffusion_models', 'vae']) {
    mkdirSync(join(daemon.folder, 'Split/split_files', use), { recursive: true })
    makeModelFolder(join(daemon.folder, `part-${use}`), { ggufs: {}, seed: use.length })
    const weights = readFileSync(join(daemon.folder, `part-${use}`, 'model.safetensors'))
    writeFileSync(join(daemon.folder, 'Split/split_files', use, `${use}.safetensors`), weights)
  }
  expect(await run('import', 'local', 'Split', '--as', 'comfy/split')).toMatchObject({ code: 0 })
  const base = join(daemon.folder, 'comfy-split')
  await line('view', 'acme/tiny:bf16', base, '--comfyui', 'vae')
  const folder = await line('view', 'comfy/split', base, '--comfyui')
  const yaml = readFileSync(join(base, 'extra_model_paths.yaml'), 'utf8')
  // a quoted scalar of YAML is a string of JSON here
  const uses = Object.fromEntries(
    [...yaml.matchAll(/^ {2}(\w+): (.*)$/gm)].map(([, use, text]) => [
      use,
      text!.startsWith('"') ? JSON.parse(text!) : text
    ])
  ) as Record<string, string>
  const namesOf = (use: string): string[] => uses[use]!.split('\n').flatMap((path) => readdirSync(join(base, path)))
  expect(namesOf('diffusion_models')).toEqual(['diffusion_models.safetensors'])
  expect(namesOf('vae')).toEqual(['acme-tiny-bf16', 'vae.safetensors'])
  expect(Object.keys(uses)).toEqual(['base_path', 'diffusion_models', 'vae'])
  expect(existsSync(join(folder, 'split_files/vae/vae.safetensors'))).toBe(true)
  // the use is required if no name tells it
  expect(await run('view', 'acme/tiny:bf16', base, '--comfyui')).toMatchObject({ code: 2, stdout: '' })
})

it('exec passes paths to the command, and its exit code back', async () => {
  const show = 'console.log(process.argv.slice(1).join(" ")); process.exit(7)'
  const ran = await process_(
    'exec',
    'acme/llama-1:f32',
    '--',
    process.execPath,
    '-e',
    show,
    '--',
    '{}',
    'in={dir}',
    '--json'
  )
  const folder = await line('path', '--dir', 'acme/llama-1:f32')
  expect(ran).toEqual({ code: 7, stdout: `${folder}/llama-f32.gguf in=${folder} --json\n`, stderr: '' })
  expect(await process_('exec', 'acme/llama-1:f32', '--', '/nonexistent/program', '{}')).toMatchObject({ code: 127 })
  expect(await process_('exec', 'acme/none:f32', '--', 'true')).toMatchObject({ code: 3 })
})

it('exec holds the view, forwards SIGTERM, and exits as the command does', async () => {
  const child = 'process.on("SIGTERM", () => process.exit(42)); console.error("up"); setInterval(Object, 1000)'
  let removal: Promise<{ code: number | null }> | undefined
  const folder = await line('path', '--dir', 'acme/tiny:bf16')
  const ran = await svcProcess(['exec', 'acme/tiny:bf16', '--', process.execPath, '-e', child], {
    socketPath: daemon.socketPath,
    when: {
      stderr: 'up',
      act: (svc) => {
        removal = run('view', '--rm', folder)
        void removal.then(() => svc.kill('SIGTERM'))
      }
    }
  })
  expect(ran.code).toBe(42)
  expect((await removal!).code).toBe(2)
  const killed = await process_(
    'exec',
    'acme/tiny:bf16',
    '--',
    process.execPath,
    '-e',
    'process.kill(process.pid, "SIGKILL")'
  )
  expect(killed.code).toBe(128 + 9)
})

it('removing a loaded model removes its managed view and frees its space', async () => {
  makeModelFolder(join(daemon.folder, 'Brief'), { ggufs: { q8_0: 'Q8_0' }, seed: 77 })
  expect(await run('import', 'local', 'Brief', '--as', 'acme/brief')).toMatchObject({ code: 0 })
  const [path, blob] = [await line('path', 'acme/brief:q8_0'), await line('path', '--blob', 'acme/brief:q8_0')]
  expect(await run('view', 'acme/brief:bf16', 'brief-view')).toMatchObject({ code: 0 })
  const weights = (await run('path', '--blob', 'acme/brief:bf16')).stdout.trim()
  const removed = await run('rm', 'acme/brief')
  expect(removed).toMatchObject({ code: 0, stderr: expect.stringContaining(join(daemon.folder, 'brief-view')) })
  expect(await run('gc')).toMatchObject({ code: 0 })
  expect([existsSync(path), existsSync(blob)]).toEqual([false, false])
  // views at chosen places keep their files
  expect(existsSync(weights)).toBe(true)
  expect(await run('view', '--rm', 'brief-view')).toMatchObject({ code: 0 })
  expect(await run('gc')).toMatchObject({ code: 0 })
  expect(existsSync(weights)).toBe(false)
})

it('a view of copies carries a model to an offline machine, with the same weights', async () => {
  const disk = join(daemon.folder, 'disk')
  mkdirSync(disk)
  expect(await run('view', 'acme/llama-3:f32', join(disk, 'llama'), '--copy')).toMatchObject({ code: 0 })
  const there = await testDaemon()
  const imported = await there.svc('import', 'local', join(disk, 'llama'), '--as', 'acme/llama')
  expect(imported).toMatchObject({ code: 0, stdout: 'acme/llama:f32\n' })
  expect(await there.svc('verify', 'acme/llama:f32')).toMatchObject({ code: 0 })
  const digests = async (svc: typeof run, ref: string): Promise<string[]> => {
    const { files } = JSON.parse((await svc('show', ref, '--json')).stdout) as {
      files: { kind?: string; digest: string }[]
    }
    return files.filter(({ kind }) => kind?.startsWith('weights')).map(({ digest }) => digest)
  }
  expect(await digests(there.svc, 'acme/llama:f32')).toEqual(await digests(run, 'acme/llama-3:f32'))
})

it('exec accepts a file name, and replaces {} anywhere in a word', async () => {
  const show = 'console.log(process.argv[1])'
  const ran = await process_('exec', 'acme/llama-3:f32#mmproj', '--', process.execPath, '-e', show, 'mmproj={}')
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^mmproj=\/.*\/mmproj-[fF]16\.gguf\n$/) })
})
