import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localFiles, type OwnedModels, openLibrary } from '@svc/library'
import { expect, onTestFinished, test } from 'vitest'
import { gguf, MODEL, writeFiles } from '../../daemon/test/support/models.ts'
import { type ModelServer, type ServeOptions, serveModels } from '../src/index.ts'

interface Opened {
  readonly folder: string
  readonly library: OwnedModels
}

async function opened(): Promise<Opened> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mirror-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const library = await openLibrary({ root: join(folder, 'store') })
  onTestFinished(() => library.close())
  return { folder, library }
}

async function served(library: OwnedModels, options: ServeOptions): Promise<ModelServer> {
  const server = await serveModels(library, options)
  onTestFinished(() => server.close())
  return server
}

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers })
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}
const json = async (url: string) => JSON.parse((await get(url)).body.toString())

test('a model is a repository of its name, with all of its files, at a commit that stays until it changes', async () => {
  const { folder, library } = await opened()
  const { urls } = await served(library, { hub: {} })
  expect((await get(`${urls.hub}/api/models/me/small`)).status).toBe(404)
  await library.import(localFiles([writeFiles(join(folder, 'small'), MODEL)]), 'me/small')

  const info = await json(`${urls.hub}/api/models/me/small`)
  expect(info).toMatchObject({ id: 'me/small', sha: expect.stringMatching(/^[0-9a-f]{40}$/) })
  const names = info.siblings.map(({ rfilename }: { rfilename: string }) => rfilename)
  expect(names).toEqual(expect.arrayContaining(['model.safetensors', 'tiny-q8_0.gguf', 'config.json', 'LICENSE']))
  for (const revision of ['main', info.sha]) {
    const { status, headers, body } = await get(`${urls.hub}/me/small/resolve/${revision}/model.safetensors`)
    expect(status).toBe(200)
    expect(headers.get('x-repo-commit')).toBe(info.sha)
    expect(body.equals(MODEL['model.safetensors'] as Buffer)).toBe(true)
  }
  const part = await get(`${urls.hub}/me/small/resolve/main/tiny-q8_0.gguf`, { range: 'bytes=4-9' })
  expect([part.status, part.body.length]).toEqual([206, 6])
  expect((await json(`${urls.hub}/api/models/me/small`)).sha).toBe(info.sha)

  await library.import(localFiles([writeFiles(join(folder, 'more'), { 'small-q4_0.gguf': gguf(1_000) })]), 'me/small')
  const { sha, siblings } = await json(`${urls.hub}/api/models/me/small`)
  expect(sha).not.toBe(info.sha)
  expect(siblings).toContainEqual({ rfilename: 'small-q4_0.gguf' })
})

test('hub and registry require the token, the object store its keys', async () => {
  const { folder, library } = await opened()
  await library.import(localFiles([writeFiles(join(folder, 'm'), { 'm-q8_0.gguf': gguf(1_000) })]), 'me/m')
  const { urls } = await served(library, {
    hub: {},
    oci: {},
    s3: {},
    token: 'a-secret',
    s3Keys: new Map([['id', 'a-long-secret']])
  })
  const paths = [`${urls.hub}/api/models/me/m`, `${urls.oci}/v2/me/m/tags/list`]
  for (const path of paths) {
    expect((await get(path)).status).toBe(401)
    expect((await get(path, { authorization: 'Bearer a-secret' })).status).toBe(200)
  }
  expect((await get(`${urls.s3}/models/me/m/q8_0/m-q8_0.gguf`)).status).toBe(403)
})

test('an object store that others reach needs keys, and a taken port is named', async () => {
  const { library } = await opened()
  for (const options of [{ s3: { host: '0.0.0.0' } }, { s3: {}, token: 'a-secret' }])
    await expect(serveModels(library, options)).rejects.toMatchObject({ code: 'E_OPTION' })
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as { port: number }
  await expect(serveModels(library, { oci: {}, hub: { port } })).rejects.toMatchObject({
    code: 'E_LISTEN',
    details: { kind: 'hub' },
    message: expect.stringContaining(`127.0.0.1:${port}`)
  })
})

test('only what this process has opened can be served', async () => {
  const { library } = await opened()
  await expect(serveModels({ ...library }, { hub: {} })).rejects.toMatchObject({ code: 'E_INVALID' })
})

test('no door gives what no runtime can load', async () => {
  const { folder, library } = await opened()
  const files = { 'm-q8_0.gguf': 'GGUF, but for its first four bytes' }
  await library.import(localFiles([writeFiles(join(folder, 'm'), files)]), 'me/m')
  const { urls } = await served(library, { hub: {}, oci: {}, s3: {} })
  for (const path of [
    `${urls.hub}/api/models/me/m`,
    `${urls.oci}/v2/me/m/tags/list`,
    `${urls.s3}/models/me/m/q8_0/m-q8_0.gguf`
  ])
    expect((await get(path)).status).toBe(404)
})

test('nothing answers after close', async () => {
  const { library } = await opened()
  const { urls, close } = await serveModels(library, { hub: {} })
  await close()
  await close()
  await expect(get(`${urls.hub}/api/models/me/m`)).rejects.toThrow('fetch failed')
})

test.each([
  ['an empty token', { hub: {}, token: ' ' }],
  ['no key', { s3: {}, s3Keys: new Map<string, string>() }],
  ['a short secret', { s3: {}, s3Keys: new Map([['key', 'short']]) }]
] satisfies readonly [string, ServeOptions][])('%s is refused: it would let everybody in', async (_, options) => {
  const { library } = await opened()
  await expect(serveModels(library, options)).rejects.toMatchObject({ code: 'E_OPTION' })
})
