import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { scanCacheDir, snapshotDownload } from '@huggingface/hub'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { findCaches, readCache } from '@svc/view'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'
import { link, namesOf, put, sha256 } from './support/cache.ts'

const COMMIT = 'c'.repeat(40)
const OTHER = 'd'.repeat(40)
const REPO = 'models--Acme--Tiny-GGUF'

test("a cache of the hub’s own client: every file, with the hub's digest", async () => {
  const weights = makeGguf()
  const shard = makeSafetensors()
  const hub = await startFakeHub({
    repos: [
      {
        id: 'Acme/Tiny-GGUF',
        files: [
          { path: 'tiny-q8_0.gguf', content: weights },
          { path: 'sub/model.safetensors', content: shard },
          { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
          { path: 'README.md', content: Buffer.from('# Tiny') }
        ]
      }
    ]
  })
  onTestFinished(() => hub.close())
  vi.spyOn(console, 'debug').mockImplementation(() => undefined)
  const home = temporaryFolder()
  const cacheDir = join(home, '.cache/huggingface/hub')
  const snapshot = await snapshotDownload({ repo: 'Acme/Tiny-GGUF', hubUrl: hub.endpoint, cacheDir })
  expect((await scanCacheDir(cacheDir)).warnings).toEqual([])

  const roots = await findCaches({ home, env: {} })
  expect(roots).toEqual([{ tool: 'hf', path: cacheDir }])
  const { models, warnings } = await readCache(roots[0]!)
  expect(warnings).toEqual([])
  expect(models).toHaveLength(1)
  const revision = snapshot.slice(-40)
  expect(models[0]).toMatchObject({
    tool: 'hf',
    source: 'Acme/Tiny-GGUF',
    suggested: { ns: 'acme', name: 'tiny-gguf' },
    hub: { repo: 'Acme/Tiny-GGUF', revision },
    refs: ['main'],
    warnings: []
  })
  const byName = new Map(models[0]!.files.map((file) => [file.name, file]))
  expect([...byName.keys()]).toEqual(['README.md', 'config.json', 'sub/model.safetensors', 'tiny-q8_0.gguf'])
  expect(byName.get('tiny-q8_0.gguf')).toMatchObject({
    sizeBytes: weights.length,
    expectedSha256: `sha256:${sha256(weights)}`
  })
  expect(byName.get('sub/model.safetensors')!.expectedSha256).toBe(`sha256:${sha256(shard)}`)
  expect(byName.get('config.json')).toMatchObject({
    expectedGitSha1: expect.stringMatching(/^[0-9a-f]{40}$/) as string
  })
  expect(readFileSync(byName.get('tiny-q8_0.gguf')!.path)).toEqual(weights)
})

describe("caches of the hub's other clients", () => {
  test('a store shared by repositories is two links away; a listing has the digests', async () => {
    const cache = temporaryFolder()
    const xet = 'e'.repeat(64)
    const etag = sha256('weights')
    put(cache, `blobs/ee/${xet}`, 'weights')
    put(cache, `blobs/ee/${xet}.refs`, `${REPO}/blobs/${etag}\n`)
    put(cache, 'blobs/.huggingface-shared-blobs', '1\n')
    put(cache, 'CACHEDIR.TAG', 'Signature: 8a477f597d28d172789f06886806bc55')
    link(cache, `${REPO}/blobs/${etag}`, `../../blobs/ee/${xet}`)
    link(cache, `${REPO}/snapshots/${COMMIT}/model-q4_k_m.gguf`, `../../blobs/${etag}`)
    put(cache, `${REPO}/refs/main`, COMMIT)
    put(cache, `${REPO}/.no_exist/${COMMIT}/chat_template.jinja`, '')
    put(cache, `.locks/${REPO}/${etag}.lock`, '')
    put(cache, 'datasets--acme--texts/refs/main', COMMIT)
    put(cache, `${REPO}/trees/${COMMIT}.json`, {
      format_version: 1,
      files: {
        'model-q4_k_m.gguf': { size: 7, blob_id: 'a'.repeat(40), lfs_sha256: etag, lfs_size: 7, xet_hash: xet },
        'absent.gguf': { size: 9, blob_id: 'b'.repeat(40) }
      }
    })
    const { models, warnings } = await readCache({ tool: 'hf', path: cache })
    expect(warnings).toEqual([])
    expect(models).toMatchObject([{ warnings: [], sizeBytes: 7 }])
    expect(models[0]!.files).toEqual([
      {
        name: 'model-q4_k_m.gguf',
        path: join(cache, `blobs/ee/${xet}`),
        sizeBytes: 7,
        expectedSha256: `sha256:${etag}`
      }
    ])
  })

  test('without links the files lie in the snapshot, and the listing reports damage by size', async () => {
    const cache = temporaryFolder()
    put(cache, `${REPO}/snapshots/${COMMIT}/config.json`, '{}')
    put(cache, `${REPO}/snapshots/${COMMIT}/model.safetensors`, 'cut')
    put(cache, `${REPO}/trees/${COMMIT}.json`, {
      format_version: 1,
      files: {
        'config.json': { size: 2, blob_id: 'a'.repeat(40) },
        'model.safetensors': { size: 130, blob_id: 'b'.repeat(40), lfs_sha256: 'f'.repeat(64), lfs_size: 1_000 }
      }
    })
    const { models } = await readCache({ tool: 'hf', path: cache })
    expect(models[0]!.files).toMatchObject([
      { name: 'config.json', expectedGitSha1: 'a'.repeat(40) },
      { name: 'model.safetensors', expectedSha256: `sha256:${'f'.repeat(64)}` }
    ])
    expect(models[0]!.files[1]).not.toHaveProperty('expectedGitSha1')
    expect(models[0]!.warnings.map(({ code }) => code)).toEqual(['size-differs'])
  })

  test('reads all snapshots, that of main first, and names of one word', async () => {
    const cache = temporaryFolder()
    for (const commit of [COMMIT, OTHER]) put(cache, `models--gpt2/snapshots/${commit}/model.safetensors`, commit)
    put(cache, 'models--gpt2/refs/main', OTHER)
    put(cache, 'models--gpt2/refs/pr/1', COMMIT)
    const { models } = await readCache({ tool: 'hf', path: cache })
    expect(models.map(({ hub, refs, suggested }) => [hub?.revision, refs, suggested])).toEqual([
      [OTHER, ['main'], { ns: 'hf.co', name: 'gpt2' }],
      [COMMIT, ['pr/1'], { ns: 'hf.co', name: 'gpt2' }]
    ])
  })

  test('a snapshot whose blobs are gone is reported, and gives no model', async () => {
    const cache = temporaryFolder()
    link(cache, `${REPO}/snapshots/${COMMIT}/a.gguf`, `../../blobs/${'1'.repeat(64)}`)
    const { models, warnings } = await readCache({ tool: 'hf', path: cache })
    expect(models).toEqual([])
    expect(warnings.map(({ code }) => code)).toEqual(['absent'])
  })

  test.each(['{"format_version":2,"files":{}}', '[]', '{"format_version":1,"files":7}', 'x', '\xff'])(
    'an invalid listing is ignored: %s',
    async (listing) => {
      const cache = temporaryFolder()
      put(cache, `${REPO}/snapshots/${COMMIT}/a.gguf`, 'a')
      put(cache, `${REPO}/trees/${COMMIT}.json`, Buffer.from(listing, 'latin1'))
      const { models } = await readCache({ tool: 'hf', path: cache })
      expect(namesOf(models[0])).toEqual(['a.gguf'])
    }
  )
})

test('links out of the cache are never followed', async () => {
  const folder = temporaryFolder()
  const cache = join(folder, 'hub')
  put(folder, 'secret', 'secret')
  put(folder, 'elsewhere/model.gguf', 'mine')
  const blob = sha256('weights')
  put(cache, `${REPO}/blobs/${blob}`, 'weights')
  const snapshot = `${REPO}/snapshots/${COMMIT}`
  link(cache, `${snapshot}/good.gguf`, `../../blobs/${blob}`)
  link(cache, `${snapshot}/relative.gguf`, '../../../../secret')
  link(cache, `${snapshot}/absolute.gguf`, join(folder, 'secret'))
  link(cache, `${REPO}/blobs/${'2'.repeat(64)}`, join(folder, 'secret'))
  link(cache, `${snapshot}/second-step.gguf`, `../../blobs/${'2'.repeat(64)}`)
  link(cache, `${snapshot}/loop-a.gguf`, 'loop-b.gguf')
  link(cache, `${snapshot}/loop-b.gguf`, 'loop-a.gguf')
  link(cache, `${snapshot}/root.gguf`, cache)
  link(cache, `${snapshot}/folder`, join(folder, 'elsewhere'))
  link(cache, `${REPO}/snapshots/${OTHER}`, join(folder, 'elsewhere'))
  link(cache, 'models--acme--moved', join(folder, 'elsewhere'))
  link(cache, `${REPO}/refs`, join(folder, 'elsewhere'))
  const { models, warnings } = await readCache({ tool: 'hf', path: cache })
  expect(models).toHaveLength(1)
  expect(namesOf(models[0])).toEqual(['good.gguf'])
  expect(
    models[0]!.warnings.map(({ code, path }) => [code, path.slice(cache.length + snapshot.length + 2)]).sort()
  ).toEqual([
    ['leads-outside', 'absolute.gguf'],
    ['leads-outside', 'folder'],
    ['leads-outside', 'loop-a.gguf'],
    ['leads-outside', 'loop-b.gguf'],
    ['leads-outside', 'relative.gguf'],
    ['leads-outside', 'root.gguf'],
    ['leads-outside', 'second-step.gguf']
  ])
  expect(new Set(warnings.map(({ code }) => code))).toEqual(new Set(['leads-outside']))
  for (const { files } of models) for (const { path } of files) expect(path.startsWith(`${cache}/`)).toBe(true)
  rmSync(join(folder, 'secret'))
})
