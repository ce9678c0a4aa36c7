import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importSelectionOf } from '@svc/library/parts'
import { parseCompanions } from '@svc/manifest'
import { describe, expect, it } from 'vitest'
import { sharedByFile, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, safetensors, writeFiles } from '../support/models.ts'

const shared = sharedByFile((cleanUp) => testDaemon({}, cleanUp))
const blobPath = (api: TestDaemon, digest: string): string =>
  join(api.root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
const open = async (api: TestDaemon, ref: string) => (await api.open(ref)).body
async function importFiles(api: TestDaemon, as: string, files: Record<string, string | Buffer>) {
  const { body } = await api.post('/v1/import/local', { paths: [writeFiles(temporaryFolder(), files)], as })
  return api.finished(body)
}
const collect = async (api: TestDaemon) =>
  api.finished((await api.post('/v1/gc', { graceSeconds: 0, views: true })).body)

describe('companions', () => {
  it('are the small files outside the manifest; digests, skipped and totals do not change', async () => {
    const api = await shared()
    const job = await importFiles(api, 'beside/one', {
      ...MODEL,
      'generation_config.json': '{"temperature":0.6}',
      '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
      'empty.txt': '',
      'large.bin': Buffer.alloc(1_048_577),
      '.env': 'SECRET=1',
      '.git/HEAD': 'ref: refs/heads/main'
    })
    expect(job).toMatchObject({ state: 'done', filesDone: 16, filesTotal: 16, result: { skipped: 8, omitted: 3 } })
    expect(job.bytesDone).toBe(job.bytesTotal)
    const { companions } = await open(api, 'svc:///beside/one:bf16')
    expect(companions.digest).toBe(job.result!.companions)
    const small = [
      '1_Pooling/config.json',
      'LICENSE',
      'README.md',
      'config.json',
      'empty.txt',
      'generation_config.json'
    ]
    expect(companions.files.map(({ path }: { path: string }) => path)).toEqual([...small, 'sub/config.json'])
    for (const { path, blobPath, size } of companions.files)
      expect([path, readFileSync(blobPath).length]).toEqual([path, size])
    const reasons = companions.omitted
      .filter(({ reason }: { reason: string }) => reason !== 'artifact')
      .map(({ path, reason }: { path: string; reason: string }) => [path, reason])
    expect(reasons).toEqual([
      ['.env', 'hidden'],
      ['.git/HEAD', 'hidden'],
      ['large.bin', 'large']
    ])
    expect(job.result!.warnings!.some((warning) => warning.includes('large.bin'))).toBe(true)
    // every quant of the import has the same ones, and so does an import that takes only one of them
    expect((await open(api, 'svc:///beside/one:q8_0')).companions.digest).toBe(companions.digest)
  })

  it('do not depend on the choice, and are empty if the manifest has everything', async () => {
    const api = await shared()
    const folder = writeFiles(temporaryFolder(), MODEL)
    const of = async (as: string, more: object) =>
      (await api.finished((await api.post('/v1/import/local', { paths: [folder], as, ...more })).body)).result!
    const whole = await of('beside/whole', {})
    const part = await of('beside/part', { quants: ['q8_0'] })
    expect(part.manifests).toHaveLength(1)
    expect(part.companions).toBe(whole.companions)
    const single = await importFiles(api, 'beside/none', { 'a-q8_0.gguf': gguf(2_000, 77) })
    expect(single.result).not.toHaveProperty('companions')
    expect(await open(api, 'svc:///beside/none:q8_0')).not.toHaveProperty('companions')
  })

  it('belong to a name: under two names, one manifest has the companions of each', async () => {
    const api = await shared()
    const weights = { 'model.safetensors': safetensors(3_000, 91), 'tokenizer.json': '{}' }
    const first = await importFiles(api, 'names/a', { ...weights, 'generation_config.json': '{"temperature":0.1}' })
    const second = await importFiles(api, 'names/b', { ...weights, 'generation_config.json': '{"temperature":0.9}' })
    expect(second.result!.manifests).toEqual(first.result!.manifests)
    const digests = await Promise.all(
      ['a', 'b'].map(async (each) => (await open(api, `svc:///names/${each}:bf16`)).companions.digest)
    )
    expect(digests).toEqual([first.result!.companions, second.result!.companions])
    const { body } = await api.get('/v1/models')
    const entries = body.namespaces.filter(({ ns }: { ns: string }) => ns === 'names')
    expect(entries.map(({ members }: { members: { companions: string }[] }) => members[0]!.companions)).toEqual(digests)
  })

  it('survive a collection and a lost record as long as their artifact, and are removed with it', async () => {
    const api = await testDaemon({})
    await importFiles(api, 'kept/model', MODEL)
    const { companions, manifestDigest } = await open(api, 'svc:///kept/model:bf16')
    const all = [companions.digest, ...companions.files.map(({ digest }: { digest: string }) => digest)]
    expect((await collect(api)).result).toMatchObject({ blobs: 0 })
    const record = join(api.root, 'state/artifacts', `${manifestDigest.slice(7)}.json`)
    const before = readFileSync(record)
    writeFileSync(record, 'damaged')
    await collect(api)
    expect(all.filter((digest) => !existsSync(blobPath(api, digest)))).toEqual([])
    writeFileSync(record, before)
    const removed = await api.call('DELETE', '/v1/models/kept/model')
    expect(removed.status).toBe(200)
    await collect(api)
    expect(all.filter((digest) => existsSync(blobPath(api, digest)))).toEqual([])
  })

  it('are verified with their artifact, and quarantined like every blob', async () => {
    const api = await testDaemon({})
    await importFiles(api, 'checked/model', MODEL)
    const ref = 'svc:///checked/model:q8_0'
    const verify = async (target: string) => api.finished((await api.post('/v1/verify', { target })).body)
    const sound = await verify(ref)
    expect([sound.state, sound.filesTotal]).toEqual(['done', 6])
    const { companions } = await open(api, ref)
    const readme = companions.files.find(({ path }: { path: string }) => path === 'README.md')
    chmodSync(readme.blobPath, 0o644)
    writeFileSync(readme.blobPath, '# tinY\n')
    expect(await verify(ref)).toMatchObject({ state: 'failed', verify: { mismatched: [readme.digest] } })
    // from now on it is missing, which a look at everything says as well
    expect(await verify('all')).toMatchObject({ state: 'failed', verify: { missing: [readme.digest] } })
    const after = (await open(api, ref)).companions
    expect(after.files.map(({ path }: { path: string }) => path)).not.toContain('README.md')
    expect(after.warnings.some((warning: string) => warning.includes('README.md'))).toBe(true)
  })

  it('an unreadable file is reported, and the import succeeds (root reads all)', async () => {
    const isRead = process.getuid?.() === 0
    const api = await shared()
    const folder = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(3_000, 5), 'README.md': 'x', 'b.txt': 'y' })
    chmodSync(join(folder, 'README.md'), 0)
    const job = await api.finished((await api.post('/v1/import/local', { paths: [folder], as: 'beside/unread' })).body)
    expect(job).toMatchObject({ state: 'done', result: { skipped: 2 } })
    expect(job.result!.omitted ?? 0).toBe(isRead ? 0 : 1)
    expect(job.result!.warnings?.some((warning) => warning.includes('README.md')) ?? false).toBe(!isRead)
  })

  it('a file that is swapped for a link is skipped, and the import succeeds', async () => {
    const { localSource } = await import('../../../library/src/local/source.ts')
    const { toolsHere } = await import('../../../library/src/local/downloads.ts')
    const api = await testDaemon({})
    const folder = writeFiles(temporaryFolder(), {
      'a-q8_0.gguf': gguf(3_000, 6),
      'notes.txt': 'x',
      'other.txt': 'kept'
    })
    const secret = join(temporaryFolder(), 'secret')
    writeFileSync(secret, 'not for anybody')
    const source = await localSource([folder], { as: 'me/a', tools: toolsHere() })
    rmSync(join(folder, 'notes.txt'))
    const { symlinkSync } = await import('node:fs')
    symlinkSync(secret, join(folder, 'notes.txt'))
    const { importJobs } = api.running.context
    const started = await importJobs.start({
      kind: 'import-local',
      ref: 'beside/swapped',
      repo: { ns: 'beside', name: 'swapped' } as never,
      source,
      selection: importSelectionOf({})
    })
    const job = await api.finished(started)
    expect(job).toMatchObject({ state: 'done', result: { omitted: 1 } })
    const document = parseCompanions(readFileSync(blobPath(api, job.result!.companions!)))
    expect(document.omitted).toContainEqual({ path: 'notes.txt', size: 1, reason: 'unreadable', own: true })
    const stored = readdirSync(join(api.root, 'blobs/sha256'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)))
    expect(stored.some((bytes) => bytes.includes('not for anybody'))).toBe(false)
  })

  it('are at most a thousand, those nearest to the root first', async () => {
    const api = await shared()
    const files: Record<string, string | Buffer> = { 'a-q8_0.gguf': gguf(3_000, 8), 'README.md': '# many' }
    for (let i = 0; i < 1_005; i++) files[`deep/er/${i}.txt`] = 'same'
    const job = await importFiles(api, 'beside/many', files)
    const document = parseCompanions(readFileSync(blobPath(api, job.result!.companions!)))
    expect(document.files).toHaveLength(1_000)
    expect(document.files.some(({ path }) => path === 'README.md')).toBe(true)
    expect(document.omitted.filter(({ reason }) => reason === 'many')).toHaveLength(6)
    expect(job.result).toMatchObject({ skipped: 1_006, omitted: 6 })
  })
})

