// The programs that views are made for, at work on them: what these load is right, whatever we think of the layout.

import { readFileSync, realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gguf } from '@huggingface/gguf'
import { downloadFileToCacheDir, parseSafetensorsMetadata, scanCacheDir } from '@huggingface/hub'
import { Template } from '@huggingface/jinja'
import { Tokenizer } from '@huggingface/tokenizers'
import { haveLlamaCpp, loadLlama } from '@svc/testkit/llama-cpp'
import { makeLlamaGgufs } from '@svc/testkit/llama-gguf'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { createView, readCache, runtimePath } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { type Artifact, makeArtifact, temporaryFolder } from './support/artifact.ts'

const REPO = 'Acme/Tiny-7B'
const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const HUB = { annotations: { 'svc.hf.repo': REPO, 'svc.hf.revision': COMMIT } }
const VARIANTS = (['files', 'hf'] as const).flatMap((layout) =>
  (['symlink', 'copy', 'hardlink'] as const).map((mode) => ({ layout, mode }))
)

const ggufArtifact = (root: string, shards: number): Promise<Artifact> =>
  makeArtifact(
    root,
    [
      ...makeLlamaGgufs({ shards }).map((content, i) => ({
        name: shards === 1 ? 'Tiny-F32.gguf' : `Tiny-F32-0000${i + 1}-of-0000${shards}.gguf`,
        kind: 'weights.gguf' as const,
        content,
        ...(shards === 1 ? {} : { part: i + 1 })
      })),
      {
        name: 'mmproj-Tiny-F16.gguf',
        kind: 'weights.aux',
        role: 'vision-projector',
        content: makeGguf({ metadata: { 'general.architecture': 'clip', 'general.type': 'mmproj' } })
      }
    ],
    HUB
  )

describe.skipIf(!haveLlamaCpp)('llama.cpp', () => {
  test.each(VARIANTS)('loads a model and a split one ($layout, $mode)', async ({ layout, mode }) => {
    const folder = temporaryFolder()
    const results: unknown[] = []
    for (const shards of [1, 3]) {
      const artifact = await ggufArtifact(join(folder, 'store'), shards)
      const view = await createView(artifact, { path: join(folder, `view-${shards}`), layout, mode, root: folder })
      const { is, path } = runtimePath(view)
      expect(is).toBe('file')
      results.push(await loadLlama(path))
    }
    // the same tensors, so the same model: the second one was put together of three files.
    expect(results[0]).toMatchObject({ vocabularySize: 288, sizeBytes: 156_288 })
    expect(results[1]).toEqual(results[0])
  })

  test('does not find shards behind resolved links: paths must be passed on unresolved', async () => {
    const folder = temporaryFolder()
    const view = await createView(await ggufArtifact(join(folder, 'store'), 3), { path: join(folder, 'view') })
    await expect(loadLlama(realpathSync(runtimePath(view).path))).rejects.toThrow()
  })
})

describe('the hub’s reader of GGUF files', () => {
  test.each(VARIANTS)('reads weights and projector ($layout, $mode)', async ({ layout, mode }) => {
    const folder = temporaryFolder()
    const artifact = await ggufArtifact(join(folder, 'store'), 2)
    const view = await createView(artifact, { path: join(folder, 'view'), layout, mode })
    const weights = await gguf(runtimePath(view).path, { allowLocalFile: true })
    expect(weights.metadata).toMatchObject({ 'llama.block_count': 2 })
    const projector = await gguf(runtimePath(view, 'mmproj').path, { allowLocalFile: true })
    expect(projector.metadata['general.architecture']).toBe('clip')
  })
})

const INDEX = {
  metadata: { total_size: 24 },
  weight_map: { 'a.weight': 'model-00001-of-00002.safetensors', 'b.weight': 'model-00002-of-00002.safetensors' }
}
const TOKENIZER = {
  version: '1.0',
  added_tokens: [],
  normalizer: { type: 'Lowercase' },
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: null,
  decoder: null,
  model: { type: 'WordLevel', vocab: { '[UNK]': 0, hello: 1, world: 2 }, unk_token: '[UNK]' }
}

function transformersArtifact(root: string): Promise<Artifact> {
  const shard = (name: string, width: number): Buffer =>
    makeSafetensors({ tensors: [{ name, dtype: 'F32', shape: [width, 2] }] })
  return makeArtifact(
    root,
    [
      { name: 'model-00001-of-00002.safetensors', kind: 'weights.safetensors', content: shard('a.weight', 1), part: 1 },
      { name: 'model-00002-of-00002.safetensors', kind: 'weights.safetensors', content: shard('b.weight', 2), part: 2 },
      {
        name: 'model.safetensors.index.json',
        kind: 'weights.aux',
        role: 'weights-index',
        content: JSON.stringify(INDEX)
      },
      {
        name: 'tokenizer.tar',
        kind: 'tokenizer',
        content: {
          'tokenizer.json': JSON.stringify(TOKENIZER),
          'tokenizer_config.json': '{"tokenizer_class":"PreTrainedTokenizerFast","unk_token":"[UNK]"}'
        }
      },
      {
        name: 'chat_template.jinja',
        kind: 'chat-template',
        content: '{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}'
      },
      {
        name: 'adapter.tar',
        kind: 'adapter',
        content: { 'adapter_config.json': '{"r":8}', 'adapter_model.safetensors': makeSafetensors() }
      }
    ],
    { ...HUB, upstreamConfig: '{"model_type":"llama"}' }
  )
}

