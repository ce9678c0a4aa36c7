import { createHash } from 'node:crypto'
import { downloadFile, listFiles, modelInfo } from '@huggingface/hub'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeHub, startFakeHub } from '../src/fake-hub.ts'
import { contentChunks } from '../src/fake-hub-content.ts'

const weights = { seed: 7, sizeBytes: 3_000_001 }
let hub: FakeHub
let commit: string

beforeAll(async () => {
  hub = await startFakeHub({
    pageSize: 3,
    tokens: ['hf_member'],
    repos: [
      { id: 'Some-Org/Gated', gated: 'auto', files: [{ path: 'model.gguf', content: weights }] },
      {
        id: 'Some-Org/Model',
        files: [
          { path: 'config.json', content: Buffer.from('{"a":1}') },
          { path: 'model.safetensors', content: weights },
          { path: 'deep/down/here.txt', content: Buffer.from('text') },
          { path: 'deep/other.txt', content: Buffer.from('more text') },
          { path: 'README.md', content: Buffer.from('# read me') }
        ]
      }
    ]
  })
  commit = hub.commit({
    id: 'Some-Org/Second',
    files: [{ path: 'model.gguf', content: weights }]
  })
})
afterAll(() => hub.close())

const repo = { type: 'model', name: 'Some-Org/Model' } as const

test('the official client lists a repository page by page', async () => {
  const files = new Map<string, unknown>()
  for await (const entry of listFiles({ repo, recursive: true, hubUrl: hub.endpoint })) {
    if (entry.type === 'file') files.set(entry.path, entry.lfs?.oid ?? entry.oid)
  }
  expect([...files.keys()].sort()).toEqual([
    'README.md',
    'config.json',
    'deep/down/here.txt',
    'deep/other.txt',
    'model.safetensors'
  ])
  const sha256 = createHash('sha256')
  for (const chunk of contentChunks(weights)) sha256.update(chunk)
  expect(files.get('model.safetensors')).toBe(sha256.digest('hex'))
  // printf text | git hash-object --stdin
  expect(files.get('deep/down/here.txt')).toBe('f3a34851d44d6b97c90fbb99dd3d18c261b9a237')
  expect(hub.requests.filter((request) => request.stage === 'tree').length).toBeGreaterThan(1)
})

test('the official client downloads a large file from the CDN and a small one from the hub', async () => {
  const large = await downloadFile({ repo, path: 'model.safetensors', hubUrl: hub.endpoint, xet: false })
  expect(Buffer.from(await (large as Blob).arrayBuffer()).equals(Buffer.concat([...contentChunks(weights)]))).toBe(true)
  const small = await downloadFile({ repo, path: 'deep/down/here.txt', hubUrl: hub.endpoint })
  expect(await (small as Blob).text()).toBe('text')
  expect(hub.requests.some((request) => request.origin === 'cdn')).toBe(true)
})

test('the official client reads the model info', async () => {
  const info = await modelInfo({
    name: 'Some-Org/Second',
    revision: 'main',
    hubUrl: hub.endpoint,
    additionalFields: ['sha']
  })
  expect(info.sha).toBe(commit)
})

test('a gated repository lists its files without a token, and serves bytes only with one', async () => {
  const gated = { type: 'model', name: 'Some-Org/Gated' } as const
  const paths: string[] = []
  for await (const entry of listFiles({ repo: gated, recursive: true, hubUrl: hub.endpoint })) paths.push(entry.path)
  expect(paths).toEqual(['model.gguf'])
  const ask = (accessToken?: string) =>
    downloadFile({
      repo: gated,
      path: 'model.gguf',
      hubUrl: hub.endpoint,
      xet: false,
      ...(accessToken === undefined ? {} : { accessToken })
    })
  await expect(ask()).rejects.toMatchObject({ statusCode: 401 })
  expect((await ask('hf_member'))?.size).toBe(weights.sizeBytes)
})

test('the CDN refuses a token and an expired address', async () => {
  const found = await fetch(`${hub.endpoint}/Some-Org/Model/resolve/main/model.safetensors`, { redirect: 'manual' })
  const location = found.headers.get('location') as string
  expect(new URL(location).origin).toBe(hub.cdnOrigin)
  const status = async (headers: Record<string, string>) => {
    const answer = await fetch(location, { headers })
    await answer.body?.cancel()
    return answer.status
  }
  expect(await status({ authorization: 'Bearer x' })).toBe(400)
  expect(await status({ range: 'bytes=10-19' })).toBe(206)
  hub.expireSignedUrls()
  expect(await status({})).toBe(403)
})
