import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { readLibrary } from '@svc/library'
import { serveModels } from '@svc/mirror'
import { until } from '@svc/testkit/until'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'

async function served() {
  const temporary = temporaryFolder()
  vi.stubEnv('TMPDIR', temporary)
  const daemon = await testDaemon()
  const client = createClient(daemon.running)
  const reader = await readLibrary({ root: daemon.root })
  const server = await serveModels(reader, { hub: {}, oci: {}, s3: {} })
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
  return { daemon, client, server, temporary, becomes }
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

test('what its owner makes private is given no more, and a running answer is cut', async () => {
  const { daemon, client, server, becomes } = await served()
  const weights = gguf(64 << 20)
  await daemon.import([writeFiles(join(daemon.folder, 'large'), { 'large-q8_0.gguf': weights })], 'me/large')
  const url = `${server.urls.hub}/me/large/resolve/main/large-q8_0.gguf`
  await becomes(`${server.urls.hub}/api/models/me/large`, 200)
  const response = await fetch(url)
  expect(response.status).toBe(200)
  const body = response.body!.getReader()
  await body.read()
  await client.setPrivate({ ref: 'me/large:q8_0', private: true })
  expect((await fetch(url)).status).toBe(404)
  const rest = async (): Promise<void> => {
    for (;;) {
      // as slowly as something else is answered
      await (await fetch(`${server.urls.hub}/api/models/me/none`)).arrayBuffer()
      if ((await body.read()).done) return
    }
  }
  await expect(rest()).rejects.toThrow()
})

test('without the store nothing is answered', async () => {
  const { daemon, server, becomes } = await served()
  const url = `${server.urls.hub}/api/models/me/none`
  expect((await fetch(url)).status).toBe(404)
  rmSync(join(daemon.root, 'id'))
  await becomes(url, 503)
})