test.each(VARIANTS)(
  'transformers’ own tokenizer and template engine read the folder ($layout, $mode)',
  async ({ layout, mode }) => {
    const folder = temporaryFolder()
    const artifact = await transformersArtifact(join(folder, 'store'))
    const view = await createView(artifact, { path: join(folder, 'view'), layout, mode })
    const { is, path } = runtimePath(view)
    expect([is, path]).toEqual(['folder', view.folder])
    const json = (name: string): object => JSON.parse(readFileSync(join(path, name), 'utf8')) as object
    const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'))
    expect(tokenizer.encode('Hello unknown WORLD').ids).toEqual([1, 0, 2])
    const template = new Template(readFileSync(join(path, 'chat_template.jinja'), 'utf8'))
    expect(template.render({ messages: [{ role: 'user', content: 'hi' }] })).toBe('<user>hi')
    expect(json('config.json')).toEqual({ model_type: 'llama' })
    expect(json('adapter_config.json')).toEqual({ r: 8 })
  }
)

test.each(VARIANTS)(
  'the hub’s safetensors reader finds the shards through their index ($layout, $mode)',
  async ({ layout, mode }) => {
    const folder = temporaryFolder()
    const artifact = await transformersArtifact(join(folder, 'store'))
    const view = await createView(artifact, { path: join(folder, 'view'), layout, mode })
    const found = await parseSafetensorsMetadata({ repo: REPO, fetch: fileFetch(view.folder) })
    expect(found).toMatchObject({ sharded: true, index: INDEX })
    const headers = (found as { headers: Record<string, Record<string, { shape: number[] }>> }).headers
    expect(headers['model-00002-of-00002.safetensors']?.['b.weight']?.shape).toEqual([2, 2])
  }
)

describe('the hub’s own client, offline', () => {
  test.each(['symlink', 'copy', 'hardlink'] as const)('accepts a view as its cache (%s)', async (mode) => {
    const folder = temporaryFolder()
    const artifact = await transformersArtifact(join(folder, 'store'))
    const view = await createView(artifact, { path: join(folder, 'cache'), layout: 'hf', mode })
    const offline = (): never => {
      throw new Error('there is no network')
    }
    for (const { name } of view.files) {
      const path = await downloadFileToCacheDir({
        repo: REPO,
        path: name,
        revision: COMMIT,
        cacheDir: view.path,
        fetch: offline
      })
      expect(path).toBe(join(view.folder, name))
      expect((await readFile(path)).length).toBeGreaterThan(0)
    }
    const { repos, warnings } = await scanCacheDir(view.path)
    expect(warnings).toEqual([])
    expect(
      repos.map(({ id, revisions }) => [id.name, revisions.map(({ commitOid, refs }) => [commitOid, refs])])
    ).toEqual([[REPO, [[COMMIT, ['main']]]]])
  })

  test('a view of copies can be adopted as a cache, with its digests', async () => {
    const folder = temporaryFolder()
    const artifact = await transformersArtifact(join(folder, 'store'))
    const view = await createView(artifact, { path: join(folder, 'cache'), layout: 'hf', mode: 'copy' })
    const { models, warnings } = await readCache({ tool: 'hf', path: view.path })
    expect(warnings).toEqual([])
    const expected = new Map(models[0]!.files.map((file) => [file.name, file.expectedSha256]))
    for (const { name, digest } of artifact.files.slice(0, 2)) expect(expected.get(name)).toBe(digest)
  })
})

/** Answers requests for files of a repository from a folder, ranges too. */
const fileFetch =
  (folder: string): typeof fetch =>
  async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const name = decodeURIComponent(/\/(?:resolve|raw)\/[^/]+\/(.+)$/.exec(url.pathname)?.[1] ?? '')
    const bytes = await readFile(join(folder, name)).catch(() => undefined)
    if (bytes === undefined) return new Response(null, { status: 404 })
    const headers = new Headers(init?.headers)
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? []
    const part = bytes.subarray(Number(from), to === '' ? bytes.length : Number(to) + 1)
    return new Response(Uint8Array.from(part), {
      status: headers.has('range') ? 206 : 200,
      headers: {
        'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}`,
        'content-length': String(part.length),
        etag: '"x"'
      }
    })
  }