describe('a folder with missing parts', () => {
  it('without a listed part causes a warning at the import, when it is shown, and as a view', async () => {
    const api = await shared()
    const modules = [
      { idx: 0, path: '', type: 'sentence_transformers.models.Transformer' },
      { idx: 1, path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { idx: 2, path: '2_Dense', type: 'sentence_transformers.models.Dense' }
    ]
    const job = await importFiles(api, 'parts/embed', {
      'model.safetensors': safetensors(2_000, 31),
      'modules.json': JSON.stringify(modules),
      '1_Pooling/config.json': '{}',
      '2_Dense/config.json': '{}',
      '2_Dense/pytorch_model.bin': Buffer.alloc(1_048_577)
    })
    const isWarned = (warnings: readonly string[] | undefined): boolean =>
      warnings?.some((each) => each.includes('modules.json') && each.includes('2_Dense/pytorch_model.bin')) === true
    expect(isWarned(job.result!.warnings)).toBe(true)
    const ref = 'svc:///parts/embed:bf16'
    expect(isWarned((await open(api, ref)).companions.warnings)).toBe(true)
    expect(isWarned((await api.post('/v1/views', { ref })).body.warnings)).toBe(true)
  })

  it('causes no warning while each part has its weights in some format', async () => {
    const api = await shared()
    const job = await importFiles(api, 'parts/pipe', {
      'model_index.json': JSON.stringify({ _class_name: 'P', unet: ['diffusers', 'U'], vae: ['diffusers', 'V'] }),
      'unet/diffusion_pytorch_model.safetensors': safetensors(1_000, 32),
      'unet/diffusion_pytorch_model.bin': Buffer.alloc(1_048_577),
      'vae/diffusion_pytorch_model.safetensors': safetensors(1_000, 33)
    })
    expect((job.result!.warnings ?? []).filter((each) => each.includes('model_index.json'))).toEqual([])
  })

  it('reports parts that were not chosen or are missing, but not parts without files', async () => {
    const api = await shared()
    const files = {
      'model_index.json': JSON.stringify({
        _class_name: 'P',
        unet: ['diffusers', 'U'],
        vae: ['diffusers', 'V'],
        scheduler: ['diffusers', 'S'],
        tokenizer: ['transformers', 'T'],
        safety_checker: [null, null],
        requires_safety_checker: [null, true]
      }),
      'unet/model.safetensors': safetensors(1_000, 34),
      'vae/model.safetensors': safetensors(1_000, 35),
      'tokenizer/tokenizer.json': '{}'
    }
    const warnedOf = async (as: string, all: Record<string, string | Buffer>, more = {}) => {
      const paths = [writeFiles(temporaryFolder(), all)]
      const { body } = await api.post('/v1/import/local', { paths, as, ...more })
      return ((await api.finished(body)).result!.warnings ?? []).filter((each) => each.includes('the part'))
    }
    const part = await warnedOf('parts/chosen', files, { files: ['vae/**'] })
    expect(part.map((each) => / part ([a-z_]+)/.exec(each)![1])).toEqual(['unet', 'scheduler'])
    const modules = [
      { path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
      { path: '2_Normalize', type: 'sentence_transformers.models.Normalize' }
    ]
    const embed = { 'model.safetensors': safetensors(1_000, 36), 'modules.json': JSON.stringify(modules) }
    expect((await warnedOf('parts/lost', embed)).map((each) => / part ([\w]+)/.exec(each)![1])).toEqual(['1_Pooling'])
  })

  it('a hostile list of parts costs little and is reported briefly', async () => {
    const api = await shared()
    const many = Array.from({ length: 40_000 }, (_, i) => ({ path: `a${i}` }))
    const odd = [{ path: '../x' }, { path: 'a\u001b[2J' }, { path: 'x'.repeat(100_000) }, { path: 7 }, null, 5]
    const job = await importFiles(api, 'parts/hostile', {
      'model.safetensors': safetensors(1_000, 37),
      'modules.json': JSON.stringify([...odd, ...many])
    })
    expect(job.state).toBe('done')
    const warnings = (job.result!.warnings ?? []).join('\n')
    expect(warnings.length).toBeLessThan(20_000)
    expect(warnings).toContain('a0')
    expect(warnings).not.toMatch(/\.\.\/x|\u001b/)
  })
})
