import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { readLibrary } from '@svc/library'
import { type ServeOptions, serveModels } from '@svc/mirror'
import { until } from '@svc/testkit/until'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ChangesElsewhere } from '../../../internal/state/src/changes-elsewhere.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'
import { FOLDER, signerIn } from '../support/signed-models.ts'

async function served(options: Pick<ServeOptions, 'trust'> = {}) {
  const temporary = temporaryFolder()
  vi.stubEnv('TMPDIR', temporary)
  onTestFinished(() => void vi.unstubAllEnvs())
  const daemon = await testDaemon()
  const client = createClient(daemon.running)
  const reader = await readLibrary({ root: daemon.root })
  const server = await serveModels(reader, { hub: {}, oci: {}, s3: {}, ...options })
  onTestFinished(async () => {
    await server.close()
    await reader.close()
  })
  const status = async (url: string): Promise<number> => {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.status
  }
  /** Until an answer has it: a change of the owner's shows within a tick of the file system's clock. */
  const becomes = async (url: string, wanted: number): Promise<void> => {
    let now = await status(url)
    await until(
      () => now === wanted,
      async () => {
        now = await status(url)
      }
    )
  }
  return { daemon, client, server, temporary, becomes, status }
}

test('a store is served beside the daemon that owns it: its changes show, and nothing is written there', async () => {
  const { daemon, client, server, temporary, becomes } = await served()
  const { hub, oci, s3 } = server.urls
  const doors = [
    `${hub}/api/models/me/small`,
    `${oci}/v2/me/small/tags/list`,
    `${s3}/models/me/small/q8_0/tiny-q8_0.gguf`
  ]
  for (const url of doors) expect((await fetch(url)).status).toBe(404)
  await daemon.import([writeFiles(join(daemon.folder, 'small'), MODEL)], 'me/small')
  const seen = () => readdirSync(daemon.root, { recursive: true }).map(String).sort()
  const before = seen()
  for (const url of doors) await becomes(url, 200)
  for (const name of ['tiny-q8_0.gguf', 'model.safetensors', 'config.json', 'tokenizer.json']) {
    const response = await fetch(`${hub}/me/small/resolve/main/${name}`)
    expect([name, response.status]).toEqual([name, 200])
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(MODEL[name] as Buffer))).toBe(true)
  }
  expect(seen()).toEqual(before)

  await daemon.import([writeFiles(join(daemon.folder, 'more'), { 'more-q4_0.gguf': gguf(1_000) })], 'me/small')
  await becomes(`${hub}/me/small/resolve/main/more-q4_0.gguf`, 200)
  await client.removeModel({ ns: 'me', name: 'small' })
  for (const url of doors) await becomes(url, 404)
  await server.close()
  expect(readdirSync(temporary)).toEqual([])
})

/** A running answer of a model, whose rest fails once it is cut. */
async function running({ daemon, server, becomes }: Awaited<ReturnType<typeof served>>) {
  const weights = gguf(64 << 20)
  await daemon.import([writeFiles(join(daemon.folder, 'large'), { 'large-q8_0.gguf': weights })], 'me/large')
  const url = `${server.urls.hub}/me/large/resolve/main/large-q8_0.gguf`
  await becomes(`${server.urls.hub}/api/models/me/large`, 200)
  const response = await fetch(url)
  expect(response.status).toBe(200)
  const body = response.body!.getReader()
  await body.read()
  const rest = async (): Promise<void> => {
    for (;;) {
      // as slowly as something else is answered
      await (await fetch(`${server.urls.hub}/api/models/me/none`)).arrayBuffer()
      if ((await body.read()).done) return
    }
  }
  return { url, rest }
}

test('what its owner makes private is given no more, and a running answer is cut', async () => {
  const all = await served()
  const { url, rest } = await running(all)
  await all.client.setPrivate({ ref: 'me/large:q8_0', private: true })
  expect((await fetch(url)).status).toBe(404)
  await expect(rest()).rejects.toThrow()
})

test('a running answer is cut, too, where the look that should have told failed', async () => {
  const all = await served()
  const { rest } = await running(all)
  const { readdir } = fsPromises
  const restore = (): void => {
    fsPromises.readdir = readdir
    syncBuiltinESMExports()
  }
  onTestFinished(restore)
  let failures = 0
  fsPromises.readdir = (async (path: string, ...more: []) => {
    if (path !== join(all.daemon.root, 'state/artifacts')) return readdir(path, ...more)
    failures++
    throw Object.assign(new Error('EIO: i/o error, scandir'), { code: 'EIO' })
  }) as unknown as typeof readdir
  syncBuiltinESMExports()
  await all.client.setPrivate({ ref: 'me/large:q8_0', private: true })
  await until(() => failures > 0)
  restore()
  await expect(rest()).rejects.toThrow()
})

test('without the store nothing is answered', async () => {
  const { daemon, server, becomes } = await served()
  const url = `${server.urls.hub}/api/models/me/none`
  expect((await fetch(url)).status).toBe(404)
  rmSync(join(daemon.root, 'id'))
  await becomes(url, 503)
})

test('models whose signature the owner requires are served only with it', async () => {
  const folder = temporaryFolder()
  const signer = signerIn(folder)
  const trust = [
    {
      label: 'me',
      isFor: (names: readonly string[]) => names.some((name) => name.startsWith('me/')),
      mode: 'require' as const,
      keys: [signer.keyFile]
    }
  ]
  const { daemon, server, becomes, status } = await served({ trust })
  for (const [name, files] of [
    ['bare', FOLDER],
    ['signed', signer.sign(FOLDER)]
  ] as const)
    await daemon.import([writeFiles(join(daemon.folder, name), files)], `me/${name}`)
  const doors = (name: string): readonly string[] => [
    `${server.urls.hub}/api/models/me/${name}`,
    `${server.urls.oci}/v2/me/${name}/tags/list`,
    `${server.urls.s3}/models/me/${name}/bf16/model.safetensors`
  ]
  for (const url of doors('signed')) await becomes(url, 200)
  for (const url of doors('bare')) expect(await status(url)).toBe(404)
})

test('a disk that goes away is no end: what is served is back with it', async () => {
  const { daemon, server, becomes } = await served()
  await daemon.import([writeFiles(join(daemon.folder, 'small'), MODEL)], 'me/small')
  const url = `${server.urls.hub}/api/models/me/small`
  await becomes(url, 200)
  const looks = vi.spyOn(ChangesElsewhere.prototype, 'revision', 'get')
  renameSync(daemon.root, `${daemon.root}-away`)
  // the timer's, which no request waits for
  await until(() => looks.mock.results.length > 0)
  expect(looks.mock.results.map(({ type }) => type)).not.toContain('throw')
  await becomes(url, 503)
  renameSync(`${daemon.root}-away`, daemon.root)
  await becomes(url, 200)
})

test('serving that cannot begin leaves nothing', async () => {
  const { daemon, temporary } = await served()
  const reader = await readLibrary({ root: daemon.root })
  onTestFinished(() => reader.close())
  const before = readdirSync(temporary)
  renameSync(daemon.root, `${daemon.root}-away`)
  await expect(serveModels(reader, { hub: {} })).rejects.toThrow()
  renameSync(`${daemon.root}-away`, daemon.root)
  expect(readdirSync(temporary)).toEqual(before)
})

test('what was unpacked goes with its model, and after a killed process with the next one', async () => {
  const { daemon, client, server, temporary, becomes } = await served()
  await daemon.import([writeFiles(join(daemon.folder, 'small'), MODEL)], 'me/small')
  const url = `${server.urls.hub}/me/small/resolve/main/tokenizer.json`
  await becomes(url, 200)
  const unpacked = () => readdirSync(temporary, { recursive: true }).filter((path) => `${path}`.endsWith('.json'))
  expect(unpacked()).not.toEqual([])
  await client.setPrivate({ ref: 'me/small:bf16', private: true })
  await client.setPrivate({ ref: 'me/small:q8_0', private: true })
  await until(() => unpacked().length === 0)
  await client.setPrivate({ ref: 'me/small:bf16', private: false })
  await becomes(url, 200)
  await client.removeModel({ ns: 'me', name: 'small' })
  await until(() => unpacked().length === 0)

  // as of a process that had another start
  const [own] = readdirSync(temporary)
  const killed = own!.replace(/\.\d+-\w+$/, '.1-killed')
  expect(killed).not.toBe(own)
  mkdirSync(join(temporary, killed))
  const reader = await readLibrary({ root: daemon.root })
  const next = await serveModels(reader, { hub: {} })
  expect(readdirSync(temporary).sort()).toHaveLength(2)
  expect(readdirSync(temporary)).not.toContain(killed)
  await next.close()
  await reader.close()
})
